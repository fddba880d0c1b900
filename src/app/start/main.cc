// SPDX-License-Identifier: BSD-3-Clause
// main.cc - batchplaned: options, start, the loop until it is told to stop, the last report.
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "app/plan/environment_build.h"
#include "app/start/daemon.h"
#include "app/start/device_profile_run.h"
#include "app/start/module_schema.h"
#include "app/start/profile_run.h"
#include "app/start/startup.h"
#include "app/wire/json_value.h"
#include "app/wire/messages.h"
#include "offload/cuda/cuda_device.h"
#include "offload/opencl/opencl_device.h"

namespace {

using namespace batchplane;       // NOLINT(google-build-using-namespace)
using namespace batchplane::app;  // NOLINT(google-build-using-namespace)

constexpr int kGood = 0;
constexpr int kFailed = 1;
constexpr int kBadInput = 2;

int print_schema() {
  std::printf("%s\n", to_json(schema_value()).c_str());
  return kGood;
}

void print_errors(const std::vector<ConfigError>& errors, const PipelineSpec& spec) {
  for (const ConfigError& error : errors) {
    std::fprintf(stderr, "%s\n", error_line(error, spec.source_map).c_str());
  }
}

int check(const DaemonOptions& options) {
  Startup startup{options};
  std::vector<ConfigError> errors;
  Dict told;
  const std::vector<ConfigError> thrown = errors_of([&] { told = check_file(startup, errors); });
  errors.insert(errors.end(), thrown.begin(), thrown.end());
  told["ok"] = errors.empty();
  told["errors"] = errors_value(errors, startup.spec.source_map);
  told["warnings"] = warnings_value(startup.spec);
  std::printf("%s\n", to_json(told).c_str());
  return errors.empty() ? kGood : kBadInput;
}

int measure(const DaemonOptions& options, const std::string& request_path, bool are_devices) {
  Startup startup{options};
  Value result;
  const std::vector<ConfigError> errors = errors_of([&] {
    result = are_devices ? run_device_profile(startup, request_path)
                         : run_profile(startup, request_path);
  });
  print_errors(errors, startup.spec);
  if (!errors.empty()) return kBadInput;
  std::printf("%s\n", to_json(result).c_str());
  return kGood;
}

int print_routes(const DaemonOptions& options) {
  Startup startup{options};
  Value found;
  const std::vector<ConfigError> errors = errors_of([&] { found = route_file(startup); });
  if (!errors.empty()) found = Dict{{"errors", errors_value(errors, startup.spec.source_map)}};
  std::printf("%s\n", to_json(found).c_str());
  return errors.empty() ? kGood : kBadInput;
}

// {KEY: list}, or {"missing": reason}.
int print_devices(const char* key, List (*list)()) {
  Value found;
  const std::vector<ConfigError> errors = errors_of([&] { found = Dict{{key, list()}}; });
  if (!errors.empty()) found = Dict{{"missing", errors.front().line()}};
  std::printf("%s\n", to_json(found).c_str());
  return kGood;
}

int run(const DaemonOptions& options) {
  Startup startup{options};
  // Signals are blocked before the first thread exists, so that no thread takes one.
  block_signals();
  const std::vector<ConfigError> errors = errors_of([&] { start_up(startup); });
  if (!errors.empty()) {
    print_errors(errors, startup.spec);
    return kBadInput;
  }
  int result = kGood;
  const std::vector<ConfigError> failures =
      errors_of([&] { result = serve(startup) ? kGood : kFailed; });
  print_errors(failures, startup.spec);
  startup.runtime.reset();
  return failures.empty() ? result : kFailed;
}

bool is_cpu_good() {
  return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("bmi2") != 0 &&
         __builtin_cpu_supports("fma") != 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App cli{"Runs a packet-processing pipeline.", "batchplaned"};
  DaemonOptions options;
  bool wants_schema = false;
  bool wants_opencl = false;
  bool wants_cuda = false;
  bool wants_check = false;
  bool wants_profile = false;
  bool wants_device_profile = false;
  std::string profile_request_path;
  bool wants_routes = false;
  cli.add_option("PIPELINE", options.pipeline_path, "canonical JSON of the pipeline");
  cli.add_option("--name", options.name, "name of the daemon (default: the pipeline's)");
  cli.add_option("--socket", options.socket_path, "control socket");
  cli.add_option("--memory-mb", options.memory_mb,
                 "memory for packets and tables (default: computed)")
      ->check(CLI::Range(16, 16 << 20));
  cli.add_option("--cores", options.cores, "cores: the first for control, the others for workers");
  cli.add_option("--duration-s", options.duration_s, "stop after this time")
      ->check(CLI::NonNegativeNumber);
  cli.add_flag("--modules", wants_schema, "describe modules and ports as JSON, and exit");
  cli.add_flag("--opencl", wants_opencl, "list OpenCL's devices as JSON, and exit");
  cli.add_flag("--cuda", wants_cuda, "list NVIDIA's GPUs as JSON, and exit");
  cli.add_flag("--check", wants_check, "look for mistakes in the pipeline, and exit");
  cli.add_flag("--profile", wants_profile,
               "measure what the pipeline's modules cost, as JSON, and exit");
  cli.add_flag("--profile-devices", wants_device_profile,
               "measure what batches of them take on devices, as JSON, and exit");
  cli.add_option("--profile-request", profile_request_path,
                 "JSON: groups of modules to measure, ms_per_module, passes, loop; of devices: "
                 "devices, modules, batch_pkts, ms, pair_batch_pkts");
  cli.add_flag("--routes", wants_routes,
               "tell as JSON which way each generated flow takes, and exit");
  cli.add_option("--frames", options.frames_path,
                 "with --routes: JSON of further packets, {\"frames\": {GENERATOR: [hex, ..]}}");
  cli.add_flag(
      "--grouped", options.groups_routes,
      "with --routes: flows that go the same way as one row; with --check: tell these, too, "
      "if flows with SLOs come to an egress");
  cli.set_version_flag("--version", std::string("batchplaned ") + kDaemonVersion);
  try {
    cli.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return cli.exit(e) == 0 ? kGood : kBadInput;
  }
  if (!is_cpu_good()) {
    std::fprintf(stderr, "this CPU lacks AVX2, BMI2 or FMA (x86-64-v3 is needed)\n");
    return kFailed;
  }
  if (wants_schema) return print_schema();
  if (wants_opencl) return print_devices("platforms", offload::list_opencl_devices);
  if (wants_cuda) return print_devices("devices", offload::list_cuda_devices);
  if (options.pipeline_path.empty()) {
    std::fprintf(stderr, "no pipeline is given (batchplaned --help)\n");
    return kBadInput;
  }
  const int result = wants_profile || wants_device_profile
                         ? measure(options, profile_request_path, wants_device_profile)
                     : wants_check  ? check(options)
                     : wants_routes ? print_routes(options)
                                    : run(options);
  std::fflush(stdout);
  // Ports have closed their devices; whatever the backend still holds ends with the process.
  _exit(result);
}

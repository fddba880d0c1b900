// SPDX-License-Identifier: BSD-3-Clause
#include "offload/devices.h"

#include <algorithm>
#include <set>

#include "base/batch_law_value.h"
#include "base/nearest_word.h"

namespace batchplane::offload {
namespace {

constexpr uint32_t kMaxThreads = 16;

ParamSpec watts(const std::string& name, const std::string& help) {
  return {.name = name,
          .type = ParamType::kFloat,
          .unit = "W",
          .default_value = 0.0,
          .help = help,
          .min = 0,
          .max = 10'000};
}

// There are no default laws: they must be given.
std::vector<ParamSpec> thread_params(const std::string& laws_help, const Value& default_laws) {
  return {
      {.name = "laws", .type = ParamType::kDict, .default_value = default_laws, .help = laws_help},
      {.name = "threads",
       .default_value = 1,
       .help = "how many; the jobs of a module all run on the same one",
       .min = 0,
       .max = kMaxThreads},
      {.name = "cores",
       .type = ParamType::kList,
       .default_value = List{},
       .help = "what they are bound to, in turn; empty: the kernel chooses"},
      watts("off_w", "what it draws while no module uses it: declared, not measured"),
      watts("idle_w", "what it draws while it is in use and has nothing to do"),
      watts("active_w", "what it draws while it works")};
}

std::vector<ParamSpec> cores_params() {
  return thread_params(
      "by kind of module, what a batch takes, for placement: {dpi: {batch: 1us, pkt_ns: 200, "
      "byte_ns: 0.4}}",
      Dict{});
}

std::vector<ParamSpec> simulated_params() {
  std::vector<ParamSpec> params = thread_params(
      "by kind of module, what a batch takes: {dpi: {batch: 20us, pkt_ns: 15, byte_ns: 0.05}}", {});
  params.push_back({.name = "faults",
                    .type = ParamType::kDict,
                    .default_value = Dict{},
                    .help = "what goes wrong, for tests: lose_one_in and late_one_in (batches), "
                            "fail_after_jobs, back_after (a duration), seed"});
  return params;
}

// Keys of devices with their own memory.
std::vector<ParamSpec> kernel_params() {
  std::vector<ParamSpec> params = cores_params();
  const auto named = [&params](const std::string& name) {
    return std::ranges::find(params, name, &ParamSpec::name);
  };
  named("laws")->help += "; else as it was measured at the start";
  named("threads")->help = "1: a thread copies packets there and takes results; 0: the worker does";
  named("threads")->max = 1;
  named("cores")->help = "what it is bound to; empty: the kernel chooses";
  params.push_back({.name = "check_one_in",
                    .unit = "pkts",
                    .default_value = 64,
                    .help =
                        "of so many packets one is computed on the processor, too; a device that "
                        "differs is taken out",
                    .min = 1,
                    .max = 1'000'000});
  return params;
}

ParamSpec name_part(const std::string& name, const std::string& help) {
  return {.name = name, .type = ParamType::kString, .default_value = "", .help = help};
}

std::vector<ParamSpec> opencl_params() {
  std::vector<ParamSpec> params = kernel_params();
  params.push_back(
      name_part("platform", "a part of its name, as `batchplane doctor` lists them; empty: any"));
  params.push_back(name_part("device", "a part of its name; empty: the first of the platform"));
  return params;
}

std::vector<ParamSpec> cuda_params() {
  std::vector<ParamSpec> params = kernel_params();
  params.push_back(name_part("device", "a part of its name, or its number; empty: the first GPU"));
  return params;
}

// {name: law}
std::map<std::string, BatchLaw> laws_of(const Dict& given, const std::string& where) {
  std::map<std::string, BatchLaw> laws;
  for (const auto& [kind, value] : given) laws[kind] = batch_law_from(value, where + "." + kind);
  return laws;
}

Faults faults_of(const Dict& given, const std::string& where) {
  Faults faults;
  for (const auto& [key, value] : given) {
    const std::string at = where + "." + key;
    if (!value.is_int() || value.as_int() < 0) throw ConfigError("expected a whole number", at);
    const auto n = static_cast<uint64_t>(value.as_int());
    const auto n32 = static_cast<uint32_t>(std::min<uint64_t>(n, UINT32_MAX));
    if (key == "lose_one_in") {
      faults.lose_one_in = n32;
    } else if (key == "late_one_in") {
      faults.late_one_in = n32;
    } else if (key == "fail_after_jobs") {
      faults.fail_after_jobs = n32;
    } else if (key == "back_after_ns") {
      faults.back_after_ns = n;
    } else if (key == "seed") {
      faults.seed = n;
    } else {
      throw ConfigError("'" + key + "' is no fault", at,
                        "lose_one_in, late_one_in, fail_after_jobs, back_after, seed");
    }
  }
  return faults;
}

DeviceOptions options_of(const DeviceSpec& spec, const Args& args, bool is_check) {
  const std::string key = "devices." + spec.name + ".params";
  DeviceOptions options;
  options.name = spec.name;
  options.kind = spec.kind;
  options.is_simulated = spec.kind == "simulated";
  options.n_threads = is_check ? 0 : args.u32("threads");
  for (const Value& core : args.list("cores")) {
    if (!core.is_int() || core.as_int() < 0)
      throw ConfigError("a core is a number", key + ".cores");
    options.cores.push_back(static_cast<int>(core.as_int()));
  }
  options.off_w = args.number("off_w");
  options.idle_w = args.number("idle_w");
  options.active_w = args.number("active_w");
  options.laws = laws_of(args.dict("laws"), key + ".laws");
  if (spec.kind == "opencl" || spec.kind == "cuda") options.check_one_in = args.u32("check_one_in");
  if (spec.kind == "opencl") {
    options.opencl = OpenClChoice{args.string("platform"), args.string("device")};
  } else if (spec.kind == "cuda") {
    options.cuda = CudaChoice{args.string("device")};
  } else if (options.is_simulated) {
    options.faults = faults_of(args.dict("faults"), key + ".faults");
  } else if (args.u32("threads") == 0) {
    throw ConfigError("a device of kind cores has a thread at least", key + ".threads", "1 to 16");
  }
  return options;
}

const DeviceKind* find_device_kind(const std::string& name) {
  const auto& kinds = device_kinds();
  const auto it = std::ranges::find(kinds, name, &DeviceKind::kind);
  return it == kinds.end() ? nullptr : &*it;
}

std::shared_ptr<Device> running_device(const DeviceSpec& spec, const Devices* running) {
  if (running == nullptr) return nullptr;
  const auto known = running->specs.find(spec.name);
  if (known == running->specs.end() || known->second != spec) return nullptr;
  return running->by_name.at(spec.name);
}

// The lowest quiescence slots that no device thread has.
class Slots {
 public:
  explicit Slots(const Environment& env, const Devices* running) : next_(env.n_workers) {
    if (running == nullptr) return;
    for (const auto& [name, device] : running->by_name) {
      for (uint32_t t = 0; t < device->options().n_threads; ++t)
        taken_.insert(device->first_slot() + t);
    }
  }
  [[nodiscard]] uint32_t take(uint32_t n_threads) {
    for (uint32_t first = next_; first + n_threads <= Quiescence::kMaxWorkers; ++first) {
      uint32_t n_free = 0;
      while (n_free < n_threads && !taken_.contains(first + n_free)) ++n_free;
      if (n_free < n_threads) continue;
      for (uint32_t t = 0; t < n_threads; ++t) taken_.insert(first + t);
      return first;
    }
    throw ConfigError("too many threads of workers and devices", "devices",
                      std::to_string(Quiescence::kMaxWorkers) + " at most");
  }

 private:
  const uint32_t next_;
  std::set<uint32_t> taken_;
};

}  // namespace

const std::vector<DeviceKind>& device_kinds() {
  static const std::vector<DeviceKind> kinds{
      {"cores", "Threads of its own, which packets are handed to by pointer.", cores_params()},
      {"simulated",
       "Computes for real on a thread of its own, and takes the time that a profile says.",
       simulated_params()},
      {"opencl", "A device with memory of its own, by OpenCL.", opencl_params()},
      {"cuda", "An NVIDIA GPU, by its driver.", cuda_params()}};
  return kinds;
}

void add_devices(const PipelineSpec& pipeline, Environment& env, const Environment* running,
                 Mistakes& mistakes) {
  std::shared_ptr<Devices> before;
  if (running != nullptr) {
    before =
        const_cast<Environment*>(running)->shared<Devices>(kDevices, [] { return new Devices; });
  }
  const auto devices = env.shared<Devices>(kDevices, [] { return new Devices; });
  Slots slots(env, before.get());
  for (const DeviceSpec& spec : pipeline.devices) {
    const std::string key = "devices." + spec.name;
    devices->refused.insert(spec.name);
    const DeviceKind* const kind = find_device_kind(spec.kind);
    if (kind == nullptr) {
      mistakes.add(key + ".kind", "there is no kind of device '" + spec.kind + "'",
                   "cores, simulated, opencl or cuda");
      continue;
    }
    const size_t n_known = mistakes.errors.size();
    check_params(kind->params, spec.params, key + ".params", {"kind"}, mistakes);
    if (mistakes.errors.size() != n_known) continue;
    try {
      const Args args(kind->params, spec.params, key);
      auto device = running_device(spec, before.get());
      if (device == nullptr) {
        DeviceOptions options = options_of(spec, args, env.is_check);
        for (const WorkerSpec& worker : pipeline.workers) {
          if (worker.core >= 0) options.avoided_cores.push_back(worker.core);
        }
        const uint32_t slot = slots.take(options.n_threads);
        device = std::make_shared<Device>(std::move(options), env.quiescence, slot);
      }
      devices->by_name[spec.name] = std::move(device);
      devices->specs[spec.name] = spec;
      devices->refused.erase(spec.name);
    } catch (const ConfigError& error) {
      mistakes.add(error.where().empty() ? key : error.where(), error.what(), error.fix());
    }
  }
}

void lend_packets(Environment& env, PacketPool& pool) {
  const std::vector<std::span<uint8_t>> memory = pool.memory();
  const auto devices = env.shared<Devices>(kDevices, [] { return new Devices; });
  for (const auto& [name, device] : devices->by_name) device->lend(memory);
}

}  // namespace batchplane::offload

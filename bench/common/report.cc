// SPDX-License-Identifier: BSD-3-Clause
#include "common/report.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "common/environment.h"

namespace bench {

Options parse_options(int argc, char** argv, Options defaults) {
  Options options = std::move(defaults);
  bool is_understood = argc % 2 == 1;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string key = argv[i];
    const char* value = argv[i + 1];
    if (key == "--trials") {
      options.trials = static_cast<uint32_t>(std::atoi(value));
    } else if (key == "--batches") {
      options.batches = static_cast<uint32_t>(std::atoi(value));
    } else if (key == "--core") {
      options.core = std::atoi(value);
    } else if (key == "--json") {
      options.json_path = value;
    } else if (key == "--cost-table") {
      options.cost_table_path = value;
    } else if (key == "--only") {
      options.only = value;
    } else {
      is_understood = false;
    }
  }
  if (!is_understood || options.trials < 3 || options.batches < 1) {
    std::fprintf(stderr,
                 "usage: %s [--trials N (>= 3)] [--batches N] [--core N] [--json FILE] "
                 "[--cost-table FILE] [--only TEXT]\n",
                 argv[0]);
    std::exit(2);
  }
  return options;
}

struct Report::State {
  Options options;
  nlohmann::json json;
};

Report::Report(const std::string& name, const Options& options)
    : state_(std::make_unique<State>()) {
  state_->options = options;
  state_->json = {{"version", 1},
                  {"benchmark", name},
                  {"cpu", cpu_model()},
                  {"trials", options.trials},
                  {"batches_per_trial", options.batches},
                  {"cases", nlohmann::json::array()},
                  {"figures", nlohmann::json::array()},
                  {"notes", nlohmann::json::array()}};
  std::printf("%s on %s, %u interleaved trials\n", name.c_str(), cpu_model().c_str(),
              options.trials);
}

Report::~Report() = default;

bool Report::wants(const std::string& label) const {
  return state_->options.only.empty() || label.find(state_->options.only) != std::string::npos;
}

void Report::rows(const std::string& label, const std::vector<Result>& results) {
  nlohmann::json rows = nlohmann::json::array();
  std::printf("%-28s", label.c_str());
  for (const Result& result : results) {
    const double p10 = result.percentile(0.1);
    const double p50 = result.percentile(0.5);
    std::printf("  %s %.2f (median %.2f)", result.name.c_str(), p10, p50);
    rows.push_back({{"name", result.name},
                    {"ns_per_pkt_p10", p10},
                    {"ns_per_pkt_p50", p50},
                    {"ns_per_pkt", result.ns_per_pkt}});
  }
  nlohmann::json ratios = nlohmann::json::object();
  for (size_t i = 1; i < results.size(); ++i) {
    const Interval ratio = paired_ratio(results[0], results[i]);
    std::printf("  /%s %.3f [%.3f, %.3f]", results[i].name.c_str(), ratio.median, ratio.low,
                ratio.high);
    ratios[results[i].name] = {{"median", ratio.median}, {"low", ratio.low}, {"high", ratio.high}};
  }
  std::printf("\n");
  std::fflush(stdout);
  state_->json["cases"].push_back({{"label", label}, {"contenders", rows}, {"ratios", ratios}});
}

void Report::figure(const std::string& label, const std::string& unit, const Interval& value,
                    std::optional<Target> target) {
  nlohmann::json json = {{"label", label},
                         {"unit", unit},
                         {"value", value.median},
                         {"low", value.low},
                         {"high", value.high}};
  std::printf("%-58s %9.3f [%.3f, %.3f] %s", label.c_str(), value.median, value.low, value.high,
              unit.c_str());
  if (target) {
    const std::string verdict = verdict_of(value, *target);
    std::printf("  %s %g: %s", target->is_at_most ? "<=" : ">=", target->limit, verdict.c_str());
    json["target"] = target->limit;
    json["is_at_most"] = target->is_at_most;
    json["verdict"] = verdict;
  }
  std::printf("\n");
  std::fflush(stdout);
  state_->json["figures"].push_back(std::move(json));
}

void Report::note(const std::string& text) {
  std::printf("%s\n", text.c_str());
  state_->json["notes"].push_back(text);
}

void Report::attach(const std::string& key, const std::string& json_text) {
  state_->json[key] = nlohmann::json::parse(json_text);
}

int Report::finish() {
  if (state_->options.json_path.empty()) return 0;
  std::ofstream file(state_->options.json_path);
  file << state_->json.dump(1) << "\n";
  if (!file) {
    std::fprintf(stderr, "cannot write %s\n", state_->options.json_path.c_str());
    return 1;
  }
  return 0;
}

}  // namespace bench

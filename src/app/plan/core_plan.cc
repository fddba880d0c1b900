// SPDX-License-Identifier: BSD-3-Clause
// core_plan.cc - reads the cores that this process may use and assigns them.
#include "app/plan/core_plan.h"

#include <sched.h>

#include <algorithm>
#include <charconv>

#include "app/plan/control_priority.h"
#include "base/error.h"
#include "base/pin_thread.h"

namespace batchplane::app {
namespace {

std::vector<int> allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  std::vector<int> cores;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) cores.push_back(i);
  }
  return cores;
}

std::string listed(const std::vector<int>& cores) {
  std::string text;
  for (const int core : cores) text += (text.empty() ? "" : ",") + std::to_string(core);
  return text;
}

std::vector<int> parse_cores(const std::string& text, const std::vector<int>& allowed) {
  std::vector<int> cores;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    int core = -1;
    const auto [stop, error] = std::from_chars(text.data() + begin, text.data() + end, core);
    if (error != std::errc() || stop != text.data() + end) {
      throw ConfigError("'" + text + "' is no list of cores", "--cores", "for example 0,1");
    }
    if (std::ranges::find(allowed, core) == allowed.end()) {
      throw ConfigError("core " + std::to_string(core) + " cannot be had", "--cores",
                        "this process may use " + listed(allowed));
    }
    if (std::ranges::find(cores, core) == cores.end()) cores.push_back(core);
    begin = end + 1;
  }
  return cores;
}

}  // namespace

CorePlan plan_cores(const std::string& cores_option) {
  CorePlan plan;
  plan.cores = allowed_cores();
  if (!cores_option.empty()) plan.cores = parse_cores(cores_option, plan.cores);
  plan.control_core = plan.cores.front();
  plan.generator_core = plan.control_core;
  return plan;
}

void assign_workers(PipelineSpec& spec, CorePlan& plan) {
  if (spec.workers.empty()) spec.workers.push_back({spec.first_worker(), -1});
  std::vector<int> free = plan.cores;
  for (const WorkerSpec& worker : spec.workers) std::erase(free, worker.core);
  for (WorkerSpec& worker : spec.workers) {
    if (worker.core >= 0 || worker.is_shared) continue;
    worker.core = free.empty() ? plan.cores.back() : free.back();
    if (!free.empty()) free.pop_back();
  }
  for (const GeneratorSpec& generator : spec.generators) std::erase(free, generator.core);
  std::erase(free, plan.control_core);
  plan.generator_core = free.empty() ? plan.control_core : free.back();
}

bool enter_control_core(const CorePlan& plan, bool wants_priority) {
  pin_this_thread(plan.control_core);
  return wants_priority && take_control_priority();
}

}  // namespace batchplane::app

// SPDX-License-Identifier: BSD-3-Clause
// profile.h - measures the cost law of every module of a pipeline, on the pipeline's own tables and
// traffic.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "profile/module_timer.h"

namespace batchplane::profile {

struct Options {
  // Modules that share one measurement, by name: the members reached by traffic run in turn. Empty:
  // each module by itself.
  std::vector<std::vector<std::string>> groups;
  double ms_per_module = 300;
  // over all modules, so that a slow spell of the machine affects no module's whole measurement
  uint32_t passes = 4;
  // Real ports, each with the port that sends to it over an external link: its frames are what
  // polls return. Empty: all ports are rings in memory.
  std::map<std::string, std::string> feeders;
  // Called before each timed part to put the caches into a realistic state; may be null.
  std::function<void()> stir = nullptr;
};

// Owner: one thread, pinned and registered with the packet backend by the caller. Nothing else runs
// `graph`.
class ModuleMeter {
 public:
  ModuleMeter(Graph& graph, PacketPool& pool, const Options& options);
  ~ModuleMeter();

  [[nodiscard]] uint32_t n_modules() const;
  // One of options.passes: each module gets its share of the time. `before` is called with the next
  // module.
  void pass(const std::function<void(uint32_t module)>& before = nullptr);
  [[nodiscard]] std::vector<ModuleProfile> results() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The pipeline changed so that it can be measured without its devices: ports become rings in
// memory, and taps are left out. `notes` says by module what was replaced.
[[nodiscard]] PipelineSpec measurable(const PipelineSpec& spec,
                                      std::map<std::string, std::string>& notes,
                                      bool has_real_ports = false);

}  // namespace batchplane::profile

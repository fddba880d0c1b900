// SPDX-License-Identifier: BSD-3-Clause
// profile.h - the cost law of every module of a pipeline, measured on the pipeline's own tables and
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
  // Modules that share one measurement, by name: those that traffic reaches run in turn. Empty:
  // each module by itself.
  std::vector<std::vector<std::string>> groups;
  double ms_per_module = 300;
  uint32_t passes = 4;  // over all modules: a slow spell of the machine does not take all of one
  // Ports that are real, each with the one whose frames come in there, joined to it outside: what
  // its polls bring. Empty: all are rings in memory.
  std::map<std::string, std::string> feeders;
  // Called before each timed part, to leave the caches as the module meets them; or nothing.
  std::function<void()> stir = nullptr;
};

// Owner: one thread, pinned and registered with the packet backend by the caller. `graph` is not
// run by anybody.
class ModuleMeter {
 public:
  ModuleMeter(Graph& graph, PacketPool& pool, const Options& options);
  ~ModuleMeter();

  [[nodiscard]] uint32_t n_modules() const;
  // One of options.passes: each module gets its share of the time. `before` is told which is next.
  void pass(const std::function<void(uint32_t module)>& before = nullptr);
  [[nodiscard]] std::vector<ModuleProfile> results() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The pipeline as it can be measured without its devices: ports become rings in memory, taps are
// left out. `notes` says by module what was put in the place of what.
[[nodiscard]] PipelineSpec measurable(const PipelineSpec& spec,
                                      std::map<std::string, std::string>& notes,
                                      bool has_real_ports = false);

}  // namespace batchplane::profile

// SPDX-License-Identifier: BSD-3-Clause
// generator_set.h - the generators of a pipeline, each on a thread of its own.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/engine/control_tap.h"
#include "core/module/environment.h"
#include "core/packet/packet_pool.h"
#include "ports/ring_port.h"
#include "spec/pipeline_spec.h"
#include "traffic/generator.h"

namespace batchplane::app {

// Control side, serialised by the caller. Goes before pool and ports do.
class GeneratorSet {
 public:
  explicit GeneratorSet(int default_core) : default_core_(default_core) {}
  ~GeneratorSet();

  // Makes and starts those of `specs` that do not run yet. Throws ConfigError; what it had begun
  // with is ended again then.
  void add(const std::vector<GeneratorSpec>& specs, const Environment& env, PacketPool& pool);
  // Ends those that `specs` does not have in the same form, and those whose port `env` does not
  // keep.
  void keep_only(const std::vector<GeneratorSpec>& specs, const Environment& env);
  // Ends all threads; counts stay readable.
  void stop();

  // Changes `fields` (rate_pps, flow, weights, is_on, is_saturating) of one. check() throws what
  // set() would.
  void check(const std::string& name, const Value& fields) const;
  void set(const std::string& name, const Value& fields);

  [[nodiscard]] Value show() const;
  // How often and for how long the machine has kept them all from their loops.
  [[nodiscard]] ControlTap::Gaps held_up() const;
  // The specifications with what was changed live.
  [[nodiscard]] std::vector<GeneratorSpec> saved() const;

 private:
  struct Entry {
    GeneratorSpec spec;
    std::shared_ptr<RingPort> port;
    std::unique_ptr<traffic::Generator> generator;
    std::atomic<bool> must_stop{false};
    std::thread thread;
  };

  [[nodiscard]] Entry& at(const std::string& name) const;
  std::unique_ptr<Entry> make(const GeneratorSpec& spec, const Environment& env, PacketPool& pool);
  void start(Entry& entry);
  static void end(Entry& entry);

  int default_core_;
  std::vector<std::unique_ptr<Entry>> entries_;
};

}  // namespace batchplane::app

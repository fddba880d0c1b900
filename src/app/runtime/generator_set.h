// SPDX-License-Identifier: BSD-3-Clause
// generator_set.h - a pipeline's generators, each on its own thread.
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

// Control side, serialised by the caller. Destroyed before pool and ports.
class GeneratorSet {
 public:
  explicit GeneratorSet(int default_core) : default_core_(default_core) {}
  ~GeneratorSet();

  // Makes and starts the generators of `specs` that are not running yet. Throws ConfigError; generators
  // already started by this call are then stopped again.
  void add(const std::vector<GeneratorSpec>& specs, const Environment& env, PacketPool& pool);
  // Stops generators that `specs` does not contain unchanged, and those whose port is not in `env`.
  void keep_only(const std::vector<GeneratorSpec>& specs, const Environment& env);
  // Stops all threads; counts stay readable.
  void stop();

  // Changes `fields` (rate_pps, flow, weights, is_on, is_saturating) of one generator. check() throws the
  // same errors as set().
  void check(const std::string& name, const Value& fields) const;
  void set(const std::string& name, const Value& fields);

  [[nodiscard]] Value show() const;
  // How often and how long the machine has stalled all of their loops.
  [[nodiscard]] ControlTap::Gaps held_up() const;
  // Specifications with live changes.
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

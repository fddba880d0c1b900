// SPDX-License-Identifier: BSD-3-Clause
// kinds.h - the facts about module and port kinds that the rules of pipelines need.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "spec/params.h"

namespace batchplane {

enum class Shape : uint8_t { kInPlace, kSplitter, kTerminal, kInput, kQueue };
inline constexpr const char* kShapeNames[] = {"in_place", "splitter", "terminal", "input", "queue"};

// Other modules with a queue's shape, a tap for example, send packets away and bring in different ones.
[[nodiscard]] constexpr bool joins_tasks(Shape shape, bool is_egress) {
  return shape == Shape::kQueue && !is_egress;
}

struct KindFacts {
  Shape shape = Shape::kInPlace;
  std::vector<ParamSpec> params = {};
  std::vector<std::string> gate_names = {};  // names of gates with a meaning; others are numbers
  uint32_t first_named_gate = 0;             // number of gate_names[0]; the others follow it
  bool is_egress = false;                    // flows end here

  [[nodiscard]] bool has_outputs() const { return shape != Shape::kTerminal; }
  [[nodiscard]] bool has_inputs() const { return shape != Shape::kInput; }
  [[nodiscard]] bool hands_over() const { return joins_tasks(shape, is_egress); }
  [[nodiscard]] bool begins_task() const {
    return shape == Shape::kInput || shape == Shape::kQueue;
  }
};

struct PortKindFacts {
  std::vector<ParamSpec> params = {};
  bool takes_generators = false;
};

// The kinds that a program has. Empty parts are unknown and not checked.
struct Kinds {
  std::map<std::string, KindFacts> modules = {};
  std::map<std::string, PortKindFacts> ports = {};
  std::optional<std::vector<ParamSpec>> generator = std::nullopt;
};

// Reads the output of `batchplaned --modules`. Throws ConfigError for anything else.
[[nodiscard]] Kinds kinds_from_value(const Value& schema);

}  // namespace batchplane

// SPDX-License-Identifier: BSD-3-Clause
// cost_case.h - a module in one configuration, by itself on packets that stay in the first cache:
// what is measured, and what each packet must be afterwards.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/cost_law.h"
#include "core/module/module.h"

namespace batchplane::cases {

// How packets differ beyond their frames. They are made anew before each call, untimed.
enum class Feed : uint8_t {
  kFrames,   // they do not
  kRandom,   // random destination addresses
  kRandom6,  // the IPv6 destination is a random one of destinations6
  kFlows,    // random ones of many connections, which were opened before
  kDealt,    // changed by `deal`
};

struct CostCase {
  std::string label;
  std::string kind;
  Dict params = {};
  Feed feed = Feed::kFrames;
  uint32_t gates = 1;
  // Of packet i, 128 bytes or less.
  std::function<std::vector<uint8_t>(uint32_t i)> frame = nullptr;
  // Looks at packet i after one call; says what is wrong, or nothing.
  std::function<std::string(Packet&, uint32_t gate, uint32_t i)> check = nullptr;
  uint32_t flows = 0;  // kFlows: how many
  // kDealt: gives a packet to one of `flows` users.
  void (*deal)(Packet&, uint32_t user) = nullptr;
  bool is_return = false;  // kFlows: packets that answer what the module made of the first ones
  bool takes_all = false;  // drops every packet
  // A module of the same environment that the packets pass first, outside of the timing.
  std::string before_kind = "";
  Dict before_params = {};
  std::string drop_reason = "";                             // that the packets carry
  std::vector<std::array<uint8_t, 16>> destinations6 = {};  // network order
  bool has_target = false;
  CostLaw target = {};  // the bound of a batch
  std::string note = "";
};

}  // namespace batchplane::cases

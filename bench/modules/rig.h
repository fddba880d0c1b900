// SPDX-License-Identifier: BSD-3-Clause
// rig.h - one module by itself on packets that stay in the first cache, called as the engine calls
// it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/stats.h"
#include "core/module.h"

namespace bench {

// How a batch is made ready before each call. The same is done before the calls of the control, so
// that its time cancels out.
enum class Feed : uint8_t {
  kHot,      // the packets as the call before left them
  kFrames,   // bytes, length and metadata written anew
  kTaken,    // the module took the packets: only the list of them is written anew
  kRandom,   // random destination addresses
  kRandom6,  // the IPv6 destination is a random one of destinations6
  kFlows,    // random ones of many connections, which were opened before
  kDealt,    // as kFrames, and then changed by `deal`
  kPool,     // from the pool, to which the module gives them back
  kSource,   // no batch: the module makes it, from the pool and back
  kThrough,  // the batch goes into the module and is polled out again
};

// The bound of a batch of n packets: per_batch_ns + per_pkt_ns * n.
struct LawTarget {
  double per_batch_ns = 0;
  double per_pkt_ns = 0;
  [[nodiscard]] double at(double n) const { return per_batch_ns + per_pkt_ns * n; }
};

struct ModuleCase {
  std::string label;
  std::string kind;
  batchplane::Dict params = {};
  Feed feed = Feed::kHot;
  uint32_t gates = 1;
  std::function<std::vector<uint8_t>(uint32_t i)> frame =
      nullptr;  // of packet i, 128 bytes or less
  // Looks at packet i after one call; says what is wrong, or nothing.
  std::function<std::string(batchplane::Packet&, uint32_t gate, uint32_t i)> check = nullptr;
  uint32_t flows = 0;  // kFlows: how many
  // kDealt: gives a packet to one of `flows` users.
  void (*deal)(batchplane::Packet&, uint32_t user) = nullptr;
  bool is_return = false;  // kFlows: packets that answer what the module made of the first ones
  bool takes_all = false;  // drops every packet
  // A module of the same environment that the packets pass first, outside of the timing.
  std::string before_kind = "";
  batchplane::Dict before_params = {};
  std::string drop_reason = "";                             // that the packets carry
  std::vector<std::array<uint8_t, 16>> destinations6 = {};  // network order
  bool has_target = false;
  LawTarget target = {};
  std::string note = "";
};

class ModuleRig {
 public:
  // Hot packets in rotation; a larger batch is its own rotation.
  static constexpr uint32_t kHotPkts = 64;

  explicit ModuleRig(const ModuleCase& module_case);
  ~ModuleRig();
  // Fresh packets, full token buckets, warm code.
  void prepare(uint32_t batch_pkts, bool is_control);
  // Returns packets. The control does everything but the module's own work.
  uint64_t run(uint32_t n_batches, uint32_t batch_pkts, bool is_control);
  // One batch of 32, looked at packet by packet.
  std::string verify();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace bench

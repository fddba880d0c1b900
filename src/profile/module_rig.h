// SPDX-License-Identifier: BSD-3-Clause
// module_rig.h - times one module, or several alike in turn, on batches of any size: packets as
// they arrive there, in the L1 cache, restored outside the timed part.
//
// Alike modules run in turn, because sixteen access lists do not fit into L1 as one does.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "profile/walk.h"

namespace batchplane::profile {

// Two clock readings with nothing in between, in cycles. Fenced, so that no earlier or later work
// is counted.
[[nodiscard]] uint64_t begin_cycles();
[[nodiscard]] uint64_t end_cycles();
// How far apart readings are: 10 ns on some CPUs. Measured on first use.
[[nodiscard]] double clock_step_ns();
// The step of the clock that measured these times, which are of all lengths.
[[nodiscard]] uint64_t step_of(std::vector<uint64_t> times);

// A module and the packets that arrive at it.
struct Member {
  const Instance* instance;
  const Arrived* arrived;                       // has packets
  std::function<void(Packet&)> vary = nullptr;  // called on each restored packet, untimed
};

class ModuleRig {
 public:
  // Packets of one timed part: with descriptors they take a quarter of a 48 KB L1 cache.
  static constexpr uint32_t kHotPkts = 64;

  // What `members` (one at least, of one kind) point to outlives the rig. `stir`, when given, is
  // called before each timed part: it leaves the caches as the module meets them.
  // A queue is timed where it is filled or, as kTaken, where it is polled.
  enum class Side : uint8_t { kGiven, kTaken };
  ModuleRig(Stage& stage, const std::vector<Member>& members, std::function<void()> stir = nullptr,
            Side side = Side::kGiven);
  ~ModuleRig();
  ModuleRig(const ModuleRig&) = delete;
  ModuleRig& operator=(const ModuleRig&) = delete;

  // Cycles per batch of n, measured over batches_of(n) in a row, including two clock readings for
  // all of them; nothing if the module cannot be given, or does not return, such batches.
  [[nodiscard]] std::optional<uint64_t> run(uint32_t n_pkts);
  // Number of batches of n in one timed part.
  [[nodiscard]] uint32_t batches_of(uint32_t n_pkts) const;
  // Warms up code, tables and branch predictors.
  void warm_up(uint32_t n_pkts);
  // Returns the packets to the pool until the next run: hundreds of rigs share one pool.
  void rest();

 private:
  [[nodiscard]] uint64_t run_batches(uint32_t n_pkts, uint32_t n_batches);
  [[nodiscard]] std::optional<uint64_t> run_polls(uint32_t n_pkts, uint32_t n_batches);
  bool fill_input(uint32_t n_pkts);
  bool send_in(uint32_t n_pkts);
  void restore(uint32_t at, uint32_t n_pkts, uint32_t turn);

  struct Turn {
    void* module = nullptr;
    const std::vector<PacketImage>* images = nullptr;
    std::function<void(Packet&)> vary = nullptr;
    size_t next_image = 0;
  };

  Stage& stage_;
  const Instance& instance_;  // the first
  std::vector<Turn> turns_;
  uint32_t next_turn_ = 0;
  std::function<void()> stir_;
  bool is_polled_;
  Port* port_ = nullptr;       // polled by an input
  RingPort* ring_ = nullptr;   // the same port, if it is a ring
  Port* feeder_ = nullptr;     // sends to the port from outside, if anything does
  std::vector<Packet*> hot_;   // null: the module took or holds it
  std::vector<Packet*> work_;  // given to the module, which may change the list
};

}  // namespace batchplane::profile

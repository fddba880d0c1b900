// SPDX-License-Identifier: BSD-3-Clause
// engine_oracle.h - what the executor should do, written as slowly and plainly as possible.
//
// The rules:
//   - A buffer with trigger q > 0 releases exactly q packets at a time, when it has its turn with at least q; its
//     first release may come earlier (stagger). Trigger 0 holds nothing over a run.
//   - Within a run, modules with something to do take turns in rank order. What a module sends to an unbuffered one
//     with no other way in runs there at once, branch after branch, unless emitted packets wait there already.
//   - With a new trigger a buffer first releases when as many more packets have come as its stagger says. If what it
//     holds leaves no room for them, it lets all go at the beginning of the next loop. Downstream first.
//   - Then what is older than its limit leaves, earliest deadline first, each carried to its end. A buffer that was
//     lately full eight times as often as it was released so, or by idleness, then starts with its stagger again. So
//     does one at least half full, if most of those that hold anything were too old at once.
//   - What a module emits goes ahead of what stays in its batch.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "exec_world.h"

namespace batchplane::property {

class Oracle {
 public:
  explicit Oracle(const Plan& plan)
      : plan_(plan), inputs_(plan.inputs()), buffers_(plan.nodes.size()) {
    for (uint32_t i = 0; i < buffers_.size(); ++i) {
      buffers_[i].trigger = plan.nodes[i].trigger_pkts;
      buffers_[i].release_at = buffers_[i].turn = plan.nodes[i].release_at_pkts;
      buffers_[i].age_limit_ns = plan.nodes[i].age_limit_ns;
    }
  }

  struct Buffer {
    std::deque<Pkt> held;
    uint32_t trigger = 0;
    uint32_t release_at = 0;
    uint32_t turn = 0;
    int score = 8;
    bool must_go = false;  // all that it holds, in the next loop
    uint64_t age_limit_ns = 0;
    uint64_t since_ns = 0;
    uint64_t late_releases = 0;
    uint64_t arrived_pkts = 0;
    exec::CauseCount causes[exec::kCauses];
    std::vector<Pkt> kept;  // inside the module
  };

  void set_now(uint64_t now_ns) { now_ns_ = now_ns; }
  void set_trigger(uint32_t i, uint32_t q, uint32_t release_at) {
    Buffer& buffer = buffers_[i];
    if (q == buffer.trigger) return;
    buffer.trigger = q;
    const uint32_t first = release_at != 0 ? std::min(release_at, q) : q;
    const auto held = static_cast<uint32_t>(buffer.held.size());
    buffer.turn = first;
    buffer.score = 8;
    buffer.must_go = held != 0 && held + first > q;
    buffer.release_at = buffer.must_go ? first : held + first;
  }
  void set_age_limit(uint32_t i, uint64_t ns) { buffers_[i].age_limit_ns = ns; }

  void begin_loop() {
    settle_changes();
    release_expired();
  }
  void run(const std::vector<Pkt>& batch) {
    hand_over(0, batch);
    take_turns();
  }
  bool release_oldest() {
    int oldest = -1;
    for (uint32_t i = 0; i < buffers_.size(); ++i) {
      if (buffers_[i].held.empty()) continue;
      if (oldest < 0 || oldest_ns(i) < oldest_ns(static_cast<uint32_t>(oldest)))
        oldest = static_cast<int>(i);
    }
    if (oldest < 0) return false;
    release_all(static_cast<uint32_t>(oldest), exec::Cause::kIdle);
    take_turns();
    return true;
  }
  void tick(uint32_t i) {
    emit_kept(i);
    take_turns();
  }

  [[nodiscard]] const Log& log() const { return log_; }
  [[nodiscard]] const Buffer& buffer(uint32_t i) const { return buffers_[i]; }
  [[nodiscard]] uint64_t inside_pkts() const {
    uint64_t n = 0;
    for (const Buffer& buffer : buffers_) n += buffer.held.size() + buffer.kept.size();
    return n;
  }

 private:
  uint64_t oldest_ns(uint32_t i) const {
    uint64_t oldest = exec::kNeverNs;
    for (const Pkt& pkt : buffers_[i].held) oldest = std::min(oldest, pkt.entry_ns);
    return oldest;
  }

  void settle_changes() {
    for (size_t r = buffers_.size(); r-- > 0;) {
      const auto i = static_cast<uint32_t>(r);
      if (std::exchange(buffers_[i].must_go, false)) release_all(i, exec::Cause::kChange);
    }
    take_turns();
  }

  // Whether of those that hold anything half or more are too old, and more than one.
  bool are_in_step() const {
    uint32_t holding = 0;
    uint32_t expired = 0;
    for (uint32_t i = 0; i < buffers_.size(); ++i) {
      if (buffers_[i].held.empty()) continue;
      ++holding;
      if (oldest_ns(i) + buffers_[i].age_limit_ns <= now_ns_) ++expired;
    }
    return expired > 1 && 2 * expired >= holding;
  }

  void release_expired() {
    const bool in_step = are_in_step();
    for (;;) {
      int due = -1;
      uint64_t due_ns = exec::kNeverNs;
      for (uint32_t i = 0; i < buffers_.size(); ++i) {
        if (buffers_[i].held.empty()) continue;
        const uint64_t deadline_ns = oldest_ns(i) + buffers_[i].age_limit_ns;
        if (deadline_ns > now_ns_ || deadline_ns >= due_ns) continue;
        due = static_cast<int>(i);
        due_ns = deadline_ns;
      }
      if (due < 0) return;
      Buffer& buffer = buffers_[static_cast<uint32_t>(due)];
      if (now_ns_ - due_ns > exec::kLateReleaseNs) ++buffer.late_releases;
      const bool is_half_full = 2 * buffer.held.size() >= buffer.trigger;
      release_all(static_cast<uint32_t>(due), exec::Cause::kAge);
      if (in_step && is_half_full && buffer.turn != 0) buffer.release_at = buffer.turn;
      take_turns();
    }
  }

  // A batch comes to the door of module i as a whole.
  void hand_over(uint32_t i, const std::vector<Pkt>& batch) {
    if (inputs_[i] <= 1 && buffers_[i].trigger == 0 && buffers_[i].held.empty()) {
      execute(i, batch);
    } else {
      for (const Pkt& pkt : batch) enqueue(i, pkt);
    }
  }

  void enqueue(uint32_t i, const Pkt& pkt) {
    Buffer& buffer = buffers_[i];
    if (buffer.held.empty()) buffer.since_ns = now_ns_;
    buffer.held.push_back(pkt);
    if (buffer.trigger > 0) ++buffer.arrived_pkts;
    if (buffer.trigger == 0 || buffer.held.size() >= buffer.release_at) ready_.insert(i);
  }

  void take_turns() {
    while (!ready_.empty()) {
      const uint32_t i = *ready_.begin();
      ready_.erase(ready_.begin());
      Buffer& buffer = buffers_[i];
      if (buffer.trigger == 0) {
        const std::deque<Pkt> all = std::exchange(buffer.held, {});
        for (size_t at = 0; at < all.size(); at += plan_.batch_pkts) {
          const size_t end = std::min(all.size(), at + plan_.batch_pkts);
          execute(i, {all.begin() + static_cast<long>(at), all.begin() + static_cast<long>(end)});
        }
        continue;
      }
      while (buffer.held.size() >= buffer.release_at) {
        const uint32_t n = std::exchange(buffer.release_at, buffer.trigger);
        release(i, n, n == buffer.trigger ? exec::Cause::kFull : exec::Cause::kChange);
      }
    }
  }

  void release_all(uint32_t i, exec::Cause cause) {
    while (!buffers_[i].held.empty()) {
      release(i,
              std::min<uint32_t>(static_cast<uint32_t>(buffers_[i].held.size()), plan_.batch_pkts),
              cause);
    }
    if (cause == exec::Cause::kChange) return;
    Buffer& buffer = buffers_[i];
    buffer.score = std::max(buffer.score - 8, -8);
    if (buffer.score >= 0 && buffer.turn != 0) buffer.release_at = buffer.turn;
  }

  void release(uint32_t i, uint32_t n, exec::Cause cause) {
    Buffer& buffer = buffers_[i];
    const std::vector<Pkt> batch(buffer.held.begin(), buffer.held.begin() + n);
    buffer.held.erase(buffer.held.begin(), buffer.held.begin() + n);
    exec::CauseCount& count = buffer.causes[static_cast<uint32_t>(cause)];
    count.firings += 1;
    count.pkts += n;
    if (cause == exec::Cause::kFull) buffer.score = std::min(buffer.score + 1, 512);
    count.wait_ns += now_ns_ - buffer.since_ns;
    log_.firings.push_back({i, n, cause});
    execute(i, batch);
    // The waits of packets that stay count from here, once no more are let go in this turn.
    if (buffer.held.size() < std::max(1U, buffer.release_at)) buffer.since_ns = now_ns_;
  }

  void emit_kept(uint32_t i) {
    Buffer& buffer = buffers_[i];
    constexpr size_t kMost = exec::Context<Pkt*>::kMaxEmitPkts;
    const size_t n = std::min(buffer.kept.size(), kMost);
    for (size_t k = 0; k < n; ++k) {
      const NodePlan& plan = plan_.nodes[i];
      const uint32_t gate = plan.role == Role::kSplitter ? plan_.gate_of(i, buffer.kept[k]) : 0;
      enqueue(plan.targets[gate], buffer.kept[k]);
    }
    buffer.kept.erase(buffer.kept.begin(), buffer.kept.begin() + static_cast<long>(n));
  }

  void execute(uint32_t i, const std::vector<Pkt>& batch) {
    const NodePlan& plan = plan_.nodes[i];
    std::vector<Pkt> rest;
    for (const Pkt& pkt : batch) {
      if (plan_.drops(i, pkt)) {
        if (plan.drop_target >= 0) {
          enqueue(static_cast<uint32_t>(plan.drop_target), pkt);
        } else {
          log_.dropped.push_back({i, pkt.id});
        }
      } else if (plan_.keeps(i, pkt)) {
        buffers_[i].kept.push_back(pkt);
      } else {
        rest.push_back(pkt);
      }
    }
    if (plan.emit_at != 0 && buffers_[i].kept.size() >= plan.emit_at) emit_kept(i);
    if (plan.role == Role::kTerminal) {
      for (const Pkt& pkt : rest) log_.left.push_back({i, pkt.id});
      return;
    }
    if (rest.empty()) return;
    if (plan.role == Role::kInPlace) {
      // What emits goes through the queue, so that no batch overtakes what was emitted.
      if (plan.keep_one_in == 0) return hand_over(plan.targets[0], rest);
      for (const Pkt& pkt : rest) enqueue(plan.targets[0], pkt);
      return;
    }
    std::set<uint32_t> gates;
    for (const Pkt& pkt : rest) gates.insert(plan_.gate_of(i, pkt));
    if (gates.size() == 1) return hand_over(plan.targets[*gates.begin()], rest);
    split(i, rest, gates);
  }

  // Queues fill in the order of packets; then the branches run, or wait for their turn: by number
  // of the gate where all gates fit into one word, else by first packet.
  void split(uint32_t i, const std::vector<Pkt>& batch, const std::set<uint32_t>& gates) {
    const NodePlan& plan = plan_.nodes[i];
    std::vector<uint32_t> order(gates.begin(), gates.end());
    if (plan.targets.size() > exec::kBitmapGates) {
      order.clear();
      for (const Pkt& pkt : batch) {
        const uint32_t gate = plan_.gate_of(i, pkt);
        if (std::ranges::find(order, gate) == order.end()) order.push_back(gate);
      }
    }
    std::map<uint32_t, std::vector<Pkt>> at_once;
    for (const Pkt& pkt : batch) {
      const uint32_t gate = plan_.gate_of(i, pkt);
      const uint32_t target = plan.targets[gate];
      const bool waits = inputs_[target] > 1 || buffers_[target].trigger > 0;
      if (waits) {
        enqueue(target, pkt);
      } else {
        at_once[gate].push_back(pkt);
      }
    }
    for (const uint32_t gate : order) {
      if (at_once.contains(gate)) hand_over(plan.targets[gate], at_once[gate]);
    }
  }

  const Plan plan_;
  const std::vector<uint32_t> inputs_;
  std::vector<Buffer> buffers_;
  std::set<uint32_t> ready_;
  uint64_t now_ns_ = 0;
  Log log_;
};

}  // namespace batchplane::property

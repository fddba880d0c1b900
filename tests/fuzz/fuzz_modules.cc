// SPDX-License-Identifier: BSD-3-Clause
// fuzz_modules.cc - the same frames through every kind of module, each packet's fate accounted for.
//
// Modules keep their state between inputs, as in a pipeline that runs. With heap packets under
// AddressSanitizer every byte outside a packet's data is poisoned.
#include <cstring>
#include <memory>
#include <set>

#include "cases/cases.h"
#include "core/module/kind.h"
#include "frames.h"
#include "fuzz/world.h"

namespace batchplane::fuzz {
namespace {

constexpr uint32_t kPoolPkts = 1024;
constexpr uint64_t kCheckPoolEvery = BATCHPLANE_DPDK ? 512 : 1;  // DPDK walks its caches for it

class Subject {
 public:
  Subject(const cases::FuzzCase& from, Environment& env, const std::filesystem::path& folder)
      : info_(*find_module_kind(from.kind)),
        name_(std::string(from.kind) + " " + from.params),
        edit_(from.edit),
        loop_(*env.port(kLoopPort)) {
    std::vector<ConfigError> errors;
    Args args(info_.params, params_of(from, folder), name_, errors);
    if (!errors.empty()) fail(errors.front().line());
    args.set_name(from.kind);
    args.set_env(&env);
    module_ = info_.make(args);
    module_->set_name(from.kind);
    gates_ = info_.shape == Shape::kSplitter ? module_->link(from.connected_gates) : 1;
  }

  // Live edits, as a control thread makes them; what the tables refuse is refused.
  void edit(uint32_t which, uint32_t id) {
    if (edit_ == nullptr || which == 0) return;
    try {
      edit_(*module_, which, id);
    } catch (const ConfigError&) {
    }
  }

  // All that went in comes out once, or is held.
  void run(Context& ctx, Packet** pkts, uint32_t n) {
    if (info_.shape == Shape::kInput) return poll(ctx, pkts, n);
    Batch batch{pkts, n, ctx.now_ns};
    n_seen_ = 0;
    const uint64_t held_before = module_->held_pkts();
    if (n != 0) {
      info_.run(module_.get(), ctx, pkts, n);
    } else if (module_->housekeep_interval_ns() != 0) {
      module_->housekeep(ctx, 100'000);
    } else {
      return;
    }
    const bool is_end = info_.shape == Shape::kTerminal || info_.shape == Shape::kQueue;
    uint32_t n_gone = 0;
    for (uint32_t i = 0; i < n; ++i) {
      if (batch[i] == nullptr) {
        ++n_gone;
      } else if (!is_end) {
        leave(ctx, batch[i], info_.shape == Shape::kSplitter ? ctx.gates[i] : 0);
      }
    }
    if (n_gone != ctx.n_removed) fail(name_ + ": slots emptied behind the engine's back");
    for (uint32_t i = 0; i < ctx.n_emitted; ++i)
      leave(ctx, ctx.emitted[i].pkt, ctx.emitted[i].gate);
    for (uint32_t i = 0; i < ctx.n_dropped; ++i) {
      if (ctx.dropped[i].reason >= drop_reasons().size())
        fail(name_ + ": a reason that nobody knows");
      leave(ctx, ctx.dropped[i].pkt, 0);
    }
    // In place and splitters: what is not held any more was emitted or dropped, and the other way
    // round.
    const uint64_t n_out = n_seen_;
    if (!is_end && held_before + n + ctx.originated_pkts != n_out + module_->held_pkts()) {
      fail(name_ + ": packets lost or made from nothing");
    }
    ctx.originated_pkts = 0;
    ctx.n_removed = ctx.n_dropped = ctx.n_emitted = ctx.n_fates = 0;
    if (info_.shape == Shape::kQueue) take_back(ctx);
    ctx.flush_free();
  }

  [[nodiscard]] uint64_t held_pkts() const { return module_->held_pkts(); }

 private:
  void leave(Context& ctx, Packet* pkt, uint32_t gate) {
    if (gate >= gates_) fail(name_ + ": a gate that it does not have");
    if (pkt->len_bytes() > kMaxFrameBytes) fail(name_ + ": a packet longer than any");
    if (std::find(seen_, seen_ + n_seen_, pkt) != seen_ + n_seen_)
      fail(name_ + ": a packet came out twice");
    if (n_seen_ == std::size(seen_)) fail(name_ + ": more packets than it can have had");
    seen_[n_seen_++] = pkt;
    ctx.free(pkt);
  }
  // An input: the frames lie in the port from which it may take them.
  void poll(Context& ctx, Packet** pkts, uint32_t n) {
    for (uint32_t i = loop_.tx_burst(pkts, n); i < n; ++i) ctx.free(pkts[i]);
    Packet* polled[kMaxFrames];
    const uint32_t n_polled = info_.poll(*module_, ctx, polled, kMaxFrames);
    if (n_polled > kMaxFrames) fail(name_ + ": more packets than it was asked for");
    ctx.free(polled, n_polled);
    free_dropped(ctx);
    while (const uint32_t n_left = loop_.rx_burst(polled, kMaxFrames, ctx.now_ns)) {
      ctx.free(polled, n_left);
    }
    ctx.flush_free();
  }
  void take_back(Context& ctx) {
    Packet* pkts[kMaxFrames];
    uint32_t n = 0;
    do {
      n = info_.poll(*module_, ctx, pkts, kMaxFrames);
      ctx.free(pkts, n);
      n += free_dropped(ctx);
    } while (n != 0);
  }
  // What an input or queue has dropped of what it polled.
  static uint32_t free_dropped(Context& ctx) {
    const uint32_t n = ctx.n_dropped;
    for (uint32_t i = 0; i < n; ++i) ctx.free(ctx.dropped[i].pkt);
    ctx.n_dropped = ctx.n_fates = 0;
    return n;
  }

  const ModuleInfo& info_;
  std::string name_;
  void (*edit_)(Module&, uint32_t, uint32_t);
  Port& loop_;
  std::unique_ptr<Module> module_;
  uint32_t gates_ = 1;
  Packet* seen_[kPoolPkts];
  uint32_t n_seen_ = 0;
};

class Bench {
 public:
  Bench() : env_(make_environment()), pool_("fuzz_modules", kPoolPkts, kMostFrameBytes), meter_(1) {
    ctx_->pool = &pool_;
    ctx_->meter = &meter_;
    ctx_->batch_limit_pkts = kMaxFrames;
    std::set<std::string> covered;
    for (const cases::FuzzCase& one : cases::fuzz_cases()) {
      covered.insert(one.kind);
      if (one.needs_kernel) continue;
      subjects_.push_back(std::make_unique<Subject>(one, *env_, folder_.path()));
    }
    for (const std::string& fault : cases::faults_of(cases::Need::kFuzz, covered)) fail(fault);
  }

  void run(const Frames& frames) {
    ctx_->now_ns += frames.step_ns;
    for (const auto& subject : subjects_) {
      subject->edit(frames.edit, frames.meta.next_hop);
      Packet* pkts[kMaxFrames];
      const uint32_t n = fill(frames, pkts);
      if (n != 0) subject->run(*ctx_, pkts, n);
      subject->run(*ctx_, pkts, 0);
      tally.pkts += n;
    }
    if (++n_inputs_ % kCheckPoolEvery == 0) check_pool();
  }

 private:
  uint32_t fill(const Frames& frames, Packet** pkts) {
    const auto n = static_cast<uint32_t>(frames.all.size());
    if (n == 0) return 0;
    require(pool_.alloc_bulk(pkts, n),
            "the pool has run dry: a module keeps what it does not report");
    for (uint32_t i = 0; i < n; ++i) {
      const auto bytes = frames.all[i];
      pkts[i]->reset(static_cast<uint32_t>(bytes.size()));
      if (!bytes.empty()) std::memcpy(pkts[i]->data(), bytes.data(), bytes.size());
      pkts[i]->meta() = frames.meta;
      pkts[i]->meta().entry_ns = ctx_->now_ns;
      if (frames.mark != 0) pkts[i]->set_mark(frames.mark);
    }
    return n;
  }
  void check_pool() {
    uint64_t held = 0;
    for (const auto& subject : subjects_) held += subject->held_pkts();
    if (pool_.available_pkts() + held != kPoolPkts) fail("packets have leaked or were freed twice");
  }

  TempFolder folder_;
  std::unique_ptr<Environment> env_;
  PacketPool pool_;
  exec::FlowMeter meter_;
  std::unique_ptr<Context> ctx_ = std::make_unique<Context>();
  std::vector<std::unique_ptr<Subject>> subjects_;
  uint64_t n_inputs_ = 0;
};

}  // namespace

int fuzz_modules(const uint8_t* data, size_t size) {
  static Bench bench;
  bench.run(cut_frames(data, size));
  return 0;
}

}  // namespace batchplane::fuzz

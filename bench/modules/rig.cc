// SPDX-License-Identifier: BSD-3-Clause
#include "modules/rig.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "base/rng.h"
#include "core/packet_pool.h"
#include "ports/port_kinds.h"
#include "traffic/template.h"

namespace bench {

using namespace batchplane;  // NOLINT: a benchmark over the whole engine

namespace {

constexpr uint32_t kPoolPkts = 2048;
constexpr uint32_t kUsualRoomBytes = 64;  // of a frame; a multiple of this for longer ones
constexpr uint32_t kWarmBatches = 16;  // with 200 batches of one rotation each, a TTL of 254 lasts
constexpr uint32_t kVerifyPkts = 32;

std::unique_ptr<Environment> make_environment() {
  auto env = std::make_unique<Environment>();
  env->batch_limit_pkts = exec::kMaxBatchPkts;
  for (uint16_t i = 0; i < 4; ++i) {
    Interface& interface = env->interfaces.emplace_back();
    interface.name = "if" + std::to_string(i);
    interface.port.assign("p0");
    interface.index = i;
    interface.mac = {2, 0, 0, 0, 0, static_cast<uint8_t>(i)};
    interface.addresses.push_back({(10U << 24) + (uint32_t{i} << 8) + 1, 24});
    interface.addresses6 = {{{0x20010db800000000ULL + i, 1}, 64},
                            {net::link_local_of(interface.mac), 64}};
  }
  env->ports["p0"] = make_port("null", {}, "p0", *env);
  return env;
}

std::unique_ptr<Module> make_module(const ModuleInfo& info, const Dict& params, Environment& env,
                                    const std::string& name, uint32_t gates) {
  std::vector<ConfigError> errors;
  Args args(info.params, params, name, errors);
  if (!errors.empty()) throw std::runtime_error(errors.front().line());
  args.set_name(name);
  args.set_env(&env);
  auto module = info.make(args);
  module->set_name(name);
  // Route tables are built, and tables learn how many gates there are.
  (void)module->gates_used(gates);
  return module;
}

const ModuleInfo& info_of(const std::string& kind) {
  const ModuleInfo* info = find_module_kind(kind);
  if (info == nullptr) throw std::runtime_error("there is no module kind '" + kind + "'");
  return *info;
}

uint16_t reason_index(const std::string& name) {
  const auto& reasons = drop_reasons();
  for (size_t i = 0; i < reasons.size(); ++i) {
    if (reasons[i].name == name) return static_cast<uint16_t>(i);
  }
  throw std::runtime_error("there is no drop reason '" + name + "'");
}

}  // namespace

struct ModuleRig::State {
  explicit State(const ModuleCase& module_case)
      : what(module_case),
        info(info_of(module_case.kind)),
        null_info(info_of("null")),
        env(make_environment()),
        pool("rig_" + std::to_string(next_serial++), kPoolPkts),
        meter(1) {
    ctx->pool = &pool;
    ctx->meter = &meter;
    ctx->now_ns = 1'000'000'000;
    ctx->batch_limit_pkts = exec::kMaxBatchPkts;
    if (!what.before_kind.empty()) {
      before = make_module(info_of(what.before_kind), what.before_params, *env, "before", 8);
    }
    module = make_module(info, what.params, *env, "under_test", what.gates);
    null = make_module(null_info, {}, *env, "null", 1);
    if (!pool.alloc_bulk(hot, exec::kMaxBatchPkts)) throw std::runtime_error("the pool is empty");
    if (module->housekeep_interval_ns() != 0) {
      module->housekeep(*ctx, 1'000'000'000);
      for (uint32_t i = 0; i < ctx->n_emitted; ++i) ctx->free(ctx->emitted[i].pkt);
      forget_fates();
    }
    make_frames();
    renew_all();
    if (what.feed == Feed::kFlows) open_flows();
  }
  ~State() {
    ctx->flush_free();
    module->give_up_held([](Packet* pkt) { PacketPool::free_bulk(&pkt, 1); });
    PacketPool::free_bulk(hot, exec::kMaxBatchPkts);
  }

  void make_frames() {
    for (uint32_t i = 0; i < exec::kMaxBatchPkts; ++i) {
      const auto bytes = static_cast<uint32_t>(what.frame(i).size());
      room_bytes = std::max(room_bytes, (bytes + kUsualRoomBytes - 1) & ~(kUsualRoomBytes - 1));
    }
    frames.resize(size_t{exec::kMaxBatchPkts} * room_bytes);
    for (uint32_t i = 0; i < exec::kMaxBatchPkts; ++i) {
      const std::vector<uint8_t> bytes = what.frame(i);
      std::ranges::copy(bytes, &frames[size_t{i} * room_bytes]);
      frame_bytes[i] = static_cast<uint32_t>(bytes.size());
      PacketMeta& meta = metas[i];
      meta = PacketMeta{.entry_ns = ctx->now_ns, .in_interface = 0};
      if (!what.drop_reason.empty()) meta.drop_reason = reason_index(what.drop_reason);
    }
    if (before == nullptr) return;
    // What the module in front writes into the metadata belongs to the packet as it arrives.
    renew_all();
    for (uint32_t i = 0; i < exec::kMaxBatchPkts; ++i) {
      info_of(what.before_kind).run(before.get(), *ctx, &hot[i], 1);
      if (ctx->n_removed != 0) throw std::runtime_error("the module in front dropped a packet");
      metas[i] = hot[i]->meta();
    }
  }

  // Addresses and ports of an IPv4 header without options.
  struct Ends {
    uint32_t src, dst;
    uint16_t src_port, dst_port;
  };
  static constexpr uint32_t kEndsAt = net::kEthBytes + net::kIpSrc;

  // One packet of each connection from inside hosts with 64 ports each.
  void open_flows() {
    ends.resize(what.flows);
    for (uint32_t i = 0; i < what.flows; ++i) {
      renew(0);
      work[0] = hot[0];
      Ends& flow = ends[i];
      std::memcpy(&flow, hot[0]->data() + kEndsAt, sizeof flow);
      flow.src = net::be32((10U << 24) + (64U << 16) + i / 64);
      flow.src_port = net::be16(static_cast<uint16_t>(1024 + i % 64 * 1000 + i / 64 % 1000));
      std::memcpy(hot[0]->data() + kEndsAt, &flow, sizeof flow);
      info.run(module.get(), *ctx, work, 1);
      if (ctx->n_removed != 0) throw std::runtime_error("a connection could not be opened");
      if (!what.is_return) continue;
      std::memcpy(&flow, hot[0]->data() + kEndsAt, sizeof flow);
      std::swap(flow.src, flow.dst);
      std::swap(flow.src_port, flow.dst_port);
    }
    renew_all();
  }

  void renew(uint32_t i) {
    Packet& pkt = *hot[i];
    pkt.reset(frame_bytes[i]);
    traffic::copy_frame(traffic::fresh_data(pkt), &frames[size_t{i} * room_bytes], frame_bytes[i]);
    traffic::copy32(&pkt.meta(), &metas[i]);
  }
  void renew_all() {
    for (uint32_t i = 0; i < exec::kMaxBatchPkts; ++i) renew(i);
    std::ranges::copy(hot, work);
    forget_fates();
  }
  void forget_fates() { ctx->n_fates = ctx->n_removed = ctx->n_dropped = ctx->n_emitted = 0; }

  template <Feed kFeed, bool kIsControl>
  void feed(uint32_t at, uint32_t n) {
    if constexpr (kFeed == Feed::kFrames) {
      for (uint32_t i = at; i < at + n; ++i) renew(i);
    } else if constexpr (kFeed == Feed::kTaken) {
      std::memcpy(work + at, hot + at, n * sizeof(Packet*));
      forget_fates();
      ctx->n_free = 0;
    } else if constexpr (kFeed == Feed::kRandom) {
      for (uint32_t i = at; i < at + n; ++i) {
        // 11/8 to 222/8: where synthetic routes lie.
        const uint32_t address = (11U << 24) + rng.below(212U << 24);
        net::store32(hot[i]->data() + net::kEthBytes + net::kIpDst, address);
      }
    } else if constexpr (kFeed == Feed::kRandom6) {
      const auto n_known = static_cast<uint32_t>(what.destinations6.size());
      for (uint32_t i = at; i < at + n; ++i) {
        std::memcpy(hot[i]->data() + net::kEthBytes + net::kIp6Dst,
                    what.destinations6[rng.below(n_known)].data(), 16);
      }
    } else if constexpr (kFeed == Feed::kFlows) {
      for (uint32_t i = at; i < at + n; ++i) {
        renew(i);
        std::memcpy(hot[i]->data() + kEndsAt, &ends[rng.below(what.flows)], sizeof(Ends));
      }
    } else if constexpr (kFeed == Feed::kDealt) {
      for (uint32_t i = at; i < at + n; ++i) {
        renew(i);
        what.deal(*hot[i], rng.below(what.flows));
      }
    } else if constexpr (kFeed == Feed::kPool) {
      (void)pool.alloc_bulk(work + at, n);
      for (uint32_t i = at; i < at + n; ++i) {
        work[i]->reset(60);
        work[i]->meta().entry_ns = ctx->now_ns;
      }
      if constexpr (kIsControl) PacketPool::free_bulk(work + at, n);
    }
  }

  template <Feed kFeed, bool kIsControl>
  void loop(uint32_t n_batches, uint32_t n) {
    const uint32_t rotation = std::max(n, kHotPkts);
    const auto function = kIsControl ? null_info.run : info.run;
    Module* const target = kIsControl ? null.get() : module.get();
    uint32_t at = 0;
    for (uint32_t b = 0; b < n_batches; ++b) {
      feed<kFeed, kIsControl>(at, n);
      if constexpr (kFeed == Feed::kSource && !kIsControl) {
        const uint32_t made = info.poll(*module, *ctx, scratch, n);
        ctx->free(scratch, made);
      } else {
        function(target, *ctx, work + at, n);
      }
      if constexpr (kFeed == Feed::kThrough && !kIsControl) {
        (void)info.poll(*module, *ctx, scratch, n);
      }
      at = at + 2 * n > rotation ? 0 : at + n;
    }
    if constexpr (kFeed == Feed::kSource) ctx->flush_free();
  }

  template <bool kIsControl>
  void loop_as(uint32_t n_batches, uint32_t n) {
    switch (what.feed) {
      case Feed::kHot:
        return loop<Feed::kHot, kIsControl>(n_batches, n);
      case Feed::kFrames:
        return loop<Feed::kFrames, kIsControl>(n_batches, n);
      case Feed::kTaken:
        return loop<Feed::kTaken, kIsControl>(n_batches, n);
      case Feed::kRandom:
        return loop<Feed::kRandom, kIsControl>(n_batches, n);
      case Feed::kRandom6:
        return loop<Feed::kRandom6, kIsControl>(n_batches, n);
      case Feed::kFlows:
        return loop<Feed::kFlows, kIsControl>(n_batches, n);
      case Feed::kDealt:
        return loop<Feed::kDealt, kIsControl>(n_batches, n);
      case Feed::kPool:
        return loop<Feed::kPool, kIsControl>(n_batches, n);
      case Feed::kSource:
        return loop<Feed::kSource, kIsControl>(n_batches, n);
      case Feed::kThrough:
        return loop<Feed::kThrough, kIsControl>(n_batches, n);
    }
  }

  std::string verify_poll();
  std::string verify_batch();

  static inline uint32_t next_serial = 0;

  const ModuleCase& what;
  const ModuleInfo& info;
  const ModuleInfo& null_info;
  std::unique_ptr<Environment> env;
  PacketPool pool;
  exec::FlowMeter meter;
  std::unique_ptr<Context> ctx = std::make_unique<Context>();
  std::unique_ptr<Module> before;
  std::unique_ptr<Module> module;
  std::unique_ptr<Module> null;
  Rng rng{1};
  std::vector<uint8_t> frames;
  uint32_t room_bytes = kUsualRoomBytes;
  std::vector<Ends> ends;  // of the connections
  uint32_t frame_bytes[exec::kMaxBatchPkts] = {};
  PacketMeta metas[exec::kMaxBatchPkts] = {};
  Packet* hot[exec::kMaxBatchPkts] = {};
  Packet* work[exec::kMaxBatchPkts] = {};
  Packet* scratch[exec::kMaxBatchPkts] = {};
};

ModuleRig::ModuleRig(const ModuleCase& module_case)
    : state_(std::make_unique<State>(module_case)) {}
ModuleRig::~ModuleRig() = default;

void ModuleRig::prepare(uint32_t batch_pkts, bool is_control) {
  State& s = *state_;
  s.ctx->now_ns += 1'000'000'000;
  s.meter.flush(s.ctx->now_ns);
  s.renew_all();
  (void)run(kWarmBatches, batch_pkts, is_control);
}

uint64_t ModuleRig::run(uint32_t n_batches, uint32_t batch_pkts, bool is_control) {
  if (is_control) {
    state_->loop_as<true>(n_batches, batch_pkts);
  } else {
    state_->loop_as<false>(n_batches, batch_pkts);
  }
  return uint64_t{n_batches} * batch_pkts;
}

std::string ModuleRig::State::verify_poll() {
  const uint32_t n = info.poll(*module, *ctx, scratch, kVerifyPkts);
  if (n != kVerifyPkts) return "polled " + std::to_string(n) + " packets";
  for (uint32_t i = 0; i < n; ++i) {
    const std::string wrong = what.check ? what.check(*scratch[i], 0, i) : "";
    if (!wrong.empty()) return wrong;
  }
  if (what.feed == Feed::kSource) PacketPool::free_bulk(scratch, n);
  return "";
}

std::string ModuleRig::State::verify_batch() {
  Packet* given[kVerifyPkts];
  std::ranges::copy_n(work, kVerifyPkts, given);
  info.run(module.get(), *ctx, work, kVerifyPkts);
  const uint32_t n_removed = ctx->n_removed;
  if (n_removed != (what.takes_all ? kVerifyPkts : 0)) {
    return std::to_string(n_removed) + " of 32 packets were taken out";
  }
  for (uint32_t i = 0; i < kVerifyPkts && what.check; ++i) {
    const std::string wrong = what.check(*given[i], ctx->gates[i], i);
    if (!wrong.empty()) return "packet " + std::to_string(i) + ": " + wrong;
  }
  return "";
}

std::string ModuleRig::verify() {
  State& s = *state_;
  s.renew_all();
  std::string wrong;
  if (s.what.feed == Feed::kPool) s.feed<Feed::kPool, false>(0, kVerifyPkts);
  if (s.what.feed == Feed::kDealt) s.feed<Feed::kDealt, false>(0, kVerifyPkts);
  if (s.what.feed == Feed::kFlows) s.feed<Feed::kFlows, false>(0, kVerifyPkts);
  if (s.what.feed != Feed::kSource) wrong = s.verify_batch();
  if (wrong.empty() && (s.what.feed == Feed::kSource || s.what.feed == Feed::kThrough)) {
    wrong = s.verify_poll();
  }
  if (s.what.feed == Feed::kTaken) s.ctx->n_free = 0;
  s.renew_all();
  return wrong;
}

}  // namespace bench

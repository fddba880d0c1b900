// SPDX-License-Identifier: BSD-3-Clause
#include "modules/rig.h"
#include "core/module/kind.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "base/net.h"
#include "ports/port_kinds.h"

namespace bench {

using namespace batchplane;  // NOLINT: a benchmark over the whole engine
using cases::Feed;

namespace {

constexpr uint32_t kPoolPkts = 4096;
constexpr uint32_t kImages = exec::kMaxBatchPkts;  // as many frames as a batch may have
constexpr uint32_t kVerifyPkts = 32;
constexpr uint32_t kRoom = kVerifyPkts + 8;  // modules may write a few entries more
constexpr uint32_t kGatesBefore = 8;
constexpr const char* kName = "under_test";

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
  env->ports["p0"] = make_port({"p0", "null", {}}, *env);
  env->ports["link"] = make_port({"link", "ring", {}}, *env);
  return env;
}

const ModuleInfo& info_of(const std::string& kind) {
  const ModuleInfo* info = find_module_kind(kind);
  if (info == nullptr) throw std::runtime_error("there is no module kind '" + kind + "'");
  return *info;
}

void add_module(PipelineSpec& spec, const std::string& name, const std::string& kind,
                const Dict& params = {}) {
  ModuleSpec& module = spec.modules.emplace_back();
  module.name = name;
  module.kind = kind;
  module.params = params;
}

void connect(PipelineSpec& spec, const std::string& from, const ModuleInfo& info, uint32_t n_gates,
             const std::string& to) {
  if (info.shape != Shape::kSplitter) n_gates = 1;
  for (uint32_t g = 0; g < n_gates; ++g) spec.edges.push_back({from, std::to_string(g), to});
}

// in -> (before ->) the module -> out, every gate alike.
PipelineSpec spec_of(const ModuleCase& what) {
  const ModuleInfo& info = info_of(what.kind);
  PipelineSpec spec;
  spec.name = "bench";
  spec.engine.batch_pkts = exec::kMaxBatchPkts;
  spec.ports = {{"link", "ring", {}}, {"p0", "null", {}}};
  if (info.shape != Shape::kInput) {
    add_module(spec, "in", "port_in", {{"port", "link"}});
    const std::string first = what.before_kind.empty() ? kName : "before";
    spec.edges.push_back({"in", "0", first});
  }
  if (!what.before_kind.empty()) {
    add_module(spec, "before", what.before_kind, what.before_params);
    connect(spec, "before", info_of(what.before_kind), kGatesBefore, kName);
  }
  add_module(spec, kName, what.kind, what.params);
  if (info.shape == Shape::kTerminal) return spec;
  add_module(spec, "out", "sink");
  connect(spec, kName, info, what.gates, "out");
  return spec;
}

uint16_t reason_index(const std::string& name) {
  const auto& reasons = drop_reasons();
  const auto found = std::ranges::find(reasons, name, &exec::DropReasonInfo::name);
  if (found == reasons.end()) throw std::runtime_error("there is no drop reason '" + name + "'");
  return static_cast<uint16_t>(found - reasons.begin());
}

// Addresses and ports of an IPv4 header without options.
struct Ends {
  uint32_t src, dst;
  uint16_t src_port, dst_port;
};
constexpr uint32_t kEndsAt = net::kEthBytes + net::kIpSrc;

}  // namespace

struct ModuleBench::State {
  State(const ModuleCase& module_case, std::vector<uint32_t> sizes_pkts)
      : what(module_case),
        pool("bench_" + std::to_string(next_serial++), kPoolPkts),
        graph(build_graph(spec_of(module_case), make_environment())),
        stage(*graph, pool),
        tested(graph->at(kName)) {
    make_images();
    if (what.feed == Feed::kFlows) open_flows();
    const profile::Member member{&tested, &arrived, [this](Packet& pkt) { vary(pkt); }};
    timer.emplace(stage, std::vector{member}, std::move(sizes_pkts), nullptr);
  }

  // The module takes out of the list what it drops or keeps.
  void run(const Instance& instance, Packet** pkts, uint32_t n_pkts) {
    instance.node->run(instance.node->module, stage.ctx(), pkts, n_pkts);
  }
  // What it left, unless it is an end, and what it dropped or made.
  void release(const Instance& instance, Packet** pkts, uint32_t n_pkts) {
    if (instance.node->after != exec::After::kEnd) {
      for (uint32_t i = 0; i < n_pkts; ++i) {
        if (pkts[i] != nullptr) PacketPool::free_bulk(&pkts[i], 1);
      }
    }
    stage.settle();
    stage.collect();
  }

  void make_images() {
    for (uint32_t i = 0; i < kImages; ++i) {
      profile::PacketImage image{.bytes = what.frame(i)};
      image.meta = {.entry_ns = stage.ctx().now_ns, .in_interface = 0};
      if (!what.drop_reason.empty()) image.meta.drop_reason = reason_index(what.drop_reason);
      arrived.pkts.push_back(std::move(image));
    }
    if (what.before_kind.empty()) return;
    // What the module in front writes belongs to the packet as it arrives.
    for (uint32_t i = 0; i < kImages; ++i) {
      Packet* pkts[kRoom];
      stage.take(pkts, 1);
      profile::write_image(arrived.pkts[i], *pkts[0]);
      run(graph->at("before"), pkts, 1);
      if (pkts[0] == nullptr) throw std::runtime_error("the module in front dropped a packet");
      arrived.pkts[i] = profile::image_of(*pkts[0]);
      release(graph->at("before"), pkts, 1);
    }
  }

  // One packet of each connection from inside hosts with 64 ports each.
  void open_flows() {
    ends.resize(what.flows);
    for (uint32_t i = 0; i < what.flows; ++i) {
      Packet* pkts[kRoom];
      stage.take(pkts, 1);
      uint8_t* const at = pkts[0]->data() + kEndsAt;
      profile::write_image(arrived.pkts.front(), *pkts[0]);
      Ends& flow = ends[i];
      std::memcpy(&flow, at, sizeof flow);
      flow.src = net::be32((10U << 24) + (64U << 16) + i / 64);
      flow.src_port = net::be16(static_cast<uint16_t>(1024 + i % 64 * 1000 + i / 64 % 1000));
      std::memcpy(at, &flow, sizeof flow);
      run(tested, pkts, 1);
      if (pkts[0] == nullptr) throw std::runtime_error("a connection could not be opened");
      if (what.is_return) {
        std::memcpy(&flow, at, sizeof flow);
        std::swap(flow.src, flow.dst);
        std::swap(flow.src_port, flow.dst_port);
      }
      release(tested, pkts, 1);
    }
  }

  // What differs from packet to packet beyond the frames.
  void vary(Packet& pkt) {
    if (what.feed == Feed::kRandom) {
      // 11/8 to 222/8: where synthetic routes lie.
      net::store32(pkt.data() + net::kEthBytes + net::kIpDst, (11U << 24) + rng.below(212U << 24));
    } else if (what.feed == Feed::kRandom6) {
      const auto n_known = static_cast<uint32_t>(what.destinations6.size());
      std::memcpy(pkt.data() + net::kEthBytes + net::kIp6Dst,
                  what.destinations6[rng.below(n_known)].data(), 16);
    } else if (what.feed == Feed::kFlows) {
      std::memcpy(pkt.data() + kEndsAt, &ends[rng.below(what.flows)], sizeof(Ends));
    } else if (what.feed == Feed::kDealt) {
      what.deal(pkt, rng.below(what.flows));
    }
  }

  std::string verify_batch();
  std::string verify_poll();

  static inline uint32_t next_serial = 0;

  const ModuleCase& what;
  PacketPool pool;
  std::unique_ptr<Graph> graph;
  profile::Stage stage;
  const Instance& tested;
  profile::Arrived arrived;
  std::vector<Ends> ends;  // of the connections
  Rng rng{1};
  std::optional<profile::ModuleTimer> timer;
};

ModuleBench::ModuleBench(const ModuleCase& module_case, std::vector<uint32_t> sizes_pkts)
    : state_(std::make_unique<State>(module_case, std::move(sizes_pkts))) {}
ModuleBench::~ModuleBench() = default;

void ModuleBench::measure(uint32_t rounds) {
  constexpr double kNoBudgetMs = 1e9;
  state_->timer->measure(kNoBudgetMs, rounds, state_->rng);
}

profile::ModuleProfile ModuleBench::result() const {
  profile::ModuleProfile profile = state_->timer->result();
  profile.name = state_->what.label;
  profile.kind = state_->what.kind;
  profile.note = state_->what.note;
  return profile;
}

std::string ModuleBench::State::verify_poll() {
  Packet* pkts[kRoom];
  const uint32_t n = tested.info->poll(*tested.module, stage.ctx(), pkts, kVerifyPkts);
  if (n != kVerifyPkts) return "polled " + std::to_string(n) + " packets";
  std::string wrong;
  for (uint32_t i = 0; i < n && wrong.empty() && what.check; ++i) {
    wrong = what.check(*pkts[i], 0, i);
  }
  PacketPool::free_bulk(pkts, n);
  return wrong;
}

std::string ModuleBench::State::verify_batch() {
  Context& ctx = stage.ctx();
  Packet* pkts[kRoom];
  stage.take(pkts, kVerifyPkts);
  for (uint32_t i = 0; i < kVerifyPkts; ++i) {
    profile::write_image(arrived.pkts[i], *pkts[i]);
    vary(*pkts[i]);
  }
  run(tested, pkts, kVerifyPkts);
  std::string wrong;
  if (ctx.n_removed != (what.takes_all ? kVerifyPkts : 0)) {
    wrong = std::to_string(ctx.n_removed) + " of 32 packets were taken out";
  }
  if (tested.info->shape == Shape::kQueue) return wrong.empty() ? verify_poll() : wrong;
  const bool is_end = tested.node->after == exec::After::kEnd;
  for (uint32_t i = 0; i < kVerifyPkts && wrong.empty() && !is_end && what.check; ++i) {
    wrong = what.check(*pkts[i], ctx.gates[i], i);
    if (!wrong.empty()) wrong = "packet " + std::to_string(i) + ": " + wrong;
  }
  release(tested, pkts, kVerifyPkts);
  return wrong;
}

std::string ModuleBench::verify() {
  State& s = *state_;
  s.stage.read_clock();
  return s.tested.node == nullptr ? s.verify_poll() : s.verify_batch();
}

}  // namespace bench

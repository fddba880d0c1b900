// SPDX-License-Identifier: BSD-3-Clause
// fuzz_router.cc - frames through a whole router: ports, lookup, neighbours, ICMP, buffers and a
// queue.
#include <cstring>
#include <memory>

#include "app/wire/json_value.h"
#include "core/engine/engine.h"
#include "frames.h"
#include "spec/config_json.h"

namespace batchplane::fuzz {
namespace {

constexpr const char* kPipeline = R"({
  "version": 1, "name": "fuzz",
  "modules": {
    "in_lan": {"kind": "port_in", "params": {"port": "lan", "interface": "lan"}},
    "in_wan": {"kind": "port_in", "params": {"port": "wan", "interface": "wan", "any_mac": true}},
    "type": {"kind": "ether_type", "params": {"rules": [{"ether_type": "ipv4", "gate": 0},
                                                        {"ether_type": "arp", "gate": 1}]}},
    "check": {"kind": "ipv4_check"},
    "lookup": {"kind": "ipv4_lookup", "params": {"table": "main", "interfaces": true, "max_prefixes": 1024,
               "routes": [{"prefix": "0.0.0.0/0", "via": "10.0.2.2"}, {"prefix": "10.7.0.0/16", "drop": true}]}},
    "ttl": {"kind": "ttl", "trigger_pkts": 4, "age_limit_ns": 50000},
    "neighbour": {"kind": "neighbour", "trigger_pkts": 3, "age_limit_ns": 100000,
                  "params": {"table": "main", "hold_pkts": 4, "retry_ns": 1000000, "max_neighbours": 64}},
    "out_lan": {"kind": "port_out", "params": {"port": "lan"}},
    "out_wan": {"kind": "port_out", "params": {"port": "wan"}},
    "echo": {"kind": "icmp_echo"},
    "not_ours": {"kind": "drop"},
    "errors": {"kind": "queue", "params": {"size_pkts": 8}},
    "error": {"kind": "icmp_error", "params": {"table": "main", "errors_per_s": 1000000, "burst": 1000}},
    "reply_lookup": {"kind": "ipv4_lookup", "params": {"table": "main"}}
  },
  "edges": [
    {"from": "in_lan", "to": "type"}, {"from": "in_wan", "to": "type"},
    {"from": "type", "gate": 0, "to": "check"}, {"from": "type", "gate": 1, "to": "neighbour"},
    {"from": "check", "to": "lookup"},
    {"from": "lookup", "gate": "forward", "to": "ttl"}, {"from": "lookup", "gate": "local", "to": "echo"},
    {"from": "ttl", "to": "neighbour"},
    {"from": "neighbour", "gate": 0, "to": "out_lan"}, {"from": "neighbour", "gate": 1, "to": "out_wan"},
    {"from": "echo", "gate": "reply", "to": "reply_lookup"}, {"from": "echo", "gate": "other", "to": "not_ours"},
    {"from": "lookup", "gate": "drop", "to": "errors"}, {"from": "ttl", "gate": "drop", "to": "errors"},
    {"from": "neighbour", "gate": "drop", "to": "errors"},
    {"from": "errors", "to": "error"}, {"from": "error", "to": "reply_lookup"},
    {"from": "reply_lookup", "gate": "forward", "to": "neighbour"},
    {"from": "reply_lookup", "gate": "local", "to": "not_ours"}
  ],
  "flows": [{"name": "f", "path": ["in_lan", "type", "check", "lookup", "ttl", "neighbour", "out_wan"]}]
})";

// Gives what an input holds, takes what the router sends.
class FramePort final : public Port {
 public:
  explicit FramePort(PacketPool** pool) : pool_(pool) {}

  void offer(const Frames& frames, size_t first) {
    frames_ = &frames;
    next_ = first;
  }
  void withdraw() { frames_ = nullptr; }
  uint32_t rx_burst(Packet** pkts, uint32_t max, uint64_t now_ns) noexcept override {
    uint32_t n = 0;
    for (; frames_ != nullptr && n < max && next_ < frames_->all.size(); next_ += 2) {
      if (!(*pool_)->alloc_bulk(&pkts[n], 1)) fail("the pool has run dry");
      const auto bytes = frames_->all[next_];
      pkts[n]->reset(static_cast<uint32_t>(bytes.size()));
      if (!bytes.empty()) std::memcpy(pkts[n]->data(), bytes.data(), bytes.size());
      pkts[n]->meta() = PacketMeta{.entry_ns = now_ns, .in_interface = kNoInterface};
      ++n;
    }
    stats_.rx_pkts += n;
    return n;
  }
  uint32_t tx_burst(Packet** pkts, uint32_t n) noexcept override {
    for (uint32_t i = 0; i < n; ++i) {
      if (pkts[i]->len_bytes() < net::kEthBytes) fail("a frame without a header was sent");
    }
    PacketPool::free_bulk(pkts, n);
    stats_.tx_pkts += n;
    return n;
  }
  [[nodiscard]] PortStats stats() const override { return stats_; }

 private:
  PacketPool** pool_;
  const Frames* frames_ = nullptr;
  size_t next_ = 0;
  PortStats stats_;
};

class Router {
 public:
  Router() {
    std::vector<ConfigError> errors;
    PipelineSpec spec = spec_from_value(app::parse_json(kPipeline, "fuzz"), errors);
    if (!errors.empty()) fail(errors.front().line());
    spec.workers = {{"w0", -1}};
    auto env = std::make_unique<Environment>();
    env->quiescence = quiescence_.get();
    for (const char* name : {"lan", "wan"}) {
      const auto i = static_cast<uint16_t>(env->interfaces.size());
      ports_[i] = std::make_shared<FramePort>(&pool_);
      env->ports[name] = ports_[i];
      const std::string address = "10.0." + std::to_string(i + 1) + ".1/24";
      env->interfaces.push_back({.name = name,
                                 .port = name,
                                 .index = i,
                                 .mac = {2, 0, 0, 0, 0, static_cast<uint8_t>(i + 1)},
                                 .addresses = {*net::parse_interface_address(address)}});
    }
    auto graph = build_graph(spec, std::move(env));
    const auto n_pkts = static_cast<uint32_t>(Engine::min_pool_pkts(*graph)) + 64;
    auto pool = std::make_unique<PacketPool>("fuzz_router", n_pkts, kMostFrameBytes);
    pool_ = pool.get();
    engine_ = std::make_unique<Engine>(std::move(graph), std::move(pool), quiescence_);
    worker_ = engine_->workers().front().get();
    worker_->use_virtual_clock(&now_ns_);
  }

  void run(const Frames& frames) {
    for (size_t i = 0; i < 2; ++i) ports_[i]->offer(frames, i);
    now_ns_ += frames.step_ns;
    for (int i = 0; i < 3; ++i) {
      now_ns_ += 30'000;
      worker_->loop_once();
    }
    for (const auto& port : ports_) port->withdraw();
    tally.pkts += frames.all.size();
    if (++n_inputs_ % 64 == 0) check_balance();
  }

 private:
  void check_balance() {
    const Balance balance = engine_->snapshot(false).balance;
    require(balance.is_exact(), "the router's counts do not add up");
    const PortStats lan = ports_[0]->stats();
    const PortStats wan = ports_[1]->stats();
    require(balance.in_pkts == lan.rx_pkts + wan.rx_pkts,
            "packets came in that the router did not count");
    require(balance.sent_pkts == lan.tx_pkts + wan.tx_pkts, "sent is not what the ports took");
  }

  uint64_t now_ns_ = 1'000'000'000;
  PacketPool* pool_ = nullptr;
  std::shared_ptr<Quiescence> quiescence_ = std::make_shared<Quiescence>();
  std::shared_ptr<FramePort> ports_[2];
  std::unique_ptr<Engine> engine_;
  Worker* worker_ = nullptr;
  uint64_t n_inputs_ = 0;
};

}  // namespace

int fuzz_router(const uint8_t* data, size_t size) {
  static Router router;
  router.run(cut_frames(data, size));
  return 0;
}

}  // namespace batchplane::fuzz

// SPDX-License-Identifier: BSD-3-Clause
// module_harness.h - runs one module by itself, on either packet backend, and tells what became of
// each packet.
//
//   ModuleHarness harness("ttl", {{"mend_checksum", true}});
//   const Outcome outcome = harness.run({frame_a, frame_b});
//   outcome.at(0), outcome.dropped_for("ttl_expired"), outcome.outputs[0].meta
//
// Parameters pass through the same checks as in a pipeline; mistakes throw ConfigError.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/module/environment.h"
#include "core/module/kind.h"
#include "core/packet/packet_pool.h"

namespace batchplane {

using Bytes = std::vector<uint8_t>;

struct Output {
  uint32_t gate = 0;  // in-place modules: 0
  Bytes bytes;
  PacketMeta meta{};
  uint32_t mark = 0;
  uint32_t departure_ticks = 0;  // 0 also: none, see meta.flags
};

struct Dropped {
  std::string reason;
  Bytes bytes;
};

// What became of the packets of one call, each list in order.
struct Outcome {
  std::vector<Output> outputs;  // stayed in the batch
  std::vector<Output> emitted;  // left by emit(), ahead of the batch
  std::vector<Dropped> drops;
  uint32_t kept_pkts = 0;      // taken by ctx.keep
  uint32_t consumed_pkts = 0;  // taken by a terminal

  // In the order in which they reach what lies behind the gate.
  [[nodiscard]] std::vector<Bytes> at(uint32_t gate) const {
    std::vector<Bytes> found;
    for (const Output& output : emitted) {
      if (output.gate == gate) found.push_back(output.bytes);
    }
    for (const Output& output : outputs) {
      if (output.gate == gate) found.push_back(output.bytes);
    }
    return found;
  }
  [[nodiscard]] std::vector<uint32_t> gates() const {
    std::vector<uint32_t> found;
    for (const Output& output : outputs) found.push_back(output.gate);
    return found;
  }
  [[nodiscard]] uint32_t dropped_for(const std::string& reason) const {
    return static_cast<uint32_t>(std::ranges::count(drops, reason, &Dropped::reason));
  }
};

class ModuleHarness {
 public:
  static constexpr uint32_t kPoolPkts = 1024;

  explicit ModuleHarness(const std::string& kind, const Dict& params = {},
                         uint32_t connected_gates = 1, Environment* env = nullptr,
                         uint32_t data_bytes = 2048)
      : info_(known_kind(kind)),
        env_(env == nullptr ? &own_env_ : env),
        pool_("harness" + std::to_string(next_pool()), kPoolPkts, data_bytes),
        module_(make_module(params)),
        meter_(1) {
    n_gates_ = info_.shape == Shape::kSplitter ? module_->link(connected_gates) : 1;
    ctx_->pool = &pool_;
    ctx_->meter = &meter_;
    ctx_->now_ns = 1'000'000;
    ctx_->batch_limit_pkts = exec::kMaxBatchPkts;
  }
  ~ModuleHarness() {
    module_->give_up_held([&](Packet* pkt) { ctx_->free(pkt); });
    ctx_->flush_free();
  }
  ModuleHarness(const ModuleHarness&) = delete;
  ModuleHarness& operator=(const ModuleHarness&) = delete;

  [[nodiscard]] Module& module() { return *module_; }
  [[nodiscard]] const ModuleInfo& info() const { return info_; }
  [[nodiscard]] Context& ctx() { return *ctx_; }
  [[nodiscard]] PacketPool& pool() { return pool_; }
  [[nodiscard]] uint32_t n_gates() const { return n_gates_; }
  void set_now_ns(uint64_t now_ns) { ctx_->now_ns = now_ns; }
  // Template for the metadata of the packets made from here on.
  [[nodiscard]] PacketMeta& meta() { return meta_; }
  Value command(const std::string& verb, const Value& args = Dict{}) {
    return module_->command(verb, args);
  }

  [[nodiscard]] Packet* make_packet(const Bytes& bytes) {
    Packet* pkt = nullptr;
    if (!pool_.alloc_bulk(&pkt, 1)) throw std::runtime_error("the harness has no packet left");
    pkt->reset(static_cast<uint32_t>(bytes.size()));
    if (!bytes.empty()) std::memcpy(pkt->data(), bytes.data(), bytes.size());
    pkt->meta() = meta_;
    return pkt;
  }

  // One batch of 1..kMaxBatchPkts packets through the module's function, as the executor calls it.
  Outcome run(const std::vector<Bytes>& frames) {
    std::vector<Packet*> pkts;
    for (const Bytes& frame : frames) pkts.push_back(make_packet(frame));
    return run_packets(std::move(pkts));
  }
  // The same with packets from make_packet(), each with metadata of its own.
  Outcome run_packets(std::vector<Packet*> pkts) {
    Batch batch{pkts.data(), static_cast<uint32_t>(pkts.size()), ctx_->now_ns};
    info_.run(module_.get(), *ctx_, batch.pkts, batch.size_pkts);
    return collect(batch);
  }

  // Calls housekeep as the engine would; what it emits and drops is in the outcome.
  Outcome housekeep(uint64_t budget_ns = 100'000) {
    module_->housekeep(*ctx_, budget_ns);
    Batch none{nullptr, 0, ctx_->now_ns};
    return collect(none);
  }

  // Packets out of the pool that neither the module nor the context owns; 0 unless some leaked.
  [[nodiscard]] uint64_t leaked_pkts() {
    ctx_->flush_free();
    return kPoolPkts - pool_.available_pkts() - module_->held_pkts();
  }

 private:
  static uint32_t next_pool() {
    static std::atomic<uint32_t> n{0};
    return n++;
  }
  static const ModuleInfo& known_kind(const std::string& kind) {
    const ModuleInfo* info = find_module_kind(kind);
    if (info == nullptr) throw std::runtime_error("no module kind '" + kind + "'");
    return *info;
  }
  std::unique_ptr<Module> make_module(const Dict& params) {
    std::vector<ConfigError> errors;
    Args args(info_.params, params, "modules.under_test", errors);
    if (!errors.empty()) throw ConfigError(errors[0]);
    args.set_name("under_test");
    args.set_env(env_);
    auto module = info_.make(args);
    module->set_name("under_test");
    return module;
  }
  Output output_of(Packet* pkt, uint32_t gate) {
    if (gate >= n_gates_) throw std::runtime_error("gate " + std::to_string(gate) + " of none");
    return {gate, Bytes(pkt->data(), pkt->data() + pkt->len_bytes()), pkt->meta(), pkt->mark(),
            pkt->has_departure() ? pkt->departure_ticks() : 0};
  }
  Outcome collect(Batch& batch) {
    Outcome outcome;
    const bool is_terminal = info_.shape == Shape::kTerminal || info_.shape == Shape::kQueue;
    uint32_t n_live = 0;
    for (uint32_t i = 0; i < batch.size_pkts; ++i) {
      if (batch[i] == nullptr) continue;
      ++n_live;
      if (is_terminal) continue;
      outcome.outputs.push_back(
          output_of(batch[i], info_.shape == Shape::kSplitter ? ctx_->gates[i] : 0));
      ctx_->free(batch[i]);
    }
    outcome.consumed_pkts = is_terminal ? n_live : 0;
    for (uint32_t i = 0; i < ctx_->n_dropped; ++i) {
      const auto [pkt, reason] = ctx_->dropped[i];
      outcome.drops.push_back(
          {drop_reasons()[reason].name, Bytes(pkt->data(), pkt->data() + pkt->len_bytes())});
      ctx_->free(pkt);
    }
    for (uint32_t i = 0; i < ctx_->n_emitted; ++i) {
      const auto [pkt, gate] = ctx_->emitted[i];
      outcome.emitted.push_back(output_of(pkt, gate));
      ctx_->free(pkt);
    }
    const uint32_t n_from_batch = batch.size_pkts - n_live;
    outcome.kept_pkts = n_from_batch > ctx_->n_dropped ? n_from_batch - ctx_->n_dropped : 0;
    ctx_->n_removed = ctx_->n_dropped = ctx_->n_emitted = ctx_->n_fates = 0;
    ctx_->flush_free();
    return outcome;
  }

  const ModuleInfo& info_;
  Environment own_env_;
  Environment* env_;
  PacketPool pool_;
  std::unique_ptr<Module> module_;
  std::unique_ptr<Context> ctx_ = std::make_unique<Context>();
  exec::FlowMeter meter_;
  PacketMeta meta_{.in_interface = kNoInterface};
  uint32_t n_gates_ = 1;
};

// The line in which something is refused; empty when it is not.
inline std::string refusal_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const ConfigError& error) {
    return error.line();
  }
  return "";
}

// Plain frames for tests: Ethernet and IPv4 with correct lengths and header checksum.
struct FrameSpec {
  net::Mac dst = {2, 0, 0, 0, 0, 1};
  net::Mac src = {2, 0, 0, 0, 0, 2};
  uint32_t ip_src = 0x0a000001;
  uint32_t ip_dst = 0x0a000002;
  uint16_t port_src = 1000;
  uint16_t port_dst = 2000;
  uint8_t proto = net::kProtoUdp;
  uint8_t ttl = 64;
  uint32_t len_bytes = 60;     // of the frame, no check sequence
  uint32_t options_bytes = 0;  // of the IPv4 header, multiple of 4
};

inline Bytes make_frame(const FrameSpec& spec = {}) {
  Bytes frame(spec.len_bytes);
  std::ranges::copy(spec.dst, frame.begin());
  std::ranges::copy(spec.src, frame.begin() + 6);
  net::store16(&frame[12], net::kTypeIpv4);
  uint8_t* ip = &frame[net::kEthBytes];
  const uint32_t header_bytes = net::kIpv4Bytes + spec.options_bytes;
  ip[0] = static_cast<uint8_t>(0x40 | header_bytes / 4);
  net::store16(ip + net::kIpTotalLength, static_cast<uint16_t>(spec.len_bytes - net::kEthBytes));
  ip[net::kIpTtl] = spec.ttl;
  ip[net::kIpProto] = spec.proto;
  net::store32(ip + net::kIpSrc, spec.ip_src);
  net::store32(ip + net::kIpDst, spec.ip_dst);
  std::memset(ip + net::kIpv4Bytes, 1, spec.options_bytes);  // no-operation options
  net::store16(ip + net::kIpChecksum, net::checksum_finish(net::checksum_add(ip, header_bytes)));
  net::store16(ip + header_bytes, spec.port_src);
  net::store16(ip + header_bytes + 2, spec.port_dst);
  net::store16(ip + header_bytes + 4,
               static_cast<uint16_t>(spec.len_bytes - net::kEthBytes - header_bytes));
  return frame;
}

// Computes the header checksum of a frame with the IPv4 header at byte 14 anew.
inline void mend_ipv4_checksum(Bytes& frame) {
  uint8_t* ip = &frame[net::kEthBytes];
  net::store16(ip + net::kIpChecksum, 0);
  const uint32_t header_bytes = (ip[0] & 15U) * 4;
  net::store16(ip + net::kIpChecksum, net::checksum_finish(net::checksum_add(ip, header_bytes)));
}

}  // namespace batchplane

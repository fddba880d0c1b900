// SPDX-License-Identifier: BSD-3-Clause
// port_test_util.h - a context, a pool and modules by kind, for tests of ports.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "core/module/kind.h"
#include "ports/port_kinds.h"

namespace batchplane::ports {

inline std::string unique_pool_name() {
  static int n = 0;
  return "ports" + std::to_string(n++);
}

// One worker's context, and helpers that run a module the way the engine does.
struct PortRig {
  explicit PortRig(uint32_t pool_pkts = 512, uint32_t data_bytes = 2048)
      : pool(unique_pool_name(), pool_pkts, data_bytes), ctx(std::make_unique<Context>()) {
    ctx->pool = &pool;
  }
  ~PortRig() { ctx->flush_free(); }

  // A packet of `len` bytes, the first of which is `tag`.
  Packet* make(uint32_t len_bytes, uint8_t tag = 0, uint64_t entry_ns = 0) {
    Packet* pkt = nullptr;
    EXPECT_TRUE(pool.alloc_bulk(&pkt, 1));
    pkt->reset(len_bytes);
    std::memset(pkt->data(), 0, len_bytes);
    pkt->data()[0] = tag;
    pkt->meta() = PacketMeta{};
    pkt->meta().entry_ns = entry_ns;
    return pkt;
  }
  std::unique_ptr<Module> module(const std::string& kind, const Dict& params) {
    const ModuleInfo* info = find_module_kind(kind);
    std::vector<ConfigError> errors;
    Args args(info->params, params, "test", errors);
    for (const ConfigError& error : errors) ADD_FAILURE() << error.line();
    args.set_env(&env);
    args.set_name("test");
    return info->make(args);
  }
  // Frees the packets that the module dropped; returns the reasons, in order.
  std::vector<std::string> take_drops() {
    std::vector<std::string> reasons;
    for (uint32_t i = 0; i < ctx->n_dropped; ++i) {
      reasons.push_back(drop_reasons()[ctx->dropped[i].reason].name);
      ctx->free(ctx->dropped[i].pkt);
    }
    ctx->n_dropped = 0;
    ctx->n_removed = 0;
    ctx->flush_free();
    return reasons;
  }
  // Runs `consume` of an egress or queue module.
  std::vector<std::string> consume(Module& module, const std::string& kind,
                                   std::vector<Packet*> pkts) {
    exec::FlowMeter meter(1);
    ctx->meter = &meter;
    find_module_kind(kind)->run(&module, *ctx, pkts.data(), static_cast<uint32_t>(pkts.size()));
    meter.flush(ctx->now_ns);
    metered_pkts += meter.sent_pkts();
    return take_drops();
  }
  std::vector<Packet*> poll(Module& module, const std::string& kind, uint32_t max = 32) {
    std::vector<Packet*> pkts(max);
    pkts.resize(find_module_kind(kind)->poll(module, *ctx, pkts.data(), max));
    return pkts;
  }
  void free(const std::vector<Packet*>& pkts) {
    for (Packet* pkt : pkts) PacketPool::free_bulk(&pkt, 1);
  }

  Environment env;
  PacketPool pool;
  std::unique_ptr<Context> ctx;
  uint64_t metered_pkts = 0;
};

template <class Make>
std::string error_of(Make&& make) {
  try {
    make();
  } catch (const ConfigError& error) {
    return error.line();
  }
  return "";
}

}  // namespace batchplane::ports

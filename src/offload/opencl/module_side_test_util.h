// SPDX-License-Identifier: BSD-3-Clause
// module_side_test_util.h - a module with its own packets, for tests that compare two modules.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "module_harness.h"
#include "offload/job.h"

namespace batchplane::offload {
namespace opencl_modules_test {

inline constexpr uint32_t kGates = 8;
inline constexpr uint32_t kDataBytes = 2048;

// A module, its packets and their results.
struct Side {
  Side(const std::string& kind, const Dict& params, uint32_t most_pkts)
      : pool("opencl_side" + std::to_string(next++), most_pkts + 512, kDataBytes),
        runner(*find_module_kind(kind), make(kind, params)) {
    runner.module().link(kGates);
    ctx->pool = &pool;
    ctx->batch_limit_pkts = exec::kMaxBatchPkts;
  }
  ~Side() { free(); }
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  void take(const std::vector<Bytes>& frames) {
    free();
    pkts.resize(frames.size());
    ASSERT_TRUE(pool.alloc_bulk(pkts.data(), static_cast<uint32_t>(frames.size())));
    for (size_t i = 0; i < frames.size(); ++i) {
      pkts[i]->reset(static_cast<uint32_t>(frames[i].size()));
      if (!frames[i].empty()) std::memcpy(pkts[i]->data(), frames[i].data(), frames[i].size());
      pkts[i]->meta() = PacketMeta{};
      pkts[i]->set_mark(0);
    }
  }
  template <class Act>
  void by_batches(Act act) {
    const auto n = static_cast<uint32_t>(pkts.size());
    for (uint32_t at = 0; at < n; at += exec::kMaxBatchPkts)
      act(at, std::min(exec::kMaxBatchPkts, n - at));
  }
  void run() {
    by_batches([&](uint32_t at, uint32_t n) { runner.run(*ctx, &pkts[at], n); });
  }
  Kernel& kernel() { return *runner.module().kernel(); }
  [[nodiscard]] std::vector<std::pair<uint32_t, uint32_t>> fates() const {
    std::vector<std::pair<uint32_t, uint32_t>> fates;
    for (Packet* pkt : pkts) fates.emplace_back(pkt->meta().drop_reason, pkt->mark());
    return fates;
  }
  void free() {
    if (!pkts.empty()) PacketPool::free_bulk(pkts.data(), static_cast<uint32_t>(pkts.size()));
    pkts.clear();
  }

  inline static uint32_t next = 0;
  Environment env;
  PacketPool pool;
  Runner runner;
  std::unique_ptr<Context> ctx = std::make_unique<Context>();
  std::vector<Packet*> pkts;

 private:
  std::unique_ptr<Module> make(const std::string& kind, const Dict& params) {
    const ModuleInfo& info = *find_module_kind(kind);
    Args args(info.params, params, "modules.x");
    args.set_env(&env);
    args.set_name("x");
    auto module = info.make(args);
    module->set_name("x");
    return module;
  }
};

}  // namespace opencl_modules_test
}  // namespace batchplane::offload

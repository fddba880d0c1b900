// SPDX-License-Identifier: BSD-3-Clause
// stage_test_util.h - a whole engine around one stage, with a record of where each packet went.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/batch_law_value.h"
#include "core/engine/engine.h"
#include "core/module/kernel.h"
#include "core/module/live_table.h"
#include "offload/stage.h"
#include "spec/stages.h"

namespace batchplane::offload {
namespace stage_test {

inline constexpr uint32_t kFrameBytes = 64;
inline constexpr uint32_t kLongInputBytes = 3000;

// State shared with the modules below; for one test at a time.
struct World {
  uint64_t limit_pkts = 0;  // packets from the input in all
  uint32_t burst_pkts = 32;
  uint64_t n_made = 0;
  uint64_t n_worked = 0;
  uint64_t n_here = 0;  // packets that no device has computed
  bool was_in_order = true;
  bool was_right = true;
  bool has_long_inputs = false;  // more bytes than a device has room for
  std::vector<uint32_t> out[3];  // packet numbers, by output
};
inline World world;

inline uint32_t number_of(Packet* pkt) {
  uint32_t number = 0;
  std::memcpy(&number, pkt->data(), sizeof number);
  return number;
}

// A source that numbers its packets.
class TestIn final : public Module {
 public:
  explicit TestIn(const Args& /*args*/) {}
  uint32_t poll(Context& ctx, Packet** pkts, uint32_t max) noexcept {
    const auto n = static_cast<uint32_t>(
        std::min<uint64_t>({max, world.burst_pkts, world.limit_pkts - world.n_made}));
    if (n == 0 || !ctx.pool->alloc_bulk(pkts, n)) return 0;
    for (uint32_t i = 0; i < n; ++i) {
      pkts[i]->reset(kFrameBytes);
      pkts[i]->meta() = PacketMeta{};
      pkts[i]->meta().entry_ns = ctx.now_ns;
      const auto number = static_cast<uint32_t>(world.n_made++);
      std::memcpy(pkts[i]->data(), &number, sizeof number);
    }
    return n;
  }
};

class TestOut final : public Module {
 public:
  explicit TestOut(const Args& args) : way_(args.u32("way")) {}
  void consume(Context& ctx, Batch& batch) noexcept {
    for (Packet* pkt : batch) world.out[way_].push_back(number_of(pkt));
    ctx.free(batch.pkts, batch.size_pkts);
  }

 private:
  const uint32_t way_;
};

inline const DropReason kSeventh{"test_seventh", "a packet that a test drops", "none"};

// Drops every seventh packet and sends every third to gate 1; changes bytes, and counts them in order.
// Its kernel computes the number, the length and the value that an edit has set.
class TestTable final : public KernelTable {
 public:
  explicit TestTable(uint32_t added) : added_(added) {}
  [[nodiscard]] uint32_t added() const { return added_; }
  [[nodiscard]] std::vector<uint32_t> words() const override { return {added_}; }

 private:
  const uint32_t added_;
};

class TestWork final : public Module, public Kernel {
 public:
  using TablePtr = std::shared_ptr<TestTable>;
  explicit TestWork(const Args& args)
      : live_(std::make_unique<TablePtr>(std::make_shared<TestTable>(0)),
              std::make_unique<TablePtr>(), args.env().quiescence) {}
  uint32_t link(uint32_t /*connected*/) override { return 2; }
  void classify(Context& ctx, Batch& batch) noexcept {
    uint32_t results[2 * exec::kMaxBatchPkts] = {};
    TestTable* const table = live_.read().get();
    world.n_here += batch.size_pkts;
    for (uint32_t i = 0; i < batch.size_pkts; ++i) {
      results[2 * i] = number_of(batch[i]);
      results[2 * i + 1] = length_of(batch[i]) + table->added();
    }
    apply(table, ctx, batch, reinterpret_cast<const uint8_t*>(results));
  }

  Kernel* kernel() override { return this; }
  [[nodiscard]] KernelSource source() const override {
    return {
#include "offload/number.cl.h"
        ,
#include "offload/number.ptx.h"
    };
  }
  [[nodiscard]] const char* entry() const override { return "number"; }
  [[nodiscard]] uint32_t result_bytes() const override { return 2 * sizeof(uint32_t); }
  [[nodiscard]] Input input_of(Packet& pkt) const noexcept override {
    if (!world.has_long_inputs) return {pkt.data(), pkt.len_bytes()};
    thread_local std::vector<uint8_t> text(kLongInputBytes);
    std::copy_n(pkt.data(), sizeof(uint32_t), text.begin());
    return text;
  }
  [[nodiscard]] KernelTable* table() noexcept override { return live_.read().get(); }
  void compute(const KernelTable* table, const Input* inputs, uint32_t n,
               uint8_t* results) noexcept override {
    const uint32_t added = static_cast<const TestTable*>(table)->added();
    for (uint32_t i = 0; i < n; ++i) compute_one(inputs[i], added, results + i * result_bytes());
  }
  static void compute_one(Input input, uint32_t added, uint8_t* result) {
    uint32_t words[2] = {0, static_cast<uint32_t>(input.size()) + added};
    if (input.size() >= sizeof words[0]) std::memcpy(words, input.data(), sizeof words[0]);
    std::memcpy(result, words, sizeof words);
  }
  void apply(KernelTable* table, Context& ctx, Batch& batch,
             const uint8_t* results) noexcept override {
    for (uint32_t i = 0; i < batch.size_pkts; ++i) {
      uint32_t words[2] = {};
      std::memcpy(words, results + i * result_bytes(), sizeof words);
      const uint32_t number = words[0];
      world.was_right = world.was_right && number == number_of(batch[i]) &&
                        words[1] == length_of(batch[i]) + static_cast<TestTable*>(table)->added();
      world.was_in_order = world.was_in_order && number == next_.load();
      next_ = number + 1;
      ++world.n_worked;
      batch[i]->data()[4] += 1;
      ctx.gates[i] = number % 3 == 0 ? 1 : 0;
      if (number % 7 == 0) ctx.drop(batch, i, kSeventh);
    }
  }
  void adopt(Module& old_module) noexcept override {
    next_ = static_cast<TestWork&>(old_module).next_.load();
  }
  void inherit(Module& old_module) override {
    set_table(static_cast<TestWork&>(old_module).live_.current()->added());
  }
  [[nodiscard]] Value show() const override { return Dict{{"next", next_.load()}}; }
  Value command(const std::string& verb, const Value& args) override {
    if (verb == "table") {
      set_table(static_cast<uint32_t>(args.as_int()));
      return {};
    }
    return verb == "ping" ? Value("pong") : Module::command(verb, args);
  }

 private:
  static uint32_t length_of(Packet* pkt) {
    return world.has_long_inputs ? kLongInputBytes : pkt->len_bytes();
  }
  void set_table(uint32_t added) {
    const auto next = std::make_shared<TestTable>(added);
    live_.replace(std::make_unique<TablePtr>(next), std::make_unique<TablePtr>(next));
  }

  std::atomic<uint32_t> next_{0};
  LiveTable<TablePtr> live_;
};

inline PipelineSpec written(Dict device, std::vector<DeviceSpec> devices) {
  PipelineSpec spec;
  spec.modules = {{"in", "test_in", {}},
                  {"work", "test_work", {}},
                  {"a", "test_out", {{"way", 0}}},
                  {"b", "test_out", {{"way", 1}}}};
  spec.modules[1].device = std::move(device);
  spec.edges = {{"in", "0", "work"}, {"work", "0", "a"}, {"work", "1", "b"}};
  spec.flows = {{"to_a", {"in", "work:0", "a"}, 0}, {"to_b", {"in", "work:1", "b"}, 0}};
  spec.devices = std::move(devices);
  return spec;
}
inline PipelineSpec staged(PipelineSpec spec) {
  std::vector<ConfigError> errors;
  Mistakes mistakes{errors, spec.source_map};
  add_stages(spec, module_kind_facts(), mistakes);
  if (!errors.empty()) throw ConfigErrors(errors);
  return spec;
}
inline PipelineSpec pipeline(Dict device, std::vector<DeviceSpec> devices) {
  return staged(written(std::move(device), std::move(devices)));
}
inline DeviceSpec simulated_with(uint32_t threads, const BatchLaw& law, const Dict& faults = {}) {
  return {"gpu",
          "simulated",
          {{"threads", threads},
           {"laws", Dict{{"test_work", batch_law_value(law)}}},
           {"faults", faults}}};
}
inline DeviceSpec simulated(uint32_t threads, double batch_ns, double pkt_ns,
                            const Dict& faults = {}) {
  return simulated_with(threads, {.batch_ns = batch_ns, .pkt_ns = pkt_ns}, faults);
}
inline DeviceSpec cores(uint32_t threads) { return {"cpu", "cores", {{"threads", threads}}}; }

// The error lines of a pipeline that is refused.
inline std::string refusal(const PipelineSpec& spec);

struct Rig {
  explicit Rig(const PipelineSpec& spec, uint64_t limit_pkts, bool is_virtual = true) {
    world = World{};
    world.limit_pkts = limit_pkts;
    static std::atomic<uint32_t> next{0};
    auto graph = build(spec, nullptr);
    const auto n_pkts = static_cast<uint32_t>(Engine::min_pool_pkts(*graph)) + 4096;
    auto pool = std::make_unique<PacketPool>("stage_test" + std::to_string(next++), n_pkts);
    lend_packets(*graph->env, *pool);
    engine = std::make_unique<Engine>(std::move(graph), std::move(pool), quiescence);
    if (is_virtual) engine->workers()[0]->use_virtual_clock(&now_ns);
  }
  std::unique_ptr<Graph> build(const PipelineSpec& spec, const Environment* running) {
    auto env = std::make_unique<Environment>();
    env->quiescence = quiescence.get();
    std::vector<ConfigError> errors;
    Mistakes mistakes{errors, spec.source_map};
    add_devices(spec, *env, running, mistakes);
    if (!errors.empty()) throw ConfigErrors(errors);
    return build_graph(spec, std::move(env));
  }
  void apply(const PipelineSpec& spec) { engine->apply(build(spec, engine->graph().env.get())); }
  void loop(uint32_t n, uint64_t step_ns = 100) {
    for (uint32_t i = 0; i < n; ++i) {
      now_ns += step_ns;
      engine->workers()[0]->loop_once();
    }
  }
  Stage& stage() { return static_cast<Stage&>(*engine->graph().at("work").module); }
  Value stats() { return stage().show()["stage"]; }
  int64_t jobs(const std::string& cause) { return stats()["jobs"][cause].as_int(); }
  void expect_balance() {
    const Snapshot snapshot = engine->snapshot(true);
    const Balance& b = snapshot.balance;
    EXPECT_TRUE(b.is_exact()) << b.in_pkts << " in, " << b.sent_pkts << " sent, " << b.dropped_pkts
                              << " dropped, " << b.held_pkts << " held";
    EXPECT_EQ(b.in_pkts, world.n_made);
  }
  // Checks that every packet left once, in order, at the right output.
  void expect_all() {
    expect_balance();
    EXPECT_TRUE(world.was_in_order);
    EXPECT_TRUE(world.was_right);
    EXPECT_EQ(world.n_worked, world.n_made);
    std::vector<uint32_t> expected[2];
    for (uint32_t i = 0; i < world.n_made; ++i) {
      if (i % 7 != 0) expected[i % 3 == 0 ? 1 : 0].push_back(i);
    }
    EXPECT_EQ(world.out[0], expected[0]);
    EXPECT_EQ(world.out[1], expected[1]);
  }

  uint64_t now_ns = 1'000'000;
  std::shared_ptr<Quiescence> quiescence = std::make_shared<Quiescence>();
  std::unique_ptr<Engine> engine;
};

inline std::string refusal(const PipelineSpec& spec) {
  try {
    Rig rig(staged(spec), 0);
  } catch (const ConfigErrors& errors) {
    std::string lines;
    for (const ConfigError& error : errors.errors) lines += error.line() + "\n";
    return lines;
  }
  return "";
}

inline const List kGpu{"gpu", "inline"};

}  // namespace stage_test
}  // namespace batchplane::offload

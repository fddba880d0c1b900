// SPDX-License-Identifier: BSD-3-Clause
// source_test.cc - the inline source rewrites whole packets each time, and keeps its limits.
#include <gtest/gtest.h>

#include <cstring>

#include "core/module/kind.h"
#include "traffic/template.h"
#include "traffic/traffic_test_util.h"

namespace batchplane::traffic {
namespace {

class SourceTest : public testing::Test {
 protected:
  SourceTest() { ctx_->pool = &pool_; }

  static std::string unique_name() {
    static int n = 0;
    return "source" + std::to_string(n++);
  }
  void make(const Dict& params) { source_ = info_->make(make_args(info_->params, params, &env_)); }
  std::vector<Packet*> poll(uint32_t max) {
    std::vector<Packet*> pkts(max);
    pkts.resize(info_->poll(*source_, *ctx_, pkts.data(), max));
    return pkts;
  }
  static void free(std::vector<Packet*> pkts) {
    if (!pkts.empty()) PacketPool::free_bulk(pkts.data(), static_cast<uint32_t>(pkts.size()));
  }

  const ModuleInfo* info_ = find_module_kind("source");
  Environment env_;
  PacketPool pool_{unique_name(), 128};
  std::unique_ptr<Context> ctx_ = std::make_unique<Context>();
  std::unique_ptr<Module> source_;
};

TEST_F(SourceTest, KeepsItsRate) {
  make({{"rate_pps", 1'000'000}, {"burst_pkts", 32}});
  ctx_->now_ns = 5'000;
  EXPECT_TRUE(poll(32).empty()) << "it begins now";
  uint64_t n = 0;
  for (int i = 0; i < 1000; ++i) {
    ctx_->now_ns += 700;
    const auto pkts = poll(32);
    EXPECT_LE(pkts.size(), 1U);
    n += pkts.size();
    free(pkts);
  }
  EXPECT_EQ(n, 700U);
  // After a long pause there are only a few bursts; the rest is skipped.
  ctx_->now_ns += 1'000'000'000;
  n = 0;
  for (auto pkts = poll(32); !pkts.empty(); pkts = poll(32)) {
    n += pkts.size();
    free(pkts);
  }
  EXPECT_EQ(n, 4 * 32U);
  source_->command("set", Dict{{"rate_pps", 0}});
  const auto pkts = poll(32);
  EXPECT_EQ(pkts.size(), 32U) << "as fast as it is polled";
  free(pkts);
  EXPECT_EQ(source_->saved_params().at("rate_pps").as_int(), 0);
  for (const Value& bad : {Value(Dict{{"rate_pps", -1}}), Value(Dict{{"rate_pps", "1M"}}),
                           Value(Dict{{"rate", 5}}), Value(Dict{})}) {
    EXPECT_THROW(source_->command("set", bad), ConfigError);
  }
}

TEST_F(SourceTest, RestoresWhatModulesChanged) {
  make({{"flows", List{Dict{{"count", 2}}}}});
  ctx_->now_ns = 55;
  const auto flows =
      parse_flows(make_args(with_traffic_params({}), {{"flows", List{Dict{{"count", 2}}}}}));
  for (int round = 0; round < 10; ++round) {
    const auto pkts = poll(32);
    ASSERT_EQ(pkts.size(), 32U);
    for (size_t i = 0; i < pkts.size(); ++i) {
      const auto expected = build_frame(flows[i % 2], 64);
      ASSERT_EQ(pkts[i]->len_bytes(), expected.size());
      ASSERT_EQ(std::memcmp(pkts[i]->data(), expected.data(), expected.size()), 0);
      ASSERT_EQ(pkts[i]->meta().entry_ns, 55U);
      ASSERT_EQ(pkts[i]->meta().in_interface, kNoInterface);
      ASSERT_EQ(pkts[i]->meta().l3_offset_bytes, 14);
      std::memset(pkts[i]->data(), 0xff, 60);
      pkts[i]->meta().l3_offset_bytes = 18;
      pkts[i]->pull_front(14);
    }
    free(pkts);
  }
}

TEST_F(SourceTest, KeepsBurstAndLimitAndSwitch) {
  make({{"burst_pkts", 8}, {"limit_pkts", 20}});
  std::vector<size_t> sizes;
  for (int i = 0; i < 4; ++i) {
    const auto pkts = poll(32);
    sizes.push_back(pkts.size());
    free(pkts);
  }
  EXPECT_EQ(sizes, (std::vector<size_t>{8, 8, 4, 0}));
  EXPECT_EQ(source_->show()["made_pkts"].as_int(), 20);
  make({});
  source_->command("off", Dict{});
  EXPECT_TRUE(poll(32).empty());
  source_->command("on", Dict{});
  free(poll(32));
  EXPECT_EQ(source_->show()["made_pkts"].as_int(), 32);
  EXPECT_NE(error_of([&] { source_->command("explode", Dict{}); }), "");
}

TEST_F(SourceTest, AnEmptyPoolIsCountedAndHarmless) {
  make({});
  std::vector<Packet*> all;
  for (int i = 0; i < 4; ++i) {
    const auto pkts = poll(32);
    all.insert(all.end(), pkts.begin(), pkts.end());
  }
  EXPECT_EQ(all.size(), 128U);
  EXPECT_TRUE(poll(32).empty());
  EXPECT_EQ(source_->show()["starved_polls"].as_int(), 1);
  free(all);
}

TEST_F(SourceTest, ApplyGoesOnCounting) {
  make({{"limit_pkts", 40}});
  free(poll(32));
  const auto old_source = std::move(source_);
  make({{"limit_pkts", 40}});
  source_->adopt(*old_source);
  EXPECT_EQ(source_->show()["made_pkts"].as_int(), 32);
  const auto rest = poll(32);
  EXPECT_EQ(rest.size(), 8U);
  free(rest);
}

}  // namespace
}  // namespace batchplane::traffic

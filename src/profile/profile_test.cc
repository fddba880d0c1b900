// SPDX-License-Identifier: BSD-3-Clause
// profile_test.cc - packets reach the modules as in the engine, modules of every shape can be
// measured, and no packet is lost. No time is asserted.
#include "profile/profile.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>

#include "ports/port_kinds.h"
#include "profile/hop_meter.h"
#include "profile/loop_costs.h"
#include "profile/walk.h"
#include "spec/doors.h"

namespace batchplane::profile {
namespace {

ModuleSpec module_spec(const std::string& name, const std::string& kind, Dict params = {}) {
  ModuleSpec module;
  module.name = name;
  module.kind = kind;
  module.params = std::move(params);
  return module;
}

// in -> check -> split to a queue and to a TTL module that drops a quarter, with a module behind
// its drop gate; queue -> sink.
PipelineSpec small_spec() {
  PipelineSpec spec;
  spec.name = "small";
  spec.ports.push_back({"link", "ring", {{"size_pkts", 64}}});
  spec.modules = {module_spec("in", "port_in", {{"port", "link"}}),
                  module_spec("check", "ipv4_check"),
                  module_spec("split", "split", {{"gates", 2}}),
                  module_spec("ttl", "ttl"),
                  module_spec("mac", "mac_rewrite", {{"src", "02:00:00:00:00:aa"}}),
                  module_spec("dropped", "drop"),
                  module_spec("queue", "queue"),
                  module_spec("behind", "counter"),
                  module_spec("out", "sink"),
                  module_spec("out_2", "port_out", {{"port", "link"}}),
                  module_spec("lonely", "sink")};
  spec.edges = {{"in", "0", "check"},       {"check", "0", "split"},  {"split", "0", "ttl"},
                {"split", "1", "queue"},    {"ttl", "0", "mac"},      {"ttl", "drop", "dropped"},
                {"mac", "0", "out"},        {"queue", "0", "behind"}, {"behind", "0", "out_2"},
                {"check", "drop", "lonely"}};
  spec.flows = {{"one", {"in", "check", "split", "ttl", "mac", "out"}, 0}};
  // Round robin: the split sends the first and third of each four to ttl, one of them with a TTL of
  // 1.
  const List flows{Dict{{"ttl", 1}, {"dst_ip", "20.0.1.1"}},
                   Dict{{"count", 3}, {"dst_ip", "20.0.0.1"}, {"dst_ip_step", 1}}};
  spec.generators.push_back({"load", "link", -1, {{"flows", flows}, {"rate_pps", 1e6}}});
  return spec;
}

class ProfileTest : public testing::Test {
 protected:
  ProfileTest() {
    auto env = std::make_unique<Environment>();
    for (const PortSpec& port : spec_.ports) {
      env->ports[port.name] = make_port(port, *env);
    }
    graph_ = build_graph(spec_, std::move(env));
  }

  static std::string unique_name() {
    static int n = 0;
    return "profile_test" + std::to_string(n++);
  }
  const Arrived& at(const std::vector<Arrived>& all, const std::string& name) const {
    return all[graph_->index.at(name)];
  }

  PipelineSpec spec_ = small_spec();
  PacketPool pool_{unique_name(), 4096};
  std::unique_ptr<Graph> graph_;
};

TEST_F(ProfileTest, EachModuleGetsWhatTheTrafficBringsThere) {
  {
    Stage stage(*graph_, pool_);
    Traffic traffic(*graph_, pool_);
    const std::vector<Arrived> arrived = walk(stage, traffic, 400);
    EXPECT_EQ(at(arrived, "in").pkts.size(), 400U);
    EXPECT_EQ(at(arrived, "check").pkts.size(), 400U);
    EXPECT_EQ(at(arrived, "ttl").pkts.size() + at(arrived, "queue").pkts.size(), 400U);
    // Through the queue into the other task, and through the drop gate.
    EXPECT_EQ(at(arrived, "behind").pkts.size(), at(arrived, "queue").pkts.size());
    EXPECT_EQ(at(arrived, "ttl").pkts.size(), 200U);
    EXPECT_EQ(at(arrived, "mac").pkts.size(), 100U);
    EXPECT_EQ(at(arrived, "dropped").pkts.size(), 100U);
    for (const PacketImage& image : at(arrived, "mac").pkts) {
      ASSERT_EQ(image.bytes[net::kEthBytes + net::kIpTtl], 63) << "as the TTL module left it";
      ASSERT_EQ(image.meta.l4_offset_bytes, 34) << "as the check left it";
    }
    EXPECT_FALSE(at(arrived, "mac").is_stand_in);
    EXPECT_TRUE(at(arrived, "lonely").is_stand_in);
    EXPECT_FALSE(at(arrived, "lonely").pkts.empty());
  }
  EXPECT_EQ(pool_.available_pkts(), pool_.size_pkts());
}

TEST_F(ProfileTest, AnImageIsTheSamePacketAgain) {
  Packet* pkt = nullptr;
  ASSERT_TRUE(pool_.alloc_bulk(&pkt, 1));
  for (const int shift : {-18, 0, 36}) {
    const uint32_t mark = shift == 0 ? 0 : 99;
    pkt->reset(80);
    for (uint32_t i = 0; i < 80; ++i) pkt->data()[i] = static_cast<uint8_t>(i);
    pkt->meta() = PacketMeta{.entry_ns = 7, .vrf = 3};
    pkt->set_mark(mark);
    if (shift == 0) pkt->set_departure_ticks(8);
    if (shift < 0) pkt->push_front(static_cast<uint32_t>(-shift));
    if (shift > 0) pkt->pull_front(static_cast<uint32_t>(shift));
    const PacketImage image = image_of(*pkt);
    pkt->reset(60);
    pkt->meta() = PacketMeta{};
    pkt->set_mark(5);
    pkt->set_departure_ticks(5);
    write_image(image, *pkt);
    EXPECT_EQ(pkt->headroom_bytes(), image.headroom_bytes);
    EXPECT_EQ(pkt->len_bytes(), static_cast<uint32_t>(80 - shift));
    EXPECT_EQ(pkt->data()[79 - shift], 79);
    EXPECT_EQ(pkt->meta().vrf, 3);
    EXPECT_EQ(pkt->mark(), mark);
    EXPECT_EQ(pkt->has_departure(), shift == 0);
    if (shift == 0) {
      EXPECT_EQ(pkt->departure_ticks(), 8U);
    }
  }
  PacketPool::free_bulk(&pkt, 1);
}

TEST_F(ProfileTest, EveryShapeOfModuleIsMeasured) {
  {
    Options options{.groups = {}, .ms_per_module = 0.1, .passes = 1};
    ModuleMeter meter(*graph_, pool_, options);
    uint32_t calls = 0;
    meter.pass([&](uint32_t module) { EXPECT_EQ(module, calls++); });
    EXPECT_EQ(calls, graph_->spec.modules.size());
    const std::vector<ModuleProfile> all = meter.results();
    ASSERT_EQ(all.size(), graph_->spec.modules.size());
    for (const ModuleProfile& p : all) {
      EXPECT_EQ(p.law.points().size(), 32U) << p.name;
      EXPECT_EQ(p.max_measured_pkts, 32U) << p.name;
      EXPECT_GT(p.law.ns(32), 0) << p.name;
      EXPECT_LE(p.per_pkt_ns.low, p.per_pkt_ns.high) << p.name;
      EXPECT_EQ(p.members, std::vector<std::string>{p.name});
      EXPECT_EQ(p.note.empty(), p.name != "lonely") << p.name << ": " << p.note;
    }
  }
  EXPECT_EQ(pool_.available_pkts(), pool_.size_pkts());
}

// Worker 0 puts nothing into these queues.
TEST(ProfileWorkersTest, QueuesThatOtherWorkersFillAreMeasured) {
  PipelineSpec spec;
  spec.workers = {{"w0", -1}, {"w1", -1}, {"w2", -1}};
  spec.modules = {{"a", "source", {}, 0, 0, "w1"},
                  {"b", "source", {}, 0, 0, "w2"},
                  {"q", "queue", {}, 0, 0, "w0"},
                  {"e", "egress", {}, 0, 0, "w0"},
                  {"out", "sink", {}}};
  spec.edges = {{"a", "0", "q"}, {"b", "0", "q"}, {"q", "0", "e"}, {"e", "0", "out"}};
  add_doors(spec, module_kind_facts());
  const std::unique_ptr<Graph> graph = build_graph(spec, std::make_unique<Environment>());
  PacketPool pool("profile_workers", 65'536);
  {
    Options options{.groups = {}, .ms_per_module = 0.1, .passes = 1};
    ModuleMeter meter(*graph, pool, options);
    meter.pass([](uint32_t) {});
    for (const ModuleProfile& p : meter.results()) EXPECT_GT(p.law.ns(32), 0) << p.name;
  }
  EXPECT_EQ(pool.available_pkts(), pool.size_pkts());
}

// Modules of two workers are measured in turn, including the queue between them.
TEST(ProfileWorkersTest, AQueueIsMeasuredBesideModulesOfItsOtherEnd) {
  PipelineSpec spec;
  spec.workers = {{"w0", -1}, {"w1", -1}};
  spec.modules = {{"a", "source", {}, 0, 0, "w0"},
                  {"q", "queue", {}, 0, 0, "w1"},
                  {"count", "counter", {}},
                  {"out", "sink", {}}};
  spec.edges = {{"a", "0", "q"}, {"q", "0", "count"}, {"count", "0", "out"}};
  spec.flows = {{"f", {"a", "out"}, 0}};
  const std::unique_ptr<Graph> graph = build_graph(spec, std::make_unique<Environment>());
  PacketPool pool("profile_workers", 65'536);
  Options options{.groups = {}, .ms_per_module = 0.1, .passes = 1};
  ModuleMeter meter(*graph, pool, options);
  for (int pass = 0; pass < 2; ++pass) meter.pass([](uint32_t) {});
  for (const ModuleProfile& p : meter.results()) EXPECT_GT(p.law.ns(32), 0) << p.name;
}

TEST_F(ProfileTest, EachPacketIsVariedAfterItWasRestored) {
  {
    Stage stage(*graph_, pool_);
    Traffic traffic(*graph_, pool_);
    const std::vector<Arrived> arrived = walk(stage, traffic, 64);
    uint32_t varied = 0;
    const auto vary = [&](Packet& pkt) {
      EXPECT_EQ(pkt.mark(), 0U) << "as it arrived";
      pkt.set_mark(++varied);
    };
    ModuleRig rig(stage, {{&graph_->at("mac"), &at(arrived, "mac"), vary}});
    EXPECT_TRUE(rig.run(8).has_value());
    EXPECT_EQ(varied, 8 * rig.batches_of(8));
    EXPECT_TRUE(rig.run(8).has_value());
    EXPECT_EQ(varied, 16 * rig.batches_of(8));
  }
  EXPECT_EQ(pool_.available_pkts(), pool_.size_pkts());
}

TEST_F(ProfileTest, SizesMayBeFew) {
  Stage stage(*graph_, pool_);
  Traffic traffic(*graph_, pool_);
  const std::vector<Arrived> arrived = walk(stage, traffic, 64);
  ModuleTimer timer(stage, {{&graph_->at("mac"), &at(arrived, "mac")}}, {1, 4, 32}, nullptr);
  Rng rng(1);
  timer.measure(0.1, 12, rng);
  const ModuleProfile profile = timer.result();
  ASSERT_EQ(profile.law.points().size(), 3U);
  EXPECT_EQ(profile.law.points()[1].size_pkts, 4U);
  EXPECT_EQ(profile.max_measured_pkts, 32U);
  EXPECT_EQ(profile.rounds, 12U);
}

TEST_F(ProfileTest, OfAGroupTheOneWithTrafficIsMeasured) {
  Options options{.groups = {{"lonely", "out"}}, .ms_per_module = 0.1, .passes = 1};
  ModuleMeter meter(*graph_, pool_, options);
  meter.pass();
  const std::vector<ModuleProfile> all = meter.results();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].name, "out");
  EXPECT_EQ(all[0].members, (std::vector<std::string>{"lonely", "out"}));
  EXPECT_EQ(all[0].note, "");
}

TEST_F(ProfileTest, TheEnginesOwnCostsAreNeverNegative) {
  {
    LoopMeter meter(pool_, 16, 1, 1);
    meter.pass();
    Doubts doubts;
    const EngineCosts costs = meter.result(doubts);
    EXPECT_GT(costs.empty_poll_ns, 0);
    EXPECT_GT(costs.clock_read_ns, 0);
    EXPECT_GT(costs.egress_per_pkt_ns, 0);
    for (const double ns :
         {costs.poll_per_batch_ns, costs.poll_per_pkt_ns, costs.scatter_per_branch_ns,
          costs.scatter_per_pkt_ns, costs.firing_ns, costs.buffered_per_pkt_ns,
          costs.ring_take_per_batch_ns, costs.ring_take_per_pkt_ns}) {
      EXPECT_GE(ns, 0);
    }
  }
  EXPECT_EQ(pool_.available_pkts(), pool_.size_pkts());
}

TEST_F(ProfileTest, HopsAreMeasuredBetweenTwoCoresOnly) {
  HopMeter none(pool_, -1);
  none.pass(1);
  Doubts doubts;
  const auto sum_ns = [&doubts](const HopMeter& of) {
    const HopCosts costs = of.result(doubts);
    return costs.send_per_pkt_ns + costs.take_per_pkt_ns;
  };
  EXPECT_EQ(sum_ns(none), 0);
  HopMeter meter(pool_, sched_getcpu() == 0 ? 1 : 0);
  // The other core may be busy with something else.
  for (int i = 0; i < 1000 && sum_ns(meter) == 0; ++i) meter.pass(5);
  EXPECT_NE(sum_ns(meter), 0);
  EXPECT_EQ(pool_.available_pkts(), pool_.size_pkts()) << "every packet is back";
}

TEST(MeasurableTest, NoDeviceOrFileIsOpened) {
  PipelineSpec spec;
  spec.ports = {{"lan", "af_packet", {{"interface", "eth9"}}}, {"ring", "ring", {}}};
  spec.modules = {module_spec("in", "port_in", {{"port", "lan"}}),
                  module_spec("tap", "local_tap", {{"name", "bp9"}}),
                  module_spec("capture", "pcap_tap", {{"path", "x.pcap"}}),
                  module_spec("waste", "pcap_tap", {{"path", "/dev/null"}})};
  spec.modules[1].trigger_pkts = 8;
  std::map<std::string, std::string> notes;
  const PipelineSpec out = measurable(spec, notes);
  EXPECT_EQ(out.ports[0].kind, "ring");
  EXPECT_EQ(out.modules[1].kind, "queue");
  EXPECT_EQ(out.modules[1].trigger_pkts, 0U);
  EXPECT_EQ(out.modules[2].kind, "null");
  EXPECT_TRUE(out.modules[2].params.empty());
  EXPECT_EQ(out.modules[3].kind, "pcap_tap");
  EXPECT_EQ(notes.size(), 3U);
  EXPECT_NE(notes["in"].find("af_packet"), std::string::npos);
}

}  // namespace
}  // namespace batchplane::profile

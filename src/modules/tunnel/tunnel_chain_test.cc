// SPDX-License-Identifier: BSD-3-Clause
// tunnel_chain_test.cc - a chain of VLAN, VRF and tunnel modules in a running engine: each module
// reads the metadata of the one before.
#include <gtest/gtest.h>

#include "engine_rig.h"

namespace batchplane {
namespace {

Dict route(const std::string& prefix, int gate) { return {{"prefix", prefix}, {"gate", gate}}; }

// Packets get a VLAN; its VRF selects the route and the tunnel; after decap the VNI restores the
// VRF.
PipelineSpec chain(uint32_t trigger_pkts) {
  PipelineSpec spec;
  spec.engine.is_idle_hold = true;
  spec.modules = {
      {"in", "source", {{"limit_pkts", 640}, {"flows", List{Dict{{"dst_ip", "10.1.0.1"}}}}}},
      {"push", "vlan_push", {{"vid", 30}}},
      {"split",
       "vlan_split",
       {{"rules", List{Dict{{"vid", 30}, {"gate", 0}, {"vrf", 3}}}}, {"pop", true}}},
      {"lookup",
       "vrf_lookup",
       {{"vrfs", List{Dict{{"vrf", 3}, {"routes", List{route("10.0.0.0/8", 1)}}},
                      Dict{{"vrf", 0}, {"routes", List{route("10.0.0.0/8", 0)}}}}}}},
      {"encap",
       "vxlan_encap",
       {{"by", "vrf"},
        {"tunnels", List{Dict{{"id", 3},
                              {"vni", 300},
                              {"remote", "192.0.2.2"},
                              {"local", "192.0.2.1"},
                              {"vrf", 0}}}}},
       trigger_pkts},
      {"check", "ipv4_check", {}},
      {"decap", "vxlan_decap", {{"vnis", List{Dict{{"vni", 300}, {"gate", 1}, {"vrf", 3}}}}}},
      {"sums", "l4_checksum", {}},
      {"out", "sink", {}}};
  spec.edges = {{"in", "0", "push"},      {"push", "0", "split"},  {"split", "0", "lookup"},
                {"lookup", "1", "encap"}, {"encap", "0", "check"}, {"check", "0", "decap"},
                {"decap", "1", "sums"},   {"sums", "0", "out"}};
  return spec;
}

TEST(TunnelChain, PacketsPassAllOfIt) {
  for (const uint32_t trigger_pkts : {0U, 20U}) {
    EngineRig rig(chain(trigger_pkts));
    rig.loop(30);
    const Snapshot snapshot = rig.balanced();
    EXPECT_EQ(snapshot.balance.sent_pkts, 640U);
    EXPECT_EQ(snapshot.balance.dropped_pkts, 0U);
    rig.expect_pool_whole(snapshot);
  }
}

TEST(TunnelChain, OutlivesAnApply) {
  EngineRig rig(chain(0));
  rig.loop(5);
  rig.engine().apply(rig.build(chain(20)));
  rig.loop(25);
  const Snapshot snapshot = rig.balanced();
  EXPECT_EQ(snapshot.balance.sent_pkts, 640U);
  rig.expect_pool_whole(snapshot);
}

}  // namespace
}  // namespace batchplane

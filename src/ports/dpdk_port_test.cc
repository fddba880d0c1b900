// SPDX-License-Identifier: BSD-3-Clause
// dpdk_port_test.cc - ports on DPDK's virtual devices, and errors that name their remedy.
#if BATCHPLANE_DPDK
#include <gtest/gtest.h>
#include <rte_mbuf.h>
#include <unistd.h>

#include <filesystem>

#include "ports/dpdk_device.h"
#include "ports/kernel_interface.h"
#include "ports/pcap_reader.h"
#include "ports/pcap_writer.h"
#include "ports/port_test_util.h"

namespace batchplane::ports {
namespace {

std::string temp_file(const std::string& name) {
  return std::filesystem::temp_directory_path() / ("bp_dpdk_" + std::to_string(getpid()) + name);
}

TEST(DpdkPort, NullDeviceMovesPackets) {
  PortRig rig(4096);
  {
    auto port = make_port({"p0", "dpdk", {{"devargs", "net_null0,size=100"}}}, rig.env);
    port->start(rig.pool);
    EXPECT_TRUE(port->is_up());
    Packet* pkts[32];
    ASSERT_EQ(port->rx_burst(pkts, 32, 1234), 32U);
    for (Packet* pkt : pkts) {
      EXPECT_EQ(pkt->len_bytes(), 100U);
      EXPECT_EQ(pkt->meta().entry_ns, 1234U);
      EXPECT_EQ(pkt->meta().in_interface, kNoInterface);
    }
    EXPECT_EQ(port->tx_burst(pkts, 32), 32U);
    EXPECT_EQ(port->stats().rx_bytes, 3200U);
    EXPECT_EQ(port->stats().tx_bytes, 3200U);
    EXPECT_EQ(port->show()["driver"].as_string(), "net_null");
  }
  EXPECT_EQ(rig.pool.available_pkts(), 4096U);
  // The device is free again.
  EXPECT_NO_THROW(make_port({"p0", "dpdk", {{"devargs", "net_null0"}}}, rig.env));
}

TEST(DpdkPort, PcapDeviceKeepsBytes) {
  const std::string in = temp_file("in.pcap");
  const std::string out = temp_file("out.pcap");
  {
    PcapFile file(in, "test");
    std::vector<uint8_t> frame(60, 0);
    for (uint8_t i = 0; i < 3; ++i) {
      frame[0] = i;
      file.write(frame.data(), 60, 1000ULL * i);
    }
    frame.resize(13);
    file.write(frame.data(), 13, 5000);
  }
  {
    PortRig rig(4096);
    auto port = make_port(
        {"p0", "dpdk", {{"devargs", "net_pcap0,rx_pcap=" + in + ",tx_pcap=" + out}}}, rig.env);
    port->start(rig.pool);
    Packet* pkts[8];
    ASSERT_EQ(port->rx_burst(pkts, 8, 9), 3U);
    EXPECT_EQ(port->stats().rx_refused_pkts, 1U);  // shorter than an Ethernet header
    EXPECT_EQ(port->tx_burst(pkts, 3), 3U);
  }
  const PcapRecording recording = read_pcap(out, "test");
  ASSERT_EQ(recording.frames.size(), 3U);
  EXPECT_EQ(recording.bytes[recording.frames[2].offset], 2);
  std::filesystem::remove(in);
  std::filesystem::remove(out);
}

TEST(DpdkPort, StrippedTagsAndSegmentsAreMadeWhole) {
  PortRig rig(4096);
  // A ring device returns the very mbufs that were sent into it, including their flags.
  auto port = make_port({"p0", "dpdk", {{"devargs", "net_ring0"}}}, rig.env);
  port->start(rig.pool);
  Packet* tagged = rig.make(60, 5);
  tagged->data()[12] = 0x08;
  tagged->mbuf()->ol_flags = RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
  tagged->mbuf()->vlan_tci = 0x6042;
  Packet* head = rig.make(50, 6);
  Packet* tail = rig.make(30, 7);
  ASSERT_EQ(rte_pktmbuf_chain(head->mbuf(), tail->mbuf()), 0);
  Packet* in[2] = {tagged, head};
  ASSERT_EQ(port->tx_burst(in, 2), 2U);
  Packet* out[4];
  ASSERT_EQ(port->rx_burst(out, 4, 1), 2U);
  EXPECT_EQ(out[0]->len_bytes(), 64U);
  EXPECT_EQ(out[0]->data()[0], 5);
  EXPECT_EQ(net::load16(out[0]->data() + 12), net::kTypeVlan);
  EXPECT_EQ(net::load16(out[0]->data() + 14), 0x6042);
  EXPECT_EQ(net::load16(out[0]->data() + 16), net::kTypeIpv4);
  EXPECT_EQ(out[1]->len_bytes(), 80U);
  EXPECT_EQ(out[1]->mbuf()->nb_segs, 1);
  EXPECT_EQ(out[1]->data()[50], 7);
  rig.free({out[0], out[1]});
}

TEST(DpdkPort, ErrorsNameTheRemedy) {
  Environment env;
  const auto error = [&](const std::string& devargs) {
    return error_of([&] { make_port({"p0", "dpdk", {{"devargs", devargs}}}, env, "ports.p0"); });
  };
  EXPECT_NE(error("net_nothing0").find("ports.p0"), std::string::npos);
  if (geteuid() == 0) {
    EXPECT_NE(error("net_af_packet0,iface=none7").find("there are: lo"), std::string::npos);
    EXPECT_NE(error("net_af_packet0").find("iface="), std::string::npos);
  }
  PortRig rig(4096);
  auto first = make_port({"p0", "dpdk", {{"devargs", "net_null1"}}}, rig.env);
  EXPECT_NE(error("net_null1").find("in use already"), std::string::npos);
  PortRig small(4096, 256);
  EXPECT_NE(error_of([&] { first->start(small.pool); }).find("too small"), std::string::npos);
}

TEST(DeviceArgs, AreTakenApart) {
  const DeviceArgs args = DeviceArgs::parse("net_af_packet_wan,iface=veth0,framecnt=8");
  EXPECT_EQ(args.device, "net_af_packet_wan");
  EXPECT_EQ(args.driver, "net_af_packet");
  EXPECT_EQ(args.iface, "veth0");
  EXPECT_EQ(DeviceArgs::parse("0000:03:00.0").driver, "");
}

TEST(KernelInterface, KnowsTheLoopback) {
  const auto names = interface_names();
  EXPECT_NE(std::find(names.begin(), names.end(), "lo"), names.end());
  EXPECT_NE(interface_index("lo"), 0U);
  EXPECT_EQ(interface_index("none7"), 0U);
  EXPECT_FALSE(read_offloads("none7").has_value());
  EXPECT_FALSE(is_veth("lo"));
  EXPECT_EQ(veth_peer("lo"), "");
}

}  // namespace
}  // namespace batchplane::ports
#endif

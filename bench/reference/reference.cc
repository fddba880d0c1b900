// SPDX-License-Identifier: BSD-3-Clause
#include "reference/reference.h"

#include <array>
#include <cstring>
#include <vector>

#include "base/flat_table.h"
#include "base/net.h"
#include "core/packet/packet_pool.h"
#include "modules/headers/ipv4_header.h"
#include "modules/route/fib.h"
#include "traffic/template.h"

namespace bench {

using namespace batchplane;  // NOLINT: a benchmark over the whole engine

namespace {
constexpr uint32_t kBurst = 32;
constexpr uint64_t kRouterMac = 0x01'01'00'0b'77'11ULL;  // memory order of 11:77:0b:00:01:01
}  // namespace

struct Reference::State {
  State(uint32_t n, uint32_t fib_size, bool is_random, const std::string& name)
      : n_next_hops(n),
        pool(name, 4096),
        fib(FibConfig{}),
        frames(make_flows(n), is_random ? traffic::Order::kRandom : traffic::Order::kRoundRobin,
               1) {
    for (uint32_t i = 0; i < fib_size; ++i) {
      const uint32_t base = i < n ? (20U << 24) + (i << 8) : (100U << 24) + (i << 8);
      fib.set({base, 24}, i % n);
    }
    macs.insert_or_assign({kRouterMac}, 0);
    for (uint32_t i = 0; i < n; ++i) {
      const uint8_t bytes[12] = {0xee,
                                 0xdd,
                                 0xdd,
                                 0xaa,
                                 0x01,
                                 static_cast<uint8_t>(i),
                                 0xaa,
                                 0xbb,
                                 0xbb,
                                 0xaa,
                                 static_cast<uint8_t>(i),
                                 0xdc};
      std::memcpy(rewrite.emplace_back().data(), bytes, 12);
    }
    lanes.resize(n);
    counts.resize(n);
  }

  static std::vector<traffic::FlowSpec> make_flows(uint32_t n) {
    std::vector<traffic::FlowSpec> flows;
    for (uint32_t i = 0; i < n; ++i) {
      traffic::FlowSpec flow;
      flow.dst_mac = *net::parse_mac("11:77:0b:00:01:01");
      flow.src_ip = *net::parse_ipv4("10.0.0.1");
      flow.dst_ip = (20U << 24) + (i << 8) + 1;
      flow.sizes = {traffic::SizeShare{}};
      flows.push_back(flow);
    }
    return flows;
  }

  void make_burst(Packet** pkts) {
    (void)pool.alloc_bulk(pkts, kBurst);
    const PacketMeta meta{};
    frames.each_next(kBurst, [&](uint32_t i, const traffic::TemplateSet::Frame& frame) {
      pkts[i]->reset(frame.len_bytes);
      traffic::copy_frame(traffic::fresh_data(*pkts[i]), frame.bytes, frame.len_bytes);
      traffic::copy32(&pkts[i]->meta(), &meta);
    });
  }

  void route(Packet* const* pkts, uint64_t* next_hops) {
    uint32_t addresses[kBurst];
    bool is_plain = true;
    for (uint32_t i = 0; i < kBurst; ++i) {
      const uint8_t* data = pkts[i]->data();
      uint16_t type;
      std::memcpy(&type, data + 12, 2);
      uint64_t mac;
      std::memcpy(&mac, data, 8);
      is_plain &= type == net::be16(net::kTypeIpv4);
      is_plain &= macs.find({mac & 0xffff'ffff'ffffULL}) == 0;
      is_plain &= pkts[i]->len_bytes() >= net::kEthBytes + net::kIpv4Bytes;
      const auto& ip = header_at<net::Ipv4>(data + net::kEthBytes);
      is_plain &= ip.version_ihl == net::Ipv4::kPlain && ip.ttl > 1;
      addresses[i] = ip.dst;
    }
    if (!is_plain) __builtin_trap();
    fib.lookup(addresses, next_hops, kBurst);
  }

  static void finish(Packet* pkt, const std::array<uint8_t, 12>& macs12) {
    uint8_t* data = pkt->data();
    auto& ip = header_at<net::Ipv4>(data + net::kEthBytes);
    lower_ttl(ip, false);
    std::memcpy(data, macs12.data(), 12);
    ip.checksum.set_raw(static_cast<uint16_t>(~fold16(sum_header20_but_checksum(ip))));
  }

  uint32_t n_next_hops;
  PacketPool pool;
  Fib fib;
  FlatTable<1> macs;
  traffic::TemplateSet frames;
  std::vector<std::array<uint8_t, 12>> rewrite;
  std::vector<std::array<Packet*, kBurst>> lanes;
  std::vector<uint32_t> counts;
};

Reference::Reference(uint32_t n_next_hops, uint32_t fib_size, bool is_random,
                     const std::string& pool_name)
    : state_(std::make_unique<State>(n_next_hops, fib_size, is_random, pool_name)) {}
Reference::~Reference() = default;

uint64_t Reference::run(uint32_t n_batches) {
  State& s = *state_;
  Packet* pkts[kBurst];
  Packet* done[kBurst];
  uint64_t next_hops[kBurst];
  for (uint32_t batch = 0; batch < n_batches; ++batch) {
    s.make_burst(pkts);
    s.route(pkts, next_hops);
    if (s.n_next_hops == 1) {
      for (Packet* pkt : pkts) State::finish(pkt, s.rewrite[0]);
      PacketPool::free_bulk(pkts, kBurst);
      continue;
    }
    // Split into a lane per next hop, then each lane's packets one after the other, as an engine's
    // branches would get them.
    uint64_t touched = 0;
    for (uint32_t i = 0; i < kBurst; ++i) {
      const uint64_t hop = next_hops[i];
      s.lanes[hop][s.counts[hop]++] = pkts[i];
      touched |= 1ULL << hop;
    }
    uint32_t n_done = 0;
    for (; touched != 0; touched &= touched - 1) {
      const auto hop = static_cast<uint32_t>(__builtin_ctzll(touched));
      for (uint32_t i = 0; i < s.counts[hop]; ++i) {
        State::finish(s.lanes[hop][i], s.rewrite[hop]);
        done[n_done++] = s.lanes[hop][i];
      }
      s.counts[hop] = 0;
    }
    PacketPool::free_bulk(done, kBurst);
  }
  return uint64_t{n_batches} * kBurst;
}

std::string Reference::verify() {
  State& s = *state_;
  Packet* pkts[kBurst];
  uint64_t next_hops[kBurst];
  s.make_burst(pkts);
  s.route(pkts, next_hops);
  std::string wrong;
  for (uint32_t i = 0; i < kBurst; ++i) {
    State::finish(pkts[i], s.rewrite[next_hops[i]]);
    const uint8_t* ip = pkts[i]->data() + net::kEthBytes;
    if (net::checksum_finish(net::checksum_add(ip, net::kIpv4Bytes)) != 0)
      wrong = "a checksum is wrong";
    if (ip[net::kIpTtl] != 63) wrong = "a TTL is wrong";
    if (net::load32(ip + net::kIpDst) != (20U << 24) + (next_hops[i] << 8) + 1)
      wrong = "a route is wrong";
  }
  PacketPool::free_bulk(pkts, kBurst);
  return wrong;
}

}  // namespace bench

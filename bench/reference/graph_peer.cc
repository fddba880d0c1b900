// SPDX-License-Identifier: BSD-3-Clause
// graph_peer.cc - nodes: source, EtherType, MAC table, lookup, then TTL, MAC, checksum, sink per
// next hop.
#include <rte_config.h>
// Its per-node clock reads cost 75-100 ns a packet at 64 next hops: off, to compare engines.
#undef RTE_LIBRTE_GRAPH_STATS
#include <rte_graph.h>
#include <rte_graph_worker.h>

#include <array>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "base/flat_table.h"
#include "base/net.h"
#include "core/packet/packet_pool.h"
#include "modules/headers/ipv4_header.h"
#include "modules/route/fib.h"
#include "reference/graph_peer.h"
#include "traffic/template.h"

namespace bench {

using namespace batchplane;  // NOLINT: a benchmark over the whole engine

namespace {
constexpr uint32_t kBurst = 32;
constexpr uint64_t kRouterMac = 0x01'01'00'0b'77'11ULL;

Packet* packet_of(void* object) { return Packet::from(static_cast<rte_mbuf*>(object)); }

// The guards that each module of ours has, since no node may trust the one before it.
bool has_ipv4_header(void* object) {
  return packet_of(object)->len_bytes() >= net::kEthBytes + net::kIpv4Bytes;
}

struct Tables {
  Tables(uint32_t n, uint32_t fib_size, bool is_random, const std::string& name)
      : pool(name, 4096),
        fib(FibConfig{}),
        frames(make_flows(n), is_random ? traffic::Order::kRandom : traffic::Order::kRoundRobin,
               1) {
    for (uint32_t i = 0; i < fib_size; ++i) {
      const uint32_t base = i < n ? (20U << 24) + (i << 8) : (100U << 24) + (i << 8);
      fib.set({base, 24}, i % n);
    }
    macs.insert_or_assign({kRouterMac}, 0);
  }
  static std::vector<traffic::FlowSpec> make_flows(uint32_t n) {
    std::vector<traffic::FlowSpec> flows(n);
    for (uint32_t i = 0; i < n; ++i) {
      flows[i].dst_mac = *net::parse_mac("11:77:0b:00:01:01");
      flows[i].src_ip = *net::parse_ipv4("10.0.0.1");
      flows[i].dst_ip = (20U << 24) + (i << 8) + 1;
      flows[i].sizes = {traffic::SizeShare{}};
    }
    return flows;
  }
  PacketPool pool;
  Fib fib;
  FlatTable<1> macs;
  traffic::TemplateSet frames;
};

Tables* g_tables = nullptr;  // the walk has no other way to its context
uint64_t g_sent_pkts = 0;
uint64_t g_bad_pkts = 0;
bool g_is_checking = false;

void move_all(rte_graph* graph, rte_node* node, void** objects, uint16_t n) {
  (void)objects, (void)n;
  rte_node_next_stream_move(graph, node, 0);
}

uint16_t source_run(rte_graph* graph, rte_node* node, void** /*objects*/, uint16_t /*n*/) {
  void** out = rte_node_next_stream_get(graph, node, 0, kBurst);
  auto** pkts = reinterpret_cast<Packet**>(out);
  if (!g_tables->pool.alloc_bulk(pkts, kBurst)) return 0;
  const PacketMeta meta{};
  g_tables->frames.each_next(kBurst, [&](uint32_t i, const traffic::TemplateSet::Frame& frame) {
    pkts[i]->reset(frame.len_bytes);
    traffic::copy_frame(traffic::fresh_data(*pkts[i]), frame.bytes, frame.len_bytes);
    traffic::copy32(&pkts[i]->meta(), &meta);
  });
  rte_node_next_stream_put(graph, node, 0, kBurst);
  return kBurst;
}

uint16_t type_run(rte_graph* graph, rte_node* node, void** objects, uint16_t n) {
  bool is_plain = true;
  for (uint16_t i = 0; i < n; ++i) {
    uint16_t type;
    std::memcpy(&type, packet_of(objects[i])->data() + 12, 2);
    is_plain &= type == net::be16(net::kTypeIpv4);
    is_plain &= packet_of(objects[i])->len_bytes() >= net::kEthBytes;
  }
  if (!is_plain) ++g_bad_pkts;
  move_all(graph, node, objects, n);
  return n;
}

uint16_t mac_table_run(rte_graph* graph, rte_node* node, void** objects, uint16_t n) {
  bool is_known = true;
  for (uint16_t i = 0; i < n; ++i) {
    uint64_t mac;
    std::memcpy(&mac, packet_of(objects[i])->data(), 8);
    is_known &= g_tables->macs.find({mac & 0xffff'ffff'ffffULL}) == 0;
    is_known &= packet_of(objects[i])->len_bytes() >= net::kEthBytes;
  }
  if (!is_known) ++g_bad_pkts;
  move_all(graph, node, objects, n);
  return n;
}

uint16_t lookup_run(rte_graph* graph, rte_node* node, void** objects, uint16_t n) {
  if (n == 0) __builtin_unreachable();  // else g++ warns of addresses that nobody wrote
  uint32_t addresses[RTE_GRAPH_BURST_SIZE];
  uint64_t hops[RTE_GRAPH_BURST_SIZE];
  bool is_whole = true;
  for (uint16_t i = 0; i < n; ++i) {
    is_whole &= has_ipv4_header(objects[i]);
    addresses[i] = header_in<net::Ipv4>(*packet_of(objects[i]), net::kEthBytes).dst;
  }
  if (!is_whole) ++g_bad_pkts;
  g_tables->fib.lookup(addresses, hops, n);
  bool is_uniform = true;
  for (uint16_t i = 1; i < n; ++i) is_uniform &= hops[i] == hops[0];
  if (is_uniform) {
    rte_node_next_stream_move(graph, node, static_cast<rte_edge_t>(hops[0]));
    return n;
  }
  for (uint16_t i = 0; i < n; ++i) {
    rte_node_enqueue_x1(graph, node, static_cast<rte_edge_t>(hops[i]), objects[i]);
  }
  return n;
}

uint16_t ttl_run(rte_graph* graph, rte_node* node, void** objects, uint16_t n) {
  for (uint16_t i = 0; i < n; ++i) {
    auto& ip = header_in<net::Ipv4>(*packet_of(objects[i]), net::kEthBytes);
    if (!has_ipv4_header(objects[i]) || ip.ttl <= 1) [[unlikely]] {
      ++g_bad_pkts;
      continue;
    }
    lower_ttl(ip, false);
  }
  move_all(graph, node, objects, n);
  return n;
}

uint16_t mac_run(rte_graph* graph, rte_node* node, void** objects, uint16_t n) {
  for (uint16_t i = 0; i < n; ++i) {
    Packet* pkt = packet_of(objects[i]);
    if (pkt->len_bytes() < net::kEthBytes) [[unlikely]] {
      ++g_bad_pkts;
      continue;
    }
    std::memcpy(pkt->data(), node->ctx, 12);
  }
  move_all(graph, node, objects, n);
  return n;
}

uint16_t checksum_run(rte_graph* graph, rte_node* node, void** objects, uint16_t n) {
  for (uint16_t i = 0; i < n; ++i) {
    auto& ip = header_in<net::Ipv4>(*packet_of(objects[i]), net::kEthBytes);
    if (!has_ipv4_header(objects[i]) || ip.version_ihl != net::Ipv4::kPlain) [[unlikely]] {
      ++g_bad_pkts;
      continue;
    }
    ip.checksum.set_raw(static_cast<uint16_t>(~fold16(sum_header20_but_checksum(ip))));
  }
  move_all(graph, node, objects, n);
  return n;
}

uint16_t sink_run(rte_graph* /*graph*/, rte_node* /*node*/, void** objects, uint16_t n) {
  g_sent_pkts += n;
  if (g_is_checking) {
    for (uint16_t i = 0; i < n; ++i) {
      const uint8_t* ip = packet_of(objects[i])->data() + net::kEthBytes;
      if (net::checksum_finish(net::checksum_add(ip, net::kIpv4Bytes)) != 0 ||
          ip[net::kIpTtl] != 63)
        ++g_bad_pkts;
    }
  }
  PacketPool::free_bulk(reinterpret_cast<Packet**>(objects), n);
  return n;
}

rte_node_t make_node(const std::string& name, rte_node_process_t run, uint64_t flags,
                     const std::vector<std::string>& next) {
  const size_t bytes = sizeof(rte_node_register) + next.size() * sizeof(const char*);
  auto* reg = static_cast<rte_node_register*>(std::calloc(1, bytes));
  std::strncpy(reg->name, name.c_str(), RTE_NODE_NAMESIZE - 1);
  reg->process = run;
  reg->flags = flags;
  reg->id = RTE_NODE_ID_INVALID;
  reg->parent_id = RTE_NODE_ID_INVALID;
  reg->nb_edges = static_cast<rte_edge_t>(next.size());
  for (size_t i = 0; i < next.size(); ++i) reg->next_nodes[i] = next[i].c_str();
  const rte_node_t id = __rte_node_register(reg);
  std::free(reg);
  if (id == RTE_NODE_ID_INVALID) throw std::runtime_error("rte_graph refuses node " + name);
  return id;
}

}  // namespace

struct GraphPeer::State {
  State(uint32_t n, uint32_t fib_size, bool is_random, const std::string& name)
      : tables(n, fib_size, is_random, name) {
    const std::string p = name + "_";
    std::vector<std::string> heads;
    for (uint32_t i = 0; i < n; ++i) {
      const std::string k = std::to_string(i);
      make_node(p + "sink" + k, sink_run, 0, {});
      make_node(p + "sum" + k, checksum_run, 0, {p + "sink" + k});
      make_node(p + "mac" + k, mac_run, 0, {p + "sum" + k});
      make_node(p + "ttl" + k, ttl_run, 0, {p + "mac" + k});
      heads.push_back(p + "ttl" + k);
    }
    make_node(p + "lookup", lookup_run, 0, heads);
    make_node(p + "l2", mac_table_run, 0, {p + "lookup"});
    make_node(p + "type", type_run, 0, {p + "l2"});
    make_node(p + "source", source_run, RTE_NODE_SOURCE_F, {p + "type"});
    const std::string pattern = p + "*";
    const char* patterns[] = {pattern.c_str()};
    rte_graph_param param{};
    param.socket_id = SOCKET_ID_ANY;
    param.nb_node_patterns = 1;
    param.node_patterns = patterns;
    const rte_graph_t id = rte_graph_create(name.c_str(), &param);
    if (id == RTE_GRAPH_ID_INVALID) throw std::runtime_error("rte_graph_create failed");
    graph = rte_graph_lookup(name.c_str());
    for (uint32_t i = 0; i < n; ++i) {
      rte_node* node =
          rte_graph_node_get_by_name(name.c_str(), (p + "mac" + std::to_string(i)).c_str());
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
      std::memcpy(node->ctx, bytes, 12);
    }
  }
  Tables tables;
  rte_graph* graph = nullptr;
};

GraphPeer::GraphPeer(uint32_t n_next_hops, uint32_t fib_size, bool is_random,
                     const std::string& pool_name)
    : state_(std::make_unique<State>(n_next_hops, fib_size, is_random, pool_name)) {}
GraphPeer::~GraphPeer() = default;

uint64_t GraphPeer::run(uint32_t n_batches) {
  g_tables = &state_->tables;
  const uint64_t before = g_sent_pkts;
  for (uint32_t i = 0; i < n_batches; ++i) rte_graph_walk(state_->graph);
  return g_sent_pkts - before;
}

std::string GraphPeer::verify() {
  g_is_checking = true;
  g_bad_pkts = 0;
  const uint64_t done = run(100);
  g_is_checking = false;
  if (done != uint64_t{100} * kBurst) return "packets are missing";
  return g_bad_pkts == 0 ? "" : "packets left with a wrong TTL or checksum";
}

}  // namespace bench

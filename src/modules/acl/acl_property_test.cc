// SPDX-License-Identifier: BSD-3-Clause
// acl_property_test.cc - random access lists compared with a linear walk over the rules.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "base/rng.h"
#include "module_harness.h"
#include "modules/acl/acl_rule.h"

namespace batchplane {
namespace {

// A packet as the reference model sees it.
struct Probe {
  bool is_v6 = false;
  std::array<uint8_t, 16> src{};
  std::array<uint8_t, 16> dst{};
  uint8_t proto = 0;
  bool has_ports = false;
  uint16_t src_port = 0;
  uint16_t dst_port = 0;
  uint8_t flags = 0;
  uint32_t extra_bytes = 0;  // options, or an extension header
  bool is_later_fragment = false;
};

// Draws from few values, so that packets often match rules.
class World {
 public:
  explicit World(uint64_t seed) : rng_(seed) {}
  Rng& rng() { return rng_; }

  std::array<uint8_t, 16> address(bool is_v6) {
    std::array<uint8_t, 16> bytes{};
    for (uint32_t i = 0; i < (is_v6 ? 16U : 4U); ++i) {
      bytes[i] = static_cast<uint8_t>(rng_.below(4) == 0 ? rng_.below(256) : 10 + rng_.below(3));
    }
    return bytes;
  }
  uint16_t port() {
    static constexpr uint16_t kPorts[] = {0, 1, 53, 80, 255, 256, 1023, 1024, 40000, 65535};
    return rng_.below(3) == 0 ? static_cast<uint16_t>(rng_.next()) : kPorts[rng_.below(10)];
  }
  uint8_t proto() {
    static constexpr uint8_t kProtos[] = {6, 6, 6, 17, 17, 1, 132, 47, 89};
    return kProtos[rng_.below(9)];
  }

  AclPrefix prefix(bool is_v6) {
    AclPrefix prefix;
    if (rng_.below(3) == 0) return prefix;
    prefix.length = static_cast<uint8_t>(rng_.below(is_v6 ? 129 : 33));
    prefix.bytes = address(is_v6);
    for (uint32_t bit = prefix.length; bit < 128; ++bit) {
      prefix.bytes[bit / 8] &= static_cast<uint8_t>(~(0x80U >> bit % 8));
    }
    return prefix;
  }
  AclPorts ports() {
    if (rng_.below(2) == 0) return {};
    const uint16_t a = port();
    const uint16_t b = rng_.below(2) == 0 ? a : port();
    return {std::min(a, b), std::max(a, b)};
  }
  AclRule rule(uint32_t gate, bool with_v6, bool with_ports, bool with_flags) {
    AclRule rule;
    const bool is_v6 = with_v6 && rng_.below(2) == 0;
    rule.match.src = prefix(is_v6);
    rule.match.dst = prefix(is_v6);
    rule.match.family = is_v6 ? AclFamily::kIpv6 : AclFamily::kIpv4;
    if (rule.match.src.length + rule.match.dst.length == 0 && rng_.below(2) == 0) {
      rule.match.family = AclFamily::kAny;
    }
    if (with_ports) rule.match.src_ports = ports();
    if (with_ports) rule.match.dst_ports = ports();
    if (rng_.below(2) == 0) {
      rule.match.proto = proto();
      rule.match.proto_mask = 0xff;
    }
    if (with_flags && rng_.below(4) == 0) {
      rule.match.proto = 6;
      rule.match.proto_mask = 0xff;
      rule.match.tcp_flags_mask = static_cast<uint8_t>(1 + rng_.below(31));
      rule.match.tcp_flags = static_cast<uint8_t>(rng_.next()) & rule.match.tcp_flags_mask;
    }
    rule.priority = rng_.below(4) == 0 ? static_cast<int32_t>(rng_.below(5)) - 2 : 0;
    rule.action = {AclAction::Kind::kGate, gate};
    return rule;
  }
  Probe probe(bool with_v6) {
    Probe probe;
    probe.is_v6 = with_v6 && rng_.below(2) == 0;
    probe.src = address(probe.is_v6);
    probe.dst = address(probe.is_v6);
    probe.proto = proto();
    probe.src_port = port();
    probe.dst_port = port();
    probe.flags = static_cast<uint8_t>(rng_.next());
    probe.extra_bytes = rng_.below(8) == 0 ? 8 : 0;
    probe.is_later_fragment = rng_.below(10) == 0;
    probe.has_ports =
        !probe.is_later_fragment && (probe.proto == 6 || probe.proto == 17 || probe.proto == 132);
    return probe;
  }

 private:
  Rng rng_;
};

Bytes frame_of(const Probe& probe) {
  const bool has_fragment_header = probe.is_v6 && probe.is_later_fragment;
  const uint32_t fixed = probe.is_v6 ? 40 : 20;
  const uint32_t extra = probe.extra_bytes + (has_fragment_header ? 8 : 0);
  Bytes frame(net::kEthBytes + fixed + extra + 20);
  uint8_t* ip = &frame[net::kEthBytes];
  const auto total = static_cast<uint16_t>(fixed + extra + 20);
  if (probe.is_v6) {
    net::store16(&frame[12], net::kTypeIpv6);
    ip[0] = 0x60;
    net::store16(ip + 4, static_cast<uint16_t>(total - 40));
    uint8_t* next = ip + 6;
    uint8_t* at = ip + 40;
    if (probe.extra_bytes != 0) *next = 60, next = at, at += 8;
    if (has_fragment_header) *next = 44, next = at, net::store16(at + 2, 80 << 3);
    *next = probe.proto;
    std::ranges::copy(probe.src, ip + 8);
    std::ranges::copy(probe.dst, ip + 24);
  } else {
    net::store16(&frame[12], net::kTypeIpv4);
    ip[0] = static_cast<uint8_t>(0x45 + probe.extra_bytes / 4);
    net::store16(ip + net::kIpTotalLength, total);
    ip[net::kIpProto] = probe.proto;
    if (probe.is_later_fragment) net::store16(ip + net::kIpFragment, 80);
    std::copy_n(probe.src.begin(), 4, ip + net::kIpSrc);
    std::copy_n(probe.dst.begin(), 4, ip + net::kIpDst);
  }
  uint8_t* transport = ip + fixed + extra;
  net::store16(transport, probe.src_port);
  net::store16(transport + 2, probe.dst_port);
  transport[13] = probe.flags;
  return frame;
}

bool has_prefix(const std::array<uint8_t, 16>& address, const AclPrefix& prefix) {
  for (uint32_t bit = 0; bit < prefix.length; ++bit) {
    if (((address[bit / 8] ^ prefix.bytes[bit / 8]) >> (7 - bit % 8) & 1) != 0) return false;
  }
  return true;
}

bool is_match(const AclMatch& match, const Probe& probe) {
  if (match.family == AclFamily::kIpv4 && probe.is_v6) return false;
  if (match.family == AclFamily::kIpv6 && !probe.is_v6) return false;
  if (match.proto_mask != 0 && match.proto != probe.proto) return false;
  if (!has_prefix(probe.src, match.src) || !has_prefix(probe.dst, match.dst)) return false;
  if (!match.needs_ports()) return true;
  return probe.has_ports && match.src_ports.first <= probe.src_port &&
         probe.src_port <= match.src_ports.last && match.dst_ports.first <= probe.dst_port &&
         probe.dst_port <= match.dst_ports.last &&
         (match.tcp_flags_mask == 0 ||
          (probe.proto == 6 && (probe.flags & match.tcp_flags_mask) == match.tcp_flags));
}

uint32_t gate_by_walk(const std::vector<AclRule>& rules, const Probe& probe) {
  const AclRule* best = nullptr;
  for (const AclRule& rule : rules) {
    if (!is_match(rule.match, probe)) continue;
    if (best == nullptr || rule.priority > best->priority) best = &rule;
  }
  return best == nullptr ? 0 : best->action.number;
}

void run_world(uint64_t seed, uint32_t n_rules, uint32_t n_batches) {
  World world(seed);
  const bool with_v6 = world.rng().below(3) == 0;
  const bool with_ports = world.rng().below(4) != 0;
  const bool with_flags = world.rng().below(2) == 0;
  std::vector<AclRule> rules;
  std::map<AclMatch, bool> taken;
  List list;
  for (uint32_t i = 0; i < n_rules; ++i) {
    AclRule rule = world.rule(i % 200 + 1, with_v6, with_ports, with_flags);
    if (!taken.emplace(rule.match, true).second) continue;
    list.emplace_back(format_acl_rule(rule));
    // A formatted rule parses to the same rule.
    ASSERT_EQ(parse_acl_rule(list.back(), "test"), rule) << seed;
    rules.push_back(rule);
  }
  ModuleHarness tables("acl", {{"rules", list}, {"default_action", "gate 0"}}, 256);
  ModuleHarness tries("acl", {{"rules", list}, {"default_action", "gate 0"}, {"lookup", "tries"}},
                      256);
  for (uint32_t b = 0; b < n_batches; ++b) {
    std::vector<Probe> probes;
    std::vector<Bytes> frames;
    std::vector<uint32_t> expected;
    const uint32_t n = 1 + world.rng().below(80);
    for (uint32_t i = 0; i < n; ++i) {
      const Probe probe = world.probe(with_v6 || world.rng().below(20) == 0);
      frames.push_back(frame_of(probe));
      expected.push_back(gate_by_walk(rules, probe));
    }
    ASSERT_EQ(tables.run(frames).gates(), expected) << "tables, seed " << seed;
    ASSERT_EQ(tries.run(frames).gates(), expected) << "tries, seed " << seed;
  }
}

TEST(AclProperty, RandomListsMatchTheWalk) {
  // Each list length from 1 to 40 several times; with sanitizers one list takes a tenth of a
  // second.
  const uint64_t worlds = std::getenv("BATCHPLANE_LONG") != nullptr ? 2800 : 280;
  for (uint64_t seed = 1; seed <= worlds; ++seed) {
    run_world(seed, 1 + static_cast<uint32_t>(seed % 40), 2);
    if (HasFatalFailure()) return;
  }
}

TEST(AclProperty, LongListsMatchTheWalk) {
  for (uint64_t seed = 5001; seed <= 5003; ++seed) {
    run_world(seed, 1000, 20);
    if (HasFatalFailure()) return;
  }
}

// Lists long enough to be split by destination, from make_synthetic_acl.
TEST(AclProperty, SyntheticListsMatchTheWalk) {
  const Dict synthetic{{"style", "random"}, {"count", 4000}, {"seed", 7}};
  std::vector<AclRule> rules = make_synthetic_acl(synthetic, "test");
  List list;
  for (uint32_t i = 0; i < rules.size(); ++i) {
    rules[i].action = {AclAction::Kind::kGate, i % 200 + 1};
    list.emplace_back(format_acl_rule(rules[i]));
  }
  ModuleHarness harness("acl", {{"rules", list}, {"default_action", "gate 0"}}, 256);
  EXPECT_TRUE(harness.module().show()["lookup_paths"]["ipv4"].as_string().starts_with("class"));
  World world(9);
  for (uint32_t b = 0; b < 60; ++b) {
    std::vector<Bytes> frames;
    std::vector<uint32_t> expected;
    for (uint32_t i = 0; i < 40; ++i) {
      const AclMatch& near = rules[world.rng().below(4000)].match;
      Probe probe = world.probe(false);
      probe.src = near.src.bytes;
      probe.dst = near.dst.bytes;
      probe.dst[3] ^= static_cast<uint8_t>(world.rng().below(4));
      if (near.proto_mask != 0) probe.proto = near.proto;
      probe.has_ports =
          !probe.is_later_fragment && (probe.proto == 6 || probe.proto == 17 || probe.proto == 132);
      probe.dst_port = near.dst_ports.first;
      frames.push_back(frame_of(probe));
      expected.push_back(gate_by_walk(rules, probe));
    }
    ASSERT_EQ(harness.run(frames).gates(), expected) << b;
  }
}

}  // namespace
}  // namespace batchplane

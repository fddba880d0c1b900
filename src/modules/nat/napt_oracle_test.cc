// SPDX-License-Identifier: BSD-3-Clause
// napt_oracle_test.cc - random packets in both directions and random pauses, compared with a simple
// model of the requirements of RFC 4787, 5382 and 5508.
#include <map>
#include <optional>
#include <tuple>

#include "base/rng.h"
#include "napt_test_rig.h"

namespace batchplane {
namespace napt_oracle_test {

using namespace nattest;  // NOLINT: helpers of these tests

// All pauses are multiples of 10 s and no timeout is, so the coarse ticks of the module do not
// matter.
constexpr double kUdpS = 45, kIcmpS = 15, kOpenS = 125, kTransitoryS = 25;

class Model {
 public:
  struct Packet {
    uint8_t proto;
    Ep from, to;
    uint8_t flags;  // TCP flags
    bool is_request;
  };
  enum class Filtering : uint8_t { kAny, kAddress, kAddressAndPort };

  explicit Model(Filtering filtering) : filtering_(filtering) {}

  void pass(double seconds) {
    now_ += seconds;
    std::erase_if(connections_, [&](const auto& item) {
      return now_ - item.second.last > limit(item.first, item.second);
    });
    std::erase_if(mappings_, [&](const auto& item) { return !is_used(item.first); });
  }

  // Outbound: whether the packet passes. The external end of a new mapping is the module's choice.
  [[nodiscard]] bool passes_out(const Packet& p) const {
    return connections_.contains({{p.proto, p.from}, p.to}) || may_open(p);
  }
  // Checks the external end that the module chose and records the packet; returns an error text.
  std::string sent_out(const Packet& p, Ep external) {
    const Inside inside{p.proto, p.from};
    std::string wrong;
    if (const auto it = mappings_.find(inside); it != mappings_.end()) {
      if (it->second != external) wrong = "the mapping changed";
    } else {
      for (const auto& [other, taken] : mappings_) {
        if (other.first == p.proto && taken == external) wrong = "a port was given twice";
        if (other.second.ip == p.from.ip && taken.ip != external.ip)
          wrong = "pooling is not paired";
      }
      bool is_free = true;
      for (const auto& [other, taken] : mappings_) {
        if (other.first == p.proto && taken == Ep{external.ip, p.from.port}) is_free = false;
      }
      if (is_free && external.port != p.from.port) wrong = "a free port was not preserved";
      mappings_[inside] = external;
    }
    book({inside, p.to}, p.flags, 0);
    return wrong;
  }
  // Inbound: the inside end that must receive the packet.
  std::optional<Ep> sent_in(const Packet& p) {
    for (const auto& [inside, external] : mappings_) {
      if (inside.first != p.proto || external != p.to) continue;
      const Connection key{inside, p.from};
      if (!connections_.contains(key) && (!may_open(p) || !admits(inside, p.from)))
        return std::nullopt;
      book(key, p.flags, 1);
      return inside.second;
    }
    return std::nullopt;
  }
  [[nodiscard]] const std::map<std::pair<uint8_t, Ep>, Ep>& mappings() const { return mappings_; }
  [[nodiscard]] size_t n_connections() const { return connections_.size(); }

 private:
  using Inside = std::pair<uint8_t, Ep>;
  using Connection = std::pair<Inside, Ep>;
  struct Facts {
    double last = 0;
    bool seen[2] = {}, fin[2] = {};
    bool is_open = false, is_closing = false;
  };

  static double limit(const Connection& key, const Facts& facts) {
    if (key.first.first == 17) return kUdpS;
    if (key.first.first == 1) return kIcmpS;
    return facts.is_open && !facts.is_closing ? kOpenS : kTransitoryS;
  }
  static bool may_open(const Packet& p) {
    if (p.proto == 1) return p.is_request;
    return p.proto != 6 || (p.flags & kRst) == 0;
  }
  [[nodiscard]] bool is_used(const Inside& inside) const {
    const auto it = connections_.lower_bound({inside, Ep{}});
    return it != connections_.end() && it->first.first == inside;
  }
  [[nodiscard]] bool admits(const Inside& inside, Ep remote) const {
    if (filtering_ == Filtering::kAny) return true;
    for (const auto& [key, facts] : connections_) {
      if (filtering_ == Filtering::kAddress && key.first == inside && key.second.ip == remote.ip)
        return true;
    }
    return false;
  }
  void book(const Connection& key, uint8_t flags, int direction) {
    Facts& facts = connections_[key];
    facts.last = now_;
    if (key.first.first != 6) return;
    if ((flags & kRst) != 0) {
      facts.is_closing = true;
    } else if ((flags & kSyn) != 0) {
      if (facts.is_closing) facts = Facts{.last = now_};
      facts.seen[direction] = true;
    } else {
      facts.seen[direction] = true;
      if (facts.seen[direction ^ 1]) facts.is_open = true;
      if ((flags & kFin) != 0) facts.fin[direction] = true;
      if (facts.fin[0] && facts.fin[1]) facts.is_closing = true;
    }
  }

  Filtering filtering_;
  double now_ = 0;
  std::map<Inside, Ep> mappings_;
  std::map<Connection, Facts> connections_;
};

Bytes frame_for(const Model::Packet& p) {
  if (p.proto == 17) return udp(p.from, p.to);
  if (p.proto == 6) return tcp(p.from, p.to, p.flags);
  const bool is_outbound = p.to.port == 0;
  return echo(p.from.ip, p.to.ip, is_outbound ? p.from.port : p.to.port, p.is_request ? 8 : 0);
}

Model::Packet random_packet(Rng& rng, bool is_outbound, const Model& model) {
  constexpr uint8_t kProtos[] = {6, 6, 17, 1};
  constexpr uint8_t kFlags[] = {kSyn, kSyn | kAck, kAck, kAck, kFin | kAck, kRst};
  Model::Packet p{kProtos[rng.below(4)], {}, {}, kFlags[rng.below(6)], rng.below(3) != 0};
  const Ep inside{kHostA + rng.below(6), static_cast<uint16_t>(3000 + rng.below(4))};
  Ep remote{ip4(9, 0, 0, 1) + rng.below(3), static_cast<uint16_t>(80 + rng.below(3))};
  if (p.proto == 1) remote.port = 0;
  if (is_outbound) {
    p.from = inside;
    p.to = remote;
    return p;
  }
  Ep external{kExternal, static_cast<uint16_t>(3000 + rng.below(5))};
  if (rng.below(4) != 0 && !model.mappings().empty()) {
    auto it = model.mappings().begin();
    std::advance(it, rng.below(static_cast<uint32_t>(model.mappings().size())));
    if (it->first.first == p.proto) external = it->second;
  }
  p.from = remote;
  p.to = external;
  return p;
}

void compare(Model::Filtering filtering, const char* name, uint64_t seed) {
  constexpr int64_t kNs = 1'000'000'000;
  NaptRig rig(Dict{{"external", List{"203.0.113.0/30"}},
                   {"filtering", name},
                   {"udp_timeout_ns", static_cast<int64_t>(kUdpS) * kNs},
                   {"icmp_timeout_ns", static_cast<int64_t>(kIcmpS) * kNs},
                   {"tcp_established_timeout_ns", static_cast<int64_t>(kOpenS) * kNs},
                   {"tcp_transitory_timeout_ns", static_cast<int64_t>(kTransitoryS) * kNs}});
  Model model(filtering);
  Rng rng(seed);
  uint32_t n_in = 0;
  for (uint32_t step = 0; step < 20'000; ++step) {
    if (rng.below(20) == 0) {
      const double pause = 10.0 * (1 + rng.below(4));
      rig.pass(pause);
      model.pass(pause);
      ASSERT_EQ(rig.count("connections"), static_cast<int64_t>(model.n_connections())) << step;
      ASSERT_EQ(rig.count("mappings"), static_cast<int64_t>(model.mappings().size())) << step;
    }
    const bool is_outbound = rng.below(2) != 0;
    const Model::Packet p = random_packet(rng, is_outbound, model);
    if (is_outbound) {
      const bool passes = model.passes_out(p);
      const Sent sent = rig.send(frame_for(p));
      ASSERT_EQ(sent.drop.empty(), passes) << step << " " << sent.drop;
      if (!passes) continue;
      ASSERT_EQ(sent.gate, 0U);
      ASSERT_EQ(model.sent_out(p, sent.src()), "") << step;
      continue;
    }
    const std::optional<Ep> inside = model.sent_in(p);
    const Sent sent = rig.send(frame_for(p));
    ASSERT_EQ(sent.drop.empty(), inside.has_value()) << step << " " << sent.drop;
    if (!inside) continue;
    ++n_in;
    ASSERT_EQ(sent.gate, 1U);
    ASSERT_EQ(sent.dst(), *inside) << step;
  }
  EXPECT_GT(n_in, 300U);
  EXPECT_EQ(rig.harness().leaked_pkts(), 0U);
}

TEST(NaptOracle, EndpointIndependentFiltering) {
  for (uint64_t seed = 1; seed <= 4; ++seed)
    compare(Model::Filtering::kAny, "endpoint_independent", seed);
}
TEST(NaptOracle, AddressDependentFiltering) {
  for (uint64_t seed = 1; seed <= 4; ++seed)
    compare(Model::Filtering::kAddress, "address_dependent", seed);
}
TEST(NaptOracle, AddressAndPortDependentFiltering) {
  for (uint64_t seed = 1; seed <= 4; ++seed)
    compare(Model::Filtering::kAddressAndPort, "address_and_port_dependent", seed);
}

}  // namespace napt_oracle_test
}  // namespace batchplane

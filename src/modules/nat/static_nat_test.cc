// SPDX-License-Identifier: BSD-3-Clause
// static_nat_test.cc - prefixes are translated one to one, with every checksum; pairs change live.
#include <gtest/gtest.h>

#include "base/error.h"
#include "nat_test_util.h"

namespace batchplane {
namespace static_nat_test {

using namespace nattest;  // NOLINT: helpers of these tests

constexpr uint32_t kInside = ip4(10, 0, 0, 5);
constexpr uint32_t kOutside = ip4(20, 0, 0, 5);
constexpr uint32_t kRemote = ip4(8, 8, 8, 8);

Dict pair(const char* inside, const char* outside, const char* direction = "source") {
  return {{"inside", inside}, {"outside", outside}, {"direction", direction}};
}
Dict params(const char* direction) {
  return {{"pairs", List{pair("10.0.0.0/24", "20.0.0.0/24", direction)}}};
}
Bytes only(const Outcome& outcome) {
  EXPECT_EQ(outcome.outputs.size(), 1U);
  return outcome.outputs.empty() ? Bytes(64) : outcome.outputs[0].bytes;
}

TEST(StaticNat, SourceOfEachProtocolIsExchangedWithAllChecksums) {
  ModuleHarness harness("static_nat", params("source"));
  const Ep from{kInside, 1000};
  const Ep to{kRemote, 53};
  const Bytes frames[] = {
      udp(from, to), tcp(from, to), echo(from.ip, to.ip, 9),
      frame_of(ipv4({.src = from.ip, .dst = to.ip, .options_bytes = 8}, udp_part(from, to)))};
  for (const Bytes& frame : frames) {
    const Bytes out = only(harness.run({frame}));
    EXPECT_EQ(net::load32(ip_of(out) + 12), kOutside);
    EXPECT_EQ(net::load32(ip_of(out) + 16), kRemote);
    EXPECT_EQ(wrong_sums(out), "");
  }
  EXPECT_EQ(only(harness.run({udp(to, from)})), udp(to, from));
}

TEST(StaticNat, DestinationAndBoth) {
  ModuleHarness in("static_nat", params("destination"));
  const Bytes out = only(in.run({tcp({kRemote, 80}, {kOutside, 7})}));
  EXPECT_EQ(dst_of(out), (Ep{kInside, 7}));
  EXPECT_EQ(wrong_sums(out), "");
  EXPECT_EQ(only(in.run({tcp({kInside, 80}, {kRemote, 7})})), tcp({kInside, 80}, {kRemote, 7}));
  ModuleHarness both("static_nat", params("both"));
  const Bytes turned = only(both.run({udp({kInside, 1}, {ip4(20, 0, 0, 77), 2})}));
  EXPECT_EQ(src_of(turned).ip, kOutside);
  EXPECT_EQ(dst_of(turned).ip, ip4(10, 0, 0, 77));
  EXPECT_EQ(wrong_sums(turned), "");
}

TEST(StaticNat, NoUdpChecksumStaysNone) {
  ModuleHarness harness("static_nat", params("source"));
  const Ep from{kInside, 1};
  const Ep to{kRemote, 2};
  const Bytes out = only(
      harness.run({frame_of(ipv4({.src = from.ip, .dst = to.ip}, udp_part(from, to, 9, false)))}));
  EXPECT_EQ(net::load16(l4_of(out) + 6), 0);
  EXPECT_EQ(src_of(out).ip, kOutside);
}

TEST(StaticNat, QuotesOfIcmpErrorsAreTranslatedToo) {
  const Ep inside{kInside, 1000};
  const Ep outside{kOutside, 1000};
  const Ep remote{kRemote, 53};
  ModuleHarness in("static_nat", params("destination"));
  for (const size_t quoted : {28U, 30U, 400U}) {
    const Bytes error =
        only(in.run({icmp_error(ip4(9, 9, 9, 9), kOutside, udp_ip(outside, remote), quoted)}));
    EXPECT_EQ(net::load32(ip_of(error) + 16), kInside);
    EXPECT_EQ(src_of(quote_of(error)), inside);
    EXPECT_EQ(wrong_sums(error), "");
  }
  ModuleHarness out("static_nat", params("source"));
  const Bytes error =
      only(out.run({icmp_error(kInside, kRemote, tcp_ip(remote, inside, kAck), 48)}));
  EXPECT_EQ(net::load32(ip_of(error) + 12), kOutside);
  EXPECT_EQ(dst_of(quote_of(error)), outside);
  EXPECT_EQ(wrong_sums(error), "");
}

TEST(StaticNat, LaterFragmentsHaveAddressesOnly) {
  ModuleHarness harness("static_nat", params("source"));
  const Bytes later =
      frame_of(ipv4({.src = kInside, .dst = kRemote, .proto = 6, .fragment = 5}, Bytes(40, 0xaa)));
  const Bytes out = only(harness.run({later}));
  EXPECT_EQ(net::load32(ip_of(out) + 12), kOutside);
  EXPECT_EQ(Bytes(out.begin() + 34, out.end()), Bytes(later.begin() + 34, later.end()));
  EXPECT_EQ(net::checksum_finish(net::checksum_add(ip_of(out), 20)), 0);
}

TEST(StaticNat, FaultyPacketsAreDroppedByName) {
  ModuleHarness harness("static_nat", params("source"));
  const Bytes good = tcp({kInside, 1}, {kRemote, 2});
  Bytes version = good, header = good, total = good, tiny = good;
  version[14] = 0x65;
  header[14] = 0x44;
  net::store16(&total[16], 2000);
  net::store16(&tiny[16], 30);
  const Outcome outcome = harness.run({version, header, total, tiny, Bytes{}, Bytes(20, 0x45)});
  EXPECT_EQ(outcome.dropped_for("bad_version"), 1U);
  EXPECT_EQ(outcome.dropped_for("bad_header_length"), 1U);
  EXPECT_EQ(outcome.dropped_for("bad_total_length"), 1U);
  EXPECT_EQ(outcome.dropped_for("too_short"), 3U);
  for (size_t n = 0; n < good.size(); ++n) {
    (void)harness.run({Bytes(good.begin(), good.begin() + static_cast<long>(n))});
  }
  EXPECT_EQ(harness.leaked_pkts(), 0U);
}

TEST(StaticNat, ManyPairsAreFoundAsFewAre) {
  for (const uint32_t n : {1U, 2U, 6U, 7U, 100U, 1000U}) {
    List pairs;
    for (uint32_t i = 0; i < n; ++i) {
      pairs.push_back(Dict{{"inside", net::format_ipv4(kInside + 4 * i)},
                           {"outside", net::format_ipv4(kOutside + 8 * i)}});
    }
    ModuleHarness harness("static_nat", {{"pairs", pairs}});
    for (uint32_t i = 0; i < 4 * n + 8; ++i) {
      const uint32_t address = kInside - 4 + i;
      const bool has_pair = i >= 4 && i % 4 == 0 && i / 4 <= n;
      const uint32_t expected = has_pair ? kOutside + 8 * (i / 4 - 1) : address;
      ASSERT_EQ(src_of(only(harness.run({udp({address, 1}, {kRemote, 2})}))).ip, expected)
          << n << " pairs, address " << i;
    }
  }
}

TEST(StaticNat, PairsChangeLive) {
  ModuleHarness harness("static_nat");
  const Bytes frame = udp({kInside, 1}, {kRemote, 2});
  EXPECT_EQ(src_of(only(harness.run({frame}))).ip, kInside);
  harness.command("add", pair("10.0.0.0/24", "20.0.0.0/24"));
  EXPECT_EQ(src_of(only(harness.run({frame}))).ip, kOutside);
  harness.command("replace", Dict{{"pairs", List{pair("10.0.0.5", "30.0.0.1")}}});
  EXPECT_EQ(src_of(only(harness.run({frame}))).ip, ip4(30, 0, 0, 1));
  EXPECT_EQ(harness.command("list")["pairs"].as_list().size(), 1U);
  EXPECT_EQ(harness.module().saved_params().at("pairs"), harness.command("list")["pairs"]);
  harness.command("delete", Dict{{"inside", "10.0.0.5"}, {"outside", "30.0.0.1"}});
  EXPECT_EQ(src_of(only(harness.run({frame}))).ip, kInside);
}

TEST(StaticNat, BadPairsAreRefusedAndNothingChanges) {
  ModuleHarness harness("static_nat", params("source"));
  const auto refuses = [&](const char* verb, const Dict& item) {
    EXPECT_THROW(harness.command(verb, item), ConfigError);
  };
  refuses("add", pair("10.0.0.1/24", "20.0.1.0/24"));              // host bits
  refuses("add", pair("10.1.0.0/24", "20.0.0.0/25"));              // lengths
  refuses("add", pair("10.0.0.128/25", "20.9.0.0/25"));            // overlap
  refuses("add", pair("10.3.0.0/24", "20.9.0.0/24", "sideways"));  // direction
  refuses("add", {{"inside", "10.3.0.0/24"}});                     // no outside prefix
  refuses("add", {{"inside", "x"}, {"outside", "y"}, {"z", 1}});   // unknown key
  refuses("delete", pair("10.7.0.0/24", "20.7.0.0/24"));           // not there
  refuses("frobnicate", {});
  EXPECT_EQ(harness.command("list")["pairs"].as_list().size(), 1U);
  EXPECT_THROW(ModuleHarness("static_nat", {{"pairs", List{pair("10.0.0.0/8", "20.0.0.0/8"),
                                                           pair("10.1.0.0/16", "30.1.0.0/16")}}}),
               ConfigError);
}

}  // namespace static_nat_test
}  // namespace batchplane

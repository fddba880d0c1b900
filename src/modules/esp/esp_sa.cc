// SPDX-License-Identifier: BSD-3-Clause
// esp_sa.cc - parses SAs, and prepares their headers and keys.
#include "modules/esp/esp_sa.h"

#include <set>

#include "modules/esp/esp_kernel_words.h"
#include "modules/headers/ipv4_header.h"

namespace batchplane::esp {
namespace {

Endpoint endpoint_in(const Value& item, const char* key, const std::string& where) {
  if (!item.has(key)) return {};
  const std::string text = item[key].is_string() ? item[key].as_string() : "";
  if (const auto v4 = net::parse_ipv4(text)) return {Endpoint::Version::kIpv4, *v4, {}};
  if (const auto v6 = net::parse_ipv6(text)) return {Endpoint::Version::kIpv6, 0, *v6};
  throw ConfigError("expected an IPv4 or IPv6 address", where + "." + key, "such as 192.0.2.1");
}

std::string format_endpoint(const Endpoint& endpoint) {
  return endpoint.version == Endpoint::Version::kIpv6 ? net::format_ipv6(endpoint.v6)
                                                      : net::format_ipv4(endpoint.v4);
}

bool flag_in(const Value& item, const char* key, const std::string& where) {
  if (!item.has(key)) return false;
  if (!item[key].is_bool()) throw ConfigError("expected true or false", where + "." + key, "");
  return item[key].as_bool();
}

const Suite* suite_in(const Value& item, const std::string& where) {
  const Suite* suite = item["suite"].is_string() ? find_suite(item["suite"].as_string()) : nullptr;
  if (suite != nullptr) return suite;
  throw ConfigError("expected a suite", where + ".suite", "one of " + suite_names());
}

SaSpec parse_common(const Value& item, const std::string& where) {
  SaSpec spec;
  spec.suite = suite_in(item, where);
  spec.spi = static_cast<uint32_t>(int_value(item["spi"], kLeastSpi, 0xffffffff, where + ".spi"));
  spec.has_esn = flag_in(item, "esn", where);
  spec.remote = endpoint_in(item, "remote", where);
  spec.vrf = static_cast<int32_t>(int_under(item, "vrf", 0, 0xffff, -1, where));
  return spec;
}

SaSpec parse_out(const Value& item, const std::string& where, uint32_t /*n_gates*/) {
  check_keys(item,
             {"id", "spi", "suite", "esn", "remote", "local", "udp", "dst_mac", "src_mac", "vrf",
              "first_sequence"},
             where);
  SaSpec spec = parse_common(item, where);
  spec.local = endpoint_in(item, "local", where);
  if (spec.remote.version == Endpoint::Version::kNone ||
      spec.remote.version != spec.local.version) {
    throw ConfigError("both ends of the tunnel need an address, of the same version", where,
                      "give remote and local");
  }
  spec.is_over_udp = flag_in(item, "udp", where);
  spec.dst_mac = mac_under(item, "dst_mac", where);
  spec.src_mac = mac_under(item, "src_mac", where);
  const int64_t most = spec.has_esn ? (1LL << 62) : 0xffffffffLL;
  spec.first_sequence = static_cast<uint64_t>(int_under(item, "first_sequence", 1, most, 1, where));
  return spec;
}

SaSpec parse_in(const Value& item, const std::string& where, uint32_t /*n_gates*/) {
  check_keys(item, {"id", "spi", "suite", "esn", "remote", "vrf"}, where);
  return parse_common(item, where);
}

Dict format(const SaSpec& spec) {
  Dict item{{"spi", spec.spi}, {"suite", spec.suite->name}};
  if (spec.has_esn) item["esn"] = true;
  if (spec.remote != Endpoint{}) item["remote"] = format_endpoint(spec.remote);
  if (spec.local != Endpoint{}) item["local"] = format_endpoint(spec.local);
  if (spec.is_over_udp) item["udp"] = true;
  if (spec.dst_mac != net::Mac{}) item["dst_mac"] = net::format_mac(spec.dst_mac);
  if (spec.src_mac != net::Mac{}) item["src_mac"] = net::format_mac(spec.src_mac);
  if (spec.vrf >= 0) item["vrf"] = spec.vrf;
  if (spec.first_sequence != 1) item["first_sequence"] = spec.first_sequence;
  return item;
}

// Prepares the outer headers, except for lengths, traffic class and checksums, which differ per
// packet.
void lay_out(Sa& sa, const SaSpec& spec, uint8_t ttl) {
  const bool is_v6 = sa.remote.version == Endpoint::Version::kIpv6;
  const uint8_t protocol = spec.is_over_udp ? net::kProtoUdp : net::kProtoEsp;
  auto& eth = header_at<net::Ethernet>(sa.outer);
  eth = {.dst = spec.dst_mac, .src = spec.src_mac, .type = is_v6 ? net::kTypeIpv6 : net::kTypeIpv4};
  uint32_t at = net::kEthBytes;
  if (is_v6) {
    behind<net::Ipv6>(eth) = {.version_class_flow = net::Ipv6::kPlain,
                              .next_header = protocol,
                              .hop_limit = ttl,
                              .src = spec.local.v6,
                              .dst = spec.remote.v6};
    at += net::kIpv6Bytes;
  } else {
    auto& ip = behind<net::Ipv4>(eth);
    ip = {.version_ihl = net::Ipv4::kPlain,
          .ttl = ttl,
          .protocol = protocol,
          .src = spec.local.v4,
          .dst = spec.remote.v4};
    sa.header_sum = static_cast<uint16_t>(fold16(sum_header20(ip)));
    at += net::kIpv4Bytes;
  }
  if (spec.is_over_udp) {
    header_at<net::Udp>(sa.outer + at) = {.src_port = net::Esp::kUdpPort,
                                          .dst_port = net::Esp::kUdpPort};
    at += net::kUdpBytes;
  }
  sa.outer_bytes = static_cast<uint8_t>(at);
}

// Two SAs with the same key would reuse nonces, which breaks GCM.
void check_keys_differ(const std::map<Secret, uint32_t>& ids, const Secret& key, uint32_t id,
                       const std::string& where) {
  const auto found = ids.find(key);
  if (found == ids.end() || found->second == id) return;
  throw ConfigError(
      "SAs " + std::to_string(found->second) + " and " + std::to_string(id) + " have the same key",
      where, "each SA that sends needs a key of its own");
}

}  // namespace

std::vector<uint32_t> SaTable::words() const {
  std::vector<GcmKey> keys;
  keys.reserve(of_kernel.size() + 1);
  for (const uint32_t at : of_kernel) keys.push_back({gcm_key_of(*sas[at].keys), sas[at].has_esn});
  keys.push_back({gcm_key_of(*trial_keys), false});
  return gcm_words(keys);
}

const KeySchedule* SaTable::keys_of_kernel(uint32_t number) const {
  if (number < of_kernel.size()) return sas[of_kernel[number]].keys.get();
  return number == of_kernel.size() ? trial_keys.get() : nullptr;
}

SaBook make_sa_book(Direction direction) {
  return SaBook({.list_name = "sas",
                 .id_name = "id",
                 .max_id = 0xffffffff,
                 .max_items = kMaxSas,
                 .parse = direction == Direction::kOut ? parse_out : parse_in,
                 .format = format});
}

SaKeeper::Kept SaKeeper::keep(uint32_t id, const SaSpec& spec, Keys keys) const {
  const auto before = kept_.find(id);
  if (before != kept_.end() && before->second.keys == keys &&
      before->second.suite.name == spec.suite->name && before->second.has_esn == spec.has_esn) {
    return before->second;
  }
  Kept kept{*spec.suite, spec.has_esn, std::move(keys),
            std::make_shared<SaState>(style_.repeats_packets ? 0 : style_.replay_window_pkts),
            nullptr};
  kept.state->sequence.set(style_.direction == Direction::kOut ? spec.first_sequence - 1 : 0);
  kept.schedule = crypto_.expand(*spec.suite, kept.keys, spec.has_esn);
  return kept;
}

Sa SaKeeper::make_sa(uint32_t id, const SaSpec& spec, const Kept& kept) const {
  Sa sa;
  sa.state = kept.state;
  sa.keys = kept.schedule;
  sa.last_sequence = spec.has_esn ? ~0ULL : 0xffffffff;
  sa.id = id;
  sa.spi = spec.spi;
  sa.vrf = spec.vrf;
  sa.iv_bytes = static_cast<uint8_t>(spec.suite->iv_bytes);
  sa.icv_bytes = static_cast<uint8_t>(spec.suite->icv_bytes);
  sa.block_mask = static_cast<uint8_t>(spec.suite->block_bytes - 1);
  sa.has_esn = spec.has_esn;
  sa.is_over_udp = spec.is_over_udp;
  sa.remote = spec.remote;
  if (style_.direction == Direction::kOut) lay_out(sa, spec, style_.ttl);
  return sa;
}

SaKeeper::SaKeeper(const Style& style) : style_(style) {
  const Suite& suite = *std::ranges::find(suites(), Cipher::kGcm, &Suite::cipher);
  trial_keys_ = crypto_.expand(suite, KeyRing::of_tests().keys_of(0, suite, ""), false);
}

SaTablePtr SaKeeper::make_table(const SaBook& book, const KeyRing& ring, const std::string& where) {
  auto made = std::make_shared<SaTable>();
  SaTable& table = *made;
  table.trial_keys = trial_keys_;
  AllKept next;
  std::map<Secret, uint32_t> ids;
  table.sas.reserve(book.items().size());
  for (const auto& [id, spec] : book.items()) {
    const std::string at = where + ".sas, SA " + std::to_string(id);
    if (spec.has_esn && style_.direction == Direction::kIn && style_.replay_window_pkts == 0) {
      throw ConfigError("esn needs a replay window", at, "set replay_window_pkts to 64 or more");
    }
    Keys keys = ring.keys_of(id, *spec.suite, at);
    if (style_.direction == Direction::kOut) {
      check_keys_differ(ids, keys.cipher, id, at);
      ids.emplace(keys.cipher, id);
    }
    const uint64_t key = style_.direction == Direction::kOut ? id : spec.spi;
    if (!table.index.insert_or_assign({key}, static_cast<uint32_t>(table.sas.size()))) {
      throw ConfigError("another SA has the same SPI", at, "keep one of them");
    }
    const Kept& kept = next.emplace(id, keep(id, spec, std::move(keys))).first->second;
    table.sas.push_back(make_sa(id, spec, kept));
    if (gcm_key_of(*kept.schedule).empty()) continue;
    table.sas.back().kernel_index = static_cast<uint32_t>(table.of_kernel.size());
    table.of_kernel.push_back(static_cast<uint32_t>(table.sas.size() - 1));
  }
  kept_ = std::move(next);
  return made;
}

void SaKeeper::inherit(const SaKeeper& old) { kept_ = old.kept_; }

List SaKeeper::list(const SaBook& book) const {
  List all = book.list();
  for (Value& item : all) {
    const SaState& state = *kept_.at(static_cast<uint32_t>(item["id"].as_int())).state;
    Dict dict = item.as_dict();
    dict["sequence"] = static_cast<int64_t>(state.sequence.value());
    dict["pkts"] = static_cast<int64_t>(state.pkts.value());
    dict["bytes"] = static_cast<int64_t>(state.bytes.value());
    item = Value(std::move(dict));
  }
  return all;
}

}  // namespace batchplane::esp

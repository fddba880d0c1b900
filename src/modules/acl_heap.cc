// SPDX-License-Identifier: BSD-3-Clause
// acl_heap.cc - access rules as a list that is walked for each packet: slow and easy to read.
#include <algorithm>
#include <cstring>

#include "base/net.h"
#include "modules/acl_classifier.h"

namespace batchplane {
namespace {

// Where things lie in a header without options.
struct Header {
  const uint8_t* proto;
  const uint8_t* src;
  const uint8_t* dst;
  const uint8_t* transport;
};

Header header_at(AclFamily family, const uint8_t* ip) {
  if (family == AclFamily::kIpv6) return {ip + 6, ip + 8, ip + 24, ip + 40};
  return {ip + net::kIpProto, ip + net::kIpSrc, ip + net::kIpDst, ip + net::kIpv4Bytes};
}

bool is_in(const AclPrefix& prefix, const uint8_t* address) {
  const uint32_t whole = prefix.length / 8;
  if (std::memcmp(prefix.bytes.data(), address, whole) != 0) return false;
  const uint32_t rest_bits = prefix.length % 8;
  return rest_bits == 0 || ((prefix.bytes[whole] ^ address[whole]) >> (8 - rest_bits)) == 0;
}

bool is_in(const AclPorts& ports, uint16_t port) {
  return ports.first <= port && port <= ports.last;
}

bool matches(const AclMatch& match, const Header& header, bool reads_ports) {
  if (((*header.proto ^ match.proto) & match.proto_mask) != 0) return false;
  if (!is_in(match.src, header.src) || !is_in(match.dst, header.dst)) return false;
  if (!reads_ports || !match.needs_ports()) return true;
  constexpr uint32_t kTcpFlags = 13;
  return is_in(match.src_ports, net::load16(header.transport)) &&
         is_in(match.dst_ports, net::load16(header.transport + 2)) &&
         (match.tcp_flags_mask == 0 ||
          ((header.transport[kTcpFlags] ^ match.tcp_flags) & match.tcp_flags_mask) == 0);
}

}  // namespace

struct AclClassifier::Impl {
  AclFamily headers;
  bool reads_ports;
  std::vector<std::pair<AclMatch, uint32_t>> rules;
};

AclClassifier::AclClassifier(AclFamily headers, bool reads_ports,
                             const std::vector<AclEntry>& entries)
    : impl_(std::make_unique<Impl>(Impl{headers, reads_ports, {}})) {
  for (const AclEntry& entry : entries) impl_->rules.emplace_back(*entry.match, entry.id);
}

AclClassifier::~AclClassifier() = default;

void AclClassifier::classify(const uint8_t* const* headers, uint32_t* ids,
                             uint32_t n) const noexcept {
  for (uint32_t i = 0; i < n; ++i) {
    const Header header = header_at(impl_->headers, headers[i]);
    ids[i] = 0;
    for (const auto& [match, id] : impl_->rules) {
      if (!matches(match, header, impl_->reads_ports)) continue;
      ids[i] = id;
      break;
    }
  }
}

const char* AclClassifier::lookup_path() const { return "linear"; }

uint64_t AclClassifier::memory_bytes(uint32_t n_rules) { return n_rules * sizeof(AclMatch); }

}  // namespace batchplane

// SPDX-License-Identifier: BSD-3-Clause
// napt_slow.cc - the slow path, packet by packet: the first of a connection, ICMP, fragments,
// hairpinning and faulty packets.
#include "modules/nat/napt_reasons.h"
#include "modules/nat/napt_translate.h"

namespace batchplane::nat {
namespace {

// Queries have an id: requests and replies of echo, timestamp, information and address mask.
bool is_icmp_query(uint8_t type) { return type == 0 || type == 8 || (type >= 13 && type <= 18); }
bool is_icmp_request(uint8_t type) { return type == 8 || type == 13 || type == 15 || type == 17; }

// The key of a packet, or of a quoted packet that includes its ports.
NaptKey key_of(const PacketView& view) {
  if (view.proto == net::kProtoIcmp) {
    const uint16_t id = view.icmp().query.id.raw();
    return make_key(view.src(), view.dst(), id, id, view.proto);
  }
  const net::Ports& ports = view.ports();
  return make_key(view.src(), view.dst(), ports.src.raw(), ports.dst.raw(), view.proto);
}

// Up to and including the checksum, which must be updated.
uint32_t min_l4_bytes(uint8_t proto) {
  constexpr uint32_t kTcpBytes = offsetof(net::Tcp, checksum) + kChecksumBytes;
  return proto == net::kProtoTcp ? kTcpBytes : net::kUdpBytes;
}

// Up to and including the ports, or the ICMP id.
uint32_t bytes_with_ports(uint8_t proto) {
  constexpr uint32_t kIcmpBytes = offsetof(net::Icmp, query) + sizeof(net::Be16);
  return proto == net::kProtoIcmp ? kIcmpBytes : sizeof(net::Ports);
}

bool is_translated(uint8_t proto) {
  return proto == net::kProtoTcp || proto == net::kProtoUdp || proto == net::kProtoIcmp;
}

const DropReason* reason_of(Refusal why) {
  if (why == Refusal::kTable) return &kTableFull;
  if (why == Refusal::kPorts) return &kPortsExhausted;
  return why == Refusal::kHost ? &kHostLimit : &kFiltered;
}

// Translates source or destination, depending on the direction.
void rewrite(const PacketView& view, const NaptSession& session, uint32_t direction) {
  if (direction == kOut) {
    rewrite_end(view, End::kSrc, external_address(session), true, external_port(session));
  } else {
    rewrite_end(view, End::kDst, inside_address(session), true, inside_port(session));
  }
}

}  // namespace

void NaptTranslator::take_care(Context& ctx, Batch& batch, uint32_t i, uint32_t now) noexcept {
  Packet& pkt = *batch[i];
  const uint32_t l3 = l3_offset_of(pkt);
  PacketView view;
  const Fault fault = view_packet(header_in<net::Ipv4>(pkt, l3),
                                  pkt.len_bytes() < l3 ? 0 : pkt.len_bytes() - l3, view);
  if (fault != Fault::kNone) {
    ctx.drop(batch, i, reason_of(fault));
    return;
  }
  const uint16_t fragment = view.ip->fragment;
  NaptFate fate;
  if ((fragment & net::Ipv4::kFragmentOffset) != 0) {
    fate = follow_first(view, now);
  } else {
    NaptFragment first{.key = NaptFragments::key_of(*view.ip), .since = now};
    fate = translate(view, now);
    if ((fragment & net::Ipv4::kMoreFragments) != 0 && fate.reason == nullptr) {
      first.new_ends = view.ip->addresses_raw();
      first.first_bytes = static_cast<uint16_t>(view.l4_bytes);
      first.gate = fate.gate;
      fragments_->remember(first);
    }
  }
  ctx.gates[i] = fate.gate;
  if (fate.reason != nullptr) ctx.drop(batch, i, *fate.reason);
}

NaptFate NaptTranslator::translate(const PacketView& view, uint32_t now) noexcept {
  if (!is_translated(view.proto)) {
    const bool is_ours = table_->pool().index_of(view.dst()) != kNoExternal;
    if (is_ours && config_.is_unmapped_local) return {kGateLocal};
    return {0, &kUnsupportedProtocol};
  }
  if (!view.has_bytes(min_l4_bytes(view.proto))) return {0, &reason::kTooShort};
  if (view.proto == net::kProtoIcmp && !is_icmp_query(view.icmp().type)) {
    if (is_icmp_error(view.icmp().type)) return translate_error(view, now);
    const bool is_ours = table_->pool().index_of(view.dst()) != kNoExternal;
    if (is_ours && config_.is_unmapped_local) return {kGateLocal};
    return {0, &kIcmpUnsupported};
  }
  const NaptFate fate = translate_ends(view, key_of(view), now);
  return fate;
}

// Hairpinning (RFC 4787, 6): a packet from inside to an external address is translated outbound and
// then inbound again; its source becomes an external one.
NaptFate NaptTranslator::translate_ends(const PacketView& view, const NaptKey& key,
                                        uint32_t now) noexcept {
  NaptFate fate;
  const uint8_t flags = view.proto == net::kProtoTcp ? view.tcp().flags : 0;
  uint32_t found = table_->find(key, now);
  if (found == 0 && is_forged(key)) return {0, &kOwnSource};
  if (found == 0) found = open(view, key, now, fate);
  if (found == 0) return fate;
  const NaptSession& session = table_->sessions()[found >> 1];
  const uint32_t direction = found & 1;
  // Both addresses are ours only in the second half of a hairpin.
  if (direction == kIn && (session.seen & kIsHairpin) != 0) return {0, &kOwnSource};
  table_->timers().track(found >> 1, direction, flags, now);
  rewrite(view, session, direction);
  if (direction == kIn) return {kGateInside};
  if ((session.seen & kIsHairpin) == 0) return {kGateOutside};
  const NaptKey back = key_of(view);
  uint32_t second = table_->find(back, now);
  if (second == 0) second = open(view, back, now, fate);
  if (second == 0) return fate;
  if ((second & 1) != kIn) return {0, &kNoMapping};
  table_->timers().track(second >> 1, kIn, flags, now);
  rewrite(view, table_->sessions()[second >> 1], kIn);
  tallies_.hairpinned.add(1);
  return {kGateInside};
}

bool NaptTranslator::is_forged(const NaptKey& key) const noexcept {
  const ExternalPool& pool = table_->pool();
  return pool.index_of(key.src()) != kNoExternal && pool.index_of(key.dst()) != kNoExternal;
}

NaptFate NaptTranslator::unmapped() const noexcept {
  if (config_.is_unmapped_local) return {kGateLocal};
  return {0, &kNoMapping};
}

// TCP resets and ICMP replies open no connection.
bool NaptTranslator::may_open(const PacketView& view) const noexcept {
  if (view.proto == net::kProtoIcmp) return is_icmp_request(view.icmp().type);
  if (view.proto != net::kProtoTcp) return true;
  const uint8_t flags = view.tcp().flags;
  return (flags & net::kTcpRst) == 0 && (config_.is_tcp_loose || (flags & net::kTcpSyn) != 0);
}

uint32_t NaptTranslator::open(const PacketView& view, const NaptKey& key, uint32_t now,
                              NaptFate& fate) noexcept {
  NaptState state = NaptState::kTcpOpening;
  if (view.proto == net::kProtoIcmp) state = NaptState::kIcmp;
  if (view.proto == net::kProtoUdp) {
    state = config_.is_short(key.dst_port()) ? NaptState::kUdpShort : NaptState::kUdpNew;
  }
  const ExternalPool& pool = table_->pool();
  Refusal why = Refusal::kNone;
  uint32_t opened = 0;
  const bool is_to_us = pool.index_of(key.dst()) != kNoExternal;
  const bool is_from_us = pool.index_of(key.src()) != kNoExternal;
  if (is_to_us) {
    const uint32_t mapping = table_->find_mapping(key.dst(), key.dst_port(), key.proto());
    if (mapping == 0) {
      fate = unmapped();
      return 0;
    }
    if (!may_open(view)) {
      fate = {0, &kNoMapping};
      return 0;
    }
    opened = !is_from_us && config_.is_inside(key.src())
                 ? table_->open_outbound(key, state, kIsHairpin, now, why)
                 : table_->open_inbound(key, mapping, state, now, why);
  } else if (is_from_us) {
    // A packet of the router itself.
    fate = config_.is_unmapped_local ? NaptFate{kGateOutside} : NaptFate{0, &kOwnSource};
    return 0;
  } else if (!may_open(view)) {
    fate = {0, &kNoMapping};
    return 0;
  } else {
    opened = table_->open_outbound(key, state, 0, now, why);
  }
  if (opened == 0) fate = {0, reason_of(why)};
  return opened;
}

// RFC 5508, 4.1 and 4.2: the connection is that of the quoted packet, in the opposite direction.
// The error neither refreshes nor ends it.
NaptFate NaptTranslator::translate_error(const PacketView& view, uint32_t now) noexcept {
  PacketView quote;
  if (!view_quote(view, quote)) return {0, &reason::kTooShort};
  const bool has_ports = is_translated(quote.proto) &&
                         quote.has_bytes(bytes_with_ports(quote.proto)) &&
                         (quote.proto != net::kProtoIcmp || is_icmp_query(quote.icmp().type));
  const uint32_t found = has_ports ? table_->find(key_of(quote).reversed(), now) : 0;
  if (found == 0) {
    if (table_->pool().index_of(view.dst()) != kNoExternal) return unmapped();
    return {0, &kNoMapping};
  }
  tallies_.errors.add(1);
  const NaptFate fate = translate_quote(view, quote, found);
  if (fate.gate != kGateOutside) return fate;
  const NaptSession& session = table_->sessions()[found >> 1];
  if ((session.seen & kIsHairpin) == 0) return fate;
  const uint32_t second = table_->find(key_of(quote).reversed(), now);
  if (second == 0 || (second & 1) != kIn) return {0, &kNoMapping};
  tallies_.hairpinned.add(1);
  return translate_quote(view, quote, second);
}

NaptFate NaptTranslator::translate_quote(const PacketView& view, const PacketView& quote,
                                         uint32_t found) noexcept {
  const NaptSession& session = table_->sessions()[found >> 1];
  if ((found & 1) == kIn) {
    rewrite_quote(view, quote, End::kSrc, inside_address(session), true, inside_port(session));
    rewrite_end(view, End::kDst, inside_address(session), false, 0);
    return {kGateInside};
  }
  // Also if a router on the inside sent the error, since its address has no meaning outside.
  rewrite_quote(view, quote, End::kDst, external_address(session), true, external_port(session));
  rewrite_end(view, End::kSrc, external_address(session), false, 0);
  return {kGateOutside};
}

NaptFate NaptTranslator::follow_first(const PacketView& view, uint32_t now) noexcept {
  const NaptFragment* first =
      fragments_->find(NaptFragments::key_of(*view.ip), now, config_.fragment_limit);
  if (first == nullptr) return {0, &kFragmentUnknown};
  const uint32_t offset_bytes = (view.ip->fragment & net::Ipv4::kFragmentOffset) * 8U;
  if (offset_bytes < first->first_bytes) return {0, &kFragmentOverlap};
  rewrite_end(view, End::kSrc, static_cast<uint32_t>(first->new_ends), false, 0);
  rewrite_end(view, End::kDst, static_cast<uint32_t>(first->new_ends >> 32), false, 0);
  tallies_.fragments.add(1);
  return {first->gate};
}

}  // namespace batchplane::nat

// SPDX-License-Identifier: BSD-3-Clause
// reassembly.cc - reassembles IPv4 fragments (RFC 791) in bounded memory, with defences against
// fragment attacks (RFC 1858, 3128, 5722).
//
// in: 1   out: 1   drops: one per kind of fault, reassembled
// state: incomplete datagrams; owner: the worker
#include <algorithm>

#include "core/module/register.h"
#include "modules/headers/ipv4_header.h"
#include "modules/headers/shared_reasons.h"
#include "modules/ip/reassembly_table.h"

namespace batchplane {
namespace {

const DropReason kReassembled{
    "reassembled", "a fragment that became part of a whole packet (not a loss)", "none needed"};
const DropReason kMalformed{"fragment_malformed",
                            "a fragment is empty, or not the last and no multiple of 8 bytes",
                            "look at the sender; such packets are broken or forged"};
const DropReason kTiny{"fragment_tiny",
                       "a fragment is so small that it would hide the TCP or UDP header",
                       "look at the sender; no honest link has such an MTU"};
const DropReason kTooLong{"fragment_too_long",
                          "the packet would be longer than max_datagram_bytes or than 65535 bytes",
                          "raise max_datagram_bytes, if such packets are wanted"};
const DropReason kOverlap{"fragment_overlap",
                          "fragments overlap or disagree about their packet's end; all are dropped",
                          "look at the sender; no honest one makes such fragments"};
const DropReason kDuplicate{"fragment_duplicate", "a fragment came twice",
                            "look for a loop or a duplicating link"};
const DropReason kTooMany{"fragment_too_many", "a packet came in more than 64 fragments",
                          "look at the sender; or raise the MTU on the way"};
const DropReason kTimeout{"reassembly_timeout", "the other fragments of the packet did not come",
                          "look for losses on the way; or raise timeout_ns"};
const DropReason kFull{"reassembly_full", "older fragments made room for newer ones",
                       "look for a flood of fragments; or raise max_datagrams and max_hold_pkts"};

constexpr uint64_t kTickNs = 100'000'000;
constexpr uint32_t kMaxEnds = 16;  // datagrams evicted for one fragment; bounds the time of a flood

class Reassembly final : public Module {
 public:
  explicit Reassembly(const Args& args)
      : max_datagram_bytes_(args.u32("max_datagram_bytes")),
        timeout_ns_(args.u64("timeout_ns")),
        table_(std::make_unique<ReassemblyTable>(args.u32("max_datagrams"),
                                                 args.u32("max_hold_pkts"))) {}

  void process(Context& ctx, Batch& batch) noexcept {
    const uint32_t n = batch.size_pkts;
    for (uint32_t i = 0; i < n; ++i) {
      Packet& pkt = *batch[i];
      const uint32_t l3 = l3_offset_of(pkt);
      if (pkt.len_bytes() < l3 + net::kIpv4Bytes) [[unlikely]] {
        ctx.drop(batch, i, reason::kTooShort);
        continue;
      }
      if (header_in<net::Ipv4>(pkt, l3).is_fragment()) [[unlikely]]
        take(ctx, batch, i, l3);
    }
  }

  void housekeep(Context& ctx, uint64_t budget_ns) noexcept override {
    // About 100 ns per datagram.
    const auto affordable = static_cast<uint32_t>(std::clamp<uint64_t>(budget_ns / 100, 8, 512));
    for (uint32_t n = 0; n < affordable && table_->oldest() != ReassemblyTable::kNone; ++n) {
      const uint32_t index = table_->oldest();
      if ((*table_)[index].deadline_ns > ctx.now_ns) break;
      if (!end(ctx, index, kTimeout)) break;  // the rest at the next tick
    }
  }
  [[nodiscard]] uint64_t housekeep_interval_ns() const override { return kTickNs; }
  [[nodiscard]] uint64_t held_pkts() const override { return table_->n_held(); }
  [[nodiscard]] uint32_t max_held_pkts() const override { return table_->max_held(); }
  void give_up_held(const std::function<void(Packet*)>& take) override {
    while (table_->oldest() != ReassemblyTable::kNone) {
      Datagram& datagram = (*table_)[table_->oldest()];
      for (uint32_t k = 0; k < datagram.n_parts; ++k) take(datagram.parts[k].pkt);
      table_->count_held(-static_cast<int32_t>(datagram.n_parts));
      table_->remove(table_->oldest());
    }
  }
  void adopt(Module& old) noexcept override {
    auto& other = static_cast<Reassembly&>(old);
    if (table_->capacity() == other.table_->capacity() &&
        table_->max_held() == other.table_->max_held()) {
      std::swap(table_, other.table_);
    }
  }
  [[nodiscard]] Value show() const override {
    return Dict{{"datagrams", table_->size()},
                {"max_datagrams", table_->capacity()},
                {"held_pkts", table_->n_held()},
                {"max_hold_pkts", table_->max_held()},
                {"reassembled", reassembled_}};
  }

 private:
  // Packet i is a fragment: keeps, drops or completes it.
  void take(Context& ctx, Batch& batch, uint32_t i, uint32_t l3) noexcept {
    Packet& pkt = *batch[i];
    const auto& ip = header_in<net::Ipv4>(pkt, l3);
    const uint32_t header_bytes = ip.header_bytes();
    const uint32_t total_bytes = ip.total_length;
    if (header_bytes < net::kIpv4Bytes || total_bytes < header_bytes ||
        total_bytes > pkt.len_bytes() - l3) {
      ctx.drop(batch, i, reason::kTooShort);
      return;
    }
    const bool is_last = (ip.fragment & net::Ipv4::kMoreFragments) == 0;
    const FragmentPart part{&pkt, (ip.fragment & net::Ipv4::kFragmentOffset) * 8U,
                            total_bytes - header_bytes};
    if (const DropReason* fault = fault_of(ip, header_bytes, part, is_last)) {
      ctx.drop(batch, i, *fault);
      return;
    }
    const uint32_t index = entry_for(ctx, pkt, ip);
    if (index == ReassemblyTable::kNone) {
      ctx.drop(batch, i, kFull);
      return;
    }
    Datagram& datagram = (*table_)[index];
    uint32_t at = 0;
    const ReassemblyTable::Fit fit = table_->fit(datagram, part, at);
    if (datagram.fault == nullptr && fit == ReassemblyTable::Fit::kDuplicate) {
      ctx.drop(batch, i, kDuplicate);
      return;
    }
    const uint32_t end_bytes = part.offset_bytes + part.bytes;
    const bool is_end_wrong =
        is_last && ((datagram.total_bytes != 0 && datagram.total_bytes != end_bytes) ||
                    (datagram.n_parts != 0 && at != datagram.n_parts));
    if (datagram.fault == nullptr && (fit != ReassemblyTable::Fit::kNew || is_end_wrong)) {
      datagram.fault = fit == ReassemblyTable::Fit::kTooMany ? &kTooMany : &kOverlap;
      drop_parts(ctx, datagram, *datagram.fault);
    }
    if (datagram.fault != nullptr) {
      ctx.drop(batch, i, *datagram.fault);
      return;
    }
    const uint32_t payload_bytes = is_last ? end_bytes : datagram.total_bytes;
    const bool is_complete = payload_bytes == datagram.received_bytes + part.bytes;
    if (is_complete && (ctx.n_dropped + datagram.n_parts + 1 >= Context::kMaxEmitPkts ||
                        ctx.n_emitted == Context::kMaxEmitPkts)) {
      ctx.drop(batch, i, kFull);  // this call cannot drop or emit more packets
      return;
    }
    datagram.total_bytes = payload_bytes;
    table_->insert(datagram, at, part);
    table_->count_held(1);
    if (!is_complete) {
      ctx.keep(batch, i);
      return;
    }
    complete(ctx, batch, i, index);
  }

  [[nodiscard]] const DropReason* fault_of(const net::Ipv4& ip, uint32_t header_bytes,
                                           const FragmentPart& part, bool is_last) const {
    if (part.bytes == 0 || (!is_last && part.bytes % 8 != 0)) return &kMalformed;
    if (header_bytes + part.offset_bytes + part.bytes > max_datagram_bytes_) return &kTooLong;
    const bool is_tcp = ip.protocol == net::kProtoTcp;
    const uint32_t min_bytes = is_tcp ? net::kTcpBytes : net::kUdpBytes;
    const bool is_header_hidden =
        part.offset_bytes == 0 ? part.bytes < min_bytes : is_tcp && part.offset_bytes < min_bytes;
    return is_header_hidden ? &kTiny : nullptr;
  }

  // Finds or adds the datagram of a fragment, with room for it. Evicts older datagrams if full.
  uint32_t entry_for(Context& ctx, Packet& pkt, const net::Ipv4& ip) noexcept {
    const DatagramKey key{
        .src = ip.src, .dst = ip.dst, .id = ip.id, .vrf = pkt.meta().vrf, .protocol = ip.protocol};
    uint32_t index = table_->find(key);
    // A late fragment does not join a datagram that has timed out.
    if (index != ReassemblyTable::kNone && (*table_)[index].deadline_ns <= ctx.now_ns) {
      if (!end(ctx, index, kTimeout)) return ReassemblyTable::kNone;
      index = ReassemblyTable::kNone;
    }
    for (uint32_t n = 0;
         (index == ReassemblyTable::kNone && table_->size() == table_->capacity()) ||
         table_->n_held() == table_->max_held();
         ++n) {
      const uint32_t oldest = table_->oldest();
      if (n == kMaxEnds || oldest == index || !end(ctx, oldest, kFull))
        return ReassemblyTable::kNone;
    }
    return index != ReassemblyTable::kNone ? index : table_->add(key, ctx.now_ns + timeout_ns_);
  }

  // Drops the held fragments; false when this call could not drop them all.
  bool drop_parts(Context& ctx, Datagram& datagram, const DropReason& reason) noexcept {
    while (datagram.n_parts != 0) {
      if (!ctx.drop_owned(datagram.parts[datagram.n_parts - 1].pkt, reason)) return false;
      --datagram.n_parts;
      table_->count_held(-1);
    }
    return true;
  }
  bool end(Context& ctx, uint32_t index, const DropReason& reason) noexcept {
    Datagram& datagram = (*table_)[index];
    if (!drop_parts(ctx, datagram, datagram.fault != nullptr ? *datagram.fault : reason)) {
      datagram.fault = &reason;
      return false;
    }
    table_->remove(index);
    return true;
  }

  // Packet i was the last missing fragment. The first fragment becomes the whole packet.
  void complete(Context& ctx, Batch& batch, uint32_t i, uint32_t index) noexcept {
    Datagram& datagram = (*table_)[index];
    Packet* const last_come = batch[i];
    Packet* const whole = datagram.parts[0].pkt;
    const DropReason* fault = join(datagram) ? nullptr : &kTooLong;
    const DropReason& reason = fault != nullptr ? *fault : kReassembled;
    for (uint32_t k = 0; k < datagram.n_parts; ++k) {
      Packet* const pkt = datagram.parts[k].pkt;
      if (pkt == last_come || (pkt == whole && fault == nullptr)) continue;
      ctx.drop_owned(pkt, reason);  // take() checked that there is room
    }
    table_->count_held(-static_cast<int32_t>(datagram.n_parts));
    table_->remove(index);
    if (fault != nullptr) {
      ctx.drop(batch, i, reason);
      return;
    }
    ++reassembled_;
    if (whole == last_come) return;  // it stays in the batch
    ctx.drop(batch, i, kReassembled);
    ctx.emit(0, whole);
  }

  // Appends the other fragments to the first; false when its buffer is too small.
  static bool join(const Datagram& datagram) noexcept {
    Packet& whole = *datagram.parts[0].pkt;
    const uint32_t l3 = l3_offset_of(whole);
    auto& ip = header_in<net::Ipv4>(whole, l3);
    const uint32_t header_bytes = ip.header_bytes();
    const uint32_t first_end = l3 + header_bytes + datagram.parts[0].bytes;
    const uint32_t len_bytes = l3 + header_bytes + datagram.total_bytes;
    if (len_bytes > whole.len_bytes() && len_bytes - whole.len_bytes() > whole.tailroom_bytes()) {
      return false;
    }
    whole.set_len_bytes(len_bytes);
    uint8_t* to = whole.data() + first_end;
    for (uint32_t k = 1; k < datagram.n_parts; ++k) {
      Packet& pkt = *datagram.parts[k].pkt;
      const auto& from = header_in<net::Ipv4>(pkt, l3_offset_of(pkt));
      std::memcpy(to, bytes_of(from) + from.header_bytes(), datagram.parts[k].bytes);
      to += datagram.parts[k].bytes;
    }
    ip.total_length = static_cast<uint16_t>(header_bytes + datagram.total_bytes);
    ip.fragment = ip.fragment & net::Ipv4::kDontFragment;
    write_checksum(ip, header_bytes);
    whole.meta().l4_offset_bytes = static_cast<uint8_t>(l3 + header_bytes);
    return true;
  }

  const uint32_t max_datagram_bytes_;
  const uint64_t timeout_ns_;
  std::unique_ptr<ReassemblyTable> table_;
  uint64_t reassembled_ = 0;
};

constexpr int64_t kDefaultDatagramBytes = 4096;

uint64_t datagram_frame_bytes(const Dict& params) {
  const auto given = params.find("max_datagram_bytes");
  const bool is_given = given != params.end() && given->second.is_int();
  const int64_t bytes = is_given ? given->second.as_int() : kDefaultDatagramBytes;
  return static_cast<uint64_t>(std::max<int64_t>(bytes, 0)) + net::kEthBytes +
         2 * net::kVlanTagBytes;
}

const Register<Reassembly> kReassembly{{
    .kind = "reassembly",
    .state = StateOf::kSharded,
    .help = "Puts IPv4 fragments together again; whole packets pass.",
    .params = {{.name = "max_datagrams",
                .type = ParamType::kInt,
                .unit = "pkts",
                .default_value = 1024,
                .help = "packets of which some fragments are here; the oldest makes room",
                .min = 1,
                .max = 100'000},
               {.name = "max_hold_pkts",
                .type = ParamType::kInt,
                .unit = "pkts",
                .default_value = 4096,
                .help = "fragments that wait in total",
                .min = 2,
                .max = 1'000'000},
               {.name = "max_datagram_bytes",
                .type = ParamType::kInt,
                .unit = "bytes",
                .default_value = kDefaultDatagramBytes,
                .help = "longest packet that is put together; packet buffers are made as large",
                .min = 576,
                .max = 9680},
               {.name = "timeout_ns",
                .type = ParamType::kInt,
                .unit = "ns",
                .default_value = int64_t{30'000'000'000},
                .help = "how long fragments wait for the others",
                .min = 1'000'000,
                .max = 120e9}},
    .drops = {&reason::kTooShort, &kReassembled, &kMalformed, &kTiny, &kTooLong, &kOverlap,
              &kDuplicate, &kTooMany, &kTimeout, &kFull},
    .notes = "Put it where whole packets are needed: in front of NAT, ACL on ports or a load "
             "balancer. Overlapping fragments end their packet, and what still comes of it until "
             "timeout_ns; exact copies are dropped alone. The whole packet goes on when the last "
             "fragment has come, in the first fragment's frame.",
    // The first fragment's buffer must hold the whole packet.
    .frame_bytes = &datagram_frame_bytes,
}};

}  // namespace
}  // namespace batchplane

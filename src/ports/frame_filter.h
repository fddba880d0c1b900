// SPDX-License-Identifier: BSD-3-Clause
// frame_filter.h - selects the frames of a link that are for the router: those to its own MAC addresses, and
// to the groups that a router joins.
//
// A link may carry frames between other hosts: from a hub, a switch that has not learnt their addresses yet,
// or a promiscuous port. A router that forwarded those too would duplicate them.
#pragma once

#include <string>
#include <vector>

#include "core/module/drop_reason.h"
#include "core/module/environment.h"
#include "core/packet/packet.h"

namespace batchplane::ports {

inline const DropReason kNotOurMac{
    "not_our_mac", "the frame is for another host of the link, or for a group that no router joins",
    "nothing to mend on a link that floods; any_mac: true takes such frames too"};
inline const DropReason kUnicastInGroup{
    "unicast_in_group_frame",
    "a frame to all hosts holds a packet for one of them, which is not this one",
    "nothing to mend: each router of the link would send the packet on; look at its sender"};

class FrameFilter {
 public:
  FrameFilter() = default;
  // For a port that carries `interface`, and perhaps others (VLANs).
  FrameFilter(const std::vector<Interface>& interfaces, const Interface& interface);

  // Off for ports without a MAC address, such as recordings.
  [[nodiscard]] bool is_on() const { return own_ != 0; }

  // Sets the input interface of all packets, and tests whether all are to the usual MAC address: one pass,
  // and one comparison for the whole batch.
  [[nodiscard]] bool all_plain(Packet* const* pkts, uint32_t n,
                               uint16_t in_interface) const noexcept {
    const uint64_t own = own_;
    uint64_t differs = 0;
    for (uint32_t i = 0; i < n; ++i) {
      Packet& pkt = *pkts[i];
      pkt.meta().in_interface = in_interface;
      if (pkt.len_bytes() < sizeof(uint64_t)) [[unlikely]] {
        differs = kMacMask;
        continue;
      }
      differs |= load64_raw(pkt.data()) ^ own;
    }
    return (differs & kMacMask) == 0;
  }
  // The reason to refuse a frame; nullptr when it is for us. Frames too short to tell are left to later
  // modules.
  [[nodiscard]] const DropReason* refusal_of(Packet& pkt) const noexcept;

 private:
  static constexpr uint64_t kMacMask = 0xffff'ffff'ffff;  // of 8 bytes in memory order

  static uint64_t word_of(const net::Mac& mac);
  [[nodiscard]] bool names_one_other_host(Packet& pkt) const noexcept;

  uint64_t own_ = 0;
  std::vector<uint64_t> macs_;       // sorted: own addresses, broadcast, joined groups
  std::vector<uint32_t> addresses_;  // sorted: own addresses and subnet broadcasts
};

}  // namespace batchplane::ports

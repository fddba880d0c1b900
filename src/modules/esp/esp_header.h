// SPDX-License-Identifier: BSD-3-Clause
// esp_header.h - headers of ESP (RFC 4303), over IP or UDP (RFC 3948), and drop reasons.
#pragma once

#include "base/net_headers.h"
#include "core/module/drop_reason.h"

namespace batchplane {
namespace net {

inline constexpr uint8_t kProtoEsp = 50;
inline constexpr uint8_t kProtoIpv4 = 4;
inline constexpr uint8_t kProtoIpv6 = 41;

struct [[gnu::may_alias]] Esp {
  static constexpr uint16_t kUdpPort = 4500;

  Be32 spi;       // over UDP, an SPI of 0 marks packets that are not ESP
  Be32 sequence;  // the low half of the sequence number
};
static_assert(sizeof(Esp) == 8);

// Last bytes of the encrypted part.
struct [[gnu::may_alias]] EspTrailer {
  uint8_t padding_bytes;
  uint8_t next_header;
};
static_assert(sizeof(EspTrailer) == 2);

}  // namespace net

namespace esp {

inline constexpr uint32_t kLeastSpi = 256;  // smaller ones are reserved (RFC 4303, 2.1)

inline const DropReason kUnknownSa{"unknown_sa", "no SA goes with the packet",
                                   "add the SA, or look at the module that set the number"};
inline const DropReason kUnknownSpi{"unknown_spi", "no SA has the packet's SPI",
                                    "add the SA, or look for the peer that sends it"};
inline const DropReason kNotEsp{"not_esp", "the packet is neither ESP nor ESP behind UDP",
                                "connect the gate `other` to what should get the other packets"};
inline const DropReason kNotIp{"not_ip", "the packet is neither IPv4 nor IPv6",
                               "split by ether_type first"};
inline const DropReason kBadEsp{"bad_esp", "the packet is too short for its SA, or no whole blocks",
                                "look at the peer: its SA may have other algorithms"};
inline const DropReason kBadIcv{"bad_icv", "the packet is forged, damaged, or of another key",
                                "compare keys and algorithms of both ends"};
inline const DropReason kReplayed{
    "replayed", "the sequence number has come before, or is older than the window",
    "look for an attacker; else raise replay_window_pkts"};
inline const DropReason kBadPadding{"bad_padding", "the padding of a genuine packet is wrong",
                                    "look at the peer: it does not keep to RFC 4303"};
inline const DropReason kBadInner{"bad_inner", "what a genuine packet carries is no IP packet",
                                  "look at the peer: only tunnel mode is known here"};
inline const DropReason kDummy{"dummy_packet", "the peer sent it to hide how much it has to send",
                               "nothing is wrong"};
inline const DropReason kNoInner6{"inner_ipv6", "nothing is connected to the gate for IPv6",
                                  "connect the gate `inner6`"};
inline const DropReason kExhausted{
    "sequence_exhausted", "the SA has used all its sequence numbers, and may not begin anew",
    "give it a new key; esn: true makes numbers last 2^32 times as long"};
inline const DropReason kNoTailroom{"no_tailroom", "there is no room behind the packet",
                                    "the pool's packets are too short for what comes in"};
inline const DropReason kCryptoFailed{"crypto_failed", "libIPSec_MB gave the packet up",
                                      "this is a defect: tell us how it came about"};

}  // namespace esp
}  // namespace batchplane

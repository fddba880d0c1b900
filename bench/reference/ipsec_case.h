// SPDX-License-Identifier: BSD-3-Clause
// ipsec_case.h - one suite, length and direction of ESP tunnels, with the same packets and keys for our modules and
// for rte_ipsec.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/module/kind.h"
#include "core/packet/packet_pool.h"
#include "reference/ipsec_peer.h"

namespace bench {

using Frame = std::vector<uint8_t>;

// A fresh packet, of whose frame the first `written_bytes` are written.
void write_packet(batchplane::Packet& pkt, const Frame& frame, uint32_t written_bytes) noexcept;

struct IpsecCase {
  const batchplane::esp::Suite* suite = nullptr;
  uint32_t ip_bytes = 0;
  bool is_out = true;
  Frame frame;  // what comes in
  uint32_t written_bytes =
      0;        // of a packet that is used again: all that modules read before they encrypt
  Frame outer;  // headers of the tunnel's packets

  [[nodiscard]] std::string kind() const { return is_out ? "esp_encrypt" : "esp_decrypt"; }
  [[nodiscard]] uint32_t gates() const { return is_out ? 1 : 3; }
  [[nodiscard]] std::string label() const;
  [[nodiscard]] batchplane::Dict params() const;
  [[nodiscard]] PeerShape peer(const std::string& driver, PeerWay way) const;
};

// `pool` lends packets of 2 KB.
IpsecCase make_encrypt_case(const batchplane::esp::Suite& suite, uint32_t ip_bytes,
                            batchplane::PacketPool& pool);
// What comes in is what comes out of `encrypt`.
IpsecCase make_decrypt_case(const IpsecCase& encrypt, batchplane::PacketPool& pool);

// Packets in turn, more than a peer keeps.
class PacketRing {
 public:
  PacketRing(batchplane::PacketPool& pool, const IpsecCase& of);
  ~PacketRing();
  PacketRing(const PacketRing&) = delete;
  PacketRing& operator=(const PacketRing&) = delete;
  // The next n, up to a burst, freshly written, for the caller to put into another order.
  batchplane::Packet** next(uint32_t n);

 private:
  static constexpr uint32_t kPkts = 128;
  const IpsecCase& of_;
  uint32_t at_ = 0;
  std::array<batchplane::Packet*, kPkts> pkts_{};
  std::array<batchplane::Packet*, IpsecPeer::kMaxBurstPkts> live_{};
};

// Throws std::runtime_error unless both make the same packets of bursts of n, from the ESP header or the inner IP
// header on. (By calls, rte_ipsec makes other IVs for CBC than with queues and than ours: then our module must open what
// it makes.)
void compare_with_peer(const IpsecCase& of, const std::string& driver, PeerWay way, uint32_t n,
                       batchplane::PacketPool& pool);

}  // namespace bench

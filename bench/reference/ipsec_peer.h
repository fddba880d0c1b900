// SPDX-License-Identifier: BSD-3-Clause
// ipsec_peer.h - one direction of an ESP tunnel over IPv4 on DPDK's rte_ipsec, whose cryptography is that of a
// device in software.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/packet/packet.h"
#include "modules/esp/esp_keys.h"

namespace bench {

// How packets come to the device.
enum class PeerWay : uint8_t {
  kToEnd,  // to its queue as they come, which is polled until all are back: no packet waits for others
  kCall,  // by calls that return when all is done ("CPU crypto"): likewise
  kPolled,  // to its queue as they come, which is polled once: packets wait inside for those that come next
  kHeld,  // likewise, and operations wait for others until 32 are there, as in DPDK's ipsec-secgw
};

[[nodiscard]] const char* name_of(PeerWay way);

struct PeerShape {
  std::string driver;  // such as crypto_aesni_mb
  PeerWay way = PeerWay::kToEnd;
  const batchplane::esp::Suite* suite = nullptr;
  batchplane::esp::Keys keys;
  uint32_t spi = 0;
  std::span<const uint8_t> outer;  // out: Ethernet and IPv4 headers. in: empty
};

// Without a replay window. One thread.
class IpsecPeer {
 public:
  static constexpr uint32_t kMaxBurstPkts = 32;
  static constexpr uint32_t kMaxInsidePkts = 64;

  // Throws std::runtime_error when DPDK refuses.
  explicit IpsecPeer(const PeerShape& shape);
  ~IpsecPeer();
  // Takes n packets, up to kMaxBurstPkts, and returns how many of those taken so far are done; these are in `done`,
  // which has room for kMaxInsidePkts.
  uint32_t run(batchplane::Packet** pkts, uint32_t n, batchplane::Packet** done);
  // The packets that are still inside.
  uint32_t drain(batchplane::Packet** done);
  // Packets that were not encrypted, or not genuine.
  [[nodiscard]] uint64_t failed_pkts() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace bench

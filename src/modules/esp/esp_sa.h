// SPDX-License-Identifier: BSD-3-Clause
// esp_sa.h - security associations (SAs) of either direction: configuration and the workers' table.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/flat_table.h"
#include "core/module/kernel.h"
#include "modules/common/item_book.h"
#include "modules/common/tally.h"
#include "modules/esp/esp_crypto_ipsec_mb.h"
#include "modules/esp/esp_header.h"
#include "modules/esp/esp_replay.h"

namespace batchplane::esp {

inline constexpr uint32_t kMaxSas = 65536;

enum class Direction : uint8_t { kOut, kIn };

// An IPv4 or IPv6 address, or none.
struct Endpoint {
  enum class Version : uint8_t { kNone, kIpv4, kIpv6 };
  Version version = Version::kNone;
  uint32_t v4 = 0;
  net::Address6 v6 = {};
  auto operator<=>(const Endpoint&) const = default;
};

// Configuration of an SA, without its keys.
struct SaSpec {
  const Suite* suite = nullptr;
  uint32_t spi = 0;
  bool has_esn = false;
  Endpoint remote;
  Endpoint local;            // outbound only
  bool is_over_udp = false;  // outbound only
  net::Mac dst_mac{};        // outbound only
  net::Mac src_mac{};        // outbound only
  uint64_t first_sequence = 1;
  int32_t vrf = -1;
  bool operator==(const SaSpec&) const = default;
};

// Headers before ESP: Ethernet, IPv4 or IPv6, and possibly UDP.
inline constexpr uint32_t kMaxOuterBytes = net::kEthBytes + net::kIpv6Bytes + net::kUdpBytes;

// State of an SA, written only by the worker. All versions of an SA with the same key share it, so
// that no edit or apply sends or accepts a sequence number twice.
struct SaState {
  explicit SaState(uint32_t replay_window_pkts) : window(replay_window_pkts) {}

  Tally sequence;  // out: the last one assigned; in: the highest received
  Tally pkts;
  Tally bytes;  // of the inner packets
  ReplayWindow window;

  // Out: the sequence number of the next packet, provided that earlier guesses of this run were
  // right; 0: none left. Guesses of other runs are discarded. One thread at a time, concurrently
  // with the worker.
  uint64_t guess(uint64_t run, uint64_t last) noexcept {
    uint64_t before = sequence.value();
    if (guess_run_.value() == run) before = std::max(before, guessed_.value());
    if (before >= last) return 0;
    guess_run_.set(run);
    guessed_.set(before + 1);
    return before + 1;
  }

 private:
  Tally guess_run_;
  Tally guessed_;
};

inline constexpr uint32_t kNoKernel = ~0U;

// An SA in the workers' table.
struct alignas(64) Sa {
  std::shared_ptr<SaState> state;
  std::shared_ptr<const KeySchedule> keys;
  uint64_t last_sequence = 0;
  uint32_t id = 0;
  uint32_t spi = 0;
  int32_t vrf = -1;
  uint16_t header_sum = 0;            // partial sum of the outer IPv4 header, in memory order
  uint32_t kernel_index = kNoKernel;  // index among the SAs that the kernel supports
  uint8_t outer_bytes = 0;
  uint8_t iv_bytes = 0;
  uint8_t icv_bytes = 0;
  uint8_t block_mask = 0;
  bool has_esn = false;
  bool is_over_udp = false;
  Endpoint remote;
  alignas(64) uint8_t outer[kMaxOuterBytes] = {};

  [[nodiscard]] bool is_outer6() const { return remote.version == Endpoint::Version::kIpv6; }
};

class SaTable final : public KernelTable {
 public:
  FlatTable<1> index;  // by id outbound, by SPI inbound
  std::vector<Sa> sas;
  std::vector<uint32_t> of_kernel;  // indexes of the SAs that the kernel supports
  // An additional SA that the kernel gets after those and no packet uses: kernel trials need one
  // even if there are no others.
  std::shared_ptr<const KeySchedule> trial_keys;

  // Keys of an SA by kernel index; null if there is none.
  [[nodiscard]] const KeySchedule* keys_of_kernel(uint32_t number) const;
  [[nodiscard]] std::vector<uint32_t> words() const override;
};
using SaTablePtr = std::shared_ptr<SaTable>;

using SaBook = ItemBook<SaSpec>;
[[nodiscard]] SaBook make_sa_book(Direction direction);

// Settings common to all SAs of a module.
struct Style {
  Direction direction = Direction::kOut;
  uint8_t ttl = 64;
  uint32_t replay_window_pkts = 0;
  bool repeats_packets = false;  // packets are repeated, so there is no replay window
};

// The SAs of a module with their keys; turns the book into tables. Owner: control thread.
class SaKeeper {
 public:
  explicit SaKeeper(const Style& style);

  // Throws ConfigError and then leaves everything unchanged. An SA whose key is unchanged keeps its
  // sequence numbers.
  [[nodiscard]] SaTablePtr make_table(const SaBook& book, const KeyRing& ring,
                                      const std::string& where);
  // Takes over the state of SAs that are in the previous graph, too.
  void inherit(const SaKeeper& old);
  // Includes counts, but no keys.
  [[nodiscard]] List list(const SaBook& book) const;

 private:
  struct Kept {
    Suite suite;
    bool has_esn = false;
    Keys keys;
    std::shared_ptr<SaState> state;
    std::shared_ptr<const KeySchedule> schedule;
  };
  using AllKept = std::map<uint32_t, Kept>;

  [[nodiscard]] Kept keep(uint32_t id, const SaSpec& spec, Keys keys) const;
  [[nodiscard]] Sa make_sa(uint32_t id, const SaSpec& spec, const Kept& kept) const;

  Style style_;
  Crypto crypto_;
  std::shared_ptr<const KeySchedule> trial_keys_;
  AllKept kept_;
};

}  // namespace batchplane::esp

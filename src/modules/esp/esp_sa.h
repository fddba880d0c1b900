// SPDX-License-Identifier: BSD-3-Clause
// esp_sa.h - security associations (SAs) of either direction: as users write them, and as workers
// read them.
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

// An address of either version; neither where there is none.
struct Endpoint {
  enum class Version : uint8_t { kNone, kIpv4, kIpv6 };
  Version version = Version::kNone;
  uint32_t v4 = 0;
  net::Address6 v6 = {};
  auto operator<=>(const Endpoint&) const = default;
};

// What a user says of an SA, but for its keys.
struct SaSpec {
  const Suite* suite = nullptr;
  uint32_t spi = 0;
  bool has_esn = false;
  Endpoint remote;
  Endpoint local;            // out
  bool is_over_udp = false;  // out
  net::Mac dst_mac{};        // out
  net::Mac src_mac{};        // out
  uint64_t first_sequence = 1;
  int32_t vrf = -1;
  bool operator==(const SaSpec&) const = default;
};

// The headers in front of ESP: Ethernet, IPv4 or IPv6, perhaps UDP.
inline constexpr uint32_t kMaxOuterBytes = net::kEthBytes + net::kIpv6Bytes + net::kUdpBytes;

// State of an SA. Its only writer is the worker. All versions of an SA with the same key share it,
// so that no edit or apply uses a sequence number twice or accepts one twice.
struct SaState {
  explicit SaState(uint32_t replay_window_pkts) : window(replay_window_pkts) {}

  Tally sequence;  // out: the last one given; in: the highest one come
  Tally pkts;
  Tally bytes;  // of the packets inside
  ReplayWindow window;

  // Out: the number that the next packet gets if the earlier guesses of this run come true; 0: none
  // is left. Guesses of other runs no longer count. One thread at a time, beside the worker.
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

// One SA as workers read it.
struct alignas(64) Sa {
  std::shared_ptr<SaState> state;
  std::shared_ptr<const KeySchedule> keys;
  uint64_t last_sequence = 0;
  uint32_t id = 0;
  uint32_t spi = 0;
  int32_t vrf = -1;
  uint16_t header_sum = 0;            // of the outer IPv4 header so far, as it lies in memory
  uint32_t kernel_index = kNoKernel;  // among those that a kernel knows
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
  FlatTable<1> index;  // by id on the way out, by SPI on the way in
  std::vector<Sa> sas;
  std::vector<uint32_t> of_kernel;  // of these, those that a kernel knows
  // Of one more that a kernel gets behind those, and no packet has: trials want one whatever SAs there are.
  std::shared_ptr<const KeySchedule> trial_keys;

  // Of an SA as a kernel counts them; null where there is none.
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
  bool repeats_packets = false;  // no window, whatever is asked for
};

// The SAs of a module with their keys: what a book's edit comes to. Owner: control thread.
class SaKeeper {
 public:
  explicit SaKeeper(const Style& style);

  // Throws ConfigError and then leaves everything unchanged. An SA whose key is unchanged keeps its
  // sequence numbers.
  [[nodiscard]] SaTablePtr make_table(const SaBook& book, const KeyRing& ring,
                                      const std::string& where);
  // Takes over the state of SAs that the previous graph has too.
  void inherit(const SaKeeper& old);
  // With counts, without keys.
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

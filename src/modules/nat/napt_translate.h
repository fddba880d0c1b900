// SPDX-License-Identifier: BSD-3-Clause
// napt_translate.h - translates the packets of a napt module.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "core/module/context.h"
#include "modules/nat/napt_fragments.h"
#include "modules/nat/napt_table.h"

namespace batchplane::nat {

inline constexpr uint8_t kGateOutside = 0;
inline constexpr uint8_t kGateInside = 1;
inline constexpr uint8_t kGateLocal = 2;

struct NaptConfig {
  NaptLimits limits;
  NaptStateRules rules;
  uint32_t fragment_limit = 2;  // ticks
  bool is_unmapped_local = false;
  bool is_tcp_loose = true;
  struct Prefix {
    uint32_t value_raw = 0;
    uint32_t mask_raw = 0;
  };
  std::vector<Prefix> inside;
  std::array<uint64_t, 65536 / 64> short_ports{};  // host order

  [[nodiscard]] bool is_inside(uint32_t address_raw) const {
    for (const Prefix& prefix : inside) {
      if (((address_raw ^ prefix.value_raw) & prefix.mask_raw) == 0) return true;
    }
    return false;
  }
  [[nodiscard]] bool is_short(uint16_t port_raw) const {
    const uint32_t port = net::be16(port_raw);
    return (short_ports[port / 64] >> (port % 64) & 1) != 0;
  }
};

// Gate or drop reason of a packet.
struct NaptFate {
  uint8_t gate = 0;
  const DropReason* reason = nullptr;
};

// Owner: the worker; tallies: any thread.
class NaptTranslator {
 public:
  NaptTranslator(NaptConfig config, std::unique_ptr<NaptTable> table,
                 std::unique_ptr<NaptFragments> fragments)
      : config_(std::move(config)), table_(std::move(table)), fragments_(std::move(fragments)) {}

  void classify(Context& ctx, Batch& batch) noexcept;
  // Closes expired connections, for about `budget_ns`.
  void expire(uint64_t now_ns, uint64_t budget_ns) noexcept;
  // Takes over the connections of `old`, under this module's rules.
  void adopt(NaptTranslator& old) noexcept;

  [[nodiscard]] NaptTable& table() { return *table_; }
  [[nodiscard]] const NaptTable& table() const { return *table_; }
  [[nodiscard]] const NaptConfig& config() const { return config_; }

  struct Tallies {
    Tally expired, hairpinned, errors, fragments;
  };
  [[nodiscard]] const Tallies& tallies() const { return tallies_; }

 private:
  void classify_chunk(Context& ctx, Batch& batch, uint32_t first, uint32_t n,
                      uint32_t now) noexcept;
  void settle(Context& ctx, Batch& batch, uint32_t i, const NaptKey& key, uint32_t found,
              uint32_t now) noexcept;
  void take_care(Context& ctx, Batch& batch, uint32_t i, uint32_t now) noexcept;
  NaptFate translate(const PacketView& view, uint32_t now) noexcept;
  NaptFate translate_ends(const PacketView& view, const NaptKey& key, uint32_t now) noexcept;
  NaptFate translate_error(const PacketView& view, uint32_t now) noexcept;
  NaptFate translate_quote(const PacketView& view, const PacketView& quote,
                           uint32_t found) noexcept;
  NaptFate follow_first(const PacketView& view, uint32_t now) noexcept;
  uint32_t open(const PacketView& view, const NaptKey& key, uint32_t now, NaptFate& fate) noexcept;
  [[nodiscard]] bool is_forged(const NaptKey& key) const noexcept;
  [[nodiscard]] NaptFate unmapped() const noexcept;
  [[nodiscard]] bool may_open(const PacketView& view) const noexcept;

  NaptConfig config_;
  std::unique_ptr<NaptTable> table_;
  std::unique_ptr<NaptFragments> fragments_;
  Tallies tallies_;
};

}  // namespace batchplane::nat

// SPDX-License-Identifier: BSD-3-Clause
// acl_dpdk.cc - access lists with rte_acl, with AVX-512 where CPU and EAL allow it.
//
// Each four header bytes examined cost every packet four trie steps, so the layout contains only
// the fields that some rule uses.
#include <rte_acl.h>
#include <rte_errno.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>

#include "base/error.h"
#include "base/net_headers.h"
#include "core/packet/eal_state_dpdk.h"
#include "modules/acl/acl_classifier.h"
#include "modules/acl/acl_linear.h"

namespace batchplane {
namespace {

constexpr uint32_t kTcpFlagsWord = 12;  // data offset, flags, window
constexpr uint32_t kFlagsShift = 16;
constexpr uint32_t kMaxFields = 12;  // protocol, 8 address words, 2 ports, flags

struct Offsets {
  uint32_t proto;
  uint32_t src;
  uint32_t dst;
  uint32_t ports;
  uint32_t address_words;
};

Offsets offsets_of(AclFamily headers) {
  if (headers == AclFamily::kIpv6) {
    using net::Ipv6;
    return {offsetof(Ipv6, next_header), offsetof(Ipv6, src), offsetof(Ipv6, dst), sizeof(Ipv6), 4};
  }
  using net::Ipv4;
  return {offsetof(Ipv4, protocol), offsetof(Ipv4, src), offsetof(Ipv4, dst), sizeof(Ipv4), 1};
}

// The fields of a rule, in layout order.
enum class Part : uint8_t { kProto, kSrc, kDst, kSrcPort, kDstPort, kFlags };
struct Slot {
  Part part;
  uint32_t word = 0;
};

uint8_t bits_in_word(const AclPrefix& prefix, uint32_t word) {
  const uint32_t before = 32 * word;
  return static_cast<uint8_t>(prefix.length <= before ? 0 : std::min(prefix.length - before, 32U));
}

rte_acl_field field_of(const AclMatch& match, const Slot& slot) {
  rte_acl_field field{};
  switch (slot.part) {
    case Part::kProto:
      field.value.u8 = match.proto;
      field.mask_range.u8 = match.proto_mask;
      break;
    case Part::kSrc:
    case Part::kDst: {
      const AclPrefix& prefix = slot.part == Part::kSrc ? match.src : match.dst;
      field.value.u32 = net::load32(prefix.bytes.data() + 4 * slot.word);
      field.mask_range.u32 = bits_in_word(prefix, slot.word);
      break;
    }
    case Part::kSrcPort:
    case Part::kDstPort: {
      const AclPorts& ports = slot.part == Part::kSrcPort ? match.src_ports : match.dst_ports;
      field.value.u16 = ports.first;
      field.mask_range.u16 = ports.last;
      break;
    }
    case Part::kFlags:
      field.value.u32 = uint32_t{match.tcp_flags} << kFlagsShift;
      field.mask_range.u32 = uint32_t{match.tcp_flags_mask} << kFlagsShift;
      break;
  }
  return field;
}

class Layout {
 public:
  Layout(AclFamily headers, bool reads_ports, const std::vector<AclEntry>& entries) {
    const Offsets at = offsets_of(headers);
    add({Part::kProto}, RTE_ACL_FIELD_TYPE_BITMASK, 1, at.proto, true);
    const auto any = [&](auto&& asks) {
      return std::ranges::any_of(entries,
                                 [&](const AclEntry& entry) { return asks(*entry.match); });
    };
    for (uint32_t word = 0; word < at.address_words; ++word) {
      if (any([&](const AclMatch& match) { return match.src.length > 32 * word; })) {
        add({Part::kSrc, word}, RTE_ACL_FIELD_TYPE_MASK, 4, at.src + 4 * word, true);
      }
    }
    for (uint32_t word = 0; word < at.address_words; ++word) {
      if (any([&](const AclMatch& match) { return match.dst.length > 32 * word; })) {
        add({Part::kDst, word}, RTE_ACL_FIELD_TYPE_MASK, 4, at.dst + 4 * word, true);
      }
    }
    if (!reads_ports) return;
    if (any([](const AclMatch& m) { return !m.src_ports.is_any() || !m.dst_ports.is_any(); })) {
      add({Part::kSrcPort}, RTE_ACL_FIELD_TYPE_RANGE, 2, at.ports, true);
      add({Part::kDstPort}, RTE_ACL_FIELD_TYPE_RANGE, 2, at.ports + 2, false);
    }
    if (any([](const AclMatch& match) { return match.tcp_flags_mask != 0; })) {
      add({Part::kFlags}, RTE_ACL_FIELD_TYPE_BITMASK, 4, at.ports + kTcpFlagsWord, true);
    }
  }

  [[nodiscard]] const rte_acl_config& config() const { return config_; }
  [[nodiscard]] uint32_t rule_bytes() const { return RTE_ACL_RULE_SZ(config_.num_fields); }

  // All rules in rte_acl's format; the first has the highest priority.
  [[nodiscard]] std::vector<uint8_t> rules(const std::vector<AclEntry>& entries) const {
    std::vector<uint8_t> bytes(entries.size() * rule_bytes());
    uint8_t* to = bytes.data();
    auto priority = static_cast<int32_t>(entries.size());
    for (const AclEntry& entry : entries) {
      const rte_acl_rule_data data{1, priority--, entry.id};
      std::memcpy(to, &data, sizeof data);
      for (uint32_t i = 0; i < config_.num_fields; ++i) {
        const rte_acl_field field = field_of(*entry.match, slots_[i]);
        std::memcpy(to + sizeof(rte_acl_rule) + i * sizeof field, &field, sizeof field);
      }
      to += rule_bytes();
    }
    return bytes;
  }

 private:
  void add(Slot slot, uint8_t type, uint8_t size_bytes, uint32_t offset, bool is_new_word) {
    if (config_.num_fields != 0 && is_new_word) ++input_;
    const auto index = static_cast<uint8_t>(config_.num_fields);
    config_.defs[index] = {type, size_bytes, index, input_, offset};
    slots_[index] = slot;
    ++config_.num_fields;
  }

  rte_acl_config config_{.num_categories = 1};
  Slot slots_[kMaxFields] = {};
  uint8_t input_ = 0;
};

struct Search {
  enum rte_acl_classify_alg algorithm;  // `enum` is needed, since a function has the same name
  const char* name;
};
constexpr Search kSearches[] = {{RTE_ACL_CLASSIFY_AVX512X32, "avx512x32"},
                                {RTE_ACL_CLASSIFY_AVX512X16, "avx512x16"},
                                {RTE_ACL_CLASSIFY_AVX2, "avx2"},
                                {RTE_ACL_CLASSIFY_SSE, "sse"},
                                {RTE_ACL_CLASSIFY_SCALAR, "scalar"}};

}  // namespace

struct AclClassifier::Impl {
  rte_acl_ctx* ctx = nullptr;  // null if EAL was not started; `plain` is used then
  std::unique_ptr<AclLinear> plain;
  const char* search = "scalar";
  ~Impl() { rte_acl_free(ctx); }
};

uint64_t AclClassifier::memory_bytes(uint32_t n_rules) {
  constexpr uint64_t kMinBytes = 256 << 10;
  constexpr uint64_t kRuleBytes = 8 << 10;
  return kMinBytes + n_rules * kRuleBytes;
}

AclClassifier::AclClassifier(AclFamily headers, bool reads_ports,
                             const std::vector<AclEntry>& entries)
    : impl_(std::make_unique<Impl>()) {
  if (!has_eal()) {
    impl_->plain = std::make_unique<AclLinear>(headers, reads_ports, entries);
    impl_->search = "linear";
    return;
  }
  static std::atomic<uint32_t> serial{0};
  const std::string name = "acl_" + std::to_string(serial.fetch_add(1));
  const Layout layout(headers, reads_ports, entries);
  const rte_acl_param param{name.c_str(), SOCKET_ID_ANY, layout.rule_bytes(),
                            static_cast<uint32_t>(entries.size())};
  impl_->ctx = rte_acl_create(&param);
  const std::vector<uint8_t> rules = layout.rules(entries);
  int error = impl_->ctx == nullptr ? -rte_errno : 0;
  if (error == 0) {
    error = rte_acl_add_rules(impl_->ctx, reinterpret_cast<const rte_acl_rule*>(rules.data()),
                              static_cast<uint32_t>(entries.size()));
  }
  if (error == 0) error = rte_acl_build(impl_->ctx, &layout.config());
  if (error != 0) {
    throw ConfigError("cannot build a classifier of " + std::to_string(entries.size()) +
                          " rules (" + rte_strerror(-error) + ")",
                      "", "give the daemon more memory, or use fewer rules");
  }
  for (const Search& search : kSearches) {
    if (rte_acl_set_ctx_classify(impl_->ctx, search.algorithm) != 0) continue;
    impl_->search = search.name;
    break;
  }
}

AclClassifier::~AclClassifier() = default;

void AclClassifier::classify(const uint8_t* const* headers, uint32_t* ids,
                             uint32_t n) const noexcept {
  if (impl_->ctx == nullptr) [[unlikely]]
    return impl_->plain->classify(headers, ids, n);
  rte_acl_classify(impl_->ctx, const_cast<const uint8_t**>(headers), ids, n, 1);
}

const char* AclClassifier::lookup_path() const { return impl_->search; }

}  // namespace batchplane

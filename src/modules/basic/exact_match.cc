// SPDX-License-Identifier: BSD-3-Clause
// exact_match.cc - sends packets to gates by the exact value of up to eight masked fields.
//
// in: 1   out: up to 4096 gates   drops: no_match, too_short   state: the rules, editable live
#include <cstring>

#include "core/module/register.h"
#include "modules/common/match_fields.h"
#include "modules/common/rule_table.h"
#include "modules/headers/shared_reasons.h"

namespace batchplane {
namespace {

// A table with keys of one width, reached by one virtual call per batch.
class GateTable {
 public:
  virtual ~GateTable() = default;
  virtual void classify(const MatchLayout& layout, uint32_t default_gate, Context& ctx,
                        Batch& batch) const noexcept = 0;
  virtual void apply(const RuleBook<WideKey>::Edits& edits) = 0;
  [[nodiscard]] virtual size_t size_bytes() const = 0;
};

template <uint32_t kWords>
class GateTableOf final : public GateTable {
 public:
  using Table = FlatTable<kWords>;
  using Key = typename Table::Key;

  explicit GateTableOf(const Quiescence* quiescence)
      : live_(std::make_unique<Table>(), std::make_unique<Table>(), quiescence) {}

  void classify(const MatchLayout& layout, uint32_t default_gate, Context& ctx,
                Batch& batch) const noexcept override {
    const uint32_t n = batch.size_pkts;
    const uint8_t* data[exec::kMaxBatchPkts];
    uint32_t shortest = ~0U;
    for (uint32_t i = 0; i < n; ++i) {
      data[i] = batch[i]->data();
      shortest = std::min(shortest, batch[i]->len_bytes());
    }
    Key keys[exec::kMaxBatchPkts];
    if (shortest >= layout.fast_len_bytes()) [[likely]] {
      extract_fast(layout, data, n, keys);
    } else {
      for (uint32_t i = 0; i < n; ++i) keys[i] = extract_careful(layout, *batch[i]);
    }
    uint32_t gates[exec::kMaxBatchPkts];
    live_.read().find_bulk(keys, n, gates);
    settle(layout, default_gate, shortest, gates, ctx, batch);
  }

  void apply(const RuleBook<WideKey>::Edits& edits) override {
    apply_edits(live_, edits, [](const WideKey& key) { return narrow(key); });
  }

  [[nodiscard]] size_t size_bytes() const override { return live_.current().size_bytes(); }

 private:
  static Key narrow(const WideKey& wide) {
    Key key;
    std::memcpy(key.data(), wide.data(), sizeof key);
    return key;
  }

  // For packets long enough for an 8-byte load at every field: no branch per packet.
  static void extract_fast(const MatchLayout& layout, const uint8_t* const* data, uint32_t n,
                           Key* keys) {
    for (uint32_t i = 0; i < n; ++i) keys[i] = Key{};
    for (const MatchField& field : layout.fields()) {
      const auto [offset, size, mask, word, shift] = field;
      for (uint32_t i = 0; i < n; ++i) {
        uint64_t bits;
        std::memcpy(&bits, data[i] + offset, 8);
        keys[i][word] |= (bits & mask) << shift;
      }
    }
  }

  static Key extract_careful(const MatchLayout& layout, Packet& pkt) {
    Key key{};
    if (pkt.len_bytes() < layout.min_len_bytes()) return key;
    for (const MatchField& field : layout.fields()) {
      uint64_t bits = 0;
      std::memcpy(&bits, pkt.data() + field.offset_bytes, field.size_bytes);
      key[field.word] |= (bits & field.mask) << field.shift_bits;
    }
    return key;
  }

  static void settle(const MatchLayout& layout, uint32_t default_gate, uint32_t shortest,
                     const uint32_t* gates, Context& ctx, Batch& batch) {
    for (uint32_t i = 0; i < batch.size_pkts; ++i) {
      const uint32_t gate = gates[i] == Table::kMissing ? default_gate : gates[i];
      ctx.gates[i] = static_cast<GateIndex>(gate);
      if (gate == kNoDefaultGate) [[unlikely]] {
        const bool is_short = batch[i]->len_bytes() < layout.min_len_bytes();
        ctx.drop(batch, i, is_short ? reason::kTooShort : reason::kNoMatch);
      }
    }
    if (shortest >= layout.min_len_bytes()) [[likely]]
      return;
    for (uint32_t i = 0; i < batch.size_pkts; ++i) {
      if (batch[i] == nullptr || batch[i]->len_bytes() >= layout.min_len_bytes()) continue;
      ctx.drop(batch, i, reason::kTooShort);
    }
  }

  LiveTable<Table> live_;
};

std::unique_ptr<GateTable> make_table(uint32_t n_words, const Quiescence* quiescence) {
  if (n_words <= 1) return std::make_unique<GateTableOf<1>>(quiescence);
  if (n_words <= 2) return std::make_unique<GateTableOf<2>>(quiescence);
  if (n_words <= 4) return std::make_unique<GateTableOf<4>>(quiescence);
  return std::make_unique<GateTableOf<8>>(quiescence);
}

class ExactMatch final : public Module {
 public:
  explicit ExactMatch(const Args& args)
      : layout_(args.list("fields"), args.where()),
        default_gate_(default_gate_of(args)),
        table_(make_table(layout_.n_words(), args.env().quiescence)),
        book_("values", "rules", kMaxRules, [this](const Value& values, const std::string& where) {
          if (!values.is_list()) throw ConfigError("expected a list of values", where + ".values");
          return layout_.key_of(values.as_list(), where);
        }) {
    book_.load(args.list("rules"), args.where());
    RuleBook<WideKey>::Edits all{.is_replacement = true};
    for (const auto& [key, rule] : book_.rules()) all.set.emplace_back(key, rule.gate);
    table_->apply(all);
  }

  uint32_t link(uint32_t connected) override {
    return n_gates_ = gates_for(connected, book_.highest_gate(), default_gate_);
  }

  void classify(Context& ctx, Batch& batch) noexcept {
    table_->classify(layout_, default_gate_, ctx, batch);
  }

  Value command(const std::string& verb, const Value& args) override {
    if (verb == "list") return Dict{{"rules", book_.list()}};
    if (verb != "add" && verb != "delete" && verb != "replace") return Module::command(verb, args);
    table_->apply(book_.edit(verb, args, n_gates_));
    return Dict{{"rules", static_cast<int64_t>(book_.rules().size())}};
  }

  [[nodiscard]] Value show() const override {
    return Dict{{"rules", static_cast<int64_t>(book_.rules().size())},
                {"key_bytes", layout_.n_words() * 8},
                {"table_bytes", static_cast<int64_t>(table_->size_bytes())}};
  }

  [[nodiscard]] Dict saved_params() const override { return {{"rules", book_.list()}}; }

 private:
  const MatchLayout layout_;
  const uint32_t default_gate_;
  const std::unique_ptr<GateTable> table_;
  RuleBook<WideKey> book_;
  uint32_t n_gates_ = 1;  // number of linked gates; live rules may name no other
};

const Register<ExactMatch> kExactMatch{{
    .kind = "exact_match",
    .state = StateOf::kShared,
    .help = "Sends each packet to the gate of the rule whose values its fields have.",
    .params = {{.name = "fields",
                .type = ParamType::kList,
                .unit = "",
                .help = "[{offset, size_bytes: 1..8, mask}], at most 8; offset in bytes from the "
                        "frame's start"},
               {.name = "rules",
                .type = ParamType::kList,
                .unit = "",
                .default_value = List{},
                .help = "[{values: [one per field], gate}], at most 65536"},
               default_gate_spec()},
    .drops = {&reason::kNoMatch, &reason::kTooShort},
    .notes = "Values and masks are numbers, \"0x..\" strings, IPv4 addresses (4 bytes) or MACs (6 "
             "bytes). "
             "Live commands: add {values, gate} (changes the gate of a rule that is there), delete "
             "{values}, replace {rules}, list; add and delete take {items: [...]} for many.",
}};

}  // namespace
}  // namespace batchplane

// SPDX-License-Identifier: BSD-3-Clause
// digest.cc - computes MD5, SHA-1 or SHA-256 of packets, stores a mark for later modules and sends
// packets with listed digests to gates.
//
// in: 1   out: up to 4096 gates   state: the digests, editable live
#include "base/hex.h"
#include "core/module/kernel.h"
#include "core/module/register.h"
#include "modules/common/rule_table.h"
#include "modules/inspect/digest_md5.h"
#include "modules/inspect/digest_sha_ipsec_mb.h"

namespace batchplane {
namespace {

constexpr KernelSource kDigestSource{
#include "modules/inspect/digest.cl.h"
    ,
#include "modules/inspect/digest.ptx.h"
};

using DigestTable = FlatTable<4>;
constexpr uint32_t kSlotBytes = sizeof(DigestTable::Key);  // digests padded with zeros
static_assert(kSlotBytes == inspect::kSha256Bytes);

enum class DigestKind : uint8_t { kMd5, kSha1, kSha256 };

DigestKind digest_kind_of(const std::string& name) {
  if (name == "md5") return DigestKind::kMd5;
  return name == "sha1" ? DigestKind::kSha1 : DigestKind::kSha256;
}
uint32_t bytes_of_kind(DigestKind kind) {
  if (kind == DigestKind::kMd5) return inspect::kMd5Bytes;
  return kind == DigestKind::kSha1 ? inspect::kSha1Bytes : inspect::kSha256Bytes;
}

DigestTable::Key key_of_digest(const Value& digest, uint32_t n_bytes, const std::string& where) {
  uint8_t bytes[kSlotBytes] = {};
  const std::string text = digest.is_string() ? digest.as_string() : "";
  bool is_good = text.size() == 2 * n_bytes;
  for (uint32_t i = 0; is_good && i < text.size(); ++i) {
    const uint32_t digit = hex_digit_of(text[i]);
    is_good = digit != kNoHexDigit;
    bytes[i / 2] = static_cast<uint8_t>(bytes[i / 2] << 4 | (digit & 15));
  }
  if (!is_good) {
    throw ConfigError("expected a digest", where + ".digest",
                      std::to_string(2 * n_bytes) + " hexadecimal digits, in quotation marks");
  }
  DigestTable::Key key;
  std::memcpy(key.data(), bytes, sizeof bytes);
  return key;
}

class Digest final : public Module, public Kernel {
 public:
  explicit Digest(const Args& args)
      : kind_(digest_kind_of(args.string("algorithm"))),
        takes_frame_(args.string("scan") == "frame"),
        sets_mark_(args.flag("mark")),
        sha_(kind_ == DigestKind::kMd5 ? nullptr : std::make_unique<inspect::Sha>()),
        book_("digest", "rules", kMaxRules,
              [n_bytes = bytes_of_kind(kind_)](const Value& digest, const std::string& where) {
                return key_of_digest(digest, n_bytes, where);
              }),
        live_(std::make_unique<DigestTable>(), std::make_unique<DigestTable>(),
              args.env().quiescence) {
    book_.load(args.list("rules"), args.where());
    RuleBook<DigestTable::Key>::Edits all;
    for (const auto& [key, rule] : book_.rules()) all.set.emplace_back(key, rule.gate);
    apply_edits(live_, all);
  }

  uint32_t link(uint32_t connected) override {
    return n_gates_ = std::max({connected, book_.highest_gate() + 1, 1U});
  }

  void classify(Context& ctx, Batch& batch) noexcept {
    const uint32_t n = batch.size_pkts;
    inspect::Text texts[exec::kMaxBatchPkts];
    for (uint32_t i = 0; i < n; ++i) texts[i] = text_of(*batch[i]);
    DigestTable::Key keys[exec::kMaxBatchPkts];
    digest(texts, n, keys);
    use(ctx, batch, keys);
  }

  Kernel* kernel() override { return this; }
  [[nodiscard]] KernelSource source() const override { return kDigestSource; }
  [[nodiscard]] const char* entry() const override {
    if (kind_ == DigestKind::kMd5) return "md5";
    return kind_ == DigestKind::kSha1 ? "sha1" : "sha256";
  }
  [[nodiscard]] uint32_t result_bytes() const override { return kSlotBytes; }
  [[nodiscard]] Input input_of(Packet& pkt) const noexcept override {
    const inspect::Text text = text_of(pkt);
    return {text.data, text.len_bytes};
  }
  void compute(const KernelTable* /*table*/, const Input* inputs, uint32_t n,
               uint8_t* results) noexcept override {
    inspect::Text texts[exec::kMaxBatchPkts];
    for (uint32_t at = 0; at < n; at += exec::kMaxBatchPkts) {
      const uint32_t n_texts = std::min(exec::kMaxBatchPkts, n - at);
      for (uint32_t i = 0; i < n_texts; ++i) {
        texts[i] = {inputs[at + i].data(), static_cast<uint32_t>(inputs[at + i].size())};
      }
      digest(texts, n_texts, reinterpret_cast<DigestTable::Key*>(results) + at);
    }
  }
  void apply(KernelTable* /*table*/, Context& ctx, Batch& batch,
             const uint8_t* results) noexcept override {
    use(ctx, batch, reinterpret_cast<const DigestTable::Key*>(results));
  }

  Value command(const std::string& verb, const Value& args) override {
    if (verb == "list") return Dict{{"rules", book_.list()}};
    if (verb != "add" && verb != "delete" && verb != "replace") return Module::command(verb, args);
    apply_edits(live_, book_.edit(verb, args, n_gates_));
    return show();
  }
  [[nodiscard]] Value show() const override {
    return Dict{{"rules", static_cast<int64_t>(book_.rules().size())},
                {"table_bytes", static_cast<int64_t>(live_.current().size_bytes())}};
  }
  [[nodiscard]] Dict saved_params() const override { return {{"rules", book_.list()}}; }

 private:
  [[nodiscard]] inspect::Text text_of(Packet& pkt) const noexcept {
    uint8_t proto = 0;
    return inspect::text_of(pkt, takes_frame_, proto);
  }
  void use(Context& ctx, Batch& batch, const DigestTable::Key* keys) noexcept {
    const uint32_t n = batch.size_pkts;
    uint32_t gates[exec::kMaxBatchPkts];
    live_.read().find_bulk(keys, n, gates);
    for (uint32_t i = 0; i < n; ++i) {
      ctx.gates[i] = gates[i] == DigestTable::kMissing ? 0 : static_cast<GateIndex>(gates[i]);
      if (sets_mark_) batch[i]->set_mark(net::be32(static_cast<uint32_t>(keys[i][0])));
    }
  }
  void digest(const inspect::Text* texts, uint32_t n, DigestTable::Key* keys) noexcept {
    std::memset(keys, 0, n * sizeof keys[0]);
    auto* const out = reinterpret_cast<uint8_t*>(keys);
    switch (kind_) {
      case DigestKind::kMd5:
        return inspect::md5(texts, n, out, kSlotBytes);
      case DigestKind::kSha1:
        return sha_->sha1(texts, n, out, kSlotBytes);
      case DigestKind::kSha256:
        return sha_->sha256(texts, n, out, kSlotBytes);
    }
  }

  const DigestKind kind_;
  const bool takes_frame_;
  const bool sets_mark_;
  const std::unique_ptr<inspect::Sha> sha_;  // null for MD5, since the SHA state is large
  RuleBook<DigestTable::Key> book_;
  LiveTable<DigestTable> live_;
  uint32_t n_gates_ = 1;  // number of linked gates; live entries may name no other
};

const Register<Digest> kDigest{{
    .kind = "digest",
    .state = StateOf::kShared,
    .help =
        "Takes the MD5, SHA-1 or SHA-256 of what packets carry, and sends listed ones to gates.",
    .params = {{.name = "algorithm",
                .type = ParamType::kString,
                .default_value = "sha256",
                .help = "which digest",
                .choices = {"md5", "sha1", "sha256"}},
               {.name = "rules",
                .type = ParamType::kList,
                .default_value = List{},
                .help = "[{digest, gate}] with digests in hexadecimal, at most 65536; all other "
                        "packets leave by gate 0"},
               {.name = "mark",
                .type = ParamType::kBool,
                .default_value = true,
                .help = "make the first 32 bits of the digest the packet's mark"},
               {.name = "scan",
                .type = ParamType::kString,
                .default_value = "payload",
                .help = "what is taken: what the transport carries, or all from the IP header on",
                .choices = {"payload", "frame"}}},
    .notes =
        "Many packets are taken side by side: a batch of 16 costs little more than one packet. "
        "Live commands: add {digest, gate}, delete {digest}, replace {rules}, list; add and "
        "delete take {items: [...]} for many.",
    .can_offload = true,
}};

}  // namespace
}  // namespace batchplane

// SPDX-License-Identifier: BSD-3-Clause
// dpi.cc - matches packets against rules with literals and regular expressions.
//
// in: 1   out: pass, alert   drops: dpi_match
// state: the rules, replaced live; a hit count for each rule
#include <algorithm>

#include "core/module/kernel.h"
#include "core/module/live_table.h"
#include "core/module/register.h"
#include "modules/inspect/dpi_ruleset.h"
#include "modules/inspect/text.h"

namespace batchplane {
namespace {

constexpr KernelSource kDpiSource{
#include "modules/inspect/dpi.cl.h"
    ,
#include "modules/inspect/dpi.ptx.h"
};

const DropReason kDpiMatch{"dpi_match", "the packet has what a rule with the action drop looks for",
                           "the command hits tells which rules match"};

enum DpiGate : uint16_t { kDpiPass, kDpiAlert };

class Dpi final : public Module, public Kernel {
 public:
  explicit Dpi(const Args& args)
      : where_(args.where()),
        engine_(args.string("engine") == "hyperscan" ? dpi::EngineKind::kHyperscan
                                                     : dpi::EngineKind::kAhoCorasick),
        scans_frame_(args.string("scan") == "frame"),
        ignores_headers_(args.flag("ignore_headers")),
        rules_file_(args.string("rules_file")),
        words_file_(args.string("words_file")),
        words_action_(dpi::action_of(args.string("words_action"))),
        book_(dpi::make_dpi_book()),
        live_(std::make_unique<std::shared_ptr<dpi::Ruleset>>(),
              std::make_unique<std::shared_ptr<dpi::Ruleset>>(), args.env().quiescence) {
    book_.load(args.list("rules"), where_, 1);
    load(book_);
  }

  uint32_t link(uint32_t connected) override {
    has_alert_gate_ = connected > kDpiAlert;
    return kDpiAlert + 1;
  }

  void classify(Context& ctx, Batch& batch) noexcept {
    const uint32_t n = batch.size_pkts;
    inspect::Text texts[exec::kMaxBatchPkts];
    uint8_t protos[exec::kMaxBatchPkts] = {};
    dpi::Verdict verdicts[exec::kMaxBatchPkts];
    find_texts(batch, texts, protos);
    live_.read()->judge(texts, protos, n, verdicts);
    use(ctx, batch, verdicts);
  }

  Kernel* kernel() override {
    if (engine_ == dpi::EngineKind::kAhoCorasick) return this;
    throw ConfigError("hyperscan runs on processors alone, and not on a device of kind opencl",
                      where_ + ".engine",
                      "set engine: aho_corasick, for literals; or leave the device out of `on`");
  }
  [[nodiscard]] KernelSource source() const override { return kDpiSource; }
  [[nodiscard]] const char* entry() const override { return "dpi"; }
  [[nodiscard]] uint32_t result_bytes() const override { return sizeof(dpi::Walk); }
  [[nodiscard]] uint32_t lanes() const override { return 32; }  // as in dpi.cl
  [[nodiscard]] Input input_of(Packet& pkt) const noexcept override {
    uint8_t proto = 0;
    const inspect::Text text = inspect::text_of(pkt, scans_frame_, proto);
    return {text.data, text.len_bytes};
  }
  [[nodiscard]] KernelTable* table() noexcept override { return live_.read().get(); }
  void compute(const KernelTable* table, const Input* inputs, uint32_t n,
               uint8_t* results) noexcept override {
    const auto& rules = static_cast<const dpi::Ruleset&>(*table);
    auto* const walks = reinterpret_cast<dpi::Walk*>(results);
    for (uint32_t i = 0; i < n; ++i)
      walks[i] = rules.walk({inputs[i].data(), static_cast<uint32_t>(inputs[i].size())});
  }
  void apply(KernelTable* table, Context& ctx, Batch& batch,
             const uint8_t* results) noexcept override {
    inspect::Text texts[exec::kMaxBatchPkts];
    uint8_t protos[exec::kMaxBatchPkts] = {};
    dpi::Verdict verdicts[exec::kMaxBatchPkts];
    find_texts(batch, texts, protos);
    static_cast<dpi::Ruleset&>(*table).judge_from(reinterpret_cast<const dpi::Walk*>(results),
                                                  texts, protos, batch.size_pkts, verdicts);
    use(ctx, batch, verdicts);
  }

  Value command(const std::string& verb, const Value& args) override {
    if (verb == "list") return Dict{{"rules", book_.list()}};
    if (verb == "hits") return hits();
    if (verb == "add" || verb == "delete" || verb == "replace") {
      dpi::DpiBook next = book_;
      next.edit(verb, args, 1);
      load(next);
      book_ = std::move(next);
      return show();
    }
    if (verb != "reload") return Module::command(verb, args);
    load(book_);
    return show();
  }
  [[nodiscard]] Value show() const override {
    const dpi::Ruleset& rules = *live_.current();
    return Dict{{"rules", rules.n_rules()},
                {"patterns", rules.n_patterns()},
                {"matches", matches_.value()},
                {"table_bytes", rules.table_bytes()}};
  }
  [[nodiscard]] Dict saved_params() const override { return {{"rules", book_.list()}}; }
  void adopt(Module& old) noexcept override {
    matches_.set(static_cast<Dpi&>(old).matches_.value());
  }
  void inherit(Module& old) override {
    const dpi::HitCounts& before = static_cast<Dpi&>(old).hits_;
    for (auto& [id, count] : hits_) {
      const auto found = before.find(id);
      if (found != before.end()) count = found->second;
    }
    live_.current()->count_in(hits_);
  }

 private:
  void find_texts(Batch& batch, inspect::Text* texts, uint8_t* protos) const noexcept {
    for (uint32_t i = 0; i < batch.size_pkts; ++i)
      texts[i] = inspect::text_of(*batch[i], scans_frame_, protos[i]);
  }
  void use(Context& ctx, Batch& batch, const dpi::Verdict* verdicts) noexcept {
    for (uint32_t i = 0; i < batch.size_pkts; ++i) {
      ctx.gates[i] = kDpiPass;
      if (!verdicts[i].is_match) [[likely]]
        continue;
      matches_.add(1);
      if (verdicts[i].has_mark) batch[i]->set_mark(verdicts[i].mark);
      if (verdicts[i].action == dpi::Action::kDrop) {
        ctx.drop(batch, i, kDpiMatch);
      } else if (verdicts[i].action == dpi::Action::kAlert && has_alert_gate_) {
        ctx.gates[i] = kDpiAlert;
      }
    }
  }
  void load(const dpi::DpiBook& book) {
    std::map<uint32_t, dpi::DpiRule> rules = book.items();
    if (!rules_file_.empty()) {
      dpi::read_rules(rules_file_, where_ + ".rules_file", ignores_headers_, rules);
    }
    if (!words_file_.empty()) {
      dpi::read_words(words_file_, where_ + ".words_file", words_action_, rules);
    }
    dpi::HitCounts hits = hits_;
    auto next = std::make_shared<dpi::Ruleset>(rules, engine_, hits, where_);
    std::erase_if(hits, [&](const auto& entry) { return !rules.contains(entry.first); });
    live_.replace(std::make_unique<std::shared_ptr<dpi::Ruleset>>(next),
                  std::make_unique<std::shared_ptr<dpi::Ruleset>>(next));
    hits_ = std::move(hits);
    rules_ = std::move(rules);
  }

  // Rules that have matched, by descending number of hits.
  [[nodiscard]] Value hits() const {
    std::vector<std::pair<uint64_t, uint32_t>> counts;
    for (const auto& [id, count] : hits_) {
      if (count->value() != 0) counts.emplace_back(count->value(), id);
    }
    std::ranges::sort(counts, [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first > b.first : a.second < b.second;
    });
    List list;
    for (const auto& [count, id] : counts) {
      const dpi::DpiRule& rule = rules_.at(id);
      list.push_back(Dict{{"id", id},
                          {"hits", count},
                          {"action", dpi::name_of(rule.action)},
                          {"message", rule.message}});
    }
    return Dict{{"hits", list}};
  }

  const std::string where_;
  const dpi::EngineKind engine_;
  const bool scans_frame_;
  const bool ignores_headers_;
  const std::string rules_file_;
  const std::string words_file_;
  const dpi::Action words_action_;
  bool has_alert_gate_ = false;
  dpi::DpiBook book_;
  std::map<uint32_t, dpi::DpiRule> rules_;  // from live commands and from files
  dpi::HitCounts hits_;
  Tally matches_;
  LiveTable<std::shared_ptr<dpi::Ruleset>> live_;
};

std::vector<ParamSpec> dpi_params() {
  return {
      {.name = "rules",
       .type = ParamType::kList,
       .default_value = List{},
       .help = "[{id, content}]: a text, or a list of texts that all have to be there, with bytes "
               "between bars, as in \"GET |0d 0a|\"; also nocase: true, pcre: /expression/ism, "
               "proto: tcp, action: alert, mark or drop, mark, message"},
      {.name = "rules_file",
       .type = ParamType::kString,
       .default_value = "",
       .help = "file with more of them, in Snort's form: alert tcp any any -> any any (msg:\"..\"; "
               "content:\"..\"; nocase; pcre:\"/../i\"; sid:1;)"},
      {.name = "ignore_headers",
       .type = ParamType::kBool,
       .default_value = false,
       .help = "take rules of the file for packets of any address and port, whatever they say"},
      {.name = "words_file",
       .type = ParamType::kString,
       .default_value = "",
       .help = "file with a word to look for in each line, in either case"},
      {.name = "words_action",
       .type = ParamType::kString,
       .default_value = "alert",
       .help = "what becomes of packets with such a word",
       .choices = {"alert", "mark", "drop"}},
      {.name = "engine",
       .type = ParamType::kString,
       .default_value = "aho_corasick",
       .help =
           "aho_corasick: literals, eight packets side by side, so that batches pay; hyperscan: "
           "expressions, too, one packet after the other",
       .choices = {"aho_corasick", "hyperscan"}},
      {.name = "scan",
       .type = ParamType::kString,
       .default_value = "payload",
       .help = "what is looked at: what the transport carries, or all from the IP header on",
       .choices = {"payload", "frame"}},
  };
}

const Register<Dpi> kDpi{{
    .kind = "dpi",
    .state = StateOf::kShared,
    .help = "Looks into packets for literals and expressions: alerts, marks or drops.",
    .params = dpi_params(),
    .gate_names = {"pass", "alert"},
    .drops = {&kDpiMatch},
    .notes =
        "A drop wins over a mark, and a mark over an alert. Alerts leave by the gate `alert` where "
        "something is connected to it, else by `pass`, and are counted. Each packet is looked at "
        "by "
        "itself: a pattern that is split over two of them is not found. Live commands: add {id, "
        "content, ..} (changes a rule that is there), delete {id}, replace {rules}, reload (reads "
        "the files again), list, hits; add and delete take {items: [...]} for many.",
    .can_offload = true,
}};

}  // namespace
}  // namespace batchplane

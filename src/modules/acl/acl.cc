// SPDX-License-Identifier: BSD-3-Clause
// acl.cc - permits, denies or marks packets, or sends them to gates, by rules on their IP headers.
//
// in: 1   out: gate 0 = permitted, others as the rules name them
// drops: acl_denied, too_short, acl_bad_header, acl_tiny_fragment   state: the rules, editable live
#include <algorithm>

#include "base/error.h"
#include "core/module/register.h"
#include "modules/acl/acl_counts.h"
#include "modules/acl/acl_tables.h"
#include "modules/common/rule_table.h"
#include "modules/headers/shared_reasons.h"

namespace batchplane {
namespace {

const DropReason kDenied{"acl_denied",
                         "a rule of the access list, or its default, denies the packet",
                         "look at the rules' counters with list; add a rule that permits it"};
const DropReason kBadHeader{"acl_bad_header",
                            "the IP header's version or length is wrong, or too many extension "
                            "headers follow it",
                            "look at the sender; such packets are broken or forged"};
const DropReason kTinyFragment{"acl_tiny_fragment",
                               "a TCP fragment would overwrite the flags of the first one",
                               "look at the sender: this is an attack on filters (RFC 3128)"};

class Acl final : public Module {
 public:
  explicit Acl(const Args& args)
      : default_action_(
            parse_acl_action(args.at("default_action"), args.where() + ".default_action")),
        file_action_(
            parse_acl_action(args.at("rules_file_action"), args.where() + ".rules_file_action")),
        permits_other_(args.string("other") == "permit"),
        may_use_classes_(args.string("lookup") == "auto"),
        book_(make_acl_book({args.list("rules"), args.string("rules_file"), args.dict("synthetic")},
                            file_action_, args.where() + ".")),
        declared_(book_.rules),
        live_(make_tables(book_, kMaxRuleGates, args.where()), nullptr, args.env().quiescence),
        counts_(live_.current().shared_slots()),
        n_shadowed_(book_.count_shadowed()) {}

  uint32_t link(uint32_t connected) override {
    const uint32_t highest = std::max(book_.highest_gate(), gate_of(default_action_));
    return n_gates_ = std::max(connected, highest + 1);
  }

  void classify(Context& ctx, Batch& batch) noexcept {
    const AclTables& tables = live_.read();
    alignas(64) uint32_t ids[exec::kMaxBatchPkts];
    tables.find(batch, ids);
    AclSlot* const slots = tables.slots();
    GateIndex* const gates = ctx.gates;
    const uint32_t n = batch.size_pkts;
    uint32_t seen = AclFate::kPass;
    for (uint32_t i = 0; i < n; ++i) {
      AclSlot& slot = slots[ids[i]];
      slot.pkts.add(1);
      gates[i] = slot.fate.gate;
      seen |= slot.fate.kind;
    }
    if (seen != AclFate::kPass) settle(ctx, batch, slots, ids);
  }

  Value command(const std::string& verb, const Value& args) override {
    if (verb == "list") return list(args);
    if (verb != "add" && verb != "delete" && verb != "replace") return Module::command(verb, args);
    AclBook next = edit_acl_book(book_, verb, args, file_action_);
    auto tables = make_tables(next, n_gates_, verb);
    auto slots = tables->shared_slots();
    live_.replace(std::move(tables), nullptr);
    counts_.follow(book_, next, std::move(slots));
    book_ = std::move(next);
    is_live_ = true;
    n_shadowed_ = book_.count_shadowed();
    return show();
  }

  [[nodiscard]] Value show() const override {
    const std::vector<uint64_t> counts = counts_.all();
    uint64_t matched = 0;
    for (size_t i = kAclFirstRuleSlot; i < counts.size(); ++i) matched += counts[i];
    return Dict{{"rules", static_cast<uint64_t>(book_.rules.size())},
                {"shadowed_rules", n_shadowed_},
                {"matched_pkts", matched},
                {"default_pkts", counts[kAclDefaultSlot]},
                {"other_pkts", counts[kAclOtherSlot]},
                {"lookup_paths", live_.current().lookup_paths()}};
  }

  [[nodiscard]] Dict saved_params() const override {
    if (!book_.is_edited) {
      return {{"rules", book_.source.rules},
              {"rules_file", book_.source.file},
              {"synthetic", book_.source.synthetic}};
    }
    List rules;
    for (const AclRule& rule : book_.rules) rules.emplace_back(format_acl_rule(rule));
    return {{"rules", std::move(rules)}, {"rules_file", ""}, {"synthetic", Dict{}}};
  }

  // Keeps live edits if the new pipeline declares the same rules as the old one.
  void inherit(Module& old) override {
    const auto& other = static_cast<const Acl&>(old);
    const bool is_declared_the_same = declared_ == other.declared_;
    if (is_declared_the_same && other.is_live_ && other.book_.highest_gate() < n_gates_) {
      auto tables = make_tables(other.book_, n_gates_, "apply");
      counts_ = AclCounts(tables->shared_slots());
      live_.replace(std::move(tables), nullptr);
      book_ = other.book_;
      is_live_ = true;
      n_shadowed_ = other.n_shadowed_;
    }
    counts_.inherit(other.counts_, other.book_, book_);
  }
  void adopt(Module& old) noexcept override { counts_.adopt(static_cast<Acl&>(old).counts_); }

 private:
  static uint32_t gate_of(const AclAction& action) {
    return action.kind == AclAction::Kind::kGate ? action.number : 0;
  }

  [[gnu::noinline]] static void settle(Context& ctx, Batch& batch, const AclSlot* slots,
                                       const uint32_t* ids) noexcept {
    for (uint32_t i = 0; i < batch.size_pkts; ++i) {
      const AclFate fate = slots[ids[i]].fate;
      if (fate.kind == AclFate::kDrop) {
        ctx.exec::Context<Packet*>::drop(batch, i, static_cast<exec::ReasonIndex>(fate.number));
      } else if (fate.kind == AclFate::kMark) {
        batch[i]->set_mark(fate.number);
      }
    }
  }

  [[nodiscard]] std::unique_ptr<AclTables> make_tables(const AclBook& book, uint32_t n_gates,
                                                       const std::string& where) const {
    book.check(n_gates, where);
    if (gate_of(default_action_) >= kMaxRuleGates) {
      throw ConfigError("gate " + std::to_string(default_action_.number) + " is not there",
                        where + ".default_action", "use 0 to " + std::to_string(kMaxRuleGates - 1));
    }
    AclTables::Specials specials;
    const auto dropped = [](const DropReason& reason) {
      return acl_fate_of({.kind = AclAction::Kind::kDeny}, reason);
    };
    specials[kAclDefaultSlot] = acl_fate_of(default_action_, kDenied);
    specials[kAclOtherSlot] = permits_other_ ? AclFate{} : dropped(kDenied);
    specials[kAclTooShortSlot] = dropped(reason::kTooShort);
    specials[kAclBadHeaderSlot] = dropped(kBadHeader);
    specials[kAclTinyFragmentSlot] = dropped(kTinyFragment);
    return std::make_unique<AclTables>(book, specials, kDenied, may_use_classes_);
  }

  [[nodiscard]] Value list(const Value& args) const {
    const auto number = [&](const char* key, uint64_t otherwise) {
      return args[key].is_int() && args[key].as_int() >= 0
                 ? static_cast<uint64_t>(args[key].as_int())
                 : otherwise;
    };
    const uint64_t offset = number("offset", 0);
    const uint64_t limit = number("limit", 100);
    const std::vector<uint64_t> counts = counts_.all();
    List rules;
    for (uint64_t i = offset; i < book_.rules.size() && rules.size() < limit; ++i) {
      Dict rule = format_acl_rule(book_.rules[i]);
      rule["at"] = i;
      rule["pkts"] = counts[kAclFirstRuleSlot + i];
      rules.emplace_back(std::move(rule));
    }
    return Dict{{"rules", std::move(rules)},
                {"total", static_cast<uint64_t>(book_.rules.size())},
                {"default_action", format_acl_action(default_action_)},
                {"default_pkts", counts[kAclDefaultSlot]}};
  }

  const AclAction default_action_;
  const AclAction file_action_;
  const bool permits_other_;
  const bool may_use_classes_;
  AclBook book_;
  const std::vector<AclRule> declared_;  // in the pipeline
  bool is_live_ = false;                 // edited since then
  LiveTable<AclTables> live_;
  AclCounts counts_;
  uint32_t n_shadowed_;
  uint32_t n_gates_ = 1;  // number of linked gates; live rules may name no other
};

std::vector<ParamSpec> acl_params() {
  return {{.name = "rules",
           .type = ParamType::kList,
           .default_value = List{},
           .help = "[{src, dst, src_ports, dst_ports, proto, tcp_flags, action, priority, name}]; "
                   "the first that matches decides"},
          {.name = "rules_file",
           .type = ParamType::kString,
           .default_value = "",
           .help = "ClassBench filters, one a line, that follow `rules`"},
          {.name = "rules_file_action",
           .type = ParamType::kString,
           .default_value = "permit",
           .help = "what the filters of a file do: permit, deny, \"gate N\", \"mark N\""},
          {.name = "synthetic",
           .type = ParamType::kDict,
           .default_value = Dict{},
           .help = "{style, count, seed}: made-up rules behind the others; paper (denied pairs of "
                   "/24, then UDP and TCP permitted), script (UDP permitted first), random"},
          {.name = "default_action",
           .type = ParamType::kString,
           .default_value = "deny",
           .help = "for IP packets that no rule matches: permit, deny, \"gate N\", \"mark N\""},
          {.name = "other",
           .type = ParamType::kString,
           .default_value = "permit",
           .help = "for what is no IP, ARP say",
           .choices = {"permit", "deny"}},
          {.name = "lookup",
           .type = ParamType::kString,
           .default_value = "auto",
           .help = "auto: tables of classes for IPv4 lists that are short enough, tries for others",
           .choices = {"auto", "tries"}}};
}

const Register<Acl> kAcl{{
    .kind = "acl",
    .state = StateOf::kShared,
    .help = "Permits, denies, marks packets or sends them to gates by rules on their IP headers.",
    .params = acl_params(),
    .gate_names = {"permit"},
    .drops = {&kDenied, &reason::kTooShort, &kBadHeader, &kTinyFragment},
    .notes =
        "At most 10000 rules. src, dst: a prefix of either IP version; without both a rule is for "
        "both versions. Ports: 80, \"1024-65535\". proto: a number or icmp, tcp, udp, gre, esp, "
        "ah, icmpv6, ospf, sctp. tcp_flags: \"syn,!ack\" or value/mask, and then only TCP. Rules "
        "of "
        "higher priority come first (default 0), equal ones in their order. Actions: permit and "
        "mark N go on to gate 0, gate N to that gate. Fragments behind the first and protocols "
        "without ports match only rules without ports and flags. shadowed_rules counts rules that "
        "an earlier one covers. Live commands: add {rule, items or rules_file, at}, delete {name, "
        "or what it "
        "matches}, replace {rules, rules_file or synthetic}, list {offset, limit}. An apply that "
        "declares the same rules leaves live edits in force.",
    .tables = &acl_memory,
}};

}  // namespace
}  // namespace batchplane

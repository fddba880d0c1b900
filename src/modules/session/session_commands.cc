// SPDX-License-Identifier: BSD-3-Clause
// session_commands.cc - declares, edits and lists sessions.
#include "modules/session/session_commands.h"

#include <algorithm>
#include <filesystem>

#include "core/module/after_build.h"
#include "modules/common/item_syntax.h"
#include "modules/session/session_rows.h"

namespace batchplane::session {
namespace {

constexpr int64_t kMaxListed = 100'000;
constexpr const char* kDeclaring[] = {"sessions", "file", "synthetic", "deleted_sessions"};

// Changes when the file is rewritten.
std::string stamp_of(const std::string& path) {
  std::error_code none;
  const auto size_bytes = std::filesystem::file_size(path, none);
  const auto written = std::filesystem::last_write_time(path, none);
  if (none) return "";
  return std::to_string(size_bytes) + '/' + std::to_string(written.time_since_epoch().count());
}

std::vector<Session> parse_list(const List& list, Origin origin, const std::string& where) {
  std::vector<Session> sessions;
  for (size_t i = 0; i < list.size(); ++i) {
    sessions.push_back(parse_session(list[i], where + "[" + std::to_string(i) + "]"));
    sessions.back().origin = origin;
  }
  return sessions;
}

// The sessions of a live command: from a file, from a list, or a single one.
std::vector<Session> sessions_in(const Value& args, const std::string& verb) {
  if (!args["file"].is_string()) {
    return parse_list(items_under(args, "sessions"), Origin::kLive, verb);
  }
  std::vector<Session> sessions = read_session_file(args["file"].as_string());
  for (Session& session : sessions) session.origin = Origin::kLive;
  return sessions;
}

uint64_t seid_of(const Value& item, const std::string& where) {
  const Value& seid = item.is_dict() ? item["seid"] : item;
  return static_cast<uint64_t>(int_value(seid, 1, INT64_MAX, where + ".seid"));
}

// Merges rules of one kind: each of `changes` overrides the rule with the same ID, key by key; null
// removes a key.
List merged_rules(const Value& now, const Value& changes, const std::string& where) {
  List rules = now.is_list() ? now.as_list() : List{};
  if (changes.is_null()) return rules;
  if (!changes.is_list()) throw ConfigError("expected a list", where);
  for (const Value& change : changes.as_list()) {
    if (!change.is_dict() || !change["id"].is_int()) {
      throw ConfigError("expected a rule with its id", where);
    }
    const auto at =
        std::ranges::find_if(rules, [&](const Value& rule) { return rule["id"] == change["id"]; });
    if (change.has("remove")) {
      if (!change["remove"].is_bool() || !change["remove"].as_bool()) {
        throw ConfigError("\"remove\" can only be true", where + ".remove",
                          "leave the key away to keep the rule");
      }
      if (at == rules.end()) throw ConfigError("there is no such rule to remove", where);
      rules.erase(at);
    } else if (at == rules.end()) {
      rules.push_back(change);
    } else {
      Dict rule = at->as_dict();
      for (const auto& [key, value] : change.as_dict()) {
        if (value.is_null()) {
          rule.erase(key);
        } else {
          rule[key] = value;
        }
      }
      *at = std::move(rule);
    }
  }
  return rules;
}

// Naming a quota grants it anew, even if the amount is unchanged.
void note_grants(Session& session, const Value& changes) {
  if (!changes.is_list()) return;
  for (const Value& change : changes.as_list()) {
    for (Urr& urr : session.urrs) {
      if (change["id"] != Value(urr.id)) continue;
      for (size_t i = 0; i < kQuotaKinds; ++i) {
        if (change.has(kQuotaKeys[i])) urr.quotas[i].is_new = urr.quotas[i].given.has_value();
      }
    }
  }
}

// A command's answer: the number of sessions now, and the usage of removed rules.
Value answer_of(const SessionTable& table, uint64_t count, const std::vector<Ended>& ended) {
  Dict answer{{"sessions", static_cast<uint64_t>(table.sessions().size())}, {"count", count}};
  if (!ended.empty()) answer["ended"] = ended_rows(ended);
  return answer;
}

}  // namespace

SessionCommands::SessionCommands(const Args& args)
    : name_(args.name()),
      table_(args.env().shared<SessionTable>(
          args.string("table"),
          [&] {
            return std::make_unique<SessionTable>(
                args.env().quiescence,
                args.env().previous<SessionTable>(args.string("table")).get());
          })),
      file_(args.string("file")),
      synthetic_(args.dict("synthetic")) {
  if (table_->note_user(name_)) {
    AfterBuild::of(args.env()).add([table = table_] { table->complete(); });
  }
  const bool is_declaring =
      std::ranges::any_of(kDeclaring, [&](const char* key) { return args.given(key); });
  if (!is_declaring && !args.given("shape")) return;
  table_->claim(name_);
  if (args.given("shape")) {
    table_->shaper().configure(args);
    table_->declare_when_complete([this, args] { declare(args); });
  } else {
    declare(args);
  }
}

void SessionCommands::declare(const Args& args) {
  Dict declaration;
  for (const char* key : kDeclaring) declaration[key] = args.at(key);
  if (!file_.empty()) declaration["file stamp"] = stamp_of(file_);
  if (table_->declaration() == Value(declaration)) return;
  std::vector<Session> all = make_synthetic_sessions(synthetic_, args.where() + ".synthetic");
  std::set<uint64_t> listed;
  std::vector<Session> of_list =
      parse_list(args.list("sessions"), Origin::kListed, args.where() + ".sessions");
  for (const Session& session : of_list) listed.insert(session.seid);
  if (!file_.empty()) {
    std::vector<Session> of_file = read_session_file(file_);
    std::ranges::move(of_file, std::back_inserter(all));
  }
  // The list takes precedence: `save` writes live changes there.
  std::erase_if(all, [&](const Session& session) { return listed.contains(session.seid); });
  std::ranges::move(of_list, std::back_inserter(all));
  std::set<uint64_t> deleted;
  for (const Value& seid : args.list("deleted_sessions")) {
    deleted.insert(seid_of(seid, args.where() + ".deleted_sessions"));
  }
  table_->declare(std::move(all), deleted, args.where());
  table_->set_declaration(std::move(declaration));
}

Value SessionCommands::run(const std::string& verb, const Value& args) {
  if (verb == "list") return list(args);
  if (verb == "reports") return reports(args);
  if (!args.is_dict() && !args.is_list()) throw ConfigError("expected a mapping", verb);
  if (verb == "modify") return modify(args);
  uint64_t count = 0;
  std::vector<Ended> ended;
  if (verb == "add" || verb == "replace") {
    std::vector<Session> sessions = sessions_in(args, verb);
    count = sessions.size();
    if (verb == "add") {
      ended = table_->add(std::move(sessions), verb);
    } else {
      ended = table_->replace(std::move(sessions), verb);
    }
  } else if (verb == "delete") {
    std::vector<uint64_t> seids;
    if (args["file"].is_string()) {
      for (const Session& session : read_session_file(args["file"].as_string()))
        seids.push_back(session.seid);
    } else {
      const List items = items_under(args, "sessions");
      for (size_t i = 0; i < items.size(); ++i) {
        seids.push_back(seid_of(items[i], "delete[" + std::to_string(i) + "]"));
      }
    }
    count = seids.size();
    ended = table_->erase(seids, verb);
  } else {
    throw ConfigError("a table of sessions has no command '" + verb + "'", "",
                      "it has add, modify, delete, replace, list, reports");
  }
  return answer_of(*table_, count, ended);
}

Session SessionCommands::modified(const Value& change, const std::string& where) const {
  check_keys(change, {"seid", "ue", "ue6", "group", "pdrs", "fars", "qers", "urrs", "bar"}, where);
  const uint64_t seid = seid_of(change, where);
  const auto known = table_->sessions().find(seid);
  if (known == table_->sessions().end()) {
    throw ConfigError("there is no session " + std::to_string(seid), where,
                      "add it; the command list shows what there is");
  }
  Dict next = format_session(known->second);
  for (const char* key : {"ue", "ue6", "group", "bar"}) {
    if (change.has(key)) next[key] = change[key];
  }
  for (const char* key : {"pdrs", "fars", "qers", "urrs"}) {
    next[key] = merged_rules(Value(next)[key], change[key], where + "." + key);
  }
  Session session = parse_session(next, where);
  session.origin = Origin::kLive;
  note_grants(session, change["urrs"]);
  return session;
}

Value SessionCommands::modify(const Value& args) {
  const List items = items_under(args, "sessions");
  std::vector<Session> sessions;
  for (size_t i = 0; i < items.size(); ++i) {
    sessions.push_back(modified(items[i], "modify[" + std::to_string(i) + "]"));
  }
  const std::vector<Ended> ended = table_->add(std::move(sessions), "modify");
  return answer_of(*table_, items.size(), ended);
}

Value SessionCommands::list(const Value& args) const {
  if (!args.is_null()) check_keys(args, {"seid", "ue", "limit", "rules"}, "list");
  const int64_t limit = int_under(args, "limit", 0, kMaxListed, 100, "list");
  const int64_t seid = int_under(args, "seid", 0, INT64_MAX, 0, "list");
  const std::string ue = args["ue"].is_string() ? args["ue"].as_string() : "";
  List rows;
  uint64_t matching = 0;
  const auto visit = [&](const Session& session) {
    if (!ue.empty() && (session.ue == 0 || net::format_ipv4(session.ue) != ue)) return;
    if (++matching > static_cast<uint64_t>(limit)) return;
    Dict row = row_of(*table_, session);
    if (args.has("rules")) row["session"] = format_session(session);
    rows.emplace_back(std::move(row));
  };
  if (seid != 0) {
    const auto it = table_->sessions().find(static_cast<uint64_t>(seid));
    if (it != table_->sessions().end()) visit(it->second);
  } else {
    for (const auto& [id, session] : table_->sessions()) visit(session);
  }
  return Dict{{"sessions", std::move(rows)}, {"matching", matching}};
}

// A client that passes the number of its last report gets each report once.
Value SessionCommands::reports(const Value& args) const {
  if (!args.is_null()) check_keys(args, {"after", "seid", "limit"}, "reports");
  const auto after = static_cast<uint64_t>(int_under(args, "after", 0, INT64_MAX, 0, "reports"));
  const auto seid = static_cast<uint64_t>(int_under(args, "seid", 0, INT64_MAX, 0, "reports"));
  const auto limit = static_cast<size_t>(int_under(args, "limit", 0, kMaxListed, 100, "reports"));
  const ReportBook& book = table_->collected_reports();
  List rows;
  for (const ReportBook::Entry& entry : book.entries) {
    if (entry.number <= after || (seid != 0 && entry.seid != seid)) continue;
    if (rows.size() == limit) break;
    rows.emplace_back(report_row(entry));
  }
  const uint64_t oldest = book.entries.empty() ? 0 : book.entries.front().number;
  return Dict{{"reports", std::move(rows)}, {"oldest", oldest}, {"latest", book.n_ever}};
}

Dict SessionCommands::show() const {
  return {{"sessions", static_cast<uint64_t>(table_->sessions().size())},
          {"rules", table_->n_rules()},
          {"reports", table_->collected_reports().n_ever},
          {"table_bytes", static_cast<uint64_t>(table_->size_bytes())}};
}

Dict SessionCommands::saved_params() const {
  if (!table_->is_written_by(name_)) return {};
  List sessions;
  for (const auto& [seid, session] : table_->sessions()) {
    if (session.origin != Origin::kBulk) sessions.emplace_back(format_session(session));
  }
  List deleted;
  for (const uint64_t seid : table_->deleted()) deleted.emplace_back(seid);
  return {{"sessions", std::move(sessions)},
          {"file", file_},
          {"synthetic", synthetic_},
          {"deleted_sessions", std::move(deleted)}};
}

std::vector<ParamSpec> session_params() {
  return {{.name = "table",
           .type = ParamType::kString,
           .default_value = "sessions",
           .help = "name of the table of sessions, shared by modules that name it"},
          {.name = "sessions",
           .type = ParamType::kList,
           .default_value = List{},
           .help = "[{seid, ue, ue6, group, pdrs, fars, qers, urrs}], in PFCP's terms"},
          {.name = "file",
           .type = ParamType::kString,
           .default_value = "",
           .help = "a file with one session in JSON per line"},
          {.name = "synthetic",
           .type = ParamType::kDict,
           .default_value = Dict{},
           .help = "sessions for trials: {count, bearers, groups, ue, teid, peer_teid, peer, "
                   "peers, mbr_bps, ambr_bps, shape, qfi, quota_bytes}"},
          {.name = "deleted_sessions",
           .type = ParamType::kList,
           .default_value = List{},
           .help = "SEIDs of the file or of synthetic that are left out"},
          shape_spec()};
}

}  // namespace batchplane::session

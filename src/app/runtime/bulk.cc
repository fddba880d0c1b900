// SPDX-License-Identifier: BSD-3-Clause
// bulk.cc - begin, append, commit, abort; or everything at once from a file.
#include "app/runtime/bulk.h"

namespace batchplane::app {
std::string text_of(const Value& args, const char* key) {
  if (!args[key].is_string() || args[key].as_string().empty()) {
    throw ConfigError("'" + std::string(key) + "' is missing", key);
  }
  return args[key].as_string();
}

Value BulkEdits::run(const Value& args, Runtime& runtime) {
  const std::string phase = text_of(args, "phase");
  if (phase == "begin") return begin(args, runtime);
  if (phase == "append") return append(args);
  if (phase == "commit") return commit(args, runtime);
  if (phase == "abort") return abort(args);
  if (phase == "file") {
    const Value answer = runtime.command(text_of(args, "module"), text_of(args, "verb"),
                                         Dict{{"file", text_of(args, "path")}});
    return Dict{{"count", answer.has("count") ? answer["count"] : Value(0)}, {"answer", answer}};
  }
  throw ConfigError("there is no phase '" + phase + "'", "phase",
                    "begin, append, commit, abort or file");
}

BulkEdits::Edit& BulkEdits::at(const std::string& token) {
  const auto it = open_.find(token);
  if (it == open_.end()) {
    throw ConfigError("no bulk edit '" + token + "' is open", "token", "begin one");
  }
  return it->second;
}

Value BulkEdits::begin(const Value& args, Runtime& runtime) {
  Edit edit{text_of(args, "module"), text_of(args, "verb"), {}};
  runtime.require_module(edit.module);
  const std::lock_guard lock(mutex_);
  if (open_.size() >= kMaxOpen) open_.erase(open_.begin());
  // Tokens sort by age.
  char token[24];
  snprintf(token, sizeof token, "b%016llu", static_cast<unsigned long long>(++last_token_));
  open_.emplace(token, std::move(edit));
  return Dict{{"token", token}};
}

Value BulkEdits::append(const Value& args) {
  const List& items = args["items"].as_list();
  const std::lock_guard lock(mutex_);
  Edit& edit = at(text_of(args, "token"));
  if (edit.items.size() + items.size() > kMaxItems) {
    throw ConfigError("more than " + std::to_string(kMaxItems) + " items", "items", "use a file");
  }
  edit.items.insert(edit.items.end(), items.begin(), items.end());
  return Dict{{"count", static_cast<uint64_t>(edit.items.size())}};
}

Value BulkEdits::commit(const Value& args, Runtime& runtime) {
  Edit edit;
  {
    const std::lock_guard lock(mutex_);
    const std::string token = text_of(args, "token");
    edit = std::move(at(token));
    open_.erase(token);
  }
  const uint64_t count = edit.items.size();
  const Value answer =
      runtime.command(edit.module, edit.verb, Dict{{"items", std::move(edit.items)}});
  return Dict{{"count", count}, {"answer", answer}};
}

Value BulkEdits::abort(const Value& args) {
  const std::lock_guard lock(mutex_);
  const std::string token = text_of(args, "token");
  (void)at(token);
  open_.erase(token);
  return Dict{{"count", 0}};
}

}  // namespace batchplane::app

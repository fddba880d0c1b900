// SPDX-License-Identifier: BSD-3-Clause
// bulk.h - large table edits that arrive in parts and take effect in one step.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "app/runtime/runtime.h"

namespace batchplane::app {

// The string at `key` in a request; throws ConfigError when it is missing.
std::string text_of(const Value& args, const char* key);

// Any thread. Uncommitted edits are discarded: it is not known here when a client leaves, so the oldest edits
// make room for new ones.
class BulkEdits {
 public:
  static constexpr size_t kMaxOpen = 16;
  static constexpr uint64_t kMaxItems = 20'000'000;

  // args: phase and its arguments; see docs/protocol.md.
  Value run(const Value& args, Runtime& runtime);

 private:
  struct Edit {
    std::string module;
    std::string verb;
    List items;
  };

  Value begin(const Value& args, Runtime& runtime);
  Value append(const Value& args);
  Value commit(const Value& args, Runtime& runtime);
  Value abort(const Value& args);
  Edit& at(const std::string& token);

  std::mutex mutex_;
  std::map<std::string, Edit> open_;  // guarded by mutex_
  uint64_t last_token_ = 0;           // guarded by mutex_
};

}  // namespace batchplane::app

// SPDX-License-Identifier: BSD-3-Clause
// field_reader.h - reads the fields of a JSON object and records every mistake instead of stopping.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/value.h"
#include "spec/limits.h"

namespace batchplane {

using SourceMap = std::map<std::string, std::string>;

// Collects mistakes; the map gives the line of each key in the user's file.
struct Mistakes {
  std::vector<ConfigError>& errors;
  const SourceMap& source_map;

  void add(const std::string& key, const std::string& message, const std::string& fix = "");
};

// One object at the dotted key `key`. Each read names a field; finish() refuses fields that were not read.
class FieldReader {
 public:
  FieldReader(const Value& object, std::string key, Mistakes& mistakes);

  std::string string(const std::string& name, const std::string& fallback = "");
  std::string required_string(const std::string& name);
  uint64_t integer(const std::string& name, uint64_t fallback, uint64_t least, uint64_t most);
  uint64_t integer(const std::string& name, uint64_t fallback, const limits::Limit& limit) {
    return integer(name, fallback, limit.least, limit.most);
  }
  uint32_t integer32(const std::string& name, uint32_t fallback, const limits::Limit& limit) {
    return static_cast<uint32_t>(integer(name, fallback, limit));
  }
  // A core number, -1 when missing or null.
  int core(const std::string& name);
  // Null when missing or of another type.
  const Dict* dict(const std::string& name);
  const List* list(const std::string& name);
  std::vector<std::string> strings(const std::string& name);
  // The raw value; null when missing.
  const Value& any(const std::string& name);

  [[nodiscard]] bool has(const std::string& name) const { return object_.has(name); }
  [[nodiscard]] const std::string& key() const { return key_; }
  void mistake(const std::string& name, const std::string& message, const std::string& fix = "");
  void finish();

 private:
  const Value& read(const std::string& name);
  [[nodiscard]] std::string path_of(const std::string& name) const;

  const Value& object_;
  std::string key_;
  Mistakes& mistakes_;
  std::vector<std::string> known_;
};

}  // namespace batchplane

// SPDX-License-Identifier: BSD-3-Clause
// dpi_hyperscan.cc - compiles all patterns into one Hyperscan database.
#include "modules/inspect/dpi_hyperscan.h"

#include <hs/hs.h>

#include <cstdio>

#include "base/error.h"

namespace batchplane::dpi {
namespace {

// Escapes each byte as \xNN, so that none is a metacharacter.
std::string escaped(const std::string& bytes) {
  std::string text;
  for (const char c : bytes) {
    char hex[8];
    std::snprintf(hex, sizeof hex, "\\x%02x", static_cast<unsigned>(static_cast<uint8_t>(c)));
    text += hex;
  }
  return text;
}

unsigned flags_of(const Pattern& pattern) {
  unsigned flags = HS_FLAG_SINGLEMATCH;
  if (pattern.is_nocase) flags |= HS_FLAG_CASELESS;
  if (pattern.regex_flags.find('s') != std::string::npos) flags |= HS_FLAG_DOTALL;
  if (pattern.regex_flags.find('m') != std::string::npos) flags |= HS_FLAG_MULTILINE;
  return flags;
}

int on_match(unsigned id, unsigned long long /*from*/, unsigned long long /*to*/,
             unsigned /*flags*/, void* sink) {
  static_cast<PatternSink*>(sink)->found(id);
  return 0;
}

}  // namespace

struct Hyperscan::Database {
  hs_database_t* database = nullptr;
  hs_scratch_t* scratch = nullptr;

  Database() = default;
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  ~Database() {
    hs_free_scratch(scratch);
    hs_free_database(database);
  }
};

Hyperscan::Hyperscan(const std::vector<Pattern>& patterns, const std::string& where)
    : database_(std::make_unique<Database>()) {
  if (hs_valid_platform() != HS_SUCCESS) {
    throw ConfigError("Hyperscan does not run on this processor", where + ".engine",
                      "set engine: aho_corasick");
  }
  std::vector<std::string> texts;
  std::vector<const char*> pointers;
  std::vector<unsigned> flags;
  std::vector<unsigned> ids;
  for (const Pattern& pattern : patterns) {
    texts.push_back(pattern.is_regex ? pattern.bytes : escaped(pattern.bytes));
    flags.push_back(flags_of(pattern));
    ids.push_back(static_cast<unsigned>(ids.size()));
  }
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  if (patterns.empty()) return;
  hs_compile_error_t* error = nullptr;
  const hs_error_t result = hs_compile_multi(pointers.data(), flags.data(), ids.data(),
                                             static_cast<unsigned>(pointers.size()), HS_MODE_BLOCK,
                                             nullptr, &database_->database, &error);
  if (result != HS_SUCCESS) {
    std::string what = error == nullptr ? "no memory" : error->message;
    if (error != nullptr && error->expression >= 0) {
      what = "'" + patterns[static_cast<size_t>(error->expression)].bytes + "': " + what;
    }
    hs_free_compile_error(error);
    throw ConfigError("Hyperscan cannot look for " + what, where,
                      "change the rule, or leave it out");
  }
  if (hs_alloc_scratch(database_->database, &database_->scratch) != HS_SUCCESS) {
    throw ConfigError("Hyperscan has no memory", where, "take rules out");
  }
}

Hyperscan::~Hyperscan() = default;

void Hyperscan::scan(const Text& text, PatternSink& sink) noexcept {
  if (database_->database == nullptr) return;
  hs_scan(database_->database, reinterpret_cast<const char*>(text.data), text.len_bytes, 0,
          database_->scratch, on_match, &sink);
}

uint64_t Hyperscan::table_bytes() const {
  size_t bytes = 0;
  if (database_->database != nullptr) hs_database_size(database_->database, &bytes);
  return bytes;
}

}  // namespace batchplane::dpi

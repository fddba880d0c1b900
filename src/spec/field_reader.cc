// SPDX-License-Identifier: BSD-3-Clause
// field_reader.cc - typed fields with defaults and ranges, unknown keys with the nearest known one.
#include "spec/field_reader.h"

#include <algorithm>

#include "base/nearest_word.h"

namespace batchplane {
namespace {
const Value kNothing;
}

// The place is that of the nearest enclosing key with a known line.
void Mistakes::add(const std::string& key, const std::string& message, const std::string& fix) {
  std::string at = key;
  while (!at.empty()) {
    const auto it = source_map.find(at);
    if (it != source_map.end()) {
      errors.emplace_back(message, key + " (" + it->second + ")", fix);
      return;
    }
    const size_t cut = at.find_last_of(".[");
    at = cut == std::string::npos ? "" : at.substr(0, cut);
  }
  errors.emplace_back(message, key, fix);
}

FieldReader::FieldReader(const Value& object, std::string key, Mistakes& mistakes)
    : object_(object), key_(std::move(key)), mistakes_(mistakes) {
  if (!object.is_dict()) {
    mistakes_.add(key_.empty() ? "pipeline" : key_,
                  std::string("expected a mapping, found ") + object.type_name());
  }
}

std::string FieldReader::path_of(const std::string& name) const {
  return key_.empty() ? name : key_ + "." + name;
}

void FieldReader::mistake(const std::string& name, const std::string& message,
                          const std::string& fix) {
  mistakes_.add(name.empty() ? key_ : path_of(name), message, fix);
}

const Value& FieldReader::read(const std::string& name) {
  known_.push_back(name);
  return object_[name];
}

const Value& FieldReader::any(const std::string& name) { return read(name); }

std::string FieldReader::string(const std::string& name, const std::string& fallback) {
  const Value& value = read(name);
  if (value.is_null()) return fallback;
  if (value.is_string()) return value.as_string();
  mistake(name, std::string("expected a string, found ") + value.type_name());
  return fallback;
}

std::string FieldReader::required_string(const std::string& name) {
  const std::string text = string(name);
  const Value& value = object_[name];
  if (value.is_null() && object_.is_dict()) mistake("", "'" + name + "' is missing", "add it");
  if (value.is_string() && text.empty()) mistake(name, "must not be empty");
  return text;
}

uint64_t FieldReader::integer(const std::string& name, uint64_t fallback, uint64_t least,
                              uint64_t most) {
  const Value& value = read(name);
  if (value.is_null()) return fallback;
  if (!value.is_int()) {
    mistake(name, std::string("expected an integer, found ") + value.type_name());
    return fallback;
  }
  const int64_t number = value.as_int();
  if (number < 0 || static_cast<uint64_t>(number) < least || static_cast<uint64_t>(number) > most) {
    mistake(name, std::to_string(number) + " is out of range",
            std::to_string(least) + " to " + std::to_string(most));
    return fallback;
  }
  return static_cast<uint64_t>(number);
}

int FieldReader::core(const std::string& name) {
  const Value& value = read(name);
  if (value.is_null()) return -1;
  if (!value.is_int() || value.as_int() < -1 ||
      value.as_int() > static_cast<int64_t>(limits::kCore.most)) {
    mistake(name, "expected a core number",
            "0 to " + std::to_string(limits::kCore.most) + ", or leave it out");
    return -1;
  }
  return static_cast<int>(value.as_int());
}

const Dict* FieldReader::dict(const std::string& name) {
  const Value& value = read(name);
  if (value.is_null()) return nullptr;
  if (value.is_dict()) return &value.as_dict();
  mistake(name, std::string("expected a mapping, found ") + value.type_name());
  return nullptr;
}

const List* FieldReader::list(const std::string& name) {
  const Value& value = read(name);
  if (value.is_null()) return nullptr;
  if (value.is_list()) return &value.as_list();
  mistake(name, std::string("expected a list, found ") + value.type_name());
  return nullptr;
}

std::vector<std::string> FieldReader::strings(const std::string& name) {
  std::vector<std::string> texts;
  const List* all = list(name);
  if (all == nullptr) return texts;
  for (size_t i = 0; i < all->size(); ++i) {
    if ((*all)[i].is_string()) {
      texts.push_back((*all)[i].as_string());
    } else {
      mistake(name + "[" + std::to_string(i) + "]",
              std::string("expected a string, found ") + (*all)[i].type_name());
    }
  }
  return texts;
}

void FieldReader::finish() {
  if (!object_.is_dict()) return;
  for (const auto& [name, value] : object_.as_dict()) {
    if (std::ranges::find(known_, name) != known_.end()) continue;
    const std::string near = nearest_word(name, known_);
    mistake(name, "unknown key '" + name + "'",
            near.empty() ? "remove it" : "did you mean '" + near + "'?");
  }
}

}  // namespace batchplane

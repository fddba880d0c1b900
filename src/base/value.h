// SPDX-License-Identifier: BSD-3-Clause
// value.h - a tree of plain values (the JSON data model), so that nothing below src/app needs a JSON library.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace batchplane {

class Value;
using List = std::vector<Value>;
using Dict = std::map<std::string, Value>;

// Immutable once built, so copies share their subtrees: building a tree from other trees copies none of them.
class Value {
 public:
  // Copy, move and destructor are in value.cc: inlined, the variant's make g++ 12 warn of uninitialised
  // values.
  Value() noexcept;
  Value(const Value& other);
  Value(Value&& other) noexcept;
  Value& operator=(const Value& other);
  Value& operator=(Value&& other) noexcept;
  ~Value();
  Value(bool b) : data_(b) {}                            // NOLINT(google-explicit-constructor)
  Value(int i) : data_(static_cast<int64_t>(i)) {}       // NOLINT(google-explicit-constructor)
  Value(unsigned i) : data_(static_cast<int64_t>(i)) {}  // NOLINT(google-explicit-constructor)
  Value(int64_t i) : data_(i) {}                         // NOLINT(google-explicit-constructor)
  Value(uint64_t i) : data_(static_cast<int64_t>(i)) {}  // NOLINT(google-explicit-constructor)
  Value(double d) : data_(d) {}                          // NOLINT(google-explicit-constructor)
  Value(const char* s) : data_(std::string(s)) {}        // NOLINT(google-explicit-constructor)
  Value(std::string s) : data_(std::move(s)) {}          // NOLINT(google-explicit-constructor)
  Value(List l);                                         // NOLINT(google-explicit-constructor)
  Value(Dict d);                                         // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool is_null() const { return std::holds_alternative<std::monostate>(data_); }
  [[nodiscard]] bool is_bool() const { return std::holds_alternative<bool>(data_); }
  [[nodiscard]] bool is_int() const { return std::holds_alternative<int64_t>(data_); }
  [[nodiscard]] bool is_double() const { return std::holds_alternative<double>(data_); }
  [[nodiscard]] bool is_number() const { return is_int() || is_double(); }
  [[nodiscard]] bool is_string() const { return std::holds_alternative<std::string>(data_); }
  [[nodiscard]] bool is_list() const { return std::holds_alternative<SharedList>(data_); }
  [[nodiscard]] bool is_dict() const { return std::holds_alternative<SharedDict>(data_); }

  // Every accessor throws ConfigError when the value has another type; `as_double` also accepts integers.
  [[nodiscard]] bool as_bool() const;
  [[nodiscard]] int64_t as_int() const;
  [[nodiscard]] double as_double() const;
  [[nodiscard]] const std::string& as_string() const;
  [[nodiscard]] const List& as_list() const;
  [[nodiscard]] const Dict& as_dict() const;

  // Null when this is not a dict or lacks the key.
  [[nodiscard]] const Value& operator[](const std::string& key) const;
  [[nodiscard]] bool has(const std::string& key) const;

  [[nodiscard]] const char* type_name() const;
  bool operator==(const Value& other) const;

 private:
  using SharedList = std::shared_ptr<const List>;
  using SharedDict = std::shared_ptr<const Dict>;

  std::variant<std::monostate, bool, int64_t, double, std::string, SharedList, SharedDict> data_;
};

}  // namespace batchplane

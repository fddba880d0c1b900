// SPDX-License-Identifier: BSD-3-Clause
#include "base/value.h"

#include "base/error.h"

namespace batchplane {
namespace {
const Value kNull;

[[noreturn]] void wrong_type(const char* wanted, const Value& value) {
  throw ConfigError(std::string("expected ") + wanted + ", found " + value.type_name());
}
}  // namespace

Value::Value() noexcept = default;
Value::Value(const Value& other) = default;
Value::Value(Value&& other) noexcept : data_(std::exchange(other.data_, std::monostate())) {}
Value::Value(List l) : data_(std::make_shared<const List>(std::move(l))) {}
Value::Value(Dict d) : data_(std::make_shared<const Dict>(std::move(d))) {}
Value& Value::operator=(const Value& other) = default;
Value& Value::operator=(Value&& other) noexcept {
  data_ = std::exchange(other.data_, std::monostate());
  return *this;
}
Value::~Value() = default;

bool Value::as_bool() const {
  if (!is_bool()) wrong_type("true or false", *this);
  return std::get<bool>(data_);
}

int64_t Value::as_int() const {
  if (!is_int()) wrong_type("an integer", *this);
  return std::get<int64_t>(data_);
}

double Value::as_double() const {
  if (is_int()) return static_cast<double>(std::get<int64_t>(data_));
  if (!is_double()) wrong_type("a number", *this);
  return std::get<double>(data_);
}

const std::string& Value::as_string() const {
  if (!is_string()) wrong_type("a string", *this);
  return std::get<std::string>(data_);
}

const List& Value::as_list() const {
  if (!is_list()) wrong_type("a list", *this);
  return *std::get<SharedList>(data_);
}

const Dict& Value::as_dict() const {
  if (!is_dict()) wrong_type("a mapping", *this);
  return *std::get<SharedDict>(data_);
}

const Value& Value::operator[](const std::string& key) const {
  if (!is_dict()) return kNull;
  const Dict& dict = *std::get<SharedDict>(data_);
  const auto it = dict.find(key);
  return it == dict.end() ? kNull : it->second;
}

bool Value::has(const std::string& key) const {
  return is_dict() && std::get<SharedDict>(data_)->contains(key);
}

bool Value::operator==(const Value& other) const {
  if (is_list() && other.is_list()) return as_list() == other.as_list();
  if (is_dict() && other.is_dict()) return as_dict() == other.as_dict();
  return data_ == other.data_;
}

const char* Value::type_name() const {
  static constexpr const char* kNames[] = {"nothing",  "a boolean", "an integer", "a number",
                                           "a string", "a list",    "a mapping"};
  return kNames[data_.index()];
}

}  // namespace batchplane

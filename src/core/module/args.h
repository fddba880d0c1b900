// SPDX-License-Identifier: BSD-3-Clause
// args.h - self-described parameters: declared once, checked and documented from the declaration.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/value.h"
#include "spec/params.h"

namespace batchplane {

class Environment;

// The checked parameters of one module instance. Unknown keys, wrong types and values out of range are
// refused (all at once) before the module's constructor runs, so get_* never fails on a declared name; a
// constructor throws ConfigError for mistakes that only it can detect.
class Args {
 public:
  // For parameters that have passed check_params().
  Args(const std::vector<ParamSpec>& specs, const Dict& given, std::string where);
  // Checks `given` first; appends every mistake to `errors`.
  Args(const std::vector<ParamSpec>& specs, const Dict& given, std::string where,
       std::vector<ConfigError>& errors);

  [[nodiscard]] bool flag(const std::string& name) const { return at(name).as_bool(); }
  [[nodiscard]] int64_t integer(const std::string& name) const { return at(name).as_int(); }
  [[nodiscard]] uint32_t u32(const std::string& name) const {
    return static_cast<uint32_t>(at(name).as_int());
  }
  [[nodiscard]] uint64_t u64(const std::string& name) const {
    return static_cast<uint64_t>(at(name).as_int());
  }
  [[nodiscard]] double number(const std::string& name) const { return at(name).as_double(); }
  [[nodiscard]] const std::string& string(const std::string& name) const {
    return at(name).as_string();
  }
  [[nodiscard]] const List& list(const std::string& name) const { return at(name).as_list(); }
  [[nodiscard]] const Dict& dict(const std::string& name) const { return at(name).as_dict(); }
  [[nodiscard]] const Dict& all_given() const { return given_; }
  [[nodiscard]] bool given(const std::string& name) const { return given_.contains(name); }
  [[nodiscard]] const Value& at(const std::string& name) const;

  // Where the module is declared, for messages: "modules.NAME (file:line)".
  [[nodiscard]] const std::string& where() const { return where_; }
  // Interfaces, ports and tables shared between modules. Set by the graph builder.
  [[nodiscard]] Environment& env() const { return *env_; }
  void set_env(Environment* env) { env_ = env; }
  // Name of the module instance.
  [[nodiscard]] const std::string& name() const { return name_; }
  void set_name(std::string name) { name_ = std::move(name); }

 private:
  Dict given_;
  Dict values_;
  std::string where_;
  std::string name_;
  Environment* env_ = nullptr;
};

}  // namespace batchplane

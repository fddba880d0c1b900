// SPDX-License-Identifier: BSD-3-Clause
// esp_commands.h - the SAs of a module: parameters, live commands, and the workers' table.
#pragma once

#include <string>
#include <vector>

#include "core/module/live_table.h"
#include "core/module/module.h"
#include "modules/esp/esp_sa.h"

namespace batchplane::esp {

// Owner: control thread; table(): workers.
class SaCommands {
 public:
  SaCommands(const Args& args, const Style& style);

  [[nodiscard]] SaTable& table() const noexcept { return *live_.read(); }
  [[nodiscard]] const std::string& where() const { return where_; }

  // The commands add, delete, replace, list, reload. Throws ConfigError and then leaves everything
  // unchanged.
  Value run(Module& module, const std::string& verb, const Value& args);
  [[nodiscard]] Value show() const;
  [[nodiscard]] Dict saved_params() const { return {{"sas", book_.list()}}; }
  // Before the module runs. SAs that have the same keys in `old` continue its sequence numbers.
  void inherit(const SaCommands& old);

  static std::vector<ParamSpec> params(const std::string& sas_help);

 private:
  [[nodiscard]] KeyRing ring() const;
  void apply(const SaBook& book);

  const std::string where_;
  const std::string keys_path_;
  const Direction direction_;
  const bool has_test_keys_;
  SaBook book_;
  SaKeeper keeper_;
  LiveTable<SaTablePtr> live_;
};

}  // namespace batchplane::esp

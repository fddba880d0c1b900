// SPDX-License-Identifier: BSD-3-Clause
// esp_commands.cc - edits of SAs: each is checked completely, including keys, before anything
// changes.
#include "modules/esp/esp_commands.h"

namespace batchplane::esp {

SaCommands::SaCommands(const Args& args, const Style& style)
    : where_(args.where()),
      keys_path_(args.string("keys")),
      direction_(style.direction),
      has_test_keys_(args.flag("test_keys")),
      book_(make_sa_book(style.direction)),
      keeper_(style),
      live_(std::make_unique<SaTablePtr>(), std::make_unique<SaTablePtr>(), args.env().quiescence) {
  if (has_test_keys_ == !keys_path_.empty()) {
    throw ConfigError("the keys come from nowhere, or from two places", where_,
                      "give keys: FILE; or test_keys: true, where nothing needs protection");
  }
  book_.load(args.list("sas"), where_, 1);
  apply(book_);
}

KeyRing SaCommands::ring() const {
  return has_test_keys_ ? KeyRing::of_tests() : KeyRing::from_file(keys_path_, where_ + ".keys");
}

void SaCommands::apply(const SaBook& book) {
  const SaTablePtr next = keeper_.make_table(book, ring(), where_);
  live_.replace(std::make_unique<SaTablePtr>(next), std::make_unique<SaTablePtr>(next));
}

Value SaCommands::run(Module& module, const std::string& verb, const Value& args) {
  if (verb == "list") return Dict{{"sas", keeper_.list(book_)}};
  if (verb == "add" || verb == "delete" || verb == "replace") {
    const SaBook before = book_;
    book_.edit(verb, args, 1);
    try {
      apply(book_);
    } catch (...) {
      book_ = before;
      throw;
    }
    return show();
  }
  if (verb != "reload") return module.Module::command(verb, args);
  apply(book_);
  return show();
}

Value SaCommands::show() const {
  const SaTable& table = *live_.current();
  uint64_t n_exhausted = 0;
  for (const Sa& sa : table.sas) {
    n_exhausted += sa.state->sequence.value() >= sa.last_sequence ? 1 : 0;
  }
  Dict shown{{"sas", static_cast<int64_t>(table.sas.size())},
             {"table_bytes",
              static_cast<int64_t>(table.index.size_bytes() + table.sas.size() * sizeof(Sa))}};
  if (direction_ == Direction::kOut) shown["exhausted_sas"] = static_cast<int64_t>(n_exhausted);
  return shown;
}

void SaCommands::inherit(const SaCommands& old) {
  keeper_.inherit(old.keeper_);
  apply(book_);
}

std::vector<ParamSpec> SaCommands::params(const std::string& sas_help) {
  return {{.name = "sas", .type = ParamType::kList, .default_value = List{}, .help = sas_help},
          {.name = "keys",
           .type = ParamType::kString,
           .default_value = "",
           .help = "file with a line `ID CIPHER_KEY [AUTH_KEY]` for each SA, in hexadecimal, which "
                   "others may not read; it is read again at every edit"},
          {.name = "test_keys",
           .type = ParamType::kBool,
           .default_value = false,
           .help = "make up keys that anybody can work out from the SA's id: for tests and load"}};
}

}  // namespace batchplane::esp

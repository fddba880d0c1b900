// SPDX-License-Identifier: BSD-3-Clause
// item_book.h - numbered items on the control thread, with the commands add, delete, replace and
// list.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "modules/common/item_syntax.h"

namespace batchplane {

// Owner: control thread. `parse` makes an item from a dict with its number under `id_name`.
template <class Item>
class ItemBook {
 public:
  struct Syntax {
    std::string list_name;
    std::string id_name;
    uint32_t max_id = 0;
    uint32_t max_items = 0;
    // Throws ConfigError; n_gates bounds the gates that an item may name.
    std::function<Item(const Value& item, const std::string& where, uint32_t n_gates)> parse;
    std::function<Dict(const Item&)> format;
  };
  using Items = std::map<uint32_t, Item>;

  explicit ItemBook(Syntax syntax) : syntax_(std::move(syntax)) {}

  [[nodiscard]] const Items& items() const { return items_; }
  void load(const List& list, const std::string& where, uint32_t n_gates) {
    items_ = parse_all(list, where + "." + syntax_.list_name, n_gates);
  }

  // Checks the whole command before anything changes.
  void edit(const std::string& verb, const Value& args, uint32_t n_gates) {
    const List list = items_under(args, syntax_.list_name);
    Items next = verb == "replace" ? Items{} : items_;
    if (verb == "delete") {
      for (size_t i = 0; i < list.size(); ++i) {
        const Value& id = list[i].is_dict() ? list[i][syntax_.id_name] : list[i];
        if (next.erase(id_of(id, place(verb, i))) == 0) {
          throw ConfigError("there is no such " + syntax_.id_name, place(verb, i),
                            "the command list shows what there is");
        }
      }
    } else {
      Items given = parse_all(list, verb, n_gates);
      given.merge(next);
      check_size(given.size(), verb);
      next = std::move(given);
    }
    items_ = std::move(next);
  }

  [[nodiscard]] List list() const {
    List all;
    for (const auto& [id, item] : items_) {
      Dict one = syntax_.format(item);
      one[syntax_.id_name] = id;
      all.emplace_back(std::move(one));
    }
    return all;
  }

 private:
  static std::string place(const std::string& where, size_t i) {
    return where + "[" + std::to_string(i) + "]";
  }
  [[nodiscard]] uint32_t id_of(const Value& id, const std::string& where) const {
    return static_cast<uint32_t>(int_value(id, 0, syntax_.max_id, where + "." + syntax_.id_name));
  }
  [[nodiscard]] Items parse_all(const List& list, const std::string& where,
                                uint32_t n_gates) const {
    check_size(list.size(), where);
    Items parsed;
    for (size_t i = 0; i < list.size(); ++i) {
      const std::string at = place(where, i);
      if (!list[i].is_dict()) throw ConfigError("expected a mapping", at, "see the parameter");
      const uint32_t id = id_of(list[i][syntax_.id_name], at);
      if (!parsed.emplace(id, syntax_.parse(list[i], at, n_gates)).second) {
        throw ConfigError("another item has the same " + syntax_.id_name, at, "keep one of them");
      }
    }
    return parsed;
  }
  void check_size(size_t n, const std::string& where) const {
    if (n <= syntax_.max_items) return;
    throw ConfigError("there would be " + std::to_string(n) + " " + syntax_.list_name, where,
                      "at most " + std::to_string(syntax_.max_items) + " fit");
  }

  Syntax syntax_;
  Items items_;
};

}  // namespace batchplane

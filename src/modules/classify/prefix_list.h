// SPDX-License-Identifier: BSD-3-Clause
// prefix_list.h - prefixes and their marks as users write them: in pipelines, live commands and
// files.
#pragma once

#include <map>
#include <string>
#include <variant>

#include "base/value.h"
#include "modules/classify/prefix_marks.h"

namespace batchplane {

using PrefixKey = std::variant<net::Prefix4, net::Prefix6>;
using PrefixList = std::map<PrefixKey, uint32_t>;

// A plain address is a prefix of full length. Throws ConfigError.
PrefixKey parse_prefix_key(const std::string& text, const std::string& where);
std::string format_prefix_key(const PrefixKey& key);

// Adds entries {prefix, mark} of a list, or lines "prefix,mark" of a file. Throws ConfigError, also
// for a prefix that is already there.
void add_prefixes(PrefixList& all, const List& items, const std::string& where);
void add_prefix_file(PrefixList& all, const std::string& path, const std::string& where);
List prefix_values(const PrefixList& all);

PrefixMarks marks_of(const PrefixList& all);
void set_prefix(PrefixMarks& marks, const PrefixKey& key, uint32_t mark);
void erase_prefix(PrefixMarks& marks, const PrefixKey& key);

}  // namespace batchplane

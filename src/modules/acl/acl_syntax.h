// SPDX-License-Identifier: BSD-3-Clause
// acl_syntax.h - text syntax of rule fields, shared by pipelines and files.
#pragma once

#include <optional>
#include <string>

#include "modules/acl/acl_rule.h"

namespace batchplane {

struct AclAddress {
  AclFamily family = AclFamily::kAny;
  AclPrefix prefix;
};

// Parses "10.0.0.0/8", "2001:db8::/32", or a single address. Throws ConfigError, also for host
// bits.
AclAddress parse_acl_address(const std::string& text, const std::string& where);
std::string format_acl_prefix(AclFamily family, const AclPrefix& prefix);

// Checks the combination of match fields and completes it: flags imply TCP.
void settle_acl_match(AclMatch& match, const AclAddress& src, const AclAddress& dst,
                      const std::string& where);

// Parses the whole text as a decimal or 0x.. number; nullopt if it contains any other character.
std::optional<uint32_t> parse_acl_number(const std::string& text);
AclPorts make_acl_ports(uint32_t first, uint32_t last, const std::string& where);

}  // namespace batchplane

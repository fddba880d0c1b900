// SPDX-License-Identifier: BSD-3-Clause
// acl_syntax.h - the parts of a rule as text, shared by rules in pipelines and in files.
#pragma once

#include <optional>
#include <string>

#include "modules/acl/acl_rule.h"

namespace batchplane {

struct AclAddress {
  AclFamily family = AclFamily::kAny;
  AclPrefix prefix;
};

// "10.0.0.0/8", "2001:db8::/32", or an address alone. Throws ConfigError, for host bits too.
AclAddress parse_acl_address(const std::string& text, const std::string& where);
std::string format_acl_prefix(AclFamily family, const AclPrefix& prefix);

// Checks what several fields of a match say together, and completes it: flags mean TCP.
void settle_acl_match(AclMatch& match, const AclAddress& src, const AclAddress& dst,
                      const std::string& where);

// The whole text as a number, decimal or 0x..; nothing on any other character.
std::optional<uint32_t> parse_acl_number(const std::string& text);
AclPorts make_acl_ports(uint32_t first, uint32_t last, const std::string& where);

}  // namespace batchplane

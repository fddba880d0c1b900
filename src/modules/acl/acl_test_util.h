// SPDX-License-Identifier: BSD-3-Clause
// acl_test_util.h - helpers for tests of access lists.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "module_harness.h"

namespace batchplane {

inline Dict rule(const char* action, Dict fields = {}) {
  fields["action"] = action;
  return fields;
}
inline Dict with_rules(List rules) { return {{"rules", std::move(rules)}}; }

inline Bytes tcp_frame(uint8_t flags, uint16_t port = 80) {
  Bytes frame = make_frame({.port_dst = port, .proto = net::kProtoTcp});
  frame[net::kEthBytes + net::kIpv4Bytes + 13] = flags;
  return frame;
}

inline std::string error_of(const Dict& params) {
  try {
    ModuleHarness harness("acl", params);
  } catch (const ConfigError& error) {
    return error.line();
  }
  return "";
}

// Writes `text` to a file and returns its path.
inline std::string write_file(const std::string& name, const std::string& text) {
  const auto path = std::filesystem::path(testing::TempDir()) / name;
  std::ofstream(path) << text;
  return path.string();
}

}  // namespace batchplane

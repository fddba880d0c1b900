// SPDX-License-Identifier: BSD-3-Clause
// traffic_test_util.h - checked parameters for tests, without a graph.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/module/args.h"

namespace batchplane::traffic {

inline Args make_args(const std::vector<ParamSpec>& specs, const Dict& given,
                      Environment* env = nullptr) {
  std::vector<ConfigError> errors;
  Args args(specs, given, "test", errors);
  for (const ConfigError& error : errors) ADD_FAILURE() << error.line();
  args.set_env(env);
  args.set_name("test");
  return args;
}

// The message of the ConfigError that `make` throws; empty when it throws none.
template <class Make>
std::string error_of(Make&& make) {
  try {
    make();
  } catch (const ConfigError& error) {
    return error.line();
  }
  return "";
}

}  // namespace batchplane::traffic

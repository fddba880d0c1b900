// SPDX-License-Identifier: BSD-3-Clause
// after_build.h - what modules can judge only once all modules of their pipeline are there.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "core/module/environment.h"

namespace batchplane {

// One in each environment. A step may throw ConfigError.
class AfterBuild {
 public:
  static AfterBuild& of(Environment& env) {
    return *env.shared<AfterBuild>("", [] { return std::make_shared<AfterBuild>(); });
  }
  void add(std::function<void()> step) { steps_.push_back(std::move(step)); }
  // Each is taken once.
  [[nodiscard]] std::vector<std::function<void()>> take() { return std::exchange(steps_, {}); }

 private:
  std::vector<std::function<void()>> steps_;
};

}  // namespace batchplane

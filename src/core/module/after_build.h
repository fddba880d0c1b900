// SPDX-License-Identifier: BSD-3-Clause
// after_build.h - checks by modules that need all modules of the pipeline to exist.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "core/module/environment.h"

namespace batchplane {

// One per environment. A step may throw ConfigError.
class AfterBuild {
 public:
  static AfterBuild& of(Environment& env) {
    return *env.shared<AfterBuild>("", [] { return std::make_shared<AfterBuild>(); });
  }
  void add(std::function<void()> step) { steps_.push_back(std::move(step)); }
  // Returns each step once.
  [[nodiscard]] std::vector<std::function<void()>> take() { return std::exchange(steps_, {}); }

 private:
  std::vector<std::function<void()>> steps_;
};

}  // namespace batchplane

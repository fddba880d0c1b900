// SPDX-License-Identifier: BSD-3-Clause
// world.h - where fuzz cases are run: the ports and interfaces around them, and parameters.
#pragma once

#include <filesystem>
#include <memory>

#include "cases/cases.h"
#include "core/module/environment.h"

namespace batchplane::fuzz {

// The port from which inputs get what is put into it.
inline constexpr const char* kLoopPort = "loop";

[[nodiscard]] std::unique_ptr<Environment> make_environment();
// With `folder` in the place of ${TMP}.
[[nodiscard]] Dict params_of(const cases::FuzzCase& one, const std::filesystem::path& folder);

// A new folder, removed at the end.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace batchplane::fuzz

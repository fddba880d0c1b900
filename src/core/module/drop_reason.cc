// SPDX-License-Identifier: BSD-3-Clause
#include "core/module/drop_reason.h"

#include <cstdlib>

namespace batchplane {
namespace {
std::vector<DropReasonInfo>& registry() {
  static std::vector<DropReasonInfo> reasons;
  return reasons;
}
}  // namespace

DropReason::DropReason(const char* name, const char* meaning, const char* remedy) : index_(0) {
  std::vector<DropReasonInfo>& all = registry();
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].name == name) {
      index_ = static_cast<uint16_t>(i);
      return;
    }
  }
  if (all.size() == kMaxDropReasons) std::abort();  // a build with too many reasons never starts
  index_ = static_cast<uint16_t>(all.size());
  all.push_back({name, meaning, remedy});
}

const std::vector<DropReasonInfo>& drop_reasons() { return registry(); }

}  // namespace batchplane

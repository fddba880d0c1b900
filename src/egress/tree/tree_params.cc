// SPDX-License-Identifier: BSD-3-Clause
#include "egress/tree/tree_params.h"

namespace batchplane::egress {
namespace {

bool is_good_rate(uint64_t rate_bps) {
  return rate_bps == 0 || (rate_bps >= kMinPaceBps && rate_bps <= kMaxPaceBps);
}

}  // namespace

const char* message_of(Edited edited) {
  switch (edited) {
    case Edited::kYes:
      return "";
    case Edited::kBadNode:
      return "node number beyond the capacity";
    case Edited::kNodeExists:
      return "the node exists: change it";
    case Edited::kNoNode:
      return "there is no such node: add it";
    case Edited::kRoot:
      return "the root stays as it is: set the link's rate";
    case Edited::kNoParent:
      return "there is no such parent: add it first";
    case Edited::kParentIsLeaf:
      return "the parent is a leaf, which holds packets: choose an inner node";
    case Edited::kLoop:
      return "the node would lie below itself: choose a parent outside its subtree";
    case Edited::kHasChildren:
      return "the node has children: remove or move them first";
    case Edited::kNoShaper:
      return "no leaf more may have rates: make the tree with more shaped_leaves";
    case Edited::kBadWeight:
      return "the weight must be 1 to 10000";
    case Edited::kBadPriority:
      return "the priority must be 0 to 7";
    case Edited::kBadRate:
      return "a rate must be 0 or 16000 to 10000000000000 bit/s";
    case Edited::kCeilBelowMin:
      return "the ceiling is below the minimum rate: raise it or lower the minimum";
  }
  return "";
}

Edited check_range(const NodeParams& params) {
  if (params.weight == 0 || params.weight > kMaxNodeWeight) return Edited::kBadWeight;
  if (params.priority >= kPriorities) return Edited::kBadPriority;
  if (!is_good_rate(params.min_rate_bps) || !is_good_rate(params.ceil_bps)) return Edited::kBadRate;
  const bool fits = params.ceil_bps == 0 || params.ceil_bps >= params.min_rate_bps;
  return fits ? Edited::kYes : Edited::kCeilBelowMin;
}

}  // namespace batchplane::egress

// SPDX-License-Identifier: BSD-3-Clause
// merge.cc - a named point where several branches join.
//
// in: any   out: 1   drops: none   state: none
#include "core/module/register.h"

namespace batchplane {
namespace {

// The engine joins batches at the input of any module with several predecessors; this module only
// gives the place a name, a buffer and counters.
class Merge final : public Module {
 public:
  explicit Merge(const Args& /*args*/) {}

  void process(Context& /*ctx*/, Batch& /*batch*/) noexcept {}
};

const Register<Merge> kMerge{{
    .kind = "merge",
    .state = StateOf::kNone,
    .help = "Joins any number of branches into one; batches of one run are joined up to the limit.",
    .notes =
        "Any module may have several inputs; merge is for graphs that need a named meeting point.",
}};

}  // namespace
}  // namespace batchplane

// SPDX-License-Identifier: BSD-3-Clause
// null.cc - does nothing to packets: its cost is that of one hop in the engine.
//
// in: 1   out: 1   drops: none   state: none
#include "core/module/register.h"

namespace batchplane {
namespace {

class Null final : public Module {
 public:
  explicit Null(const Args& /*args*/) {}

  void process(Context& /*ctx*/, Batch& /*batch*/) noexcept {}
};

const Register<Null> kNull{{
    .kind = "null",
    .state = StateOf::kNone,
    .help = "Passes packets on untouched; measures the engine's own cost per hop.",
}};

}  // namespace
}  // namespace batchplane

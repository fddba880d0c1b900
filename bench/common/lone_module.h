// SPDX-License-Identifier: BSD-3-Clause
// lone_module.h - one module by itself, called as the executor calls it, on packets that the caller keeps.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/module/kind.h"

namespace bench {

class LoneModule {
 public:
  LoneModule(const std::string& kind, const batchplane::Dict& params, uint32_t gates)
      : info_(*batchplane::find_module_kind(kind)) {
    std::vector<batchplane::ConfigError> errors;
    batchplane::Args args(info_.params, params, "bench", errors);
    args.set_env(&env_);
    args.set_name(kind);
    module_ = info_.make(args);
    module_->link(gates);
  }
  // How many of the packets stay in the batch.
  uint32_t run(batchplane::Packet** pkts, uint32_t n) {
    ctx_->n_removed = 0;
    info_.run(module_.get(), *ctx_, pkts, n);
    return n - ctx_->n_removed;
  }

 private:
  const batchplane::ModuleInfo& info_;
  batchplane::Environment env_;
  std::unique_ptr<batchplane::Module> module_;
  std::unique_ptr<batchplane::Context> ctx_ = std::make_unique<batchplane::Context>();
};

}  // namespace bench

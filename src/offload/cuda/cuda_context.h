// SPDX-License-Identifier: BSD-3-Clause
// cuda_context.h - a GPU's context, which holds all that is made on it.
#pragma once

#include "offload/cuda/cuda_api.h"

namespace batchplane::offload::cu {

class Context {
 public:
  // See error(): such a context is not to be used.
  Context(const Api& api, DeviceId id)
      : api_(api), id_(id), error_(api.context_retain(&context_, id)) {}
  ~Context() {
    if (error_ == kSuccess) api_.context_release(id_);
  }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  [[nodiscard]] int32_t error() const { return error_; }
  // Makes it current in the calling thread.
  [[nodiscard]] int32_t use() const noexcept { return api_.context_use(context_); }

 private:
  const Api& api_;
  const DeviceId id_;
  ContextId context_ = nullptr;
  const int32_t error_;
};

}  // namespace batchplane::offload::cu

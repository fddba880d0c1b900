// SPDX-License-Identifier: BSD-3-Clause
#include "offload/cuda/cuda_api.h"

#include <string>

#include "base/error.h"
#include "base/shared_library.h"

namespace batchplane::offload::cu {
namespace {

const Api* other_driver = nullptr;

Api load_driver() {
  const SharedLibrary library("libcuda.so.1",
                              "it comes with NVIDIA's driver: `nvidia-smi` should list a GPU",
                              "install a newer NVIDIA driver");
  Api api;
#define BATCHPLANE_CUDA_LOAD(name, symbol, taken) library.find(api.name, symbol);
  BATCHPLANE_CUDA_FUNCTIONS(BATCHPLANE_CUDA_LOAD)
#undef BATCHPLANE_CUDA_LOAD
  const int32_t error = api.init(0);
  if (error == kSuccess) return api;
  throw ConfigError("NVIDIA's driver does not start: error " + std::to_string(error), "",
                    "`nvidia-smi` should list a GPU");
}

}  // namespace

const Api& loaded_api() {
  if (other_driver != nullptr) return *other_driver;
  static const Api api = load_driver();  // tried again if it threw
  return api;
}

void use_api(const Api* api) { other_driver = api; }

}  // namespace batchplane::offload::cu

// SPDX-License-Identifier: BSD-3-Clause
#include "offload/cuda/cuda_api.h"

#include <dlfcn.h>

#include <string>

#include "base/error.h"

namespace batchplane::offload::cu {
namespace {

constexpr const char* kDriver = "libcuda.so.1";

const Api* other_driver = nullptr;

void* driver_symbol(void* library, const char* name) {
  void* const symbol = dlsym(library, name);
  if (symbol != nullptr) return symbol;
  throw ConfigError(std::string(kDriver) + " has no " + name, "", "install a newer NVIDIA driver");
}

Api load_driver() {
  void* const library = dlopen(kDriver, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw ConfigError(std::string("there is no ") + kDriver, "",
                      "it comes with NVIDIA's driver: `nvidia-smi` should list a GPU");
  }
  Api api;
#define BATCHPLANE_CUDA_LOAD(name, symbol, taken) \
  api.name = reinterpret_cast<decltype(api.name)>(driver_symbol(library, symbol));
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

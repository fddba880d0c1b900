// SPDX-License-Identifier: BSD-3-Clause
#include "offload/opencl/opencl_api.h"

#include <dlfcn.h>

#include <string>

#include "base/error.h"

namespace batchplane::offload::cl {
namespace {

constexpr const char* kLibrary = "libOpenCL.so.1";

const Api* other_api = nullptr;

void* symbol_of(void* library, const char* name) {
  void* const symbol = dlsym(library, name);
  if (symbol != nullptr) return symbol;
  throw ConfigError(std::string(kLibrary) + " has no " + name, "", "install one for OpenCL 1.2");
}

Api load() {
  void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw ConfigError(std::string("there is no ") + kLibrary, "",
                      "apt-get install ocl-icd-libopencl1, and a driver");
  }
  Api api;
#define BATCHPLANE_OPENCL_LOAD(name, result, taken) \
  api.name = reinterpret_cast<decltype(api.name)>(symbol_of(library, #name));
  BATCHPLANE_OPENCL_FUNCTIONS(BATCHPLANE_OPENCL_LOAD)
#undef BATCHPLANE_OPENCL_LOAD
  return api;
}

}  // namespace

const Api& loaded_api() {
  if (other_api != nullptr) return *other_api;
  static const Api api = load();  // tried again if it threw
  return api;
}

void use_api(const Api* api) { other_api = api; }

}  // namespace batchplane::offload::cl

// SPDX-License-Identifier: BSD-3-Clause
#include "offload/opencl/opencl_api.h"

#include "base/shared_library.h"

namespace batchplane::offload::cl {
namespace {

const Api* other_api = nullptr;

Api load() {
  const SharedLibrary library("libOpenCL.so.1", "apt-get install ocl-icd-libopencl1, and a driver",
                              "install one for OpenCL 1.2");
  Api api;
#define BATCHPLANE_OPENCL_LOAD(name, result, taken) library.find(api.name, #name);
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

// SPDX-License-Identifier: BSD-3-Clause
// cuda_api.h - the functions of NVIDIA's driver that are used here, looked up at run time: no NVIDIA package
// is needed to build, or to run without a GPU.
#pragma once

#include <cstddef>
#include <cstdint>

namespace batchplane::offload::cu {

// Names and numbers are those of the driver's interface, which is stable.
using DeviceId = int32_t;
using Address = uint64_t;  // in the device's memory
using ContextId = struct GpuContextTag*;
using ModuleId = struct GpuModuleTag*;
using FunctionId = struct GpuFunctionTag*;
using StreamId = struct GpuStreamTag*;
using EventId = struct GpuEventTag*;

inline constexpr int32_t kSuccess = 0;
inline constexpr int32_t kNotReady = 600;
inline constexpr uint32_t kHostMapped = 2;
inline constexpr uint32_t kRegisterForAll = 1;  // contexts
inline constexpr uint32_t kRegisterMapped = 2;
inline constexpr uint32_t kRegisterReadOnly = 8;  // for GPUs; not all can
inline constexpr uint32_t kStreamNonBlocking = 1;
inline constexpr uint32_t kEventNoTiming = 2;
inline constexpr int32_t kErrorLog = 5;  // the compiler's error log and its size
inline constexpr int32_t kErrorLogBytes = 6;

// One line per function: its name here, its name in the library, its parameters. All return an error code.
#define BATCHPLANE_CUDA_FUNCTIONS(F)                                                             \
  F(init, "cuInit", (uint32_t flags))                                                            \
  F(driver_version, "cuDriverGetVersion", (int32_t * version))                                   \
  F(device_count, "cuDeviceGetCount", (int32_t * n))                                             \
  F(device_get, "cuDeviceGet", (DeviceId * device, int32_t index))                               \
  F(device_name, "cuDeviceGetName", (char* name, int32_t room, DeviceId))                        \
  F(device_bus, "cuDeviceGetPCIBusId", (char* name, int32_t room, DeviceId))                     \
  F(context_retain, "cuDevicePrimaryCtxRetain", (ContextId * context, DeviceId))                 \
  F(context_release, "cuDevicePrimaryCtxRelease_v2", (DeviceId))                                 \
  F(context_use, "cuCtxSetCurrent", (ContextId))                                                 \
  F(module_load, "cuModuleLoadDataEx",                                                           \
    (ModuleId * module, const void* text, uint32_t n_options, int32_t* options, void** values))  \
  F(module_unload, "cuModuleUnload", (ModuleId))                                                 \
  F(module_function, "cuModuleGetFunction", (FunctionId * function, ModuleId, const char* name)) \
  F(alloc, "cuMemAlloc_v2", (Address * at, size_t n_bytes))                                      \
  F(free, "cuMemFree_v2", (Address at))                                                          \
  F(host_alloc, "cuMemHostAlloc", (void** at, size_t n_bytes, uint32_t flags))                   \
  F(host_free, "cuMemFreeHost", (void* at))                                                      \
  F(host_register, "cuMemHostRegister_v2", (void* at, size_t n_bytes, uint32_t flags))           \
  F(host_unregister, "cuMemHostUnregister", (void* at))                                          \
  F(host_address, "cuMemHostGetDevicePointer_v2", (Address * address, void* at, uint32_t flags)) \
  F(copy_there, "cuMemcpyHtoD_v2", (Address to, const void* from, size_t n_bytes))               \
  F(copy_back_async, "cuMemcpyDtoHAsync_v2",                                                     \
    (void* to, Address from, size_t n_bytes, StreamId stream))                                   \
  F(copy_there_async, "cuMemcpyHtoDAsync_v2",                                                    \
    (Address to, const void* from, size_t n_bytes, StreamId))                                    \
  F(stream_create, "cuStreamCreate", (StreamId * stream, uint32_t flags))                        \
  F(stream_destroy, "cuStreamDestroy_v2", (StreamId))                                            \
  F(event_create, "cuEventCreate", (EventId * event, uint32_t flags))                            \
  F(event_destroy, "cuEventDestroy_v2", (EventId))                                               \
  F(event_record, "cuEventRecord", (EventId, StreamId))                                          \
  F(event_query, "cuEventQuery", (EventId))                                                      \
  F(launch, "cuLaunchKernel",                                                                    \
    (FunctionId, uint32_t groups_x, uint32_t groups_y, uint32_t groups_z, uint32_t items_x,      \
     uint32_t items_y, uint32_t items_z, uint32_t shared_bytes, StreamId, void** arguments,      \
     void** extra))

struct Api {
#define BATCHPLANE_CUDA_MEMBER(name, symbol, taken) int32_t(*name) taken = nullptr;
  BATCHPLANE_CUDA_FUNCTIONS(BATCHPLANE_CUDA_MEMBER)
#undef BATCHPLANE_CUDA_MEMBER
};

// The functions of libcuda.so.1, loaded and initialised at the first call; throws ConfigError if there is
// none. Control thread.
[[nodiscard]] const Api& loaded_api();
// Replaces them, for tests; null: the library again.
void use_api(const Api* api);

}  // namespace batchplane::offload::cu

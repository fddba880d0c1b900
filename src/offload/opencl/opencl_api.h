// SPDX-License-Identifier: BSD-3-Clause
// opencl_api.h - the functions of OpenCL 1.2 that are used here, looked up at run time: no OpenCL package
// is needed to build, or to run without a device.
#pragma once

#include <cstddef>
#include <cstdint>

namespace batchplane::offload::cl {

// Names and numbers are those of the standard.
using PlatformId = struct PlatformTag*;
using DeviceId = struct DeviceTag*;
using ContextId = struct ContextTag*;
using QueueId = struct QueueTag*;
using ProgramId = struct ProgramTag*;
using KernelId = struct KernelTag*;
using MemoryId = struct MemoryTag*;
using EventId = struct EventTag*;

inline constexpr int32_t kSuccess = 0;
inline constexpr int32_t kComplete = 0;
inline constexpr uint32_t kTrue = 1;
inline constexpr uint32_t kFalse = 0;
inline constexpr uint64_t kDeviceTypeAll = 0xFFFFFFFF;
inline constexpr uint32_t kPlatformName = 0x0902;
inline constexpr uint32_t kDeviceName = 0x102B;
inline constexpr uint32_t kDriverVersion = 0x102D;
inline constexpr uint32_t kDeviceMaxWorkGroupSize = 0x1004;
inline constexpr uint32_t kProgramBuildLog = 0x1183;
inline constexpr uint32_t kEventCommandExecutionStatus = 0x11D3;
inline constexpr uint64_t kMemReadWrite = 1 << 0;
inline constexpr uint64_t kMemReadOnly = 1 << 2;
inline constexpr uint64_t kMemAllocHostPtr = 1 << 4;
inline constexpr uint64_t kMemCopyHostPtr = 1 << 5;
inline constexpr uint64_t kMapRead = 1 << 0;
inline constexpr uint64_t kMapWrite = 1 << 1;

// One line per function: its name in the library, its result, its parameters.
#define BATCHPLANE_OPENCL_FUNCTIONS(F)                                                           \
  F(clGetPlatformIDs, int32_t, (uint32_t n, PlatformId * found, uint32_t * n_found))             \
  F(clGetPlatformInfo, int32_t,                                                                  \
    (PlatformId, uint32_t what, size_t room, void* to, size_t* n_bytes))                         \
  F(clGetDeviceIDs, int32_t,                                                                     \
    (PlatformId, uint64_t type, uint32_t n, DeviceId * found, uint32_t * n_found))               \
  F(clGetDeviceInfo, int32_t, (DeviceId, uint32_t what, size_t room, void* to, size_t* n_bytes)) \
  F(clCreateContext, ContextId,                                                                  \
    (const intptr_t* properties, uint32_t n, const DeviceId*,                                    \
     void (*notify)(const char*, const void*, size_t, void*), void* data, int32_t* error))       \
  F(clCreateCommandQueue, QueueId, (ContextId, DeviceId, uint64_t properties, int32_t * error))  \
  F(clCreateProgramWithSource, ProgramId,                                                        \
    (ContextId, uint32_t n, const char** texts, const size_t* lengths, int32_t* error))          \
  F(clBuildProgram, int32_t,                                                                     \
    (ProgramId, uint32_t n, const DeviceId*, const char* options,                                \
     void (*notify)(ProgramId, void*), void* data))                                              \
  F(clGetProgramBuildInfo, int32_t,                                                              \
    (ProgramId, DeviceId, uint32_t what, size_t room, void* to, size_t* n_bytes))                \
  F(clCreateKernel, KernelId, (ProgramId, const char* name, int32_t* error))                     \
  F(clSetKernelArg, int32_t, (KernelId, uint32_t index, size_t n_bytes, const void* value))      \
  F(clCreateBuffer, MemoryId,                                                                    \
    (ContextId, uint64_t flags, size_t n_bytes, void* host, int32_t* error))                     \
  F(clEnqueueMapBuffer, void*,                                                                   \
    (QueueId, MemoryId, uint32_t waits, uint64_t flags, size_t at, size_t n_bytes,               \
     uint32_t n_before, const EventId* before, EventId*, int32_t* error))                        \
  F(clEnqueueWriteBuffer, int32_t,                                                               \
    (QueueId, MemoryId, uint32_t waits, size_t at, size_t n_bytes, const void* from,             \
     uint32_t n_before, const EventId* before, EventId*))                                        \
  F(clEnqueueReadBuffer, int32_t,                                                                \
    (QueueId, MemoryId, uint32_t waits, size_t at, size_t n_bytes, void* to, uint32_t n_before,  \
     const EventId* before, EventId*))                                                           \
  F(clEnqueueNDRangeKernel, int32_t,                                                             \
    (QueueId, KernelId, uint32_t n_dimensions, const size_t* offset, const size_t* global,       \
     const size_t* local, uint32_t n_before, const EventId* before, EventId*))                   \
  F(clFlush, int32_t, (QueueId))                                                                 \
  F(clGetEventInfo, int32_t, (EventId, uint32_t what, size_t room, void* to, size_t* n_bytes))   \
  F(clReleaseEvent, int32_t, (EventId))                                                          \
  F(clReleaseMemObject, int32_t, (MemoryId))                                                     \
  F(clReleaseKernel, int32_t, (KernelId))                                                        \
  F(clReleaseProgram, int32_t, (ProgramId))                                                      \
  F(clReleaseCommandQueue, int32_t, (QueueId))                                                   \
  F(clReleaseContext, int32_t, (ContextId))

struct Api {
#define BATCHPLANE_OPENCL_MEMBER(name, result, taken) result(*name) taken = nullptr;
  BATCHPLANE_OPENCL_FUNCTIONS(BATCHPLANE_OPENCL_MEMBER)
#undef BATCHPLANE_OPENCL_MEMBER
};

// The functions of libOpenCL.so.1, which stays loaded; throws ConfigError if there is none. Control thread.
[[nodiscard]] const Api& loaded_api();
// Replaces them, for tests; null: the library again.
void use_api(const Api* api);

}  // namespace batchplane::offload::cl

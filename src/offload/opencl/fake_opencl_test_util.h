// SPDX-License-Identifier: BSD-3-Clause
// fake_opencl_test_util.h - an OpenCL library that runs the kernel of stage_test_util.h and fails on demand.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "offload/opencl/opencl_api.h"
#include "offload/stage_test_util.h"

namespace batchplane::offload {
namespace fake_cl {

// Launches are counted from the last `n_launches = 0`.
struct Faults {
  uint32_t n_platforms = 1;
  uint32_t n_devices = 1;
  bool is_bad_source = false;
  size_t most_bytes = SIZE_MAX;  // of a buffer
  uint32_t fail_launch_at = 0;   // launch that is refused
  uint32_t fail_batch_at = 0;    // launch that ends with an error
  uint32_t hang_from = 0;        // launches from this one on never end
  uint32_t wrong_from = 0;       // launches from this one on give wrong results
  uint32_t n_polls = 0;          // polls until a batch is done
  uint32_t slow_one_in = 0;      // one batch in so many takes this many more polls:
  uint32_t slow_polls = 0;
};

struct State {
  std::mutex mutex;
  Faults faults;
  uint32_t n_launches = 0;
  std::set<void*> objects;  // created and not yet released
};
inline State state;
// Memory that a device may still write to is never released; kept here so that the leak check sees it.
inline std::set<void*>& abandoned = *new std::set<void*>;

struct Buffer {
  std::vector<uint8_t> bytes;
};
struct Arguments {
  const void* memory[6] = {};
  uint32_t n = 0;
};
struct Ending {
  uint32_t n_polls;
  int32_t status;
};

// How the latest launch ends; the read that follows belongs to it.
inline thread_local Ending next_ending{};

template <class T, class Made>
T made(Made* object) {
  const std::scoped_lock lock(state.mutex);
  state.objects.insert(object);
  return reinterpret_cast<T>(object);
}
template <class T, class Made>
int32_t release(T handle) {
  const std::scoped_lock lock(state.mutex);
  state.objects.erase(handle);
  delete reinterpret_cast<Made*>(handle);
  return 0;
}

inline int32_t tell(const std::string& text, size_t room, void* to, size_t* n_bytes) {
  if (n_bytes != nullptr) *n_bytes = text.size() + 1;
  if (to != nullptr) std::memcpy(to, text.c_str(), std::min(room, text.size() + 1));
  return 0;
}

inline void run(const Arguments& given) {
  const auto& bytes = static_cast<const Buffer*>(given.memory[0])->bytes;
  const auto& places = static_cast<const Buffer*>(given.memory[1])->bytes;
  auto& results = const_cast<Buffer*>(static_cast<const Buffer*>(given.memory[3]))->bytes;
  uint32_t added = 0;
  std::memcpy(&added, static_cast<const Buffer*>(given.memory[4])->bytes.data(), sizeof added);
  const bool is_wrong = state.faults.wrong_from != 0 && state.n_launches >= state.faults.wrong_from;
  for (uint32_t i = 0; i < given.n; ++i) {
    uint32_t place[2];
    std::memcpy(place, &places[i * sizeof place], sizeof place);
    uint8_t* const result = &results[i * sizeof place];
    stage_test::TestWork::compute_one({bytes.data() + place[0], place[1]}, added, result);
    if (is_wrong) result[0] ^= 1;
  }
}

inline int32_t launch(cl::KernelId kernel) {
  const std::scoped_lock lock(state.mutex);
  const Faults& faults = state.faults;
  const uint32_t number = ++state.n_launches;
  if (number == faults.fail_launch_at) return -36;  // the queue is gone
  run(*reinterpret_cast<Arguments*>(kernel));
  next_ending = {faults.n_polls, 0};
  if (faults.slow_one_in != 0 && number % faults.slow_one_in == 0)
    next_ending.n_polls += faults.slow_polls;
  if (number == faults.fail_batch_at) next_ending.status = -5;
  if (faults.hang_from != 0 && number >= faults.hang_from) next_ending.n_polls = UINT32_MAX;
  return 0;
}

inline void add_machine(cl::Api& api) {
  api.clGetPlatformIDs = [](uint32_t n, cl::PlatformId* found, uint32_t* n_found) {
    if (n_found != nullptr) *n_found = state.faults.n_platforms;
    for (uint32_t i = 0; i < n; ++i) found[i] = reinterpret_cast<cl::PlatformId>(&state);
    return state.faults.n_platforms == 0 ? -1001 : 0;
  };
  api.clGetPlatformInfo = [](cl::PlatformId, uint32_t, size_t room, void* to, size_t* n) {
    return tell("A Fake Platform", room, to, n);
  };
  api.clGetDeviceIDs = [](cl::PlatformId, uint64_t, uint32_t n, cl::DeviceId* found,
                          uint32_t* n_found) {
    if (n_found != nullptr) *n_found = state.faults.n_devices;
    for (uint32_t i = 0; i < n; ++i) found[i] = reinterpret_cast<cl::DeviceId>(&state);
    return state.faults.n_devices == 0 ? -1 : 0;
  };
  api.clGetDeviceInfo = [](cl::DeviceId, uint32_t what, size_t room, void* to, size_t* n) {
    if (what == cl::kDeviceName) return tell("fake-9000", room, to, n);
    const size_t group = 16;
    std::memcpy(to, &group, sizeof group);
    return 0;
  };
}

inline void add_objects(cl::Api& api) {
  api.clCreateContext = [](const intptr_t*, uint32_t, const cl::DeviceId*, auto, void*, int32_t*) {
    return made<cl::ContextId>(new int);
  };
  api.clCreateCommandQueue = [](cl::ContextId, cl::DeviceId, uint64_t, int32_t*) {
    return made<cl::QueueId>(new int);
  };
  api.clCreateProgramWithSource = [](cl::ContextId, uint32_t, const char**, const size_t*,
                                     int32_t*) { return made<cl::ProgramId>(new int); };
  api.clBuildProgram = [](cl::ProgramId, uint32_t, const cl::DeviceId*, const char*, auto, void*) {
    return state.faults.is_bad_source ? -11 : 0;
  };
  api.clGetProgramBuildInfo = [](cl::ProgramId, cl::DeviceId, uint32_t, size_t room, void* to,
                                 size_t* n) {
    return tell("1 note\nx.cl:3: error: no such word\nmore", room, to, n);
  };
  api.clCreateKernel = [](cl::ProgramId, const char*, int32_t*) {
    return made<cl::KernelId>(new Arguments);
  };
  api.clSetKernelArg = [](cl::KernelId kernel, uint32_t index, size_t n, const void* value) {
    auto& to = *reinterpret_cast<Arguments*>(kernel);
    std::memcpy(index == 2 ? static_cast<void*>(&to.n) : &to.memory[index], value, n);
    return 0;
  };
  api.clCreateBuffer = [](cl::ContextId, uint64_t, size_t n, void* from, int32_t* error) {
    if (n > state.faults.most_bytes) {
      *error = -61;
      return cl::MemoryId{};
    }
    auto buffer = std::make_unique<Buffer>(std::vector<uint8_t>(n));
    if (from != nullptr) std::memcpy(buffer->bytes.data(), from, n);
    return made<cl::MemoryId>(buffer.release());
  };
  api.clReleaseEvent = &release<cl::EventId, Ending>;
  api.clReleaseMemObject = &release<cl::MemoryId, Buffer>;
  api.clReleaseKernel = &release<cl::KernelId, Arguments>;
  api.clReleaseProgram = &release<cl::ProgramId, int>;
  api.clReleaseCommandQueue = &release<cl::QueueId, int>;
  api.clReleaseContext = &release<cl::ContextId, int>;
}

inline void add_commands(cl::Api& api) {
  api.clEnqueueMapBuffer = [](cl::QueueId, cl::MemoryId memory, uint32_t, uint64_t, size_t, size_t,
                              uint32_t, const cl::EventId*, cl::EventId*, int32_t*) {
    return static_cast<void*>(reinterpret_cast<Buffer*>(memory)->bytes.data());
  };
  api.clEnqueueWriteBuffer = [](cl::QueueId, cl::MemoryId memory, uint32_t, size_t, size_t n,
                                const void* from, uint32_t, const cl::EventId*, cl::EventId*) {
    std::memcpy(reinterpret_cast<Buffer*>(memory)->bytes.data(), from, n);
    return 0;
  };
  api.clEnqueueReadBuffer = [](cl::QueueId, cl::MemoryId memory, uint32_t, size_t, size_t n,
                               void* to, uint32_t, const cl::EventId*, cl::EventId* done) {
    std::memcpy(to, reinterpret_cast<Buffer*>(memory)->bytes.data(), n);
    *done = made<cl::EventId>(new Ending(next_ending));
    return 0;
  };
  api.clEnqueueNDRangeKernel = [](cl::QueueId, cl::KernelId kernel, uint32_t, const size_t*,
                                  const size_t*, const size_t*, uint32_t, const cl::EventId*,
                                  cl::EventId*) { return launch(kernel); };
  api.clFlush = [](cl::QueueId) { return 0; };
  api.clGetEventInfo = [](cl::EventId event, uint32_t, size_t, void* to, size_t*) {
    auto& ending = *reinterpret_cast<Ending*>(event);
    const int32_t status = ending.n_polls == 0 ? ending.status : 1;
    if (ending.n_polls != 0 && ending.n_polls != UINT32_MAX) --ending.n_polls;
    std::memcpy(to, &status, sizeof status);
    return 0;
  };
}

inline cl::Api table() {
  cl::Api api;
  add_machine(api);
  add_objects(api);
  add_commands(api);
  return api;
}

// Replaces OpenCL during its lifetime.
class Fake {
 public:
  explicit Fake(const Faults& faults = {}) {
    state.faults = faults;
    state.n_launches = 0;
    cl::use_api(&api_);
  }
  ~Fake() {
    cl::use_api(nullptr);
    abandoned.merge(state.objects);
    state.objects.clear();
  }
  Fake(const Fake&) = delete;
  Fake& operator=(const Fake&) = delete;

  // Sets the faults to inject and resets the launch count.
  static void set(const Faults& faults) {
    const std::scoped_lock lock(state.mutex);
    state.faults = faults;
    state.n_launches = 0;
  }
  static size_t n_objects() { return state.objects.size(); }

 private:
  const cl::Api api_ = table();
};

}  // namespace fake_cl
}  // namespace batchplane::offload

// SPDX-License-Identifier: BSD-3-Clause
// fake_cuda_test_util.h - a driver whose GPU runs the kernel of stage_test_util.h and fails on demand.
#pragma once

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>

#include "offload/cuda/cuda_api.h"
#include "offload/stage_test_util.h"

namespace batchplane::offload {
namespace fake_cu {

// Launches are counted from the last reset.
struct Faults {
  int32_t n_gpus = 1;
  bool is_bad_text = false;
  size_t most_bytes = SIZE_MAX;  // of an allocation on the GPU
  bool maps_nothing = false;     // of this machine's memory
  bool maps_writable_only = false;
  uint32_t fail_launch_at = 0;  // launch that is refused
  uint32_t fail_batch_at = 0;   // launch that ends with an error
  uint32_t hang_from = 0;       // launches from this one on never end
  uint32_t wrong_from = 0;      // launches from this one on give wrong results
  uint32_t n_polls = 0;         // polls until a batch is done
};

struct State {
  std::mutex mutex;
  Faults faults;
  uint32_t n_launches = 0;
  uint32_t n_copies = 0;  // of batches
  uint32_t n_gathers = 0;
  bool is_mapped_read_only = false;
  uint32_t n_fetched = 0;  // inputs from mapped memory
  std::map<const uint8_t*, size_t> mapped;
  uint32_t n_users = 0;  // of the context, which frees its contents with it
  std::set<void*> objects;
};
inline State state;
inline thread_local bool has_context = false;
inline const auto kGather = reinterpret_cast<cu::FunctionId>(uintptr_t{1});
inline const auto kOther = reinterpret_cast<cu::FunctionId>(uintptr_t{2});
// As with the driver, only launches touch GPU memory.
struct Ending {
  uint32_t n_polls = 0;
  int32_t error = 0;
};
inline thread_local Ending next_ending{};

template <class T>
int32_t make(T* to, size_t n_bytes) {
  const std::scoped_lock lock(state.mutex);
  void* const object = std::calloc(1, n_bytes);
  state.objects.insert(object);
  std::memcpy(to, &object, sizeof object);
  return 0;
}
template <class T>
int32_t release(T handle) {
  const std::scoped_lock lock(state.mutex);
  void* object = nullptr;
  std::memcpy(&object, &handle, sizeof handle);
  if (state.n_users == 0) return 709;
  if (state.objects.erase(object) == 0) return 1;
  std::free(object);
  return 0;
}
inline void* at(cu::Address address) { return reinterpret_cast<void*>(address); }

inline bool is_mapped(const uint8_t* begin, size_t n_bytes) {
  return std::ranges::any_of(state.mapped, [&](const auto& piece) {
    return begin >= piece.first && begin + n_bytes <= piece.first + piece.second;
  });
}
// The launch that follows on the stream is the one that counts.
inline int32_t gather(void** arguments, uint32_t n_groups) {
  cu::Address address[4] = {};
  for (const uint32_t i : {0U, 1U, 3U}) std::memcpy(&address[i], arguments[i], sizeof address[i]);
  uint32_t n = 0;
  std::memcpy(&n, arguments[2], sizeof n);
  const std::scoped_lock lock(state.mutex);
  if (n != n_groups) return 1;
  ++state.n_gathers;
  const auto* const places = static_cast<const uint32_t*>(at(address[1]));
  const auto* const from = static_cast<const uint8_t* const*>(at(address[3]));
  for (uint32_t i = 0; i < n; ++i) {
    state.n_fetched += is_mapped(from[i], places[2 * i + 1]) ? 1 : 0;
    std::memcpy(static_cast<uint8_t*>(at(address[0])) + places[2 * i], from[i], places[2 * i + 1]);
  }
  return 0;
}

inline int32_t launch(void** arguments, uint32_t n_items) {
  const auto argument = [&](uint32_t i) {
    cu::Address address = 0;
    std::memcpy(&address, arguments[i], sizeof address);
    return address;
  };
  const std::scoped_lock lock(state.mutex);
  const Faults& faults = state.faults;
  const uint32_t number = ++state.n_launches;
  if (!has_context) return 201;
  if (number == faults.fail_launch_at) return 719;
  uint32_t n = 0;
  uint32_t added = 0;
  std::memcpy(&n, arguments[2], sizeof n);
  std::memcpy(&added, at(argument(4)), sizeof added);
  if (n > n_items) return 1;
  const auto* const bytes = static_cast<const uint8_t*>(at(argument(0)));
  const auto* const places = static_cast<const uint32_t*>(at(argument(1)));
  auto* const results = static_cast<uint8_t*>(at(argument(3)));
  for (uint32_t i = 0; i < n; ++i) {
    uint8_t* const result = results + i * 2 * sizeof(uint32_t);
    stage_test::TestWork::compute_one({bytes + places[2 * i], places[2 * i + 1]}, added, result);
    if (faults.wrong_from != 0 && number >= faults.wrong_from) result[0] ^= 1;
  }
  next_ending = {faults.n_polls, number == faults.fail_batch_at ? 700 : 0};
  if (faults.hang_from != 0 && number >= faults.hang_from) next_ending.n_polls = UINT32_MAX;
  return 0;
}

inline void add_gpus(cu::Api& api) {
  api.device_count = [](int32_t* n) {
    *n = state.faults.n_gpus;
    return 0;
  };
  api.device_get = [](cu::DeviceId* id, int32_t i) {
    *id = i;
    return 0;
  };
  api.device_name = [](char* name, int32_t room, cu::DeviceId) {
    std::strncpy(name, "Fake H1", static_cast<size_t>(room));
    return 0;
  };
  api.device_bus = [](char*, int32_t, cu::DeviceId) { return 1; };
  api.driver_version = [](int32_t* version) {
    *version = 13'010;
    return 0;
  };
  api.context_retain = [](cu::ContextId* to, cu::DeviceId) {
    ++state.n_users;
    return make(to, 1);
  };
  api.context_release = [](cu::DeviceId) {
    --state.n_users;
    return 0;
  };
  api.context_use = [](cu::ContextId context) {
    has_context = context != nullptr;
    return 0;
  };
}

inline void add_kernels(cu::Api& api) {
  api.module_load = [](cu::ModuleId* to, const void*, uint32_t, int32_t*, void** values) {
    if (!state.faults.is_bad_text) return make(to, 1);
    std::strcpy(static_cast<char*>(values[0]), "ptxas line 5; error: no such word\nmore");
    return 218;
  };
  api.module_unload = &release<cu::ModuleId>;
  api.module_function = [](cu::FunctionId* to, cu::ModuleId, const char* name) {
    *to = std::strcmp(name, "gather") == 0 ? kGather : kOther;
    return 0;
  };
  api.stream_create = [](cu::StreamId* to, uint32_t) { return make(to, 1); };
  api.stream_destroy = &release<cu::StreamId>;
  api.event_create = [](cu::EventId* to, uint32_t) { return make(to, sizeof(Ending)); };
  api.event_destroy = &release<cu::EventId>;
  api.event_record = [](cu::EventId event, cu::StreamId) {
    *reinterpret_cast<Ending*>(event) = next_ending;
    return 0;
  };
  api.event_query = [](cu::EventId event) {
    auto& ending = *reinterpret_cast<Ending*>(event);
    if (ending.n_polls == 0) return ending.error;
    if (ending.n_polls != UINT32_MAX) --ending.n_polls;
    return cu::kNotReady;
  };
  api.launch = [](cu::FunctionId function, uint32_t groups, uint32_t, uint32_t, uint32_t items,
                  uint32_t, uint32_t, uint32_t, cu::StreamId, void** arguments, void**) {
    return function == kGather ? gather(arguments, groups) : launch(arguments, groups * items);
  };
}

inline void add_memory(cu::Api& api) {
  api.alloc = [](cu::Address* to, size_t n) {
    return n > state.faults.most_bytes ? 2 : make(to, n);
  };
  api.free = &release<cu::Address>;
  api.host_alloc = [](void** to, size_t n, uint32_t) { return make(to, n); };
  api.host_free = &release<void*>;
  api.host_register = [](void* begin, size_t n, uint32_t flags) {
    const std::scoped_lock lock(state.mutex);
    if (state.faults.maps_nothing || !has_context) return 801;
    const bool is_read_only = (flags & cu::kRegisterReadOnly) != 0;
    if (is_read_only && state.faults.maps_writable_only) return 801;
    state.is_mapped_read_only = is_read_only;
    return state.mapped.emplace(static_cast<uint8_t*>(begin), n).second ? 0 : 712;
  };
  api.host_unregister = [](void* begin) {
    const std::scoped_lock lock(state.mutex);
    if (!has_context) return 201;
    return state.mapped.erase(static_cast<uint8_t*>(begin)) == 1 ? 0 : 713;
  };
  api.host_address = [](cu::Address* to, void* from, uint32_t) {
    *to = reinterpret_cast<cu::Address>(from);
    return 0;
  };
  api.copy_there = [](cu::Address to, const void* from, size_t n) {
    std::memcpy(at(to), from, n);
    return has_context ? 0 : 201;
  };
  api.copy_back_async = [](void* to, cu::Address from, size_t n, cu::StreamId) {
    std::memcpy(to, reinterpret_cast<const void*>(from), n);
    return 0;
  };
  api.copy_there_async = [](cu::Address to, const void* from, size_t n, cu::StreamId) {
    ++state.n_copies;
    std::memcpy(at(to), from, n);
    return 0;
  };
}

inline cu::Api table() {
  cu::Api api;
  add_gpus(api);
  add_kernels(api);
  add_memory(api);
  return api;
}

// Replaces the driver during its lifetime.
class Fake {
 public:
  explicit Fake(const Faults& faults = {}) {
    set(faults);
    cu::use_api(&api_);
  }
  ~Fake() {
    cu::use_api(nullptr);
    // The context, and memory that a GPU may still write to.
    for (void* object : state.objects) std::free(object);
    state.objects.clear();
  }
  Fake(const Fake&) = delete;
  Fake& operator=(const Fake&) = delete;

  // Sets the faults to inject and resets the launch count.
  static void set(const Faults& faults) {
    const std::scoped_lock lock(state.mutex);
    state.faults = faults;
    state.n_launches = state.n_copies = state.n_gathers = state.n_fetched = 0;
  }
  static size_t n_objects() { return state.objects.size(); }

 private:
  const cu::Api api_ = table();
};

}  // namespace fake_cu
}  // namespace batchplane::offload

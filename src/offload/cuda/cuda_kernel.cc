// SPDX-License-Identifier: BSD-3-Clause
// cuda_kernel.cc - a module's kernel on an NVIDIA GPU. Only copies of tables wait for the GPU.
#include "offload/cuda/cuda_kernel.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/error.h"
#include "base/patience.h"

namespace batchplane::offload {
namespace {

constexpr uint32_t kGroupItems = 64;
constexpr uint32_t kGatherItems = 32;  // per input
constexpr uint32_t kLargePkts = 512;
// Memory that the GPU still uses after this time is never released.
constexpr std::chrono::seconds kLongestEndOfBatch{1};

enum : uint8_t { kBytes, kPlaces, kResults, kReturned };
constexpr uint8_t kFrom = kReturned;  // kernels that rewrite inputs fetch none

constexpr const char* kGatherPtx =
#include "offload/cuda/gather.ptx.h"
    ;

}  // namespace

std::unique_ptr<DeviceKernel> CudaDevice::make_kernel(Kernel& kernel, uint32_t max_pkts,
                                                      const Quiescence* quiescence,
                                                      const std::string& where) const {
  return std::make_unique<CudaKernel>(shared_from_this(), kernel, max_pkts, quiescence, where);
}

CudaKernel::CudaKernel(std::shared_ptr<const CudaDevice> device, Kernel& kernel, uint32_t max_pkts,
                       const Quiescence* quiescence, const std::string& where)
    : DeviceKernel(kernel, max_pkts, quiescence), device_(std::move(device)) {
  group_ = lanes_ > 1 ? lanes_ : kGroupItems;
  (void)device_->use();
  kernel_ = load(kernel.source().ptx, kernel.entry(), where);
  if (!rewrites_) gather_ = load(kGatherPtx, "gather", where);
  for (uint32_t s = 0; s < kSlots; ++s) make_slot(s, where);
  renew_table(kernel, where);
  for (uint32_t s = 0; s < kSlots; ++s) clear(s);
}

CudaKernel::~CudaKernel() {
  (void)device_->use();
  const auto until = std::chrono::steady_clock::now() + kLongestEndOfBatch;
  Patience patience;
  bool is_used = false;
  for (uint32_t s = 0; s < kSlots; ++s) {
    while (poll(s) == State::kRunning && std::chrono::steady_clock::now() < until) patience.wait();
    is_used = is_used || buffers_[s].is_under_way;
  }
  if (!is_used) return;
  for (Buffers& used : buffers_) {
    used.stream.forget(), used.done.forget();
    for (auto& memory : used.own) memory.forget();
    for (auto& memory : used.staged) memory.forget();
  }
  if (current_table().number != 0) {
    static_cast<GpuTable&>(current_table()).words.forget();
  }
  kernel_.module.forget(), gather_.module.forget();
}

CudaKernel::Loaded CudaKernel::load(const char* text, const std::string& entry,
                                    const std::string& where) {
  Loaded loaded;
  if (*text == '\0') {
    throw ConfigError("this build has no '" + entry + "' for NVIDIA GPUs", where,
                      "apt-get install clang-16, and build again");
  }
  char log[512] = {};
  int32_t options[] = {cu::kErrorLog, cu::kErrorLogBytes};
  void* values[] = {log, reinterpret_cast<void*>(uintptr_t{sizeof log - 1})};
  const cu::Api& api = device_->api();
  cu::ModuleId module = nullptr;
  int32_t error = api.module_load(&module, text, 2, options, values);
  if (error == cu::kSuccess) {
    loaded.module = {module, api.module_unload};
    error = api.module_function(&loaded.function, module, entry.c_str());
  }
  if (error == cu::kSuccess) return loaded;
  std::string why = log;
  why = why.substr(0, why.find('\n'));
  throw ConfigError("'" + device_->name() + "' does not take the kernel '" + entry + "': error " +
                        std::to_string(error) + (why.empty() ? "" : ", " + why),
                    where, "leave the device out of `on`, or use another driver");
}

void CudaKernel::make_slot(uint32_t slot, const std::string& where) {
  const cu::Api& api = device_->api();
  const size_t sizes[] = {room_bytes_, size_t{max_pkts_} * sizeof(Place),
                          size_t{max_pkts_} * result_bytes_,
                          rewrites_ ? room_bytes_ : size_t{max_pkts_} * sizeof(cu::Address)};
  Buffers& to = buffers_[slot];
  cu::StreamId stream = nullptr;
  cu::EventId event = nullptr;
  int32_t error = cu::kSuccess;
  for (uint8_t b = kBytes; b <= kReturned; ++b) {
    cu::Address own = 0;
    if (error == cu::kSuccess && !(rewrites_ && b == kReturned)) error = api.alloc(&own, sizes[b]);
    if (own != 0) to.own[b] = {own, api.free};
    void* staged = nullptr;
    if (error == cu::kSuccess) error = api.host_alloc(&staged, sizes[b], cu::kHostMapped);
    if (staged != nullptr) to.staged[b] = {staged, api.host_free};
    if (error == cu::kSuccess) error = api.host_address(&to.seen[b], staged, 0);
  }
  if (error == cu::kSuccess) error = api.stream_create(&stream, cu::kStreamNonBlocking);
  if (stream != nullptr) to.stream = {stream, api.stream_destroy};
  if (error == cu::kSuccess) error = api.event_create(&event, cu::kEventNoTiming);
  if (event != nullptr) to.done = {event, api.event_destroy};
  if (error != cu::kSuccess) {
    const size_t all_bytes = kSlots * (sizes[0] + sizes[1] + sizes[2] + sizes[3]);
    throw ConfigError("'" + device_->name() + "' has no " + std::to_string((all_bytes >> 10) + 1) +
                          " KiB for batches of " + std::to_string(max_pkts_) + " packets: error " +
                          std::to_string(error),
                      where, "a smaller max_batch_pkts");
  }
  slots_[slot].bytes = static_cast<uint8_t*>(to.staged[kBytes].get());
  slots_[slot].places = static_cast<Place*>(to.staged[kPlaces].get());
  slots_[slot].results = static_cast<uint8_t*>(to.staged[kResults].get());
  slots_[slot].bytes_address = to.seen[kBytes];
  if (rewrites_) {
    slots_[slot].returned = static_cast<uint8_t*>(to.staged[kReturned].get());
  } else {
    slots_[slot].from = static_cast<cu::Address*>(to.staged[kFrom].get());
  }
}

std::unique_ptr<DeviceKernel::Table> CudaKernel::make_table(const std::vector<uint32_t>& words,
                                                            int32_t& error) {
  const cu::Api& api = device_->api();
  auto table = std::make_unique<GpuTable>(device_);
  const size_t n_bytes = words.size() * sizeof(uint32_t);
  cu::Address at = 0;
  error = device_->use();
  if (error == cu::kSuccess) error = api.alloc(&at, n_bytes);
  if (error == cu::kSuccess) table->words = {at, api.free};
  if (error == cu::kSuccess) error = api.copy_there(table->words.get(), words.data(), n_bytes);
  if (error != cu::kSuccess) return nullptr;
  return table;
}

CudaKernel::Whereabouts CudaKernel::whereabouts(uint32_t slot) const {
  const Slot& s = slots_[slot];
  const Buffers& of = buffers_[slot];
  Whereabouts found{};
  found.is_copied = (rewrites_ && s.n_bytes != 0) || s.n_bytes > kCopiedBytes || s.n_fetched != 0;
  found.is_large = found.is_copied && s.n >= kLargePkts;
  for (uint8_t b = kBytes; b <= kReturned; ++b) {
    const bool is_own = b == kBytes ? found.is_copied : found.is_large;
    found.at[b] = is_own ? of.own[b].get() : of.seen[b];
  }
  return found;
}

bool CudaKernel::begin(uint32_t slot) noexcept {
  const cu::Api& api = device_->api();
  const Slot& s = slots_[slot];
  Buffers& to = buffers_[slot];
  Whereabouts of = whereabouts(slot);
  uint32_t n = s.n;
  cu::Address words = 0;
  if (s.table_number != 0) words = static_cast<const GpuTable&>(*s.table).words.get();
  void* arguments[] = {&of.at[kBytes], &of.at[kPlaces], &n, &of.at[kResults], &words};
  const auto n_groups = static_cast<uint32_t>(groups_of(n));
  if (failed(device_->use(), "the driver is gone")) return false;
  const bool is_whole =
      (!of.is_copied || bring(slot, of)) &&
      !failed(api.launch(kernel_.function, n_groups, 1, 1, static_cast<uint32_t>(group_), 1, 1, 0,
                         to.stream.get(), arguments, nullptr),
              "a kernel cannot begin") &&
      take_back(slot, of);
  // What was begun before a failure uses the memory, too.
  to.is_under_way = true;
  return !failed(api.event_record(to.done.get(), to.stream.get()), "a kernel cannot begin") &&
         is_whole;
}

// The batch to the GPU's memory.
bool CudaKernel::bring(uint32_t slot, Whereabouts& to) noexcept {
  const cu::Api& api = device_->api();
  const Slot& s = slots_[slot];
  const cu::StreamId stream = buffers_[slot].stream.get();
  const auto is_copied = [&](uint8_t b, const void* from, size_t n_bytes) {
    return !failed(api.copy_there_async(to.at[b], from, n_bytes, stream),
                   "a batch cannot be copied there");
  };
  if (to.is_large && !is_copied(kPlaces, s.places, s.n * sizeof(Place))) return false;
  if (s.n_fetched == 0) return is_copied(kBytes, s.bytes, s.n_bytes);
  if (to.is_large && !is_copied(kFrom, s.from, s.n * sizeof(cu::Address))) return false;
  uint32_t n = s.n;
  void* arguments[] = {&to.at[kBytes], &to.at[kPlaces], &n, &to.at[kFrom]};
  return !failed(
      api.launch(gather_.function, n, 1, 1, kGatherItems, 1, 1, 0, stream, arguments, nullptr),
      "a batch cannot be fetched");
}

bool CudaKernel::take_back(uint32_t slot, const Whereabouts& from) noexcept {
  const cu::Api& api = device_->api();
  const Slot& s = slots_[slot];
  const cu::StreamId stream = buffers_[slot].stream.get();
  const auto is_copied = [&](uint8_t b, void* to, size_t n_bytes) {
    return !failed(api.copy_back_async(to, from.at[b], n_bytes, stream),
                   "results cannot be copied back");
  };
  if (rewrites_ && from.is_copied && !is_copied(kBytes, s.returned, s.n_bytes)) return false;
  return !from.is_large || is_copied(kResults, s.results, size_t{s.n} * result_bytes_);
}

DeviceKernel::State CudaKernel::poll(uint32_t slot) noexcept {
  Buffers& of = buffers_[slot];
  if (!of.is_under_way) return State::kDone;
  const int32_t error = device_->api().event_query(of.done.get());
  if (error == cu::kNotReady) return State::kRunning;
  of.is_under_way = false;
  return failed(error, "a batch failed") ? State::kFailed : State::kDone;
}

}  // namespace batchplane::offload

// SPDX-License-Identifier: BSD-3-Clause
// opencl_kernel.cc - a module's kernel on an OpenCL device. Nothing here waits for the device.
#include "offload/opencl/opencl_kernel.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "base/patience.h"

namespace batchplane::offload {
namespace {

constexpr size_t kGroup = 64;
// Buffers that a device still uses after this time are never released.
constexpr std::chrono::seconds kLongestEnd{1};

enum : uint8_t { kBytes, kPlaces, kResults, kReturned };

// The first line of a compiler's log that reports an error.
std::string error_line(const std::string& log) {
  const size_t error = log.find("error:");
  const size_t begin = error == std::string::npos ? log.find_first_not_of(" \n") : error;
  if (begin == std::string::npos) return "the compiler says nothing";
  return log.substr(begin, log.find('\n', begin) - begin);
}

}  // namespace

std::unique_ptr<DeviceKernel> OpenClDevice::make_kernel(Kernel& kernel, uint32_t max_pkts,
                                                        const Quiescence* quiescence,
                                                        const std::string& where) const {
  return std::make_unique<OpenClKernel>(shared_from_this(), kernel, max_pkts, quiescence, where);
}

OpenClKernel::OpenClKernel(std::shared_ptr<const OpenClDevice> device, Kernel& kernel,
                           uint32_t max_pkts, const Quiescence* quiescence,
                           const std::string& where)
    : DeviceKernel(kernel, max_pkts, quiescence), device_(std::move(device)) {
  const cl::Api& api = device_->api();
  int32_t error = cl::kSuccess;
  queue_ = {api.clCreateCommandQueue(device_->context(), device_->id(), 0, &error),
            {api.clReleaseCommandQueue}};
  if (queue_ == nullptr) {
    throw ConfigError(
        "the OpenCL device '" + device_->name() + "' has no queue: error " + std::to_string(error),
        where);
  }
  build(kernel, where);
  for (uint32_t s = 0; s < kSlots; ++s) make_slot(s, kernel, where);
  renew_table(kernel, where);
  for (uint32_t s = 0; s < kSlots; ++s) clear(s);
}

OpenClKernel::~OpenClKernel() {
  const auto until = std::chrono::steady_clock::now() + kLongestEnd;
  Patience patience;
  bool is_used = false;
  for (uint32_t s = 0; s < kSlots; ++s) {
    while (poll(s) == State::kRunning && std::chrono::steady_clock::now() < until) patience.wait();
    is_used = is_used || buffers_[s].done != nullptr || buffers_[s].is_cut_off;
  }
  if (!is_used) return;
  for (Buffers& used : buffers_) {
    (void)used.kernel.release(), (void)used.done.release();
    for (auto& memory : used.own) (void)memory.release();
    for (auto& memory : used.staged) (void)memory.release();
  }
  if (current_table().number != 0) {
    (void)static_cast<ClTable&>(current_table()).words.release();
  }
  (void)queue_.release();
}

void OpenClKernel::build(const Kernel& kernel, const std::string& where) {
  const cl::Api& api = device_->api();
  const cl::DeviceId id = device_->id();
  const char* text = kernel.source().opencl;
  int32_t error = cl::kSuccess;
  program_ = {api.clCreateProgramWithSource(device_->context(), 1, &text, nullptr, &error),
              {api.clReleaseProgram}};
  if (program_ != nullptr)
    error = api.clBuildProgram(program_.get(), 1, &id, "-cl-std=CL1.2", nullptr, nullptr);
  if (error != cl::kSuccess) {
    size_t n_bytes = 0;
    std::string log;
    if (program_ != nullptr && api.clGetProgramBuildInfo(program_.get(), id, cl::kProgramBuildLog,
                                                         0, nullptr, &n_bytes) == cl::kSuccess) {
      log.resize(n_bytes);
      api.clGetProgramBuildInfo(program_.get(), id, cl::kProgramBuildLog, n_bytes, log.data(),
                                nullptr);
      log.resize(std::min(log.find('\0'), log.size()));
    }
    throw ConfigError("the kernel '" + std::string(kernel.entry()) + "' does not compile for '" +
                          device_->name() + "': error " + std::to_string(error) + ", " +
                          error_line(log),
                      where, "leave the device out of `on`, or use another driver");
  }
  size_t most = 0;
  if (api.clGetDeviceInfo(id, cl::kDeviceMaxWorkGroupSize, sizeof most, &most, nullptr) !=
      cl::kSuccess)
    most = 1;
  if (most < lanes_) {
    throw ConfigError("the OpenCL device '" + device_->name() + "' has groups of " +
                          std::to_string(most) + " work items, and the kernel '" + kernel.entry() +
                          "' needs " + std::to_string(lanes_),
                      where, "leave the device out of `on`");
  }
  group_ = lanes_ > 1 ? lanes_ : std::clamp<size_t>(most, 1, kGroup);
}

// Null if there is no room.
void* OpenClKernel::make_staged(cl::Owned<cl::MemoryId>& memory, size_t n_bytes, int32_t& error) {
  const cl::Api& api = device_->api();
  memory = {api.clCreateBuffer(device_->context(), cl::kMemReadWrite | cl::kMemAllocHostPtr,
                               n_bytes, nullptr, &error),
            {api.clReleaseMemObject}};
  if (memory == nullptr) return nullptr;
  return api.clEnqueueMapBuffer(queue_.get(), memory.get(), cl::kTrue, cl::kMapRead | cl::kMapWrite,
                                0, n_bytes, 0, nullptr, nullptr, &error);
}

void OpenClKernel::make_slot(uint32_t s, const Kernel& kernel, const std::string& where) {
  Buffers& slot = buffers_[s];
  const cl::Api& api = device_->api();
  const size_t sizes[] = {room_bytes_, size_t{max_pkts_} * sizeof(Place),
                          size_t{max_pkts_} * result_bytes_, room_bytes_};
  void* mapped[4] = {};
  int32_t error = cl::kSuccess;
  for (uint8_t b = kBytes; b <= (rewrites_ ? kReturned : kResults); ++b) {
    if (b != kReturned) {
      slot.own[b] = {
          api.clCreateBuffer(device_->context(), cl::kMemReadWrite, sizes[b], nullptr, &error),
          {api.clReleaseMemObject}};
    }
    if (b == kReturned || slot.own[b] != nullptr)
      mapped[b] = make_staged(slot.staged[b], sizes[b], error);
    if (mapped[b] == nullptr) {
      throw ConfigError("the OpenCL device '" + device_->name() + "' has no " +
                            std::to_string((sizes[b] >> 10) + 1) + " KiB for batches of " +
                            std::to_string(max_pkts_) + " packets: error " + std::to_string(error),
                        where, "a smaller max_batch_pkts");
    }
  }
  slots_[s].bytes = static_cast<uint8_t*>(mapped[kBytes]);
  slots_[s].places = static_cast<Place*>(mapped[kPlaces]);
  slots_[s].results = static_cast<uint8_t*>(mapped[kResults]);
  slots_[s].returned = static_cast<uint8_t*>(mapped[kReturned]);
  slot.kernel = {api.clCreateKernel(program_.get(), kernel.entry(), &error), {api.clReleaseKernel}};
  const cl::MemoryId bytes = slot.own[kBytes].get();
  const cl::MemoryId places = slot.own[kPlaces].get();
  const cl::MemoryId results = slot.own[kResults].get();
  if (slot.kernel == nullptr ||
      api.clSetKernelArg(slot.kernel.get(), 0, sizeof(cl::MemoryId), &bytes) != cl::kSuccess ||
      api.clSetKernelArg(slot.kernel.get(), 1, sizeof(cl::MemoryId), &places) != cl::kSuccess ||
      api.clSetKernelArg(slot.kernel.get(), 3, sizeof(cl::MemoryId), &results) != cl::kSuccess) {
    throw ConfigError("'" + device_->name() + "' does not take the kernel '" +
                          std::string(kernel.entry()) + "': error " + std::to_string(error),
                      where);
  }
}

std::unique_ptr<DeviceKernel::Table> OpenClKernel::make_table(const std::vector<uint32_t>& words,
                                                              int32_t& error) {
  const cl::Api& api = device_->api();
  auto table = std::make_unique<ClTable>();
  table->words = {api.clCreateBuffer(device_->context(), cl::kMemReadOnly | cl::kMemCopyHostPtr,
                                     words.size() * sizeof(uint32_t),
                                     const_cast<uint32_t*>(words.data()), &error),
                  {api.clReleaseMemObject}};
  if (table->words == nullptr) return nullptr;
  return table;
}

// Enqueued commands keep a reference to their memory, even if it is released meanwhile.
bool OpenClKernel::take_table(uint32_t slot) noexcept {
  if (slots_[slot].table_number == 0) return true;
  const cl::Api& api = device_->api();
  const auto& table = static_cast<const ClTable&>(*slots_[slot].table);
  const cl::KernelId kernel = buffers_[slot].kernel.get();
  const cl::MemoryId words = table.words.get();
  return !failed(api.clSetKernelArg(kernel, 4, sizeof words, &words), "a kernel cannot begin");
}

bool OpenClKernel::begin(uint32_t slot) noexcept {
  const cl::Api& api = device_->api();
  const Slot& s = slots_[slot];
  Buffers& to = buffers_[slot];
  const auto write = [&](uint8_t b, const void* from, size_t n_bytes) {
    return n_bytes == 0 ? cl::kSuccess
                        : api.clEnqueueWriteBuffer(queue_.get(), to.own[b].get(), cl::kFalse, 0,
                                                   n_bytes, from, 0, nullptr, nullptr);
  };
  const size_t n_items = groups_of(s.n) * group_;
  cl::EventId done = nullptr;
  if (failed(write(kBytes, s.bytes, s.n_bytes), "a batch cannot be copied there") ||
      failed(write(kPlaces, s.places, s.n * sizeof(Place)), "a batch cannot be copied there") ||
      failed(api.clSetKernelArg(to.kernel.get(), 2, sizeof s.n, &s.n), "a kernel cannot begin") ||
      !take_table(slot) ||
      failed(api.clEnqueueNDRangeKernel(queue_.get(), to.kernel.get(), 1, nullptr, &n_items,
                                        &group_, 0, nullptr, nullptr),
             "a kernel cannot begin") ||
      (rewrites_ && s.n_bytes != 0 &&
       failed(api.clEnqueueReadBuffer(queue_.get(), to.own[kBytes].get(), cl::kFalse, 0, s.n_bytes,
                                      s.returned, 0, nullptr, nullptr),
              "results cannot be copied back")) ||
      failed(api.clEnqueueReadBuffer(queue_.get(), to.own[kResults].get(), cl::kFalse, 0,
                                     size_t{s.n} * result_bytes_, s.results, 0, nullptr, &done),
             "results cannot be copied back")) {
    to.is_cut_off = true;
    return false;
  }
  to.done = {done, {api.clReleaseEvent}};
  return !failed(api.clFlush(queue_.get()), "a kernel cannot begin");
}

DeviceKernel::State OpenClKernel::poll(uint32_t slot) noexcept {
  cl::Owned<cl::EventId>& done = buffers_[slot].done;
  if (done == nullptr) return State::kDone;
  int32_t status = 0;
  if (failed(device_->api().clGetEventInfo(done.get(), cl::kEventCommandExecutionStatus,
                                           sizeof status, &status, nullptr),
             "a batch cannot be asked for"))
    return State::kFailed;
  if (status > cl::kComplete) return State::kRunning;
  done.reset();
  return failed(status, "a batch failed") ? State::kFailed : State::kDone;
}

}  // namespace batchplane::offload

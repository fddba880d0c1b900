// SPDX-License-Identifier: BSD-3-Clause
// opencl_kernel.cc - a module's kernel on an OpenCL device. Nothing here waits for the device.
#include "offload/opencl/opencl_kernel.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/error.h"
#include "base/patience.h"

namespace batchplane::offload {
namespace {

constexpr size_t kGroup = 64;
constexpr uint32_t kAlignBytes = 4;
// Buffers that a device still uses by then are never given back.
constexpr std::chrono::seconds kLongestEnd{1};

enum : uint8_t { kBytes, kPlaces, kResults };

// The first line of what a compiler says that tells of an error.
std::string error_line(const std::string& log) {
  const size_t error = log.find("error:");
  const size_t begin = error == std::string::npos ? log.find_first_not_of(" \n") : error;
  if (begin == std::string::npos) return "the compiler says nothing";
  return log.substr(begin, log.find('\n', begin) - begin);
}

}  // namespace

OpenClKernel::OpenClKernel(std::shared_ptr<const OpenClDevice> device, Kernel& kernel,
                           uint32_t max_pkts, const Quiescence* quiescence,
                           const std::string& where)
    : device_(std::move(device)),
      max_pkts_(max_pkts),
      room_bytes_(max_pkts * kMeanBytes),
      result_bytes_(kernel.result_bytes()),
      tables_(std::make_unique<std::shared_ptr<Table>>(std::make_shared<Table>()),
              std::make_unique<std::shared_ptr<Table>>(), quiescence) {
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
  for (Slot& slot : slots_) make_slot(slot, kernel, where);
  renew_table(kernel, where);
  for (uint32_t s = 0; s < kSlots; ++s) clear(s);
}

OpenClKernel::~OpenClKernel() {
  const auto until = std::chrono::steady_clock::now() + kLongestEnd;
  Patience patience;
  bool is_used = false;
  for (uint32_t s = 0; s < kSlots; ++s) {
    while (poll(s) == State::kRunning && std::chrono::steady_clock::now() < until) patience.wait();
    is_used = is_used || slots_[s].done != nullptr;
  }
  if (!is_used) return;
  for (Slot& slot : slots_) {
    (void)slot.kernel.release(), (void)slot.done.release();
    for (auto& memory : slot.own) (void)memory.release();
    for (auto& memory : slot.staged) (void)memory.release();
  }
  (void)tables_.current()->words.release(), (void)tables_.current()->scratch.release();
  (void)queue_.release();
}

void OpenClKernel::build(const Kernel& kernel, const std::string& where) {
  const cl::Api& api = device_->api();
  const cl::DeviceId id = device_->id();
  const char* text = kernel.source();
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
  group_ = std::clamp<size_t>(most, 1, kGroup);
}

void OpenClKernel::make_slot(Slot& slot, const Kernel& kernel, const std::string& where) {
  const cl::Api& api = device_->api();
  const size_t sizes[] = {room_bytes_, size_t{max_pkts_} * sizeof(Place),
                          size_t{max_pkts_} * result_bytes_};
  void* mapped[3] = {};
  int32_t error = cl::kSuccess;
  for (const uint8_t b : {kBytes, kPlaces, kResults}) {
    slot.own[b] = {
        api.clCreateBuffer(device_->context(), cl::kMemReadWrite, sizes[b], nullptr, &error),
        {api.clReleaseMemObject}};
    slot.staged[b] = {
        api.clCreateBuffer(device_->context(), cl::kMemReadWrite | cl::kMemAllocHostPtr, sizes[b],
                           nullptr, &error),
        {api.clReleaseMemObject}};
    if (slot.own[b] != nullptr && slot.staged[b] != nullptr) {
      mapped[b] = api.clEnqueueMapBuffer(queue_.get(), slot.staged[b].get(), cl::kTrue,
                                         cl::kMapRead | cl::kMapWrite, 0, sizes[b], 0, nullptr,
                                         nullptr, &error);
    }
    if (mapped[b] == nullptr) {
      throw ConfigError("the OpenCL device '" + device_->name() + "' has no " +
                            std::to_string((sizes[b] >> 10) + 1) + " KiB for batches of " +
                            std::to_string(max_pkts_) + " packets: error " + std::to_string(error),
                        where, "a smaller max_batch_pkts");
    }
  }
  slot.bytes = static_cast<uint8_t*>(mapped[kBytes]);
  slot.places = static_cast<Place*>(mapped[kPlaces]);
  slot.results = static_cast<uint8_t*>(mapped[kResults]);
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

void OpenClKernel::clear(uint32_t slot) noexcept {
  Slot& s = slots_[slot];
  s.n = s.n_bytes = 0;
  s.table = tables_.read().get();
  s.table_number = s.table->number;
}

bool OpenClKernel::add(uint32_t slot, Kernel::Input input) noexcept {
  Slot& to = slots_[slot];
  const auto n_bytes = std::min(static_cast<uint32_t>(input.size()), to.table->most_input_bytes);
  if (to.n == max_pkts_ || room_bytes_ - to.n_bytes < n_bytes + kAlignBytes) return false;
  if (n_bytes != 0) std::memcpy(to.bytes + to.n_bytes, input.data(), n_bytes);
  to.places[to.n++] = {to.n_bytes, n_bytes};
  to.n_bytes += (n_bytes + kAlignBytes - 1) & ~(kAlignBytes - 1);
  return true;
}

bool OpenClKernel::failed(int32_t code, const char* what) noexcept {
  if (code == cl::kSuccess) return false;
  if (fault_.what == nullptr) fault_ = {what, code};
  return true;
}

bool OpenClKernel::launch(uint32_t slot) noexcept {
  const cl::Api& api = device_->api();
  Slot& s = slots_[slot];
  if (s.n == 0) return true;  // its first packet alone has more bytes than there is room for
  const auto write = [&](uint8_t b, const void* from, size_t n_bytes) {
    return n_bytes == 0 ? cl::kSuccess
                        : api.clEnqueueWriteBuffer(queue_.get(), s.own[b].get(), cl::kFalse, 0,
                                                   n_bytes, from, 0, nullptr, nullptr);
  };
  const size_t n_items = (s.n + group_ - 1) / group_ * group_;
  cl::EventId done = nullptr;
  if (failed(write(kBytes, s.bytes, s.n_bytes), "a batch cannot be copied there") ||
      failed(write(kPlaces, s.places, s.n * sizeof(Place)), "a batch cannot be copied there") ||
      failed(api.clSetKernelArg(s.kernel.get(), 2, sizeof s.n, &s.n), "a kernel cannot begin") ||
      !take_table(s) ||
      failed(api.clEnqueueNDRangeKernel(queue_.get(), s.kernel.get(), 1, nullptr, &n_items, &group_,
                                        0, nullptr, nullptr),
             "a kernel cannot begin") ||
      failed(api.clEnqueueReadBuffer(queue_.get(), s.own[kResults].get(), cl::kFalse, 0,
                                     size_t{s.n} * result_bytes_, s.results, 0, nullptr, &done),
             "results cannot be copied back")) {
    return false;
  }
  s.done = {done, {api.clReleaseEvent}};
  return !failed(api.clFlush(queue_.get()), "a kernel cannot begin");
}

OpenClKernel::State OpenClKernel::poll(uint32_t slot) noexcept {
  Slot& s = slots_[slot];
  if (s.done == nullptr) return State::kDone;
  int32_t status = 0;
  if (failed(device_->api().clGetEventInfo(s.done.get(), cl::kEventCommandExecutionStatus,
                                           sizeof status, &status, nullptr),
             "a batch cannot be asked for"))
    return State::kFailed;
  if (status > cl::kComplete) return State::kRunning;
  s.done.reset();
  return failed(status, "a batch failed") ? State::kFailed : State::kDone;
}

}  // namespace batchplane::offload

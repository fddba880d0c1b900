// SPDX-License-Identifier: BSD-3-Clause
// opencl_table.cc - what a kernel reads beside packets: copied to the device by whoever edits it, while launches
// go on with the one before.
#include <algorithm>

#include "base/error.h"
#include "offload/opencl/opencl_kernel.h"

namespace batchplane::offload {

void OpenClKernel::renew_table(Kernel& kernel, const std::string& where) {
  KernelTable* const from = kernel.table();
  if (from == nullptr || from->number() == tables_.current()->number) return;
  std::vector<uint32_t> words = from->words();
  const size_t n_items = (max_pkts_ + group_ - 1) / group_ * group_;
  const size_t table_bytes = words.size() * sizeof(uint32_t);
  // An argument has to be some buffer, also of kernels that need no room.
  const size_t scratch_bytes = n_items * std::max(1U, from->scratch_words()) * sizeof(uint32_t);
  const cl::Api& api = device_->api();
  int32_t error = cl::kSuccess;
  auto next = std::make_shared<Table>();
  next->number = from->number();
  next->most_input_bytes = from->most_input_bytes();
  next->words = {api.clCreateBuffer(device_->context(), cl::kMemReadOnly | cl::kMemCopyHostPtr,
                                    table_bytes, words.data(), &error),
                 {api.clReleaseMemObject}};
  if (next->words != nullptr) {
    next->scratch = {
        api.clCreateBuffer(device_->context(), cl::kMemReadWrite, scratch_bytes, nullptr, &error),
        {api.clReleaseMemObject}};
  }
  if (next->scratch == nullptr) {
    throw ConfigError("the OpenCL device '" + device_->name() + "' has no " +
                          std::to_string(((table_bytes + scratch_bytes) >> 10) + 1) +
                          " KiB for the table of '" + kernel.entry() + "': error " +
                          std::to_string(error),
                      where, "a smaller table or max_batch_pkts");
  }
  tables_.replace(std::make_unique<std::shared_ptr<Table>>(next),
                  std::make_unique<std::shared_ptr<Table>>(next));
}

// What is enqueued keeps its memory, whoever lets go of it meanwhile.
bool OpenClKernel::take_table(const Slot& slot) noexcept {
  if (slot.table->number == 0) return true;
  const cl::Api& api = device_->api();
  const cl::MemoryId words = slot.table->words.get();
  const cl::MemoryId scratch = slot.table->scratch.get();
  return !failed(api.clSetKernelArg(slot.kernel.get(), 4, sizeof words, &words),
                 "a kernel cannot begin") &&
         !failed(api.clSetKernelArg(slot.kernel.get(), 5, sizeof scratch, &scratch),
                 "a kernel cannot begin");
}

}  // namespace batchplane::offload

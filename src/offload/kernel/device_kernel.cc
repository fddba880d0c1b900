// SPDX-License-Identifier: BSD-3-Clause
// device_kernel.cc - batches on their way to a device with its own memory, and the table that the kernel
// uses: the thread that edits it copies it there, while launches still use the previous one.
#include "offload/kernel/device_kernel.h"

#include <string.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace batchplane::offload {
namespace {

constexpr uint32_t kAlignBytes = 4;

// The memory may hold keys.
struct WipedWords {
  ~WipedWords() { explicit_bzero(words.data(), words.size() * sizeof words[0]); }
  std::vector<uint32_t> words;
};

}  // namespace

DeviceKernel::DeviceKernel(Kernel& kernel, uint32_t max_pkts, const Quiescence* quiescence)
    : max_pkts_(max_pkts),
      room_bytes_(max_pkts * kMeanBytes),
      result_bytes_(kernel.result_bytes()),
      rewrites_(kernel.rewriting() != nullptr),
      lanes_(kernel.lanes()),
      group_inputs_(kernel.group_inputs()),
      tables_(std::make_unique<std::shared_ptr<Table>>(std::make_shared<Table>()),
              std::make_unique<std::shared_ptr<Table>>(), quiescence) {}

void DeviceKernel::renew_table(Kernel& kernel, const std::string& where) {
  KernelTable* const from = kernel.table();
  if (from == nullptr || from->number() == current_table().number) return;
  const WipedWords held{from->words()};
  const std::vector<uint32_t>& words = held.words;
  int32_t error = 0;
  std::shared_ptr<Table> next = make_table(words, error);
  if (next == nullptr) {
    const size_t n_bytes = words.size() * sizeof(uint32_t);
    throw ConfigError("'" + device_name() + "' has no " + std::to_string((n_bytes >> 10) + 1) +
                          " KiB for the table of '" + kernel.entry() + "': error " +
                          std::to_string(error),
                      where, "a smaller table");
  }
  next->number = from->number();
  next->most_input_bytes = from->most_input_bytes();
  tables_.replace(std::make_unique<std::shared_ptr<Table>>(next),
                  std::make_unique<std::shared_ptr<Table>>(next));
}

void DeviceKernel::clear(uint32_t slot) noexcept {
  Slot& s = slots_[slot];
  s.n = s.n_bytes = s.n_fetched = 0;
  if (!rewrites_) s.lent = lent();
  s.table = tables_.read().get();
  s.table_number = s.table->number;
}

void DeviceKernel::clear_for_trial() noexcept {
  clear(0);
  if (rewrites_ || !can_fetch()) return;
  trial_ = {trial_memory(), slots_[1].bytes_address};
  slots_[0].lent = {&trial_, 1};
}

bool DeviceKernel::add(uint32_t slot, Kernel::Input input) noexcept {
  Slot& to = slots_[slot];
  const auto n_bytes = std::min(static_cast<uint32_t>(input.size()), to.table->most_input_bytes);
  if (to.n == max_pkts_ || room_bytes_ - to.n_bytes < n_bytes + kAlignBytes) return false;
  const uint64_t from = fetches(slot) ? address_of(to, input.first(n_bytes)) : 0;
  if (from == 0 && n_bytes != 0) std::memcpy(to.bytes + to.n_bytes, input.data(), n_bytes);
  if (to.from != nullptr) to.from[to.n] = from == 0 ? to.bytes_address + to.n_bytes : from;
  to.n_fetched += from == 0 ? 0 : 1;
  place(to, n_bytes);
  return true;
}

uint64_t DeviceKernel::address_of(const Slot& slot, Kernel::Input input) noexcept {
  for (const LentMemory& lent : slot.lent) {
    const uint64_t at = static_cast<uint64_t>(input.data() - lent.memory.data());
    if (at < lent.memory.size()) return lent.device_address + at;
  }
  return 0;
}

bool DeviceKernel::add(uint32_t slot, RewritingKernel& kernel, Packet& pkt) noexcept {
  Slot& to = slots_[slot];
  if (to.n == max_pkts_ || room_bytes_ - to.n_bytes < kAlignBytes) return false;
  const uint32_t room_bytes =
      std::min(room_bytes_ - to.n_bytes - kAlignBytes, RewritingKernel::kMostBytes);
  const uint32_t n_bytes = kernel.write_input(pkt, {to.bytes + to.n_bytes, room_bytes});
  if (n_bytes == RewritingKernel::kNoRoom) return false;
  place(to, n_bytes);
  return true;
}

void DeviceKernel::place(Slot& slot, uint32_t n_bytes) noexcept {
  slot.places[slot.n++] = {slot.n_bytes, n_bytes};
  slot.n_bytes += (n_bytes + kAlignBytes - 1) & ~(kAlignBytes - 1);
}

bool DeviceKernel::failed(int32_t code, const char* what) noexcept {
  if (code == 0) return false;
  if (fault_.what == nullptr) fault_ = {what, code};
  return true;
}

}  // namespace batchplane::offload

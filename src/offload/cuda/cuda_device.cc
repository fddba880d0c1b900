// SPDX-License-Identifier: BSD-3-Clause
// cuda_device.cc - lists the NVIDIA GPUs and opens one of them.
#include "offload/cuda/cuda_device.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/nearest_word.h"
#include "offload/cuda/power_meter.h"

namespace batchplane::offload {
namespace {

struct Gpu {
  cu::DeviceId id = 0;
  std::string name;
  std::string bus;
};

std::vector<Gpu> gpus_of(const cu::Api& api) {
  int32_t n = 0;
  if (api.device_count(&n) != cu::kSuccess) n = 0;
  std::vector<Gpu> found;
  for (int32_t i = 0; i < n; ++i) {
    Gpu gpu;
    char name[128] = {};
    char bus[32] = {};
    if (api.device_get(&gpu.id, i) != cu::kSuccess ||
        api.device_name(name, sizeof name - 1, gpu.id) != cu::kSuccess)
      continue;
    if (api.device_bus(bus, sizeof bus - 1, gpu.id) != cu::kSuccess) bus[0] = '\0';
    gpu.name = name;
    gpu.bus = bus;
    found.push_back(std::move(gpu));
  }
  return found;
}

const Gpu& chosen(const std::vector<Gpu>& all, const std::string& choice,
                  const std::string& where) {
  if (all.empty()) {
    throw ConfigError("NVIDIA's driver has no GPU here", where, "`nvidia-smi` should list one");
  }
  const bool is_number =
      !choice.empty() && std::ranges::all_of(choice, [](char c) { return c >= '0' && c <= '9'; });
  for (size_t i = 0; i < all.size(); ++i) {
    if (is_number ? choice == std::to_string(i) : all[i].name.find(choice) != std::string::npos)
      return all[i];
  }
  std::vector<std::string> names;
  for (const Gpu& gpu : all) names.push_back(gpu.name);
  throw ConfigError("there is no GPU '" + choice + "'", where + ".device",
                    did_you_mean(choice, std::move(names)));
}

}  // namespace

CudaDevice::CudaDevice(const CudaChoice& choice, const std::string& where)
    : api_(cu::loaded_api()) {
  const std::vector<Gpu> all = gpus_of(api_);
  const Gpu& gpu = chosen(all, choice.device, where);
  name_ = gpu.name;
  bus_ = gpu.bus;
  context_ = std::make_shared<const cu::Context>(api_, gpu.id);
  if (context_->error() == cu::kSuccess) return;
  throw ConfigError(
      "the GPU '" + name_ + "' cannot be opened: error " + std::to_string(context_->error()),
      where);
}

void CudaDevice::lend(std::span<const std::span<uint8_t>> memory) {
  (void)use();
  for (const std::span<uint8_t> piece : memory) {
    auto mapped = cu::MappedMemory::of(api_, context_, piece);
    const cu::Address address = mapped == nullptr ? 0 : mapped->address();
    if (address == 0) continue;  // its packets are copied
    mapped_.push_back(std::move(mapped));
    lent_.push_back({piece, address});
  }
}

uint64_t CudaDevice::lent_bytes() const {
  uint64_t n_bytes = 0;
  for (const LentMemory& lent : lent_) n_bytes += lent.memory.size();
  return n_bytes;
}

std::optional<double> CudaDevice::watts() const { return cu::watts_of(bus_); }

List list_cuda_devices() {
  const cu::Api& api = cu::loaded_api();
  int32_t version = 0;
  if (api.driver_version(&version) != cu::kSuccess) version = 0;
  const std::string driver =
      "CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
  List found;
  for (const Gpu& gpu : gpus_of(api)) {
    Dict row{{"device", gpu.name}, {"driver", driver}, {"bus", gpu.bus}};
    if (const std::optional<double> watts = cu::watts_of(gpu.bus)) row["watts"] = *watts;
    found.emplace_back(std::move(row));
  }
  return found;
}

}  // namespace batchplane::offload

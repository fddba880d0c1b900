// SPDX-License-Identifier: BSD-3-Clause
// opencl_device.cc - lists the OpenCL platforms and devices and opens one of them.
#include "offload/opencl/opencl_device.h"

#include <algorithm>
#include <exception>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/nearest_word.h"
#include "base/pin_thread.h"

namespace batchplane::offload {
namespace {

struct Named {
  std::string name;
  cl::PlatformId platform = nullptr;
  cl::DeviceId device = nullptr;
};

// `get`(room, to, n_bytes) is an OpenCL query of a zero-terminated string.
template <class Get>
std::string text_of(Get get) {
  size_t n_bytes = 0;
  if (get(size_t{0}, nullptr, &n_bytes) != cl::kSuccess) return "?";
  std::string text(n_bytes, '\0');
  if (get(n_bytes, text.data(), nullptr) != cl::kSuccess) return "?";
  text.resize(std::min(text.find('\0'), text.size()));
  return text;
}

std::vector<Named> platforms_of(const cl::Api& api) {
  uint32_t n = 0;
  if (api.clGetPlatformIDs(0, nullptr, &n) != cl::kSuccess) n = 0;
  std::vector<cl::PlatformId> ids(n);
  if (n != 0 && api.clGetPlatformIDs(n, ids.data(), nullptr) != cl::kSuccess) ids.clear();
  std::vector<Named> found;
  for (const cl::PlatformId id : ids) {
    found.push_back({text_of([&](size_t room, void* to, size_t* n_bytes) {
                       return api.clGetPlatformInfo(id, cl::kPlatformName, room, to, n_bytes);
                     }),
                     id});
  }
  return found;
}

std::vector<Named> devices_of(const cl::Api& api, cl::PlatformId platform) {
  uint32_t n = 0;
  if (api.clGetDeviceIDs(platform, cl::kDeviceTypeAll, 0, nullptr, &n) != cl::kSuccess) n = 0;
  std::vector<cl::DeviceId> ids(n);
  if (n != 0 && api.clGetDeviceIDs(platform, cl::kDeviceTypeAll, n, ids.data(), nullptr) != 0)
    ids.clear();
  std::vector<Named> found;
  for (const cl::DeviceId id : ids) {
    found.push_back({text_of([&](size_t room, void* to, size_t* n_bytes) {
                       return api.clGetDeviceInfo(id, cl::kDeviceName, room, to, n_bytes);
                     }),
                     platform, id});
  }
  return found;
}

const Named& named(const std::vector<Named>& all, const std::string& part, const std::string& what,
                   const std::string& where) {
  const auto found = std::ranges::find_if(
      all, [&](const Named& one) { return one.name.find(part) != std::string::npos; });
  if (found != all.end()) return *found;
  std::vector<std::string> names;
  for (const Named& one : all) names.push_back(one.name);
  throw ConfigError("there is no OpenCL " + what + " '" + part + "'", where,
                    did_you_mean(part, std::move(names)));
}

}  // namespace

OpenClDevice::OpenClDevice(const OpenClChoice& choice, const std::vector<int>& avoided_cores,
                           const std::string& where)
    : api_(cl::loaded_api()) {
  // A library that computes on the CPU creates its threads when first asked for devices, and they inherit
  // the affinity of the asking thread.
  std::exception_ptr error;
  std::thread asking([&] {
    keep_off_cores(avoided_cores);
    try {
      choose(choice, where);
    } catch (...) {
      error = std::current_exception();
    }
  });
  asking.join();
  if (error != nullptr) std::rethrow_exception(error);
}

void OpenClDevice::choose(const OpenClChoice& choice, const std::string& where) {
  std::vector<Named> platforms = platforms_of(api_);
  if (platforms.empty()) {
    throw ConfigError("OpenCL has no platform here", where,
                      "install a driver that has a file in /etc/OpenCL/vendors");
  }
  if (!choice.platform.empty())
    platforms = {named(platforms, choice.platform, "platform", where + ".platform")};
  std::vector<Named> devices;
  for (const Named& platform : platforms) {
    for (Named& device : devices_of(api_, platform.platform)) devices.push_back(std::move(device));
  }
  if (devices.empty()) {
    throw ConfigError("the OpenCL platform '" + platforms.front().name + "' has no device", where,
                      "`batchplane doctor` lists platforms and their devices");
  }
  const Named& device = named(devices, choice.device, "device", where + ".device");
  platform_ = device.platform;
  id_ = device.device;
  name_ = device.name;
  int32_t error = cl::kSuccess;
  context_ = {api_.clCreateContext(nullptr, 1, &id_, nullptr, nullptr, &error),
              {api_.clReleaseContext}};
  if (context_ == nullptr) {
    throw ConfigError(
        "the OpenCL device '" + name_ + "' cannot be opened: error " + std::to_string(error),
        where);
  }
}

List list_opencl_devices() {
  const cl::Api& api = cl::loaded_api();
  List found;
  for (const Named& platform : platforms_of(api)) {
    List devices;
    List drivers;
    for (const Named& device : devices_of(api, platform.platform)) {
      devices.emplace_back(device.name);
      drivers.emplace_back(text_of([&](size_t room, void* to, size_t* n_bytes) {
        return api.clGetDeviceInfo(device.device, cl::kDriverVersion, room, to, n_bytes);
      }));
    }
    found.emplace_back(
        Dict{{"platform", platform.name}, {"devices", devices}, {"drivers", drivers}});
  }
  return found;
}

}  // namespace batchplane::offload

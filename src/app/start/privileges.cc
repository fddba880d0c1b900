// SPDX-License-Identifier: BSD-3-Clause
// privileges.cc - capabilities belong to threads, and libraries have created some by now: a signal makes each
// of them drop its own.
#include "app/start/privileges.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <thread>

#include "app/plan/control_priority.h"
#include "app/start/startup.h"
#include "base/error.h"
#include "base/patience.h"
#include "core/module/kind.h"
#include "ports/port_kinds.h"

namespace batchplane::app {
namespace {

bool has_pci_devices(const PipelineSpec& spec) { return !pci_devices(spec).empty(); }

bool makes_interfaces(const PipelineSpec& spec) {
  const auto of_port = [](const PortSpec& port) {
    const PortKindInfo* kind = find_port_kind(port.kind);
    return kind != nullptr && kind->makes_interfaces;
  };
  const auto of_module = [](const ModuleSpec& module) {
    const ModuleInfo* kind = find_module_kind(module.kind);
    return kind != nullptr && kind->makes_interfaces;
  };
  return std::ranges::any_of(spec.ports, of_port) || std::ranges::any_of(spec.modules, of_module);
}

bool is_always_needed(const PipelineSpec&) { return true; }

// In a user namespace the capability may be present without giving priority.
bool needs_nice(const PipelineSpec&) {
  if (is_control_priority_allowed()) return false;
  bool may = false;
  std::thread([&] { may = take_control_priority(); }).join();
  return may;
}

struct KeptRight {
  int capability;
  const char* name;
  bool (*is_needed)(const PipelineSpec& spec);
};

// python/batchplane/commands/doctor.py lists them, with the reasons.
constexpr KeptRight kKept[] = {
    {CAP_NET_RAW, "CAP_NET_RAW", is_always_needed},
    {CAP_NET_ADMIN, "CAP_NET_ADMIN", makes_interfaces},
    {CAP_SYS_NICE, "CAP_SYS_NICE", needs_nice},
    // DMA memory is pinned, and its physical addresses are looked up.
    {CAP_IPC_LOCK, "CAP_IPC_LOCK", has_pci_devices},
    {CAP_SYS_ADMIN, "CAP_SYS_ADMIN", has_pci_devices},
    {CAP_SYS_RAWIO, "CAP_SYS_RAWIO", has_pci_devices},
};

// Read by the handler.
uint64_t kept_mask = 0;               // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)
std::atomic<uint32_t> n_done{0};      // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)
std::atomic<bool> has_failed{false};  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

uint64_t permitted_now() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2]{};
  if (syscall(SYS_capget, &header, data) != 0) return 0;
  return data[0].permitted | static_cast<uint64_t>(data[1].permitted) << 32;
}

// Drops those of the calling thread. Only system calls that a signal handler may use.
bool drop_here() {
  for (int capability = 0; capability < 64; ++capability) {
    if ((kept_mask >> capability & 1) != 0) continue;
    // Fails without CAP_SETPCAP; no_new_privs still prevents regaining it.
    if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0 && errno == EINVAL) break;
  }
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  const bool is_final = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
  const uint64_t mask = permitted_now() & kept_mask;
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2]{};
  for (int i = 0; i < 2; ++i) {
    data[i].effective = data[i].permitted = static_cast<uint32_t>(mask >> (32 * i));
  }
  return syscall(SYS_capset, &header, data) == 0 && is_final;
}

void on_signal(int) {
  const int before = errno;
  if (!drop_here()) has_failed.store(true);
  n_done.fetch_add(1);
  errno = before;
}

std::set<pid_t> all_threads() {
  std::set<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    found.insert(static_cast<pid_t>(std::atol(entry.path().filename().c_str())));
  }
  return found;
}

bool wait_for(uint32_t wanted) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  Patience patience;
  while (n_done.load() < wanted) {
    if (std::chrono::steady_clock::now() > end) return false;
    patience.wait();
  }
  return true;
}

// All other threads. Threads created meanwhile by one that had not dropped yet are found in the next round.
bool drop_elsewhere() {
  std::set<pid_t> done{static_cast<pid_t>(syscall(SYS_gettid))};
  while (true) {
    bool is_new = false;
    for (const pid_t thread : all_threads()) {
      if (!done.insert(thread).second) continue;
      is_new = true;
      const uint32_t before = n_done.load();
      if (syscall(SYS_tgkill, getpid(), thread, SIGRTMAX) != 0) continue;  // the thread has ended
      if (!wait_for(before + 1)) return false;
    }
    if (!is_new) return true;
  }
}

}  // namespace

std::vector<std::string> drop_privileges(const PipelineSpec& spec) {
  uint64_t mask = 0;
  for (const KeptRight& kept : kKept) {
    if (kept.is_needed(spec)) mask |= 1ULL << kept.capability;
  }
  kept_mask = mask;
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGRTMAX, &action, &before);
  const bool is_told = drop_elsewhere();
  // Last: signalling the others needs this thread's privileges.
  const bool is_dropped = drop_here();
  if (!is_told || !is_dropped || has_failed.load()) {
    throw ConfigError("a thread keeps capabilities that it does not need", "start",
                      "look for what keeps it in /proc/PID/task");
  }
  sigaction(SIGRTMAX, &before, nullptr);
  std::vector<std::string> names;
  for (const KeptRight& kept : kKept) {
    if ((permitted_now() >> kept.capability & 1) != 0) names.emplace_back(kept.name);
  }
  return names;
}

}  // namespace batchplane::app

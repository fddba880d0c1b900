// SPDX-License-Identifier: BSD-3-Clause
#include "base/shared_library.h"

#include <dlfcn.h>

#include <string>

#include "base/error.h"

namespace batchplane {

SharedLibrary::SharedLibrary(const char* name, const char* if_missing, const char* if_old)
    : name_(name), if_old_(if_old), handle_(dlopen(name, RTLD_NOW | RTLD_LOCAL)) {
  if (handle_ == nullptr) throw ConfigError(std::string("there is no ") + name, "", if_missing);
}

void* SharedLibrary::symbol(const char* name) const {
  void* const symbol = dlsym(handle_, name);
  if (symbol != nullptr) return symbol;
  throw ConfigError(std::string(name_) + " has no " + name, "", if_old_);
}

}  // namespace batchplane

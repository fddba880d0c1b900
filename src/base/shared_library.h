// SPDX-License-Identifier: BSD-3-Clause
// shared_library.h - functions of a library that is looked up at run time, because it need not be installed.
#pragma once

namespace batchplane {

// Stays loaded until the process ends.
class SharedLibrary {
 public:
  // `if_missing`, `if_old`: what to do without the library, or if it lacks a function. Throws ConfigError.
  SharedLibrary(const char* name, const char* if_missing, const char* if_old);

  // Sets `function` to the one of this name. Throws ConfigError.
  template <class Function>
  void find(Function*& function, const char* name) const {
    function = reinterpret_cast<Function*>(symbol(name));
  }

 private:
  [[nodiscard]] void* symbol(const char* name) const;

  const char* const name_;
  const char* const if_old_;
  void* const handle_;
};

}  // namespace batchplane

// SPDX-License-Identifier: BSD-3-Clause
// esp_keys.h - keys of SAs, from a file that only its owner may read. Keys never appear in command
// output, saved pipelines, messages or traces.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "modules/esp/esp_suite.h"

namespace batchplane::esp {

// Bytes that are zeroed before their memory is freed.
class Secret {
 public:
  Secret() = default;
  explicit Secret(std::vector<uint8_t> bytes) : bytes_(std::move(bytes)) {}
  Secret(const Secret&) = default;
  Secret(Secret&&) = default;
  Secret& operator=(const Secret&) = default;
  Secret& operator=(Secret&&) = default;
  ~Secret() { wipe(); }

  [[nodiscard]] const uint8_t* data() const { return bytes_.data(); }
  [[nodiscard]] uint32_t size_bytes() const { return static_cast<uint32_t>(bytes_.size()); }
  bool operator==(const Secret& other) const { return view() == other.view(); }
  auto operator<=>(const Secret& other) const { return view() <=> other.view(); }

 private:
  void wipe();
  [[nodiscard]] std::string_view view() const {
    return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
  }

  std::vector<uint8_t> bytes_;
};

struct Keys {
  Secret cipher;  // includes the salt
  Secret auth;    // empty for AEAD ciphers
  bool operator==(const Keys&) const = default;
};

// Owner: control thread.
class KeyRing {
 public:
  // Reads lines of `ID CIPHER_KEY [AUTH_KEY]`, in hexadecimal. Throws ConfigError with FILE:LINE
  // and no part of any key; also if other users may read the file.
  static KeyRing from_file(const std::string& path, const std::string& where);
  // Test keys derived from the ID, which anybody can compute.
  static KeyRing of_tests() { return KeyRing(); }

  // Throws ConfigError if there is no key or its length does not fit the suite.
  [[nodiscard]] Keys keys_of(uint32_t id, const Suite& suite, const std::string& where) const;

 private:
  struct Entry {
    Keys keys;
    uint32_t line = 0;
  };

  std::string path_;  // empty: test keys
  std::map<uint32_t, Entry> entries_;
};

}  // namespace batchplane::esp

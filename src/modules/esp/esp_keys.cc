// SPDX-License-Identifier: BSD-3-Clause
// esp_keys.cc - reads key files, and derives test keys.
#include "modules/esp/esp_keys.h"

#include <string.h>
#include <sys/stat.h>

#include <charconv>
#include <optional>

#include "base/error.h"
#include "base/hex.h"
#include "base/text_file.h"

namespace batchplane::esp {
namespace {

constexpr const char* kLineForm =
    "write `ID CIPHER_KEY [AUTH_KEY]`, keys in hexadecimal, the salt at the cipher key's end";

std::optional<Secret> secret_of(const std::string& word) {
  const size_t first = word.starts_with("0x") ? 2 : 0;
  if ((word.size() - first) % 2 != 0 || word.size() == first) return std::nullopt;
  std::vector<uint8_t> bytes;
  bytes.reserve((word.size() - first) / 2);
  for (size_t i = first; i < word.size(); i += 2) {
    const uint32_t high = hex_digit_of(word[i]);
    const uint32_t low = hex_digit_of(word[i + 1]);
    if (high == kNoHexDigit || low == kNoHexDigit) return std::nullopt;
    bytes.push_back(static_cast<uint8_t>(high << 4 | low));
  }
  return Secret(std::move(bytes));
}

void check_mode(const std::string& path, const std::string& where) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0 || (facts.st_mode & (S_IROTH | S_IWOTH)) == 0) return;
  throw ConfigError("everybody may read or write the keys in '" + path + "'", where,
                    "run: chmod o-rw " + path);
}

Secret test_secret(uint32_t id, uint32_t salt, uint32_t n_bytes) {
  std::vector<uint8_t> bytes(n_bytes);
  uint64_t x = uint64_t{id} << 8 | salt;
  for (uint8_t& byte : bytes) {
    x = x * 6364136223846793005ULL + 1442695040888963407ULL;
    byte = static_cast<uint8_t>(x >> 56);
  }
  return Secret(std::move(bytes));
}

}  // namespace

void Secret::wipe() {
  if (!bytes_.empty()) explicit_bzero(bytes_.data(), bytes_.size());
}

KeyRing KeyRing::from_file(const std::string& path, const std::string& where) {
  std::ifstream in = open_text_file(path, where);
  check_mode(path, where);
  KeyRing ring;
  ring.path_ = path;
  uint32_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    const std::vector<std::string> words = words_of_line(line);
    if (words.empty()) continue;
    const std::string at = path + ":" + std::to_string(number);
    uint32_t id = 0;
    const char* const end = words[0].data() + words[0].size();
    const auto [stop, error] = std::from_chars(words[0].data(), end, id);
    if (error != std::errc() || stop != end || words.size() < 2 || words.size() > 3) {
      throw ConfigError("this line has no key", at, kLineForm);
    }
    const std::optional<Secret> cipher = secret_of(words[1]);
    const std::optional<Secret> auth = words.size() > 2 ? secret_of(words[2]) : Secret();
    if (!cipher || !auth) throw ConfigError("a key is not in hexadecimal", at, kLineForm);
    if (!ring.entries_.emplace(id, Entry{{*cipher, *auth}, number}).second) {
      throw ConfigError("SA " + std::to_string(id) + " has a key already", at, "keep one of them");
    }
  }
  return ring;
}

Keys KeyRing::keys_of(uint32_t id, const Suite& suite, const std::string& where) const {
  if (path_.empty()) {
    return {test_secret(id, 0, suite.key_bytes()), test_secret(id, 1, suite.auth_key_bytes)};
  }
  const auto found = entries_.find(id);
  if (found == entries_.end()) {
    throw ConfigError("there is no key of SA " + std::to_string(id) + " in '" + path_ + "'", where,
                      kLineForm);
  }
  const auto& [keys, line] = found->second;
  const auto check = [&](const char* which, uint32_t given, uint32_t wanted) {
    if (given == wanted) return;
    throw ConfigError("the " + std::string(which) + " key has " + std::to_string(given) + " bytes",
                      path_ + ":" + std::to_string(line),
                      std::string(suite.name) + " takes " + std::to_string(wanted) +
                          (suite.salt_bytes != 0 && wanted != 0 ? ", 4 of them the salt" : ""));
  };
  check("cipher", keys.cipher.size_bytes(), suite.key_bytes());
  check("authentication", keys.auth.size_bytes(), suite.auth_key_bytes);
  return keys;
}

}  // namespace batchplane::esp

// SPDX-License-Identifier: BSD-3-Clause
// esp_crypto_ipsec_mb.h - encrypts and decrypts batches of ESP packets with intel-ipsec-mb, using
// all its lanes in parallel.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "modules/esp/esp_keys.h"

namespace batchplane::esp {

inline constexpr uint32_t kEspHeaderBytes = 8;  // SPI and sequence number
inline constexpr uint32_t kMaxIcvBytes = 16;

// Keys in the library's format. Immutable.
struct KeySchedule;
struct KeyScheduleDeleter {
  void operator()(KeySchedule* keys) const;
};
using KeySchedulePtr = std::unique_ptr<KeySchedule, KeyScheduleDeleter>;
// The cipher key followed by the salt for AES-GCM; empty for other ciphers.
[[nodiscard]] std::span<const uint8_t> gcm_key_of(const KeySchedule& keys);

// One packet: ESP header, IV, body and ICV, in place. Members have no initializers, since arrays of
// these are on the stack.
struct alignas(64) Work {
  const KeySchedule* keys;
  uint8_t* esp;
  uint32_t body_bytes;  // between IV and ICV
  uint32_t index;       // for the caller's use
  uint64_t sequence;    // the full 64 bits
  // The rest is for Crypto only.
  bool is_done;
  uint8_t nonce[12];
  uint8_t aad[12];
  uint8_t tag[kMaxIcvBytes];
  uint8_t received[kMaxIcvBytes];
};

// Owner: one worker at a time. Keeps no packets between calls.
class Crypto {
 public:
  Crypto();  // throws ConfigError when the library cannot work here
  ~Crypto();
  Crypto(const Crypto&) = delete;
  Crypto& operator=(const Crypto&) = delete;

  // Control thread, on a Crypto that is not otherwise in use.
  [[nodiscard]] KeySchedulePtr expand(const Suite& suite, const Keys& keys, bool has_esn) const;

  // The caller has written ESP header and body; this writes IV and ICV. The IV of GCM and ChaCha20
  // is the sequence number, which is never reused with a key; that of CBC is the encrypted sequence
  // number, which is unpredictable (NIST SP 800-38A, appendix C).
  void encrypt(Work* works, uint32_t n) noexcept;
  // In place. If authentication fails, the body is garbage afterwards.
  void decrypt(Work* works, uint32_t n) noexcept;
  // After decrypt. Takes constant time, independent of the data.
  [[nodiscard]] static bool is_genuine(const Work& work) noexcept;
  // Used instead of decrypt if a device has decrypted the packet.
  static void conclude(Work& work, bool is_genuine) noexcept;

  // Both directions use the library's job ring, which is large: one Library per module.
  struct Library;

 private:
  std::unique_ptr<Library> library_;
};

}  // namespace batchplane::esp

// SPDX-License-Identifier: BSD-3-Clause
// esp_crypto_ipsec_mb.h - encrypts and decrypts a batch of ESP packets with intel-ipsec-mb, as many
// packets in parallel as it has lanes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "modules/esp/esp_keys.h"

namespace batchplane::esp {

inline constexpr uint32_t kEspHeaderBytes = 8;  // SPI and sequence number
inline constexpr uint32_t kMaxIcvBytes = 16;

// Keys in the library's format; immutable.
struct KeySchedule;
struct KeyScheduleDeleter {
  void operator()(KeySchedule* keys) const;
};
using KeySchedulePtr = std::unique_ptr<KeySchedule, KeyScheduleDeleter>;
// The cipher key with its salt for AES-GCM; empty for other ciphers.
[[nodiscard]] std::span<const uint8_t> gcm_key_of(const KeySchedule& keys);

// One packet: ESP header, IV, body and ICV, in place. Members have no initial values, as there are
// arrays of these on the stack.
struct alignas(64) Work {
  const KeySchedule* keys;
  uint8_t* esp;
  uint32_t body_bytes;  // between IV and ICV
  uint32_t index;       // of the caller's
  uint64_t sequence;    // all 64 bits
  // The rest is Crypto's own.
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

  // Control thread, on a Crypto that nobody else uses.
  [[nodiscard]] KeySchedulePtr expand(const Suite& suite, const Keys& keys, bool has_esn) const;

  // The caller has written ESP header and body; this writes IV and ICV. The IV of GCM and ChaCha20
  // is the sequence number, which is never reused with a key; that of CBC is the encrypted sequence
  // number, which is unpredictable (NIST SP 800-38A, appendix C).
  void encrypt(Work* works, uint32_t n) noexcept;
  // In place: the body of a packet that fails authentication is garbage afterwards.
  void decrypt(Work* works, uint32_t n) noexcept;
  // After decrypt. Takes constant time, whatever the bytes.
  [[nodiscard]] static bool is_genuine(const Work& work) noexcept;
  // Instead of decrypt, if a device has decrypted the packet.
  static void conclude(Work& work, bool is_genuine) noexcept;

  // Both keep jobs in the library's ring, which is large: one for each module.
  struct Library;

 private:
  std::unique_ptr<Library> library_;
};

}  // namespace batchplane::esp

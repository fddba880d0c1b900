// SPDX-License-Identifier: BSD-3-Clause
// esp_crypto_ipsec_mb.h - the cryptography of a batch of ESP packets, by intel-ipsec-mb: as many
// packets side by side as its lanes hold.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "modules/esp/esp_keys.h"

namespace batchplane::esp {

inline constexpr uint32_t kEspHeaderBytes = 8;  // SPI and sequence number
inline constexpr uint32_t kMaxIcvBytes = 16;

// Keys as the library wants them; never changed once made.
struct KeySchedule;
struct KeyScheduleDeleter {
  void operator()(KeySchedule* keys) const;
};
using KeySchedulePtr = std::unique_ptr<KeySchedule, KeyScheduleDeleter>;
// The cipher's key with its salt where it is one of AES-GCM, else nothing.
[[nodiscard]] std::span<const uint8_t> gcm_key_of(const KeySchedule& keys);

// One packet: ESP header, IV, body, ICV, as they lie in it. Nothing is set beforehand: there are
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

// Owner: one worker at a time. Nothing stays inside between calls.
class Crypto {
 public:
  Crypto();  // throws ConfigError when the library cannot work here
  ~Crypto();
  Crypto(const Crypto&) = delete;
  Crypto& operator=(const Crypto&) = delete;

  // Control thread, of a Crypto that nobody else uses.
  [[nodiscard]] KeySchedulePtr expand(const Suite& suite, const Keys& keys, bool has_esn) const;

  // ESP header and body are written; IV and ICV are written here. The IV of GCM and ChaCha20 is the
  // sequence number, which no key sees twice; that of CBC is the sequence number encrypted, which
  // nobody can tell beforehand (NIST SP 800-38A, appendix C).
  void encrypt(Work* works, uint32_t n) noexcept;
  // In place: what is not genuine is garbage afterwards.
  void decrypt(Work* works, uint32_t n) noexcept;
  // After decrypt. In a time that does not depend on the bytes.
  [[nodiscard]] static bool is_genuine(const Work& work) noexcept;
  // Instead of decrypt, where another has done it.
  static void conclude(Work& work, bool is_genuine) noexcept;

  // Both keep jobs in the library's ring, which is large: one for each module.
  struct Library;

 private:
  std::unique_ptr<Library> library_;
};

}  // namespace batchplane::esp

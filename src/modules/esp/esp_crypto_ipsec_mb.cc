// SPDX-License-Identifier: BSD-3-Clause
// esp_crypto_ipsec_mb.cc - intel-ipsec-mb jobs and key schedules.
#include "modules/esp/esp_crypto_ipsec_mb.h"

#include <string.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "base/big_endian.h"
#include "base/net6.h"
#include "exec/batch.h"
#include "modules/common/ipsec_mb_manager.h"

namespace batchplane::esp {
namespace {

constexpr uint32_t kBlockBytes = 64;  // of SHA-1 and SHA-256
constexpr uint32_t kMaxDigestBytes = 32;
constexpr uint32_t kScheduleBytes = 15 * 16;
constexpr uint8_t kZeroIv[16] = {};
constexpr uint32_t kSpiBytes = 4;
constexpr uint32_t kSaltBytes = 4;
constexpr uint32_t kShortIcvBytes = 12;
constexpr uint32_t kMaxGcmKeyBytes = 32;

struct CbcKeys {
  alignas(16) uint8_t encrypt[kScheduleBytes];
  alignas(16) uint8_t decrypt[kScheduleBytes];
  alignas(16) uint8_t inner_pad[kMaxDigestBytes];
  alignas(16) uint8_t outer_pad[kMaxDigestBytes];
};

}  // namespace

struct alignas(64) KeySchedule {
  aes_gcm_enc_dec_t gcm_encrypt;
  aes_gcm_enc_dec_t gcm_decrypt;
  IMB_HASH_ALG hash;
  Cipher cipher;
  bool has_esn;
  uint8_t cipher_key_bytes;
  uint8_t iv_bytes;
  uint8_t icv_bytes;
  uint8_t salt[4];
  uint8_t gcm_key[kMaxGcmKeyBytes + kSaltBytes];  // the unexpanded key and salt
  union {
    gcm_key_data gcm;
    CbcKeys cbc;
    uint8_t chacha[32];
  };

  [[nodiscard]] uint32_t aad_bytes() const { return has_esn ? 12 : 8; }
  [[nodiscard]] bool has_algorithms_of(const KeySchedule& other) const {
    return hash == other.hash && cipher_key_bytes == other.cipher_key_bytes;
  }
};

void KeyScheduleDeleter::operator()(KeySchedule* keys) const {
  explicit_bzero(static_cast<void*>(keys), sizeof *keys);
  delete keys;
}

std::span<const uint8_t> gcm_key_of(const KeySchedule& keys) {
  if (keys.cipher != Cipher::kGcm) return {};
  return {keys.gcm_key, keys.cipher_key_bytes + kSaltBytes};
}

struct Crypto::Library {
  IpsecMbManager manager;
  alignas(64) gcm_context_data gcm_context = {};
  IMB_JOB jobs[IMB_MAX_BURST_SIZE] = {};

  // Processes GCM packets one by one and all others as jobs; stores the latter in `queued` and
  // returns their number.
  template <IMB_CIPHER_DIRECTION kDirection>
  uint32_t run(Work* works, uint32_t n, Work** queued) noexcept;
};

namespace {

void expand_gcm(IMB_MGR& manager, const Keys& keys, KeySchedule& schedule) {
  switch (schedule.cipher_key_bytes) {
    case 16:
      IMB_AES128_GCM_PRE(&manager, keys.cipher.data(), &schedule.gcm);
      schedule.gcm_encrypt = manager.gcm128_enc;
      schedule.gcm_decrypt = manager.gcm128_dec;
      return;
    case 24:
      IMB_AES192_GCM_PRE(&manager, keys.cipher.data(), &schedule.gcm);
      schedule.gcm_encrypt = manager.gcm192_enc;
      schedule.gcm_decrypt = manager.gcm192_dec;
      return;
    default:
      IMB_AES256_GCM_PRE(&manager, keys.cipher.data(), &schedule.gcm);
      schedule.gcm_encrypt = manager.gcm256_enc;
      schedule.gcm_decrypt = manager.gcm256_dec;
  }
}

// Hash state after one block of the padded key (RFC 2104).
void expand_pad(IMB_MGR& manager, const Secret& key, uint8_t pad, IMB_HASH_ALG hash,
                uint8_t* digest) {
  uint8_t block[kBlockBytes];
  std::memset(block, pad, sizeof block);
  for (uint32_t i = 0; i < key.size_bytes(); ++i) block[i] ^= key.data()[i];
  if (hash == IMB_AUTH_HMAC_SHA_1) {
    IMB_SHA1_ONE_BLOCK(&manager, block, digest);
  } else {
    IMB_SHA256_ONE_BLOCK(&manager, block, digest);
  }
  explicit_bzero(block, sizeof block);
}

void expand_cbc(IMB_MGR& manager, const Keys& keys, KeySchedule& schedule) {
  if (schedule.cipher_key_bytes == 16) {
    IMB_AES_KEYEXP_128(&manager, keys.cipher.data(), schedule.cbc.encrypt, schedule.cbc.decrypt);
  } else {
    IMB_AES_KEYEXP_256(&manager, keys.cipher.data(), schedule.cbc.encrypt, schedule.cbc.decrypt);
  }
  expand_pad(manager, keys.auth, 0x36, schedule.hash, schedule.cbc.inner_pad);
  expand_pad(manager, keys.auth, 0x5c, schedule.hash, schedule.cbc.outer_pad);
}

// AAD: SPI and sequence number; with ESN its high half is authenticated but not sent.
void write_aad(Work& work, const KeySchedule& keys) {
  std::memcpy(work.aad, work.esp, kSpiBytes);
  if (keys.has_esn) {
    net::store64(work.aad + kSpiBytes, work.sequence);
  } else {
    std::memcpy(work.aad + kSpiBytes, work.esp + kSpiBytes, sizeof(uint32_t));
  }
}
void write_nonce(Work& work, const KeySchedule& keys, const uint8_t* iv) {
  std::memcpy(work.nonce, keys.salt, kSaltBytes);
  std::memcpy(work.nonce + kSaltBytes, iv, sizeof(uint64_t));
}

void fill_chacha(IMB_JOB& job, Work& work, const KeySchedule& keys) {
  uint8_t* const body = work.esp + kEspHeaderBytes + keys.iv_bytes;
  job.enc_keys = keys.chacha;
  job.dec_keys = keys.chacha;
  job.key_len_in_bytes = sizeof keys.chacha;
  job.src = body;
  job.dst = body;
  job.cipher_start_src_offset_in_bytes = 0;
  job.msg_len_to_cipher_in_bytes = work.body_bytes;
  job.hash_start_src_offset_in_bytes = 0;
  job.msg_len_to_hash_in_bytes = work.body_bytes;
  job.iv = work.nonce;
  job.iv_len_in_bytes = sizeof work.nonce;
  job.u.CHACHA20_POLY1305.aad = work.aad;
  job.u.CHACHA20_POLY1305.aad_len_in_bytes = keys.aad_bytes();
  job.cipher_mode = IMB_CIPHER_CHACHA20_POLY1305;
}

// With ESN, the high half of the sequence number is authenticated behind the body, in the place of
// the ICV.
uint32_t append_high_half(Work& work, const KeySchedule& keys) {
  if (!keys.has_esn) return 0;
  net::store32(work.esp + kEspHeaderBytes + keys.iv_bytes + work.body_bytes,
               static_cast<uint32_t>(work.sequence >> 32));
  return 4;
}

void fill_cbc(IMB_JOB& job, Work& work, const KeySchedule& keys, IMB_CIPHER_DIRECTION direction) {
  const uint32_t iv_bytes = keys.iv_bytes;
  const bool is_encrypt = direction == IMB_DIR_ENCRYPT;
  uint8_t* const iv = work.esp + kEspHeaderBytes;
  // For encryption the IV is the first plaintext block, under a zero IV.
  const uint32_t start_bytes = kEspHeaderBytes + (is_encrypt ? 0 : iv_bytes);
  job.enc_keys = keys.cbc.encrypt;
  job.dec_keys = keys.cbc.decrypt;
  job.key_len_in_bytes = keys.cipher_key_bytes;
  job.src = work.esp;
  job.dst = work.esp + start_bytes;
  job.cipher_start_src_offset_in_bytes = start_bytes;
  job.msg_len_to_cipher_in_bytes = work.body_bytes + (is_encrypt ? iv_bytes : 0);
  job.hash_start_src_offset_in_bytes = 0;
  job.msg_len_to_hash_in_bytes =
      kEspHeaderBytes + iv_bytes + work.body_bytes + append_high_half(work, keys);
  job.iv = is_encrypt ? kZeroIv : iv;
  job.iv_len_in_bytes = iv_bytes;
  job.u.HMAC._hashed_auth_key_xor_ipad = keys.cbc.inner_pad;
  job.u.HMAC._hashed_auth_key_xor_opad = keys.cbc.outer_pad;
  job.cipher_mode = IMB_CIPHER_CBC;
}

void fill(IMB_JOB& job, Work& work, const KeySchedule& keys, IMB_CIPHER_DIRECTION direction) {
  if (keys.cipher == Cipher::kCbc) {
    fill_cbc(job, work, keys, direction);
  } else {
    fill_chacha(job, work, keys);
  }
  job.auth_tag_output = work.tag;
  job.auth_tag_output_len_in_bytes = keys.icv_bytes;
  job.cipher_direction = direction;
  job.hash_alg = keys.hash;
  job.chain_order = direction == IMB_DIR_ENCRYPT ? IMB_ORDER_CIPHER_HASH : IMB_ORDER_HASH_CIPHER;
  job.user_data = &work;
}

uint8_t* body_of(const Work& work) { return work.esp + kEspHeaderBytes + work.keys->iv_bytes; }
uint8_t* icv_of(const Work& work) { return body_of(work) + work.body_bytes; }
void copy_icv(uint8_t* to, const uint8_t* from, const KeySchedule& keys) {
  std::memcpy(to, from, kShortIcvBytes);
  if (keys.icv_bytes == kShortIcvBytes) return;
  std::memcpy(to + kShortIcvBytes, from + kShortIcvBytes, kMaxIcvBytes - kShortIcvBytes);
}

// CBC packets whose algorithms are the same, in a pass for the cipher and one for the hash: each fills its lanes, and
// no job waits in the library's queues in between.
void run_passes(IMB_MGR* manager, IMB_JOB* jobs, Work* const* works, uint32_t n,
                IMB_CIPHER_DIRECTION direction) {
  const KeySchedule& kind = *works[0]->keys;
  const auto cipher = [&] {
    return IMB_SUBMIT_CIPHER_BURST_NOCHECK(manager, jobs, n, IMB_CIPHER_CBC, direction,
                                           static_cast<IMB_KEY_SIZE_BYTES>(kind.cipher_key_bytes));
  };
  const auto hash = [&] { return IMB_SUBMIT_HASH_BURST_NOCHECK(manager, jobs, n, kind.hash); };
  for (uint32_t i = 0; i < n; ++i) fill(jobs[i], *works[i], *works[i]->keys, direction);
  const bool is_done =
      direction == IMB_DIR_ENCRYPT ? cipher() == n && hash() == n : hash() == n && cipher() == n;
  for (uint32_t i = 0; i < n; ++i) works[i]->is_done = is_done;
}

// ChaCha20 packets; returns when all are done.
void run_jobs(IMB_MGR* manager, Work* const* works, uint32_t n, IMB_CIPHER_DIRECTION direction) {
  run_ipsec_mb_jobs(
      manager, n,
      [&](IMB_JOB& job, uint32_t i) {
        // NOLINTBEGIN(clang-analyzer-core.*): i is below n, and so many were queued
        Work& work = *works[i];
        fill(job, work, *work.keys, direction);
        // NOLINTEND(clang-analyzer-core.*)
      },
      [](const IMB_JOB& job) {
        static_cast<Work*>(job.user_data)->is_done = job.status == IMB_STATUS_COMPLETED;
      });
}

}  // namespace

Crypto::Crypto() : library_(std::make_unique<Library>()) {}
Crypto::~Crypto() = default;

KeySchedulePtr Crypto::expand(const Suite& suite, const Keys& keys, bool has_esn) const {
  KeySchedulePtr schedule(new KeySchedule);
  std::memset(static_cast<void*>(schedule.get()), 0, sizeof *schedule);
  schedule->cipher = suite.cipher;
  schedule->has_esn = has_esn;
  schedule->cipher_key_bytes = static_cast<uint8_t>(suite.cipher_key_bytes);
  schedule->iv_bytes = static_cast<uint8_t>(suite.iv_bytes);
  schedule->icv_bytes = static_cast<uint8_t>(suite.icv_bytes);
  std::memcpy(schedule->salt, keys.cipher.data() + suite.cipher_key_bytes, suite.salt_bytes);
  switch (suite.cipher) {
    case Cipher::kGcm:
      std::memcpy(schedule->gcm_key, keys.cipher.data(), keys.cipher.size_bytes());
      expand_gcm(*library_->manager.get(), keys, *schedule);
      break;
    case Cipher::kChaCha:
      schedule->hash = IMB_AUTH_CHACHA20_POLY1305;
      std::memcpy(schedule->chacha, keys.cipher.data(), sizeof schedule->chacha);
      break;
    case Cipher::kCbc:
      schedule->hash = suite.auth == Auth::kSha1 ? IMB_AUTH_HMAC_SHA_1 : IMB_AUTH_HMAC_SHA_256;
      expand_cbc(*library_->manager.get(), keys, *schedule);
      break;
  }
  return schedule;
}

template <IMB_CIPHER_DIRECTION kDirection>
uint32_t Crypto::Library::run(Work* works, uint32_t n, Work** queued) noexcept {
  constexpr bool kIsEncrypt = kDirection == IMB_DIR_ENCRYPT;
  uint32_t n_queued = 0;
  for (uint32_t i = 0; i < n; ++i) {
    Work& work = works[i];
    const KeySchedule& keys = *work.keys;
    work.is_done = keys.cipher == Cipher::kGcm;
    if (!work.is_done) {
      queued[n_queued++] = &work;
      continue;
    }
    const aes_gcm_enc_dec_t gcm = kIsEncrypt ? keys.gcm_encrypt : keys.gcm_decrypt;
    uint8_t* const body = body_of(work);
    gcm(&keys.gcm, &gcm_context, body, body, work.body_bytes, work.nonce, work.aad,
        keys.aad_bytes(), kIsEncrypt ? icv_of(work) : work.tag, keys.icv_bytes);
  }
  Work** const end = queued + n_queued;
  for (Work** at = queued; at != end;) {
    const KeySchedule& kind = *(*at)->keys;
    Work** const next =
        std::partition(at, std::min(at + IMB_MAX_BURST_SIZE, end),
                       [&](const Work* work) { return work->keys->has_algorithms_of(kind); });
    const auto n_alike = static_cast<uint32_t>(next - at);
    if (kind.cipher == Cipher::kCbc) {
      run_passes(manager.get(), jobs, at, n_alike, kDirection);
    } else {
      run_jobs(manager.get(), at, n_alike, kDirection);
    }
    at = next;
  }
  return n_queued;
}

// Writes all IVs and AADs before encrypting the first packet: a wide load right after narrow stores
// to the same bytes would stall (no store-to-load forwarding).
void Crypto::encrypt(Work* works, uint32_t n) noexcept {
  for (uint32_t i = 0; i < n; ++i) {
    Work& work = works[i];
    const KeySchedule& keys = *work.keys;
    uint8_t* const iv = work.esp + kEspHeaderBytes;
    net::store64(iv, work.sequence);
    if (keys.cipher == Cipher::kCbc) {
      std::memset(iv + sizeof work.sequence, 0, sizeof kZeroIv - sizeof work.sequence);
    } else {
      write_nonce(work, keys, iv);
      write_aad(work, keys);
    }
  }
  Work* queued[exec::kMaxBatchPkts];
  const uint32_t n_queued = library_->run<IMB_DIR_ENCRYPT>(works, n, queued);
  for (uint32_t i = 0; i < n_queued; ++i) {
    copy_icv(icv_of(*queued[i]), queued[i]->tag, *queued[i]->keys);
  }
}

void Crypto::decrypt(Work* works, uint32_t n) noexcept {
  for (uint32_t i = 0; i < n; ++i) {
    Work& work = works[i];
    const KeySchedule& keys = *work.keys;
    copy_icv(work.received, icv_of(work), keys);
    if (keys.cipher == Cipher::kCbc) continue;
    write_nonce(work, keys, work.esp + kEspHeaderBytes);
    write_aad(work, keys);
  }
  Work* queued[exec::kMaxBatchPkts];
  library_->run<IMB_DIR_DECRYPT>(works, n, queued);
}

bool Crypto::is_genuine(const Work& work) noexcept {
  uint32_t differs = 0;
  for (uint32_t i = 0; i < kShortIcvBytes; ++i) differs |= work.tag[i] ^ work.received[i];
  if (work.keys->icv_bytes != kShortIcvBytes) {
    for (uint32_t i = kShortIcvBytes; i < kMaxIcvBytes; ++i) {
      differs |= work.tag[i] ^ work.received[i];
    }
  }
  return work.is_done && differs == 0;
}

void Crypto::conclude(Work& work, bool is_genuine) noexcept {
  std::memset(work.tag, 0, sizeof work.tag);
  std::memset(work.received, 0, sizeof work.received);
  work.is_done = is_genuine;
}

}  // namespace batchplane::esp

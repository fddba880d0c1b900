// SPDX-License-Identifier: BSD-3-Clause
// digest_sha_ipsec_mb.cc - SHA as jobs of intel-ipsec-mb.
#include "modules/inspect/digest_sha_ipsec_mb.h"

#include "modules/common/ipsec_mb_manager.h"

namespace batchplane::inspect {

struct Sha::Library {
  IpsecMbManager manager;

  void run(IMB_HASH_ALG hash, uint32_t digest_bytes, const Text* texts, uint32_t n,
           uint8_t* digests, uint32_t stride_bytes) const noexcept {
    static constexpr uint8_t kNothing[1] = {};
    run_ipsec_mb_jobs(
        manager.get(), n,
        [&](IMB_JOB& job, uint32_t i) {
          job.cipher_mode = IMB_CIPHER_NULL;
          job.cipher_direction = IMB_DIR_ENCRYPT;
          job.chain_order = IMB_ORDER_HASH_CIPHER;
          job.hash_alg = hash;
          job.src = texts[i].data == nullptr ? kNothing : texts[i].data;
          job.hash_start_src_offset_in_bytes = 0;
          job.msg_len_to_hash_in_bytes = texts[i].len_bytes;
          job.auth_tag_output = digests + size_t{i} * stride_bytes;
          job.auth_tag_output_len_in_bytes = digest_bytes;
        },
        [](const IMB_JOB& /*job*/) {});
  }
};

Sha::Sha() : library_(std::make_unique<Library>()) {}
Sha::~Sha() = default;

void Sha::sha1(const Text* texts, uint32_t n, uint8_t* digests, uint32_t stride_bytes) noexcept {
  library_->run(IMB_AUTH_SHA_1, kSha1Bytes, texts, n, digests, stride_bytes);
}

void Sha::sha256(const Text* texts, uint32_t n, uint8_t* digests, uint32_t stride_bytes) noexcept {
  library_->run(IMB_AUTH_SHA_256, kSha256Bytes, texts, n, digests, stride_bytes);
}

}  // namespace batchplane::inspect

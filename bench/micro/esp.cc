// SPDX-License-Identifier: BSD-3-Clause
// esp.cc - what ESP takes beside its cryptography: the modules against calls of libIPSec_MB alone, on the
// same packets in the same run; and what a full batch saves.
#include <intel-ipsec-mb.h>

#include <array>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/environment.h"
#include "common/lone_module.h"
#include "common/report.h"
#include "core/packet/packet_pool.h"
#include "modules/esp/esp_suite.h"

namespace {

using batchplane::Dict;
using batchplane::Packet;
namespace net = batchplane::net;

constexpr uint32_t kMemoryMb = 256;
constexpr uint32_t kMaxPkts = 32;
constexpr uint32_t kLongestBytes = 2048;
constexpr double kMostNs = 25;  // of ESP over the library
constexpr uint32_t kId = 3;

Dict params_of(const std::string& suite, bool is_out) {
  Dict sa{{"id", kId}, {"spi", 0x1003}, {"suite", suite}};
  if (is_out) sa["remote"] = "192.0.2.2", sa["local"] = "192.0.2.1";
  Dict params{{"sas", batchplane::List{sa}}, {"test_keys", true}};
  if (!is_out) params["replay_window_pkts"] = 0;
  return params;
}

// Packets that are as before at each call.
struct Packets {
  explicit Packets(batchplane::PacketPool& pool) {
    if (!pool.alloc_bulk(pkts.data(), kMaxPkts)) throw std::runtime_error("the pool is empty");
  }
  void restore(uint32_t n) {
    for (uint32_t i = 0; i < n; ++i) {
      live[i] = pkts[i];
      pkts[i]->reset(static_cast<uint32_t>(frame.size()));
      std::memcpy(pkts[i]->data(), frame.data(), restored_bytes);
      pkts[i]->meta() = {.tunnel_id = kId};
    }
  }

  std::vector<uint8_t> frame;
  uint32_t restored_bytes = 0;
  std::array<Packet*, kMaxPkts> pkts;
  std::array<Packet*, kMaxPkts> live;
};

std::vector<uint8_t> plain_frame(uint32_t ip_bytes) {
  std::vector<uint8_t> frame(net::kEthBytes + ip_bytes);
  uint8_t* const ip = &frame[net::kEthBytes];
  net::store16(&frame[12], net::kTypeIpv4);
  ip[0] = 0x45;
  net::store16(ip + net::kIpTotalLength, static_cast<uint16_t>(ip_bytes));
  ip[net::kIpProto] = net::kProtoUdp;
  return frame;
}

// The library by itself, with as much to encrypt and to authenticate.
class Library {
 public:
  explicit Library(const batchplane::esp::Suite& suite) : suite_(suite), manager_(alloc_mb_mgr(0)) {
    init_mb_mgr_auto(manager_, nullptr);
    IMB_AES128_GCM_PRE(manager_, key_, &gcm_);
    IMB_AES_KEYEXP_128(manager_, key_, cbc_encrypt_, cbc_decrypt_);
  }
  ~Library() { free_mb_mgr(manager_); }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  void run(Packet** pkts, uint32_t n, uint32_t body_bytes) {
    if (suite_.cipher == batchplane::esp::Cipher::kGcm) {
      for (uint32_t i = 0; i < n; ++i) {
        uint8_t* const body = pkts[i]->data() + net::kEthBytes;
        IMB_AES128_GCM_ENC(manager_, &gcm_, &context_, body, body, body_bytes, iv_, key_, 8, tag_,
                           16);
      }
      return;
    }
    IMB_JOB* jobs[kMaxPkts];
    IMB_GET_NEXT_BURST(manager_, n, jobs);
    for (uint32_t i = 0; i < n; ++i)
      fill(*jobs[i], pkts[i]->data() + net::kEthBytes, body_bytes, i);
    uint32_t n_done = IMB_SUBMIT_BURST_NOCHECK(manager_, n, jobs);
    while (n_done < n) n_done += IMB_FLUSH_BURST(manager_, n - n_done, jobs);
  }

 private:
  void fill(IMB_JOB& job, uint8_t* body, uint32_t body_bytes, uint32_t i) {
    job.enc_keys = cbc_encrypt_;
    job.dec_keys = cbc_decrypt_;
    job.key_len_in_bytes = 16;
    job.src = body;
    job.dst = body;
    job.cipher_start_src_offset_in_bytes = 0;
    job.msg_len_to_cipher_in_bytes = body_bytes;
    job.hash_start_src_offset_in_bytes = 0;
    job.msg_len_to_hash_in_bytes = body_bytes + 8;
    job.iv = iv_;
    job.iv_len_in_bytes = 16;
    job.u.HMAC._hashed_auth_key_xor_ipad = pad_;
    job.u.HMAC._hashed_auth_key_xor_opad = pad_;
    job.auth_tag_output = tags_[i];
    job.auth_tag_output_len_in_bytes = 12;
    job.cipher_mode = IMB_CIPHER_CBC;
    job.hash_alg = IMB_AUTH_HMAC_SHA_1;
    job.cipher_direction = IMB_DIR_ENCRYPT;
    job.chain_order = IMB_ORDER_CIPHER_HASH;
  }

  const batchplane::esp::Suite& suite_;
  IMB_MGR* manager_;
  alignas(64) gcm_key_data gcm_ = {};
  alignas(64) gcm_context_data context_ = {};
  alignas(16) uint8_t cbc_encrypt_[240] = {};
  alignas(16) uint8_t cbc_decrypt_[240] = {};
  alignas(16) uint8_t pad_[32] = {};
  uint8_t key_[16] = {};
  uint8_t iv_[16] = {};
  uint8_t tag_[16] = {};
  uint8_t tags_[kMaxPkts][16] = {};
};

// One suite and length: ESP out, ESP in, and the library alone, at batches of 1 and 32.
void measure(bench::Report& report, const bench::Options& options, const std::string& name,
             uint32_t ip_bytes, batchplane::PacketPool& pool) {
  const std::string label = name + ", " + std::to_string(ip_bytes) + " B";
  if (!report.wants(label)) return;
  const batchplane::esp::Suite& suite = *batchplane::esp::find_suite(name);
  bench::LoneModule encrypt("esp_encrypt", params_of(name, true), 1);
  bench::LoneModule decrypt("esp_decrypt", params_of(name, false), 3);
  Library library(suite);
  Packets plain(pool);
  plain.frame = plain_frame(ip_bytes);
  plain.restored_bytes = net::kEthBytes + net::kIpv4Bytes;
  const uint32_t body_bytes =
      (ip_bytes + 2 + suite.block_bytes - 1) / suite.block_bytes * suite.block_bytes +
      (suite.block_bytes == 16 ? 16 : 0);
  Packets sealed(pool);
  plain.restore(1);
  encrypt.run(plain.live.data(), 1);
  sealed.frame.assign(plain.live[0]->data(), plain.live[0]->data() + plain.live[0]->len_bytes());
  sealed.restored_bytes = static_cast<uint32_t>(sealed.frame.size());
  const auto contender = [](const std::string& what, Packets& packets, uint32_t n, auto work) {
    return bench::Contender{.name = what + ", batch " + std::to_string(n),
                            .run = [&packets, n, work](uint32_t n_batches) {
                              for (uint32_t b = 0; b < n_batches; ++b) {
                                packets.restore(n);
                                work(packets.live.data(), n);
                              }
                              return uint64_t{n_batches} * n;
                            }};
  };
  const auto out = [&](Packet** pkts, uint32_t n) { encrypt.run(pkts, n); };
  const auto in = [&](Packet** pkts, uint32_t n) { decrypt.run(pkts, n); };
  const auto alone = [&](Packet** pkts, uint32_t n) { library.run(pkts, n, body_bytes); };
  sealed.restore(kMaxPkts);
  if (decrypt.run(sealed.live.data(), kMaxPkts) != kMaxPkts) {
    throw std::runtime_error(label + ": what was encrypted is not taken");
  }
  const auto results = bench::run_interleaved(
      {contender("esp_encrypt", plain, kMaxPkts, out),
       contender("libIPSec_MB", plain, kMaxPkts, alone), contender("esp_encrypt", plain, 1, out),
       contender("esp_encrypt", plain, 16, out), contender("esp_decrypt", sealed, kMaxPkts, in)},
      options.trials, options.batches);
  report.rows(label, results);
  report.figure(label + ": ESP over the library", "ns/pkt",
                bench::paired_difference(results[0], results[1]), bench::Target{kMostNs});
  report.figure(label + ": one by one over batches of 16", "x",
                bench::paired_ratio(results[2], results[3]));
}

int run(const bench::Options& options) {
  bench::set_up(kMemoryMb, options.core);
  bench::Report report("esp", options);
  batchplane::PacketPool pool("esp", 1024, kLongestBytes);
  for (const char* const name : {"aes-128-gcm", "aes-128-cbc-sha1"}) {
    for (const uint32_t ip_bytes : {64U, 1424U}) measure(report, options, name, ip_bytes, pool);
  }
  return report.finish();
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Options options = bench::parse_options(argc, argv, {.trials = 60, .batches = 300});
  return bench::guarded([&] { return run(options); });
}

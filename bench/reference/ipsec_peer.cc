// SPDX-License-Identifier: BSD-3-Clause
// ipsec_peer.cc - sessions of rte_ipsec and cryptodev, and the calls that their users make for each burst.
// An operation's last member is an array of no elements, in front of what follows it: g++ sees reads beyond it.
#pragma GCC diagnostic ignored "-Warray-bounds"
#include "reference/ipsec_peer.h"

#include <netinet/in.h>
#include <rte_cryptodev.h>
#include <rte_dev.h>
#include <rte_ipsec.h>
#include <rte_malloc.h>

#include <cstring>
#include <stdexcept>
#include <utility>

#include "base/net_headers.h"

namespace bench {

using batchplane::Packet;
namespace esp = batchplane::esp;
namespace net = batchplane::net;

namespace {

constexpr uint32_t kOps = 256;  // each is used again after so many packets, when it is back
constexpr uint32_t kQueueOps = 2048;
constexpr uint16_t kIvBytes = 16;
constexpr uint16_t kIvOffset = sizeof(rte_crypto_op) + sizeof(rte_crypto_sym_op);

[[noreturn]] void refuse(const std::string& what) {
  throw std::runtime_error("rte_ipsec: " + what);
}

// A transformation, or a chain of two. Outbound the cipher is first, inbound the authentication.
struct Transforms {
  Transforms(const esp::Suite& suite, const esp::Keys& keys, bool is_out) {
    if (suite.cipher == esp::Cipher::kCbc) {
      make_chain(suite, keys, is_out);
    } else {
      make_aead(suite, keys, is_out);
    }
  }
  void make_chain(const esp::Suite& suite, const esp::Keys& keys, bool is_out) {
    rte_crypto_sym_xform& cipher = xforms[is_out ? 0 : 1];
    rte_crypto_sym_xform& auth = xforms[is_out ? 1 : 0];
    xforms[0].next = &xforms[1];
    cipher.type = RTE_CRYPTO_SYM_XFORM_CIPHER;
    cipher.cipher.op = is_out ? RTE_CRYPTO_CIPHER_OP_ENCRYPT : RTE_CRYPTO_CIPHER_OP_DECRYPT;
    cipher.cipher.algo = RTE_CRYPTO_CIPHER_AES_CBC;
    cipher.cipher.key = {keys.cipher.data(), static_cast<uint16_t>(suite.cipher_key_bytes)};
    cipher.cipher.iv = {kIvOffset, kIvBytes};
    auth.type = RTE_CRYPTO_SYM_XFORM_AUTH;
    auth.auth.op = is_out ? RTE_CRYPTO_AUTH_OP_GENERATE : RTE_CRYPTO_AUTH_OP_VERIFY;
    auth.auth.algo =
        suite.auth == esp::Auth::kSha1 ? RTE_CRYPTO_AUTH_SHA1_HMAC : RTE_CRYPTO_AUTH_SHA256_HMAC;
    auth.auth.key = {keys.auth.data(), static_cast<uint16_t>(suite.auth_key_bytes)};
    auth.auth.digest_length = static_cast<uint16_t>(suite.icv_bytes);
  }
  void make_aead(const esp::Suite& suite, const esp::Keys& keys, bool is_out) {
    xforms[0].type = RTE_CRYPTO_SYM_XFORM_AEAD;
    rte_crypto_aead_xform& aead = xforms[0].aead;
    aead.op = is_out ? RTE_CRYPTO_AEAD_OP_ENCRYPT : RTE_CRYPTO_AEAD_OP_DECRYPT;
    aead.algo = suite.cipher == esp::Cipher::kGcm ? RTE_CRYPTO_AEAD_AES_GCM
                                                  : RTE_CRYPTO_AEAD_CHACHA20_POLY1305;
    aead.key = {keys.cipher.data(), static_cast<uint16_t>(suite.cipher_key_bytes)};
    aead.iv = {kIvOffset, 12};
    aead.digest_length = static_cast<uint16_t>(suite.icv_bytes);
    aead.aad_length = 8;
  }
  rte_crypto_sym_xform xforms[2] = {};
};

// A device with one queue, as long as this lives.
class Device {
 public:
  explicit Device(const std::string& driver) {
    static uint32_t n_made = 0;
    number_ = std::to_string(n_made++);
    name_ = driver + number_;
    if (rte_eal_hotplug_add("vdev", name_.c_str(), "max_nb_queue_pairs=1") != 0) {
      refuse("there is no device '" + driver + "': install librte-crypto-ipsec-mb23");
    }
    id_ = static_cast<uint8_t>(rte_cryptodev_get_dev_id(name_.c_str()));
    rte_cryptodev_config config{.socket_id = 0, .nb_queue_pairs = 1, .ff_disable = 0};
    const rte_cryptodev_qp_conf queue{.nb_descriptors = kQueueOps, .mp_session = nullptr};
    if (rte_cryptodev_configure(id_, &config) != 0 ||
        rte_cryptodev_queue_pair_setup(id_, 0, &queue, 0) != 0 || rte_cryptodev_start(id_) != 0) {
      refuse(driver + " does not start");
    }
  }
  ~Device() {
    rte_cryptodev_stop(id_);
    rte_eal_hotplug_remove("vdev", name_.c_str());
  }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  [[nodiscard]] uint8_t id() const { return id_; }
  // Of a part: pools may not have long ones.
  [[nodiscard]] std::string name(const std::string& part) const { return part + number_; }

 private:
  std::string number_;
  std::string name_;
  uint8_t id_ = 0;
};

}  // namespace

const char* name_of(PeerWay way) {
  static constexpr const char* kNames[] = {"to end", "call", "polled", "held"};
  return kNames[static_cast<int>(way)];
}

struct IpsecPeer::State {
  explicit State(const PeerShape& shape) : device(shape.driver), way(shape.way) {
    const bool is_out = !shape.outer.empty();
    Transforms transforms(*shape.suite, shape.keys, is_out);
    sessions = rte_cryptodev_sym_session_pool_create(
        device.name("sessions").c_str(), 2, rte_cryptodev_sym_get_private_session_size(device.id()),
        0, 0, 0);
    op_pool = rte_crypto_op_pool_create(device.name("ops").c_str(), RTE_CRYPTO_OP_TYPE_SYMMETRIC,
                                        kOps, 0, kIvBytes, 0);
    if (sessions == nullptr || op_pool == nullptr ||
        rte_crypto_op_bulk_alloc(op_pool, RTE_CRYPTO_OP_TYPE_SYMMETRIC, ops, kOps) != kOps) {
      refuse("no memory");
    }
    // The IV under which rte_ipsec encrypts that of CBC.
    for (rte_crypto_op* op : ops) {
      std::memset(rte_crypto_op_ctod_offset(op, uint8_t*, kIvOffset), 0, kIvBytes);
    }
    session.type =
        way == PeerWay::kCall ? RTE_SECURITY_ACTION_TYPE_CPU_CRYPTO : RTE_SECURITY_ACTION_TYPE_NONE;
    session.crypto.dev_id = device.id();
    session.crypto.ses = static_cast<rte_cryptodev_sym_session*>(
        rte_cryptodev_sym_session_create(device.id(), transforms.xforms, sessions));
    if (session.crypto.ses == nullptr) refuse(shape.driver + " has no " + shape.suite->name);
    make_sa(shape, transforms);
  }
  ~State() {
    if (session.crypto.ses != nullptr) {
      rte_cryptodev_sym_session_free(device.id(), session.crypto.ses);
    }
    rte_free(session.sa);
    rte_mempool_free(op_pool);
    rte_mempool_free(sessions);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void make_sa(const PeerShape& shape, Transforms& transforms) {
    const bool is_out = !shape.outer.empty();
    rte_ipsec_sa_prm params{};
    params.crypto_xform = transforms.xforms;
    params.tun.next_proto = IPPROTO_IPIP;
    params.tun.hdr = shape.outer.data();
    params.tun.hdr_len = static_cast<uint8_t>(shape.outer.size());
    params.tun.hdr_l3_off = is_out ? net::kEthBytes : 0;
    rte_security_ipsec_xform& ipsec = params.ipsec_xform;
    ipsec.spi = shape.spi;
    std::memcpy(&ipsec.salt, shape.keys.cipher.data() + shape.suite->cipher_key_bytes,
                shape.suite->salt_bytes);
    // As ours does.
    ipsec.options.copy_dscp = ipsec.options.ecn = 1;
    ipsec.direction = is_out ? RTE_SECURITY_IPSEC_SA_DIR_EGRESS : RTE_SECURITY_IPSEC_SA_DIR_INGRESS;
    ipsec.proto = RTE_SECURITY_IPSEC_SA_PROTO_ESP;
    ipsec.mode = RTE_SECURITY_IPSEC_SA_MODE_TUNNEL;
    ipsec.tunnel.type = RTE_SECURITY_IPSEC_TUNNEL_IPV4;
    const int sa_bytes = rte_ipsec_sa_size(&params);
    if (sa_bytes <= 0) refuse("the SA has no size");
    session.sa = static_cast<rte_ipsec_sa*>(
        rte_zmalloc(nullptr, static_cast<size_t>(sa_bytes), RTE_CACHE_LINE_SIZE));
    if (session.sa == nullptr ||
        rte_ipsec_sa_init(session.sa, &params, static_cast<uint32_t>(sa_bytes)) != sa_bytes ||
        rte_ipsec_session_prepare(&session) != 0) {
      refuse("the SA is refused");
    }
  }

  uint32_t call(rte_mbuf** pkts, uint32_t n, rte_mbuf** done) {
    const uint16_t ready = rte_ipsec_pkt_cpu_prepare(&session, pkts, static_cast<uint16_t>(n));
    const uint16_t good = rte_ipsec_pkt_process(&session, pkts, ready);
    failed_pkts += n - good;
    std::memcpy(done, pkts, good * sizeof *done);
    return good;
  }

  void submit(rte_crypto_op** from, uint32_t n) {
    const uint16_t taken =
        rte_cryptodev_enqueue_burst(device.id(), 0, from, static_cast<uint16_t>(n));
    failed_pkts += n - taken;
    inside_pkts += taken;
  }
  // Prepares the packets and gives the operations to the device, or keeps them for now.
  void put(rte_mbuf** pkts, uint32_t n) {
    rte_crypto_op** const own = ops + next_op;
    next_op = (next_op + n) % kOps;
    const uint32_t ready =
        rte_ipsec_pkt_crypto_prepare(&session, pkts, own, static_cast<uint16_t>(n));
    failed_pkts += n - ready;
    if (way != PeerWay::kHeld || (n_held == 0 && n == kMaxBurstPkts)) return submit(own, ready);
    for (uint32_t i = 0; i < ready; ++i) {
      held[n_held++] = own[i];
      if (n_held == kMaxBurstPkts) submit(held, std::exchange(n_held, 0));
    }
  }
  uint32_t fetch(rte_mbuf** done) {
    if (inside_pkts == 0) return 0;
    rte_crypto_op* back[kMaxBurstPkts];
    rte_ipsec_group groups[kMaxBurstPkts];
    const uint16_t n = rte_cryptodev_dequeue_burst(device.id(), 0, back, kMaxBurstPkts);
    inside_pkts -= n;
    const uint16_t n_groups =
        rte_ipsec_pkt_crypto_group(const_cast<const rte_crypto_op**>(back), done, groups, n);
    uint32_t good = 0;
    for (uint32_t g = 0; g < n_groups; ++g) {
      auto* const of = static_cast<const rte_ipsec_session*>(groups[g].id.ptr);
      good += rte_ipsec_pkt_process(of, groups[g].m, static_cast<uint16_t>(groups[g].cnt));
    }
    failed_pkts += n - good;
    return good;
  }

  Device device;
  const PeerWay way;
  rte_mempool* sessions = nullptr;
  rte_mempool* op_pool = nullptr;
  rte_ipsec_session session{};
  rte_crypto_op* ops[kOps] = {};
  uint32_t next_op = 0;
  rte_crypto_op* held[kMaxBurstPkts] = {};
  uint32_t n_held = 0;
  uint32_t inside_pkts = 0;  // of the device
  uint64_t failed_pkts = 0;
};

IpsecPeer::IpsecPeer(const PeerShape& shape) : state_(std::make_unique<State>(shape)) {}
IpsecPeer::~IpsecPeer() = default;

uint32_t IpsecPeer::run(Packet** pkts, uint32_t n, Packet** done) {
  auto** const mbufs = reinterpret_cast<rte_mbuf**>(pkts);
  auto** const out = reinterpret_cast<rte_mbuf**>(done);
  for (uint32_t i = 0; i < n; ++i) {
    mbufs[i]->l2_len = net::kEthBytes;
    mbufs[i]->l3_len = net::kIpv4Bytes;
  }
  if (state_->way == PeerWay::kCall) return state_->call(mbufs, n, out);
  state_->put(mbufs, n);
  if (state_->way == PeerWay::kToEnd) return drain(done);
  uint32_t n_done = state_->fetch(out);
  if (state_->inside_pkts > kMaxInsidePkts - kMaxBurstPkts) n_done += state_->fetch(out + n_done);
  return n_done;
}

uint32_t IpsecPeer::drain(Packet** done) {
  auto** const out = reinterpret_cast<rte_mbuf**>(done);
  if (state_->n_held != 0) state_->submit(state_->held, std::exchange(state_->n_held, 0));
  uint32_t n_done = 0;
  while (state_->inside_pkts != 0) n_done += state_->fetch(out + n_done);
  return n_done;
}

uint64_t IpsecPeer::failed_pkts() const { return state_->failed_pkts; }

}  // namespace bench

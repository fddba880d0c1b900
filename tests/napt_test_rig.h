// SPDX-License-Identifier: BSD-3-Clause
// napt_test_rig.h - a napt module that takes one packet at a time on a clock of its own.
#pragma once

#include <gtest/gtest.h>

#include "nat_test_util.h"

namespace batchplane::nattest {

inline constexpr uint32_t kHostA = ip4(10, 0, 0, 1);
inline constexpr uint32_t kHostB = ip4(10, 0, 0, 2);
inline constexpr uint32_t kExternal = ip4(203, 0, 113, 1);
inline constexpr Ep kServer{ip4(8, 8, 8, 8), 53};
inline constexpr Ep kOther{ip4(9, 9, 9, 9), 99};
inline constexpr uint64_t kSecond = 1'000'000'000;

// What became of one packet.
struct Sent {
  std::string drop;  // empty: it left by `gate`
  uint32_t gate = 0;
  Bytes bytes = Bytes(128, 0);
  [[nodiscard]] Ep src() const { return src_of(bytes); }
  [[nodiscard]] Ep dst() const { return dst_of(bytes); }
};

inline Dict with(Dict params) {
  params.emplace("external", List{"203.0.113.1"});
  params.emplace("max_connections", 1024);
  return params;
}

class NaptRig {
 public:
  explicit NaptRig(const Dict& params = {}) : harness_("napt", with(params), 3) { at(100); }

  // Virtual time in seconds since the start; runs the timers.
  void at(double seconds) {
    now_s_ = seconds;
    harness_.set_now_ns(static_cast<uint64_t>(seconds * 1e9));
    harness_.housekeep(1'000'000'000);
  }
  void pass(double seconds) { at(now_s_ + seconds); }

  // Checksums of what leaves are looked at here, once for all tests.
  Sent send(const Bytes& frame) {
    const Outcome outcome = harness_.run({frame});
    if (!outcome.drops.empty()) return {outcome.drops[0].reason};
    EXPECT_EQ(wrong_sums(outcome.outputs[0].bytes), "");
    return {"", outcome.outputs[0].gate, outcome.outputs[0].bytes};
  }
  // The external end that the packet gets on its way out.
  Ep out(const Bytes& frame) {
    const Sent sent = send(frame);
    EXPECT_EQ(sent.drop, "");
    EXPECT_EQ(sent.gate, 0U);
    return sent.src();
  }
  // A TCP connection from inside, with the handshake; returns its external end.
  Ep connect(Ep inside, Ep remote) {
    const Ep external = out(tcp(inside, remote, kSyn));
    EXPECT_EQ(send(tcp(remote, external, kSyn | kAck)).dst(), inside);
    out(tcp(inside, remote, kAck));
    return external;
  }
  [[nodiscard]] int64_t count(const char* key) { return harness_.module().show()[key].as_int(); }
  [[nodiscard]] int64_t in_state(const char* state) {
    return harness_.module().show()["states"][state].as_int();
  }
  [[nodiscard]] ModuleHarness& harness() { return harness_; }

 private:
  ModuleHarness harness_;
  double now_s_ = 0;
};

}  // namespace batchplane::nattest

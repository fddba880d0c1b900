// SPDX-License-Identifier: BSD-3-Clause
// session_usage_test_util.h - test_session() in a session_enforce, packets with its rules' marks,
// and the usage reported for them.
#pragma once

#include "modules/session/session_rules.h"
#include "modules/session/session_test_util.h"

namespace batchplane {

inline constexpr uint64_t kTestMs = 1'000'000;
inline constexpr int64_t kTestBytes = 86;  // IP bytes in a downlink_frame()

// The mark of PDR 1, 2 or 3 of the only session, for slots of that generation.
inline uint32_t test_mark(int pdr, uint32_t generation = 1) {
  const uint32_t slot = pdr == 1 ? session::slot_at(0, true)
                                 : session::slot_at(static_cast<uint32_t>(pdr - 2), false);
  return generation << session::kSlotBits | slot;
}

inline Dict with_urrs(const List& urrs) {
  Dict session = test_session();
  session["urrs"] = urrs;
  return session;
}

struct UsageRig {
  ModuleHarness enforce;
  uint64_t now_ns = 1000 * kTestMs;
  Outcome last = {};

  explicit UsageRig(const Dict& session)
      : enforce("session_enforce", {{"sessions", List{session}}}) {
    look();
  }
  // How many of n packets pass.
  uint32_t use(uint32_t mark, uint32_t n, uint32_t ip_bytes = kTestBytes) {
    std::vector<Packet*> pkts;
    for (uint32_t i = 0; i < n; ++i) {
      pkts.push_back(enforce.make_packet(downlink_frame(53, kTestUe, ip_bytes + 14)));
      pkts.back()->set_mark(mark);
    }
    last = enforce.run_packets(std::move(pkts));
    return static_cast<uint32_t>(last.outputs.size());
  }
  void look(uint64_t after_ns = kTestMs) {
    now_ns += after_ns;
    enforce.set_now_ns(now_ns);
    (void)enforce.housekeep();
  }
  Value modify(const char* kind, const Dict& rule) {
    return enforce.command("modify", Dict{{"seid", 1}, {kind, List{rule}}});
  }
  List reports(int64_t after = 0) {
    return enforce.command("reports", Dict{{"after", after}, {"limit", 5000}})["reports"].as_list();
  }
  Value urr(size_t i = 0) {
    return enforce.command("list")["sessions"].as_list().at(0)["urrs"].as_list().at(i);
  }
};

}  // namespace batchplane

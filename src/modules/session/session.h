// SPDX-License-Identifier: BSD-3-Clause
// session.h - a mobile user's session in PFCP's terms (3GPP TS 29.244), as the control side keeps
// it and as files and commands write it.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/net6.h"
#include "base/value.h"
#include "modules/session/session_rules.h"

namespace batchplane::session {

// Packet detection rule: which packets, and which other rules go for them.
struct Pdr {
  uint16_t id = 0;
  bool is_uplink = false;
  uint8_t match_qfi = kAnyQfi;
  uint16_t bearer = 0;
  uint32_t precedence = 255;  // the lower is asked first
  uint32_t teid = 0;          // uplink: the tunnel endpoint at the gateway
  uint32_t far = 0;
  std::vector<Filter> filters = {};
  std::vector<uint32_t> qers = {};  // at most two
  std::vector<uint32_t> urrs = {};
  uint32_t slot = kNone;  // in the rule tables, once it is there
};
enum class FarAction : uint8_t { kForward, kDrop, kBuffer };

// Forwarding action rule.
struct Far {
  uint32_t id = 0;
  FarAction action = FarAction::kForward;
  bool is_notifying = true;  // while it buffers: the control plane is told of the first packet
  bool has_tunnel = false;
  uint32_t teid = 0;
  uint32_t peer = 0;
  bool has_peer6 = false;  // then the outer header is IPv6
  net::Address6 peer6{};
};
// QoS enforcement rule. Rates of 0 set no limit.
struct Qer {
  uint32_t id = 0;
  uint8_t qfi = kAnyQfi;
  bool is_open_up = true;
  bool is_open_down = true;
  uint64_t mbr_up_bps = 0;
  uint64_t mbr_down_bps = 0;
  uint64_t burst_ns = 0;
  bool has_burst = false;              // that was given
  std::array<bool, 2> is_shaped = {};  // [is_uplink]: a scheduler keeps the rates, not a meter
  uint64_t gbr_up_bps = 0;             // only where it is shaped
  uint64_t gbr_down_bps = 0;
  uint8_t priority = 0;  // of its leaf or node among siblings; 7 goes first
};
// A quota of a usage reporting rule.
struct Grant {
  std::optional<uint64_t> given = std::nullopt;  // bytes or ns; none: there is no limit
  bool is_new = false;                           // granted anew, even if it is as much as before
  uint64_t limit = 0;                            // as workers have it, once it is there
  uint32_t place = kNone;                        // likewise
  uint32_t number = 0;
};
inline constexpr std::array<const char*, kQuotaKinds> kQuotaKeys = {"quota_bytes", "up_quota_bytes",
                                                                    "down_quota_bytes", "quota_ns"};
inline constexpr int64_t kMaxQuota = 1'000'000'000'000'000'000;

// Usage reporting rule: what its PDRs have counted, together. Thresholds of 0 set none; what is
// used up to a report counts for it, and the next one begins at 0.
struct Urr {
  uint32_t id = 0;
  uint64_t volume_bytes = 0;  // in both directions
  uint64_t up_bytes = 0;
  uint64_t down_bytes = 0;
  uint64_t time_ns = 0;
  std::array<Grant, kQuotaKinds> quotas = {};
  uint32_t place = kNone;  // among those that are watched, once it is there
  // Once it is there: since when, what no report has told beside what its rules have counted (or,
  // of a watched one, beside what is watched), and reports made while it was watched before.
  uint64_t begin_ns = 0;
  Used untold = {};
  uint64_t n_reports = 0;

  [[nodiscard]] bool is_watched() const {
    return (volume_bytes | up_bytes | down_bytes | time_ns) != 0 ||
           std::ranges::any_of(quotas, [](const Grant& grant) { return grant.given.has_value(); });
  }
};

// Where a session comes from: a file or generator that the pipeline names, the pipeline's own list,
// or a live command.
enum class Origin : uint8_t { kBulk, kListed, kLive };

struct Session {
  uint64_t seid = 0;
  uint32_t ue = 0;  // 0: has no IPv4
  bool has_ue6 = false;
  uint16_t group = 0;
  Origin origin = Origin::kListed;
  net::Prefix6 ue6{};
  std::vector<Pdr> pdrs = {};
  std::vector<Far> fars = {};
  std::vector<Qer> qers = {};
  std::vector<Urr> urrs = {};
  uint16_t hold_pkts = 0;   // of the BAR: while a FAR buffers; 0: what the module says
  uint32_t number = kNone;  // among all sessions, once it is there; workers know it by this
  uint32_t line = 0;        // of its file, which mistakes name; 0: comes from none
  std::shared_ptr<const std::string> file = nullptr;

  [[nodiscard]] const Far* far_of(const Pdr& pdr) const;
  [[nodiscard]] const Qer* qer(uint32_t id) const;
  [[nodiscard]] const Urr* urr(uint32_t id) const;
};

// What a QER says of shaping, by is_shaped[0] + 2 * is_shaped[1].
inline constexpr std::array<const char*, 4> kShapedNames = {"none", "down", "up", "both"};
inline constexpr const char* kActionNames[] = {"forward", "drop", "buffer"};

// Where a mistake of the session is found: in its file, if it comes from one.
inline std::string place_of(const Session& session, const std::string& where) {
  return session.line == 0 ? where : *session.file + ":" + std::to_string(session.line);
}

// Throws ConfigError below `where`.
[[nodiscard]] Session parse_session(const Value& value, const std::string& where);
[[nodiscard]] Qer parse_qer(const Value& value, const std::string& where);
[[nodiscard]] Dict format_session(const Session& session);

// A flow description of TS 29.244 / RFC 6733: "permit out udp from 198.51.100.0/24 5060-5069 to
// assigned". "assigned" and "any" are any address.
[[nodiscard]] Filter parse_flow_description(const std::string& text, const std::string& where);
[[nodiscard]] std::string format_flow_description(const Filter& filter);

// Sessions for trials: {count, bearers, groups, ue, teid, peer, peers, mbr_bps, ...}.
[[nodiscard]] std::vector<Session> make_synthetic_sessions(const Dict& params,
                                                           const std::string& where);
// One session in JSON per line; '#' begins a comment line. Mistakes say file:line.
[[nodiscard]] std::vector<Session> read_session_file(const std::string& path);

}  // namespace batchplane::session

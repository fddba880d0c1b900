// SPDX-License-Identifier: BSD-3-Clause
// session.h - a mobile subscriber's session in PFCP terms (3GPP TS 29.244), as the control plane
// keeps it and as files and commands write it.
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

// Packet detection rule: which packets match, and which other rules apply to them.
struct Pdr {
  uint16_t id = 0;
  bool is_uplink = false;
  uint8_t match_qfi = kAnyQfi;
  uint16_t bearer = 0;
  uint32_t precedence = 255;  // lower values match first
  uint32_t teid = 0;          // uplink: the gateway's tunnel endpoint
  uint32_t far = 0;
  std::vector<Filter> filters = {};
  std::vector<uint32_t> qers = {};  // at most two
  std::vector<uint32_t> urrs = {};
  uint32_t slot = kNone;  // in the rule tables, once installed
};
enum class FarAction : uint8_t { kForward, kDrop, kBuffer };

// Forwarding action rule.
struct Far {
  uint32_t id = 0;
  FarAction action = FarAction::kForward;
  bool is_notifying = true;  // whether the first packet it buffers is reported
  bool has_tunnel = false;
  uint32_t teid = 0;
  uint32_t peer = 0;
  bool has_peer6 = false;  // if set, the outer header is IPv6
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
  bool has_burst = false;              // burst_ns was given
  std::array<bool, 2> is_shaped = {};  // [is_uplink]: a scheduler enforces the rates, not a meter
  uint64_t gbr_up_bps = 0;             // only if shaped
  uint64_t gbr_down_bps = 0;
  uint8_t five_qi = 0;  // 0: not given
  bool has_priority = false;
  uint8_t priority = 0;  // of its leaf or node among siblings, as given or by 5QI; 7 goes first
};
// A quota of a usage reporting rule.
struct Grant {
  std::optional<uint64_t> given = std::nullopt;  // bytes or ns; none: no limit
  bool is_new = false;                           // a new grant, even if the amount is unchanged
  uint64_t limit = 0;                            // the limit that workers see, once installed
  uint32_t place = kNone;                        // index of its QuotaState, once installed
  uint32_t number = 0;
};
inline constexpr std::array<const char*, kQuotaKinds> kQuotaKeys = {"quota_bytes", "up_quota_bytes",
                                                                    "down_quota_bytes", "quota_ns"};
inline constexpr int64_t kMaxQuota = 1'000'000'000'000'000'000;

// Usage reporting rule: the sum of what its PDRs have counted. A threshold of 0 is none. Each
// report covers the usage since the one before.
struct Urr {
  uint32_t id = 0;
  uint64_t volume_bytes = 0;  // in both directions
  uint64_t up_bytes = 0;
  uint64_t down_bytes = 0;
  uint64_t time_ns = 0;
  std::array<Grant, kQuotaKinds> quotas = {};
  uint32_t place = kNone;  // index among the watched rules, once installed
  // Once installed: start of the reporting period; usage not yet reported that the counts of its
  // PDRs (or, if it is watched, the watch's counts) do not include; and the reports made while it
  // was watched earlier.
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
  uint32_t ue = 0;  // 0: no IPv4 address
  bool has_ue6 = false;
  uint16_t group = 0;
  Origin origin = Origin::kListed;
  net::Prefix6 ue6{};
  std::vector<Pdr> pdrs = {};
  std::vector<Far> fars = {};
  std::vector<Qer> qers = {};
  std::vector<Urr> urrs = {};
  uint16_t hold_pkts = 0;  // from the BAR, while a FAR buffers; 0: the module's default
  uint32_t number =
      kNone;          // index among all sessions, once installed; workers know the session by it
  uint32_t line = 0;  // in `file`, for error messages; 0: not from a file
  std::shared_ptr<const std::string> file = nullptr;

  [[nodiscard]] const Far* far_of(const Pdr& pdr) const;
  [[nodiscard]] const Qer* qer(uint32_t id) const;
  [[nodiscard]] const Urr* urr(uint32_t id) const;
};

// The QER's "shaped" value, by is_shaped[0] + 2 * is_shaped[1].
inline constexpr std::array<const char*, 4> kShapedNames = {"none", "down", "up", "both"};
inline constexpr const char* kActionNames[] = {"forward", "drop", "buffer"};

// Where to report an error in the session: at its line if it came from a file.
inline std::string place_of(const Session& session, const std::string& where) {
  return session.line == 0 ? where : *session.file + ":" + std::to_string(session.line);
}

// Throws ConfigError below `where`.
[[nodiscard]] Session parse_session(const Value& value, const std::string& where);
[[nodiscard]] Qer parse_qer(const Value& value, const std::string& where);
[[nodiscard]] Dict format_session(const Session& session);

// A flow description of TS 29.244 / RFC 6733: "permit out udp from 198.51.100.0/24 5060-5069 to
// assigned". Both "assigned" and "any" match any address.
[[nodiscard]] Filter parse_flow_description(const std::string& text, const std::string& where);
[[nodiscard]] std::string format_flow_description(const Filter& filter);

// Synthetic sessions for trials: {count, bearers, groups, ue, teid, peer, peers, mbr_bps, ...}.
[[nodiscard]] std::vector<Session> make_synthetic_sessions(const Dict& params,
                                                           const std::string& where);
// One JSON session per line; lines that begin with '#' are comments. Errors name file:line.
[[nodiscard]] std::vector<Session> read_session_file(const std::string& path);

}  // namespace batchplane::session

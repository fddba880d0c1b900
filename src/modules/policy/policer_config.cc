// SPDX-License-Identifier: BSD-3-Clause
// policer_config.cc - rates, bursts, actions and colours of a policer.
#include "modules/policy/policer_config.h"

#include "base/error.h"

namespace batchplane {
namespace {

constexpr double kMaxRateBps = 1e12;
constexpr double kMaxBurstBytes = 4e9;

ColourAction action_of(const Value& value, const std::string& where) {
  const std::string& text = value.as_string();
  if (text == "permit") return {};
  if (text == "drop") return {ColourAction::Kind::kDrop, 0};
  if (text.starts_with("dscp ")) {
    return {ColourAction::Kind::kSetDscp,
            static_cast<uint8_t>(parse_dscp(Value(text.substr(5)), where))};
  }
  throw ConfigError("'" + text + "' is no action", where, "permit, drop or \"dscp af12\"");
}

void set_colours(PolicerConfig& config, const List& list, Colour colour, const std::string& where) {
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string at = where + "[" + std::to_string(i) + "]";
    uint8_t& entry = config.colour_of_dscp[parse_dscp(list[i], at)];
    if (entry != kGreen && entry != colour) {
      throw ConfigError("the DSCP is in both lists", at, "keep it in one");
    }
    entry = colour;
  }
}

uint64_t bytes_per_s(const Dict& params, const char* name) {
  return std::max<uint64_t>(static_cast<uint64_t>(params.at(name).as_int()) / 8, 1);
}

void check_burst(const TokenStep& step, uint64_t burst_bytes, const char* name,
                 const std::string& where) {
  if (burst_bytes >= step.bytes) return;
  throw ConfigError(
      "a burst of " + std::to_string(burst_bytes) + " bytes is less than the rate gives in 2 us",
      where + name, "at least " + std::to_string(step.bytes) + " bytes");
}

ParamSpec rate_spec(const char* name, const char* help, Value default_value) {
  return {.name = name,
          .type = ParamType::kInt,
          .unit = "bps",
          .default_value = std::move(default_value),
          .help = help,
          .min = 8,
          .max = kMaxRateBps};
}
ParamSpec burst_spec(const char* name, const char* help, int least) {
  return {.name = name,
          .type = ParamType::kInt,
          .unit = "bytes",
          .default_value = 64 * 1024,
          .help = help,
          .min = static_cast<double>(least),
          .max = kMaxBurstBytes};
}
ParamSpec action_spec(const char* name, const char* default_value) {
  return {.name = name,
          .type = ParamType::kString,
          .default_value = default_value,
          .help = "what becomes of these packets: permit, drop or \"dscp af12\""};
}
ParamSpec colours_spec(const char* name, List default_value) {
  return {.name = name,
          .type = ParamType::kList,
          .default_value = std::move(default_value),
          .help = "colour aware: DSCPs of packets that arrive in this colour; others are green"};
}

}  // namespace

const std::vector<ParamSpec>& live_policer_params() {
  static const std::vector<ParamSpec> kParams = {
      rate_spec("cir_bps", "committed information rate", {}),
      burst_spec("cbs_bytes", "committed burst size", 1),
      burst_spec("ebs_bytes", "srtcm: excess burst size", 0),
      rate_spec("pir_bps", "trtcm: peak information rate, at least cir_bps",
                static_cast<int64_t>(kMaxRateBps)),
      burst_spec("pbs_bytes", "trtcm: peak burst size", 1),
      {.name = "overhead_bytes",
       .type = ParamType::kInt,
       .unit = "bytes",
       .default_value = 0,
       .help = "counted for each packet besides its IP bytes; 38 gives what a cable carries",
       .min = 0,
       .max = 256},
      {.name = "colour_aware",
       .type = ParamType::kBool,
       .default_value = false,
       .help = "packets arrive with a colour, told by their DSCP, and never gain a better one"},
      colours_spec("yellow_dscps", List{"af12", "af22", "af32", "af42"}),
      colours_spec("red_dscps", List{"af13", "af23", "af33", "af43"}),
      action_spec("green_action", "permit"),
      action_spec("yellow_action", "permit"),
      action_spec("red_action", "drop")};
  return kParams;
}

PolicerConfig make_policer_config(bool is_two_rate, const Dict& params, const std::string& where) {
  PolicerConfig config;
  MeterProfile& profile = config.profile;
  const auto size = [&](const char* name) {
    return static_cast<uint64_t>(params.at(name).as_int());
  };
  profile.is_two_rate = is_two_rate;
  profile.committed = token_step(bytes_per_s(params, "cir_bps"));
  profile.committed_burst_bytes = size("cbs_bytes");
  check_burst(profile.committed, profile.committed_burst_bytes, "cbs_bytes", where);
  profile.second_burst_bytes = size(is_two_rate ? "pbs_bytes" : "ebs_bytes");
  if (is_two_rate) {
    profile.peak = token_step(bytes_per_s(params, "pir_bps"));
    check_burst(profile.peak, profile.second_burst_bytes, "pbs_bytes", where);
    if (params.at("pir_bps").as_int() < params.at("cir_bps").as_int()) {
      throw ConfigError("the peak rate is below the committed one", where + "pir_bps",
                        "at least " + std::to_string(params.at("cir_bps").as_int()));
    }
  }
  config.overhead_bytes = static_cast<uint32_t>(params.at("overhead_bytes").as_int());
  config.is_aware = params.at("colour_aware").as_bool();
  set_colours(config, params.at("yellow_dscps").as_list(), kYellow, where + "yellow_dscps");
  set_colours(config, params.at("red_dscps").as_list(), kRed, where + "red_dscps");
  static constexpr const char* kActions[] = {"green_action", "yellow_action", "red_action"};
  for (uint32_t colour = 0; colour < kColours; ++colour) {
    config.actions[colour] = action_of(params.at(kActions[colour]), where + kActions[colour]);
    config.has_actions |= config.actions[colour].kind != ColourAction::Kind::kPermit;
  }
  return config;
}

}  // namespace batchplane

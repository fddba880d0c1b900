// SPDX-License-Identifier: BSD-3-Clause
// flow_spec.cc - reads and checks `flows`, and expands `count` with its steps.
#include "traffic/flow_spec.h"

namespace batchplane::traffic {
namespace {

uint64_t longest_in(const Value& value) {
  uint64_t most = 0;
  if (value.is_list()) {
    for (const Value& element : value.as_list()) most = std::max(most, longest_in(element));
  } else if (value.is_dict()) {
    for (const auto& [key, element] : value.as_dict()) {
      const bool is_size = key == "size_bytes" && element.is_int() && element.as_int() > 0;
      most =
          std::max(most, is_size ? static_cast<uint64_t>(element.as_int()) : longest_in(element));
    }
    if (value.has("tunnel")) most += kMaxTunnelBytes;
  } else if (value.is_string()) {
    most = value.as_string().size() / 2;  // raw_hex: two digits a byte
  }
  return most;
}

[[noreturn]] void refuse(const std::string& message, const std::string& where,
                         const std::string& fix) {
  throw ConfigError(message, where, fix);
}

uint32_t checked_size(int64_t wire_bytes, const std::string& where) {
  if (wire_bytes < kMinFrameBytes || wire_bytes > kMaxWireBytes) {
    refuse("a frame of " + std::to_string(wire_bytes) + " bytes is not possible", where,
           "give " + std::to_string(kMinFrameBytes) + " to " + std::to_string(kMaxWireBytes) +
               " bytes, checksum included");
  }
  return static_cast<uint32_t>(wire_bytes);
}

Args checked(const std::vector<ParamSpec>& specs, const Value& value, const std::string& where) {
  if (!value.is_dict())
    refuse("expected a mapping, found " + std::string(value.type_name()), where, "");
  std::vector<ConfigError> errors;
  Args args(specs, value.as_dict(), where, errors);
  if (!errors.empty()) throw errors.front();
  return args;
}

std::vector<SizeShare> parse_mix(const List& mix, const std::string& where) {
  static const std::vector<ParamSpec> kSpecs = {
      {.name = "size_bytes", .unit = "bytes", .help = "frame on the wire", .min = 0, .max = 1e6},
      {.name = "weight",
       .type = ParamType::kFloat,
       .default_value = 1.0,
       .help = "share",
       .min = 0,
       .max = 1e6},
  };
  std::vector<SizeShare> sizes;
  double total = 0;
  for (size_t i = 0; i < mix.size(); ++i) {
    const std::string here = where + ".size_mix[" + std::to_string(i) + "]";
    const Args args = checked(kSpecs, mix[i], here);
    sizes.push_back({checked_size(args.integer("size_bytes"), here), args.number("weight")});
    total += sizes.back().weight;
  }
  if (total <= 0) refuse("all weights of size_mix are 0", where, "give one a positive weight");
  return sizes;
}

std::vector<SizeShare> parse_sizes(const Args& flow, const Args& all) {
  const std::string& where = flow.where();
  if (!flow.list("size_mix").empty()) return parse_mix(flow.list("size_mix"), where);
  if (flow.flag("imix")) return imix_sizes();
  if (flow.integer("size_bytes") != 0)
    return {{checked_size(flow.integer("size_bytes"), where), 1}};
  if (all.flag("imix")) return imix_sizes();
  return {{checked_size(all.integer("size_bytes"), all.where()), 1}};
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

TunnelSpec parse_tunnel(const Args& flow) {
  TunnelSpec tunnel;
  const std::string& name = flow.string("tunnel");
  if (name == "none") return tunnel;
  tunnel.kind = name == "vxlan" ? TunnelSpec::Kind::kVxlan : TunnelSpec::Kind::kGtpu;
  tunnel.qfi = static_cast<int>(flow.integer("tunnel_qfi"));
  tunnel.id = flow.u32("tunnel_id");
  tunnel.src_ip = *net::parse_ipv4(flow.string("tunnel_src"));
  tunnel.dst_ip = *net::parse_ipv4(flow.string("tunnel_dst"));
  return tunnel;
}

FlowSpec parse_base(const Args& flow, const Args& all) {
  FlowSpec spec;
  spec.weight = flow.number("weight");
  spec.rate_pps = flow.number("rate_pps");
  spec.sizes = parse_sizes(flow, all);
  spec.src_mac = *net::parse_mac(flow.string("src_mac"));
  spec.dst_mac = *net::parse_mac(flow.string("dst_mac"));
  spec.ttl = static_cast<uint8_t>(flow.u32("ttl"));
  spec.proto = flow.string("protocol") == "tcp" ? net::kProtoTcp : net::kProtoUdp;
  spec.has_l4_checksum = flow.flag("l4_checksum");
  spec.vlan = static_cast<int>(flow.integer("vlan"));
  spec.tunnel = parse_tunnel(flow);
  for (const SizeShare& size : spec.sizes) {
    if (spec.tunnel.kind != TunnelSpec::Kind::kNone)
      checked_size(size.wire_bytes + kMaxTunnelBytes, flow.where() + ".tunnel");
  }
  if (!flow.string("raw_hex").empty()) {
    spec.raw = parse_frame_hex(flow.string("raw_hex"), flow.where() + ".raw_hex");
  }
  return spec;
}

void append_flows(const Args& flow, const Args& all, std::vector<FlowSpec>& flows) {
  const FlowSpec base = parse_base(flow, all);
  const uint32_t src = *net::parse_ipv4(flow.string("src_ip"));
  const uint32_t dst = *net::parse_ipv4(flow.string("dst_ip"));
  const uint32_t count = flow.u32("count");
  if (flows.size() + count > kMaxFlows) {
    refuse("more than " + std::to_string(kMaxFlows) + " flows", flow.where(), "lower count");
  }
  for (uint32_t i = 0; i < count; ++i) {
    FlowSpec spec = base;
    const std::string& name = flow.string("name");
    spec.name = name.empty() ? "flow " + std::to_string(flows.size())
                             : (count == 1 ? name : name + "_" + std::to_string(i));
    spec.src_ip = src + i * flow.u32("src_ip_step");
    spec.dst_ip = dst + i * flow.u32("dst_ip_step");
    spec.src_port = static_cast<uint16_t>(flow.u32("src_port") + i * flow.u32("src_port_step"));
    spec.dst_port = static_cast<uint16_t>(flow.u32("dst_port") + i * flow.u32("dst_port_step"));
    spec.tunnel.id += i * flow.u32("tunnel_id_step");
    flows.push_back(std::move(spec));
  }
}

}  // namespace

uint64_t longest_frame_bytes(const Dict& params) { return longest_in(Value(params)); }

std::vector<uint8_t> parse_frame_hex(const std::string& text, const std::string& where) {
  std::vector<uint8_t> bytes;
  int high = -1;
  for (const char c : text) {
    if (c == ' ' || c == ':' || c == '\n') continue;
    const int digit = hex_digit(c);
    if (digit < 0) {
      refuse(std::string("'") + c + "' is no hexadecimal digit", where, "use 0-9, a-f");
    }
    if (high < 0) {
      high = digit;
    } else {
      bytes.push_back(static_cast<uint8_t>(high << 4 | digit));
      high = -1;
    }
  }
  if (high >= 0) refuse("an odd number of digits", where, "two digits a byte");
  if (bytes.size() < net::kEthBytes || bytes.size() > kMaxWireBytes - kFcsBytes) {
    refuse("a frame of " + std::to_string(bytes.size()) + " bytes", where,
           "14 bytes of Ethernet header at least, " + std::to_string(kMaxWireBytes - kFcsBytes) +
               " at most");
  }
  return bytes;
}

std::vector<FlowSpec> parse_flows(const Args& args) {
  std::vector<FlowSpec> flows;
  const List& list = args.list("flows");
  const size_t n = list.empty() ? 1 : list.size();
  for (size_t i = 0; i < n; ++i) {
    const std::string where = args.where() + ".flows[" + std::to_string(i) + "]";
    append_flows(checked(flow_params(), list.empty() ? Value(Dict{}) : list[i], where), args,
                 flows);
  }
  double total = 0;
  for (const FlowSpec& flow : flows) total += flow.weight + flow.rate_pps;
  if (total <= 0) refuse("all flows have weight 0", args.where() + ".flows", "give one a weight");
  return flows;
}

std::vector<SizeShare> imix_sizes() { return {{64, 7}, {594, 4}, {1518, 1}}; }

}  // namespace batchplane::traffic

// SPDX-License-Identifier: BSD-3-Clause
// session_filter.cc - parses and formats the flow descriptions of traffic filters.
#include <array>
#include <charconv>
#include <sstream>

#include "base/error.h"
#include "base/net.h"
#include "modules/session/session.h"

namespace batchplane::session {
namespace {

constexpr const char* kExample =
    "such as \"permit out udp from 198.51.100.0/24 5060-5069 to assigned\"";

struct Named {
  const char* name;
  uint8_t number;
};
constexpr std::array<Named, 3> kProtocols = {{{"icmp", 1}, {"tcp", 6}, {"udp", 17}}};

class Words {
 public:
  Words(const std::string& text, std::string where) : in_(text), where_(std::move(where)) {
    next();
  }
  [[nodiscard]] const std::string& word() const { return word_; }
  [[nodiscard]] bool is_end() const { return word_.empty(); }
  void next() {
    word_.clear();
    in_ >> word_;
  }
  void expect(const char* wanted) {
    if (word_ != wanted) fail(std::string("expected '") + wanted + "'");
    next();
  }
  [[noreturn]] void fail(const std::string& message) const {
    const std::string found = is_end() ? " at the end" : ", not '" + word_ + "'";
    throw ConfigError(message + found, where_, kExample);
  }

 private:
  std::istringstream in_;
  std::string where_;
  std::string word_;
};

bool parse_number(std::string_view text, uint32_t most, uint32_t& number) {
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && stop == text.data() + text.size() && number <= most;
}

void parse_proto(Words& words, Filter& filter) {
  uint32_t number = 0;
  filter.is_any_proto = words.word() == "ip";
  for (const Named& named : kProtocols) {
    if (words.word() == named.name) number = named.number;
  }
  if (!filter.is_any_proto && number == 0 && !parse_number(words.word(), 255, number))
    words.fail("expected ip, icmp, tcp, udp or a protocol number");
  filter.proto = static_cast<uint8_t>(number);
  words.next();
}

void parse_end(Words& words, uint32_t& address, uint32_t& mask, uint16_t& low, uint16_t& high) {
  if (words.word() != "any" && words.word() != "assigned") {
    std::string text = words.word();
    if (text.find('/') == std::string::npos) text += "/32";
    const auto prefix = net::parse_prefix4(text);
    if (!prefix) words.fail("expected any, assigned, an IPv4 address or prefix");
    address = net::be32(prefix->address);
    mask = net::be32(net::mask4(prefix->length));
  }
  words.next();
  if (words.is_end() || words.word() == "to") return;
  const std::string& text = words.word();
  const size_t dash = text.find('-');
  uint32_t from = 0;
  uint32_t to = 0;
  const bool is_good =
      parse_number(text.substr(0, dash), 0xffff, from) &&
      (dash == std::string::npos || parse_number(text.substr(dash + 1), 0xffff, to));
  if (!is_good) words.fail("expected a port or a range of ports");
  if (dash == std::string::npos) to = from;
  if (to < from) words.fail("the range of ports ends before it begins");
  low = static_cast<uint16_t>(from);
  high = static_cast<uint16_t>(to);
  words.next();
}

std::string format_end(uint32_t address, uint32_t mask, uint16_t low, uint16_t high,
                       const char* any) {
  std::string text = any;
  if (mask != 0) {
    text = net::format_ipv4(net::be32(address));
    const auto length = static_cast<uint32_t>(__builtin_popcount(mask));
    if (length != 32) text.append("/").append(std::to_string(length));
  }
  if (low == 0 && high == 0xffff) return text;
  text.append(" ").append(std::to_string(low));
  if (low != high) text.append("-").append(std::to_string(high));
  return text;
}

}  // namespace

Filter parse_flow_description(const std::string& text, const std::string& where) {
  Words words(text, where);
  Filter filter;
  words.expect("permit");
  words.expect("out");
  parse_proto(words, filter);
  words.expect("from");
  parse_end(words, filter.remote, filter.remote_mask, filter.remote_low, filter.remote_high);
  words.expect("to");
  parse_end(words, filter.local, filter.local_mask, filter.local_low, filter.local_high);
  if (!words.is_end()) words.fail("expected the end of the flow description");
  return filter;
}

std::string format_flow_description(const Filter& filter) {
  std::string proto = filter.is_any_proto ? "ip" : std::to_string(filter.proto);
  for (const Named& named : kProtocols) {
    if (!filter.is_any_proto && named.number == filter.proto) proto = named.name;
  }
  return "permit out " + proto + " from " +
         format_end(filter.remote, filter.remote_mask, filter.remote_low, filter.remote_high,
                    "any") +
         " to " +
         format_end(filter.local, filter.local_mask, filter.local_low, filter.local_high,
                    "assigned");
}

}  // namespace batchplane::session

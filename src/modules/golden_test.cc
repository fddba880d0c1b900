// SPDX-License-Identifier: BSD-3-Clause
// golden_test.cc - runs every case in src/modules/<family>/golden through its module and compares
// bytes.
//
// The format, and how to add cases: tests/golden/make.py.
#include <gtest/gtest.h>
#include <pcap/pcap.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "cases/cases.h"
#include "module_harness.h"

namespace batchplane {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

const fs::path kModules = "src/modules";

Value to_value(const json& j, const std::string& tmp) {
  switch (j.type()) {
    case json::value_t::boolean:
      return j.get<bool>();
    case json::value_t::number_integer:
    case json::value_t::number_unsigned:
      return j.get<int64_t>();
    case json::value_t::number_float:
      return j.get<double>();
    case json::value_t::string: {
      std::string text = j.get<std::string>();
      if (const size_t at = text.find("${TMP}"); at != std::string::npos) text.replace(at, 6, tmp);
      return text;
    }
    case json::value_t::array: {
      List list;
      for (const json& item : j) list.push_back(to_value(item, tmp));
      return list;
    }
    case json::value_t::object: {
      Dict dict;
      for (const auto& [key, item] : j.items()) dict.emplace(key, to_value(item, tmp));
      return dict;
    }
    default:
      return {};
  }
}

std::vector<Bytes> read_frames(const fs::path& path) {
  char error[PCAP_ERRBUF_SIZE];
  pcap_t* pcap = pcap_open_offline(path.c_str(), error);
  if (pcap == nullptr) throw std::runtime_error(error);
  std::vector<Bytes> frames;
  pcap_pkthdr* header = nullptr;
  const u_char* data = nullptr;
  while (pcap_next_ex(pcap, &header, &data) == 1) frames.emplace_back(data, data + header->caplen);
  pcap_close(pcap);
  return frames;
}

Environment environment_of(const json& description) {
  Environment env;
  for (const json& item : description.value("interfaces", json::array())) {
    Interface interface;
    interface.name = item.at("name");
    interface.port = item.value("port", interface.name);
    interface.index = static_cast<uint16_t>(env.interfaces.size());
    interface.mac = net::parse_mac(item.at("mac").get<std::string>()).value();
    interface.mtu_bytes = item.value("mtu_bytes", uint16_t{1500});
    for (const json& address : item.value("addresses", json::array())) {
      const auto text = address.get<std::string>();
      if (const auto four = net::parse_interface_address(text)) {
        interface.addresses.push_back(*four);
      } else {
        interface.addresses6.push_back(net::parse_interface_address6(text).value());
      }
    }
    env.interfaces.push_back(interface);
  }
  return env;
}

uint16_t reason_named(const std::string& name) {
  const auto& reasons = drop_reasons();
  const auto it = std::ranges::find(reasons, name, &DropReasonInfo::name);
  if (it == reasons.end()) throw std::runtime_error("no drop reason '" + name + "'");
  return static_cast<uint16_t>(it - reasons.begin());
}

void set_meta(const json& given, PacketMeta& meta) {
  meta.l3_offset_bytes = given.value("l3_offset_bytes", meta.l3_offset_bytes);
  meta.l4_offset_bytes = given.value("l4_offset_bytes", meta.l4_offset_bytes);
  meta.next_hop = given.value("next_hop", meta.next_hop);
  meta.in_interface = given.value("in_interface", meta.in_interface);
  meta.vrf = given.value("vrf", meta.vrf);
  meta.tunnel_id = given.value("tunnel_id", meta.tunnel_id);
  if (given.value("is_originated", false)) meta.flags |= kMetaOriginated;
  if (given.contains("drop_reason")) meta.drop_reason = reason_named(given.at("drop_reason"));
}

// Packet i has the metadata of the case and, on top, the i-th entry of "meta_of".
std::vector<Packet*> make_packets(const json& description, const std::vector<Bytes>& frames,
                                  ModuleHarness& harness) {
  const json all = description.value("meta", json::object());
  const json each = description.value("meta_of", json::array());
  std::vector<Packet*> pkts;
  for (size_t i = 0; i < frames.size(); ++i) {
    pkts.push_back(harness.make_packet(frames[i]));
    set_meta(all, pkts.back()->meta());
    if (i < each.size()) set_meta(each[i], pkts.back()->meta());
    if (i < each.size() && each[i].contains("mark")) pkts.back()->set_mark(each[i].at("mark"));
  }
  return pkts;
}

// Modules that only share tables with the one under test.
std::vector<std::unique_ptr<ModuleHarness>> companions_of(const json& description, Environment& env,
                                                          const std::string& tmp) {
  std::vector<std::unique_ptr<ModuleHarness>> companions;
  for (const json& item : description.value("companions", json::array())) {
    companions.push_back(std::make_unique<ModuleHarness>(item.at("kind"),
                                                         to_value(item.at("params"), tmp).as_dict(),
                                                         item.value("connected_gates", 1U), &env));
  }
  return companions;
}

size_t n_alike(const Bytes& a, const Bytes& b) {
  return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

void compare(const json& description, const fs::path& folder, const Outcome& outcome) {
  std::map<uint32_t, size_t> n_out;
  for (const auto* list : {&outcome.outputs, &outcome.emitted}) {
    for (const Output& output : *list) ++n_out[output.gate];
  }
  for (const auto& [gate, file] : description.at("outputs").items()) {
    const auto number = static_cast<uint32_t>(std::stoul(gate));
    const std::vector<Bytes> expected = read_frames(folder / file.get<std::string>());
    const std::vector<Bytes> found = outcome.at(number);
    EXPECT_EQ(found.size(), expected.size()) << "gate " << gate;
    if (found.size() != expected.size()) continue;
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(found[i], expected[i])
          << "gate " << gate << ", packet " << i + 1 << ", of " << found[i].size() << " and "
          << expected[i].size() << " bytes, from byte " << n_alike(found[i], expected[i]);
    }
    n_out.erase(number);
  }
  for (const auto& [gate, n] : n_out)
    ADD_FAILURE() << n << " packets left by the unexpected gate " << gate;
  std::map<std::string, uint32_t> drops;
  for (const Dropped& dropped : outcome.drops) ++drops[dropped.reason];
  EXPECT_EQ(drops, (description.at("drops").get<std::map<std::string, uint32_t>>()));
  EXPECT_EQ(outcome.consumed_pkts, description.value("consumed_pkts", 0U));
  EXPECT_EQ(outcome.kept_pkts, description.value("kept_pkts", 0U));
}

class Golden : public testing::TestWithParam<std::string> {
 protected:
  Golden() {
    char name[] = "/tmp/batchplane-golden-XXXXXX";
    tmp_ = ::mkdtemp(name);
  }
  ~Golden() override { fs::remove_all(tmp_); }

  std::string tmp_;
};

TEST_P(Golden, OutcomeIsAsTheModelSays) {
  const fs::path folder = GetParam();
  std::ifstream file(folder / "case.json");
  const json description = json::parse(file);
  Environment env = environment_of(description);
  const Dict params = to_value(description.at("params"), tmp_).as_dict();
  const auto companions = companions_of(description, env, tmp_);
  ModuleHarness harness(description.at("kind"), params, description.value("connected_gates", 1U),
                        &env);
  harness.set_now_ns(description.value("now_ns", uint64_t{1'000'000}));
  if (description.value("housekeep_first", false)) {
    const Outcome before = harness.housekeep();
    EXPECT_TRUE(before.emitted.empty() && before.drops.empty());
  }
  const std::vector<Bytes> frames =
      read_frames(folder / description.at("input").get<std::string>());
  ASSERT_FALSE(frames.empty());
  ASSERT_LE(frames.size(), exec::kMaxBatchPkts);
  compare(description, folder, harness.run_packets(make_packets(description, frames, harness)));
  EXPECT_EQ(harness.leaked_pkts(), 0U);
}

std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> found;
  if (!fs::is_directory(folder)) return found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory()) found.push_back(entry.path());
  }
  return found;
}

std::vector<std::string> case_folders() {
  std::vector<std::string> found;
  for (const fs::path& family : folders_in(kModules)) {
    for (const fs::path& folder : folders_in(family / "golden")) {
      if (fs::exists(folder / "case.json")) found.push_back(folder);
    }
  }
  std::ranges::sort(found);
  return found;
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = fs::path(info.param).filename();
  std::ranges::replace(name, '.', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Cases, Golden, testing::ValuesIn(case_folders()), test_name);

TEST(GoldenCases, EveryKindHasOneOrSaysWhyNot) {
  std::set<std::string> covered;
  for (const std::string& folder : case_folders()) {
    std::ifstream file(fs::path(folder) / "case.json");
    covered.insert(json::parse(file).at("kind").get<std::string>());
  }
  ASSERT_FALSE(covered.empty()) << "run the tests from the source tree";
  EXPECT_EQ(cases::faults_of(cases::Need::kGolden, covered), std::vector<std::string>{});
}

}  // namespace
}  // namespace batchplane

// SPDX-License-Identifier: BSD-3-Clause
// pcap_tap_test.cc - capture files read back with libpcap; sampling, full rings, full files.
#include <gtest/gtest.h>
#include <pcap/pcap.h>
#include <stdlib.h>

#include <filesystem>

#include "module_harness.h"

namespace batchplane {
namespace {

struct Captured {
  Bytes bytes;
  uint32_t original_bytes = 0;
  int64_t time_ns = 0;
};

std::vector<Captured> read_capture(const std::string& path) {
  char error[PCAP_ERRBUF_SIZE];
  pcap_t* pcap =
      pcap_open_offline_with_tstamp_precision(path.c_str(), PCAP_TSTAMP_PRECISION_NANO, error);
  if (pcap == nullptr) throw std::runtime_error(error);
  std::vector<Captured> all;
  pcap_pkthdr* header = nullptr;
  const u_char* data = nullptr;
  while (pcap_next_ex(pcap, &header, &data) == 1) {
    all.push_back({Bytes(data, data + header->caplen), header->len,
                   static_cast<int64_t>(header->ts.tv_sec) * 1'000'000'000 + header->ts.tv_usec});
  }
  pcap_close(pcap);
  return all;
}

class PcapTap : public testing::Test {
 protected:
  PcapTap() {
    char name[] = "/tmp/batchplane-tap-XXXXXX";
    folder_ = ::mkdtemp(name);
  }
  ~PcapTap() override { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::string path(const std::string& file) const { return folder_ + "/" + file; }

  std::string folder_;
};

TEST_F(PcapTap, WritesBothFormats) {
  for (const char* file : {"a.pcap", "a.pcapng"}) {
    ModuleHarness harness("pcap_tap", {{"path", path(file)}, {"snaplen_bytes", 65}});
    std::vector<Bytes> frames;
    for (uint32_t i = 0; i < 40; ++i) frames.push_back(make_frame({.len_bytes = 45 + i}));
    harness.set_now_ns(5'000'000'123);
    EXPECT_EQ(harness.run(frames).at(0), frames);
    harness.set_now_ns(6'000'000'456);
    harness.run({make_frame()});
    EXPECT_EQ(harness.command("flush")["written_pkts"].as_int(), 41);
    const std::vector<Captured> captured = read_capture(path(file));
    ASSERT_EQ(captured.size(), 41U);
    for (size_t i = 0; i < frames.size(); ++i) {
      EXPECT_EQ(captured[i].original_bytes, frames[i].size());
      Bytes expected = frames[i];
      expected.resize(std::min<size_t>(expected.size(), 65));
      EXPECT_EQ(captured[i].bytes, expected);
    }
    EXPECT_EQ(captured[40].time_ns - captured[0].time_ns, 1'000'000'333);
  }
}

TEST_F(PcapTap, EmptyPacketsAndDestruction) {
  {
    ModuleHarness harness("pcap_tap", {{"path", path("b.pcap")}});
    harness.run({Bytes{}, Bytes(1, 7)});
  }
  const std::vector<Captured> captured = read_capture(path("b.pcap"));
  ASSERT_EQ(captured.size(), 2U);
  EXPECT_TRUE(captured[0].bytes.empty());
  EXPECT_EQ(captured[1].bytes, Bytes(1, 7));
}

TEST_F(PcapTap, SamplesAndSwitches) {
  ModuleHarness harness("pcap_tap", {{"path", path("c.pcap")}, {"sample_one_in", 4}});
  const std::vector<Bytes> frames(10, make_frame());
  harness.run(frames);
  EXPECT_EQ(harness.command("flush")["written_pkts"].as_int(), 2);
  harness.command("set", Dict{{"is_on", false}});
  harness.run(frames);
  EXPECT_EQ(harness.command("flush")["written_pkts"].as_int(), 2);
  harness.command("set", Dict{{"is_on", true}, {"sample_one_in", 1}});
  harness.run(frames);
  EXPECT_EQ(harness.command("flush")["written_pkts"].as_int(), 12);
  EXPECT_EQ(harness.module().saved_params(), (Dict{{"is_on", true}, {"sample_one_in", 1}}));
  EXPECT_THROW(harness.command("set", Dict{{"sample_one_in", 0}}), ConfigError);
}

// The writer may empty the ring at any time, so only the sum is certain. The batch is far larger
// than the ring, and all its packets pass.
TEST_F(PcapTap, FullRingIsCountedAndPacketsPass) {
  ModuleHarness harness("pcap_tap",
                        {{"path", path("d.pcap")}, {"snaplen_bytes", 1500}, {"ring_bytes", 16384}});
  const std::vector<Bytes> frames(200, make_frame({.len_bytes = 1500}));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(harness.run(frames).outputs.size(), 200U);
  const Value shown = harness.command("flush");
  EXPECT_EQ(shown["written_pkts"].as_int() + shown["missed_pkts"].as_int(), 1000);
  EXPECT_EQ(read_capture(path("d.pcap")).size(),
            static_cast<size_t>(shown["written_pkts"].as_int()));
}

TEST_F(PcapTap, FullFileStopsWriting) {
  ModuleHarness harness("pcap_tap", {{"path", path("e.pcap")}, {"max_file_bytes", 1024}});
  harness.run(std::vector<Bytes>(50, make_frame()));
  const Value shown = harness.command("flush");
  EXPECT_EQ(shown["written_pkts"].as_int() + shown["missed_pkts"].as_int(), 50);
  EXPECT_NE(shown["error"].as_string().find("max_file_bytes"), std::string::npos);
  EXPECT_LE(std::filesystem::file_size(path("e.pcap")), 1024U);
  EXPECT_EQ(read_capture(path("e.pcap")).size(),
            static_cast<size_t>(shown["written_pkts"].as_int()));
}

TEST_F(PcapTap, RefusesPathsThatCannotBe) {
  EXPECT_THROW(ModuleHarness("pcap_tap", {{"path", path("no/such/folder.pcap")}}), ConfigError);
  EXPECT_THROW(ModuleHarness("pcap_tap", {{"path", folder_}}), ConfigError);
  EXPECT_THROW(ModuleHarness("pcap_tap", {{"path", ""}}), ConfigError);
  EXPECT_THROW(ModuleHarness("pcap_tap", Dict{}), ConfigError);
}

TEST_F(PcapTap, IsForItsOwnerOnlyAndFollowsNoLink) {
  {
    ModuleHarness harness("pcap_tap", {{"path", path("g.pcap")}});
    harness.run({make_frame()});
  }
  const auto mode = std::filesystem::status(path("g.pcap")).permissions();
  EXPECT_EQ(static_cast<unsigned>(mode), 0600U);
  std::filesystem::create_symlink(path("g.pcap"), path("link.pcap"));
  EXPECT_THROW(ModuleHarness("pcap_tap", {{"path", path("link.pcap")}}), ConfigError);
}

TEST_F(PcapTap, SameFileGoesOnAfterAdoption) {
  auto old = std::make_unique<ModuleHarness>("pcap_tap", Dict{{"path", path("f.pcap")}});
  old->run({make_frame()});
  ModuleHarness young("pcap_tap", {{"path", path("f.pcap")}});
  young.module().adopt(old->module());
  old.reset();
  young.run({make_frame()});
  EXPECT_EQ(young.command("flush")["written_pkts"].as_int(), 2);
  EXPECT_EQ(read_capture(path("f.pcap")).size(), 2U);
}

}  // namespace
}  // namespace batchplane

// SPDX-License-Identifier: BSD-3-Clause
// pcap_port_test.cc - replay and recording of capture files: good, damaged and truncated.
#include <gtest/gtest.h>
#include <pcap/pcap.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <thread>

#include "ports/pcap_reader.h"
#include "ports/pcap_writer.h"
#include "ports/port_test_util.h"

namespace batchplane::ports {
namespace {

class PcapTest : public testing::Test {
 protected:
  PcapTest() {
    const std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
    folder_ = std::filesystem::temp_directory_path() /
              ("bp_pcap_" + name + "_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  ~PcapTest() override { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::string path(const std::string& name) const { return folder_ / name; }

  // Frames of 60, 61, ... bytes, the first byte counting, one microsecond apart.
  std::string write_frames(const std::string& name, uint32_t n) const {
    PcapFile file(path(name), "test");
    for (uint32_t i = 0; i < n; ++i) {
      std::vector<uint8_t> frame(60 + i, 0);
      frame[0] = static_cast<uint8_t>(i);
      EXPECT_TRUE(file.write(frame.data(), static_cast<uint32_t>(frame.size()),
                             1'700'000'000'000'000'001ULL + 1000ULL * i));
    }
    return path(name);
  }
  std::shared_ptr<Port> make(PortRig& rig, const Dict& params) {
    auto port = make_port({"p0", "pcap", params}, rig.env);
    port->start(rig.pool);
    return port;
  }

  std::filesystem::path folder_;
};

// Simulates a full disk by a limit on the file size.
class SmallDisk {
 public:
  explicit SmallDisk(uint64_t bytes) {
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit small{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
  }
  ~SmallDisk() { end(); }
  void end() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int) = SIG_DFL;
};

TEST_F(PcapTest, AFullDiskLeavesWholePacketsAndNothingIsTakenForIt) {
  PortRig rig;
  SmallDisk disk(32'768);
  auto port = make(rig, {{"write", path("out.pcap")}});
  uint64_t taken = 0;
  const auto send = [&] {
    Packet* pkts[32];
    if (!rig.pool.alloc_bulk(pkts, 32)) return std::this_thread::yield();
    for (Packet* pkt : pkts) pkt->reset(60);
    const uint32_t n = port->tx_burst(pkts, 32);
    PacketPool::free_bulk(pkts + n, 32 - n);
    taken += n;
    if (n == 0) std::this_thread::yield();
  };
  const auto fact = [&](const char* name) {
    return static_cast<uint64_t>(port->show()[name].as_int());
  };
  // 24 bytes of file header, and 76 per packet.
  constexpr uint64_t kFitting = (32'768 - 24) / 76;
  while (taken < kFitting) send();
  // Packets beyond that are dropped where they are counted, and all packets taken are written.
  for (uint32_t k = 0; k < 1000; ++k) send();
  EXPECT_EQ(taken, kFitting);
  while (fact("written_pkts") < kFitting) std::this_thread::yield();
  disk.end();
  while (taken < kFitting + 100) send();
  EXPECT_EQ(fact("failed_pkts"), 0U);
  port.reset();
  const PcapRecording recording = read_pcap(path("out.pcap"), "test");
  EXPECT_EQ(recording.cut_pkts, 0U);
  EXPECT_EQ(recording.frames.size(), taken);
  for (const auto& frame : recording.frames) ASSERT_EQ(frame.len_bytes, 60U);
}

TEST_F(PcapTest, BothFormatsComeBackAsWrittenToTheNanosecond) {
  for (const char* name : {"a.pcap", "a.pcapng"}) {
    const PcapRecording recording = read_pcap(write_frames(name, 5), "test");
    ASSERT_EQ(recording.frames.size(), 5U) << name;
    for (uint32_t i = 0; i < 5; ++i) {
      EXPECT_EQ(recording.frames[i].len_bytes, 60 + i);
      EXPECT_EQ(recording.frames[i].at_ns, 1000 * i);
      EXPECT_EQ(recording.bytes[recording.frames[i].offset], i);
    }
    EXPECT_EQ(recording.duration_ns, 5000U);
    EXPECT_EQ(recording.longest_bytes, 64U);
    EXPECT_EQ(recording.cut_pkts, 0U);
  }
}

TEST_F(PcapTest, TopSpeedEntersNowAndEnds) {
  PortRig rig;
  auto port = make(rig, {{"read", write_frames("a.pcap", 5)}});
  Packet* pkts[8];
  ASSERT_EQ(port->rx_burst(pkts, 3, 77), 3U);
  EXPECT_EQ(pkts[2]->len_bytes(), 62U);
  EXPECT_EQ(pkts[2]->data()[0], 2);
  EXPECT_EQ(pkts[2]->meta().entry_ns, 77U);
  EXPECT_EQ(pkts[2]->meta().in_interface, kNoInterface);
  rig.free({pkts[0], pkts[1], pkts[2]});
  EXPECT_FALSE(port->is_exhausted());
  ASSERT_EQ(port->rx_burst(pkts, 8, 78), 2U);
  rig.free({pkts[0], pkts[1]});
  EXPECT_TRUE(port->is_exhausted());
  EXPECT_EQ(port->rx_burst(pkts, 8, 79), 0U);
  EXPECT_EQ(port->stats().rx_bytes, 60U + 61 + 62 + 63 + 64);
}

TEST_F(PcapTest, RecordedPaceGivesDueTimesEvenWhenAskedLate) {
  PortRig rig;
  auto port = make(
      rig,
      {{"read", write_frames("a.pcap", 3)}, {"pace", "recorded"}, {"loop", true}, {"speed", 2.0}});
  Packet* pkts[16];
  ASSERT_EQ(port->rx_burst(pkts, 16, 10'000), 1U);
  rig.free({pkts[0]});
  EXPECT_EQ(port->rx_burst(pkts, 16, 10'499), 0U);
  // One round lasts 3 us as recorded, 1.5 us at double speed.
  ASSERT_EQ(port->rx_burst(pkts, 16, 12'600), 5U);
  const uint64_t due[5] = {10'500, 11'000, 11'500, 12'000, 12'500};
  for (int i = 0; i < 5; ++i) EXPECT_EQ(pkts[i]->meta().entry_ns, due[i]) << i;
  for (int i = 0; i < 5; ++i) rig.free({pkts[i]});
  EXPECT_FALSE(port->is_exhausted());
}

TEST_F(PcapTest, AnEmptyPoolDelaysButLosesNothing) {
  PortRig rig(4);
  auto port = make(rig, {{"read", write_frames("a.pcap", 6)}, {"pace", "recorded"}});
  Packet* pkts[8];
  ASSERT_EQ(port->rx_burst(pkts, 1, 0), 1U);
  EXPECT_EQ(port->rx_burst(pkts + 1, 5, 100'000), 0U);
  rig.free({pkts[0]});
  ASSERT_EQ(port->rx_burst(pkts, 4, 200'000), 4U);
  EXPECT_EQ(pkts[0]->meta().entry_ns, 1000U);
  for (int i = 0; i < 4; ++i) rig.free({pkts[i]});
}

TEST_F(PcapTest, RecordsWhatIsSent) {
  for (const char* name : {"out.pcap", "out.pcapng"}) {
    PortRig rig;
    auto port = make(rig, {{"write", path(name)}});
    rig.env.ports["p0"] = port;
    auto out = rig.module("port_out", {{"port", "p0"}});
    EXPECT_TRUE(rig.consume(*out, "port_out", {rig.make(60, 1), rig.make(1500, 2), rig.make(63, 3)})
                    .empty());
    EXPECT_EQ(port->stats().tx_bytes, 1623U);
    out.reset();
    rig.env.ports.clear();
    port.reset();  // the last owner: everything is on disk now
    const PcapRecording recording = read_pcap(path(name), "test");
    ASSERT_EQ(recording.frames.size(), 3U) << name;
    EXPECT_EQ(recording.frames[1].len_bytes, 1500U);
    EXPECT_EQ(recording.bytes[recording.frames[2].offset], 3);
    EXPECT_EQ(rig.pool.available_pkts(), 512U);
  }
}

TEST_F(PcapTest, CutAndUnfitPacketsAreCounted) {
  {
    pcap_t* dead = pcap_open_dead(DLT_EN10MB, 65535);
    pcap_dumper_t* dumper = pcap_dump_open(dead, path("cut.pcap").c_str());
    const std::vector<u_char> bytes(20'000, 7);
    const bpf_u_int32 caplens[4] = {40, 13, 60, 12'000};
    for (int i = 0; i < 4; ++i) {
      pcap_pkthdr header{};
      header.ts.tv_sec = i == 2 ? 1 : 10 + i;  // the third is stamped in the past
      header.caplen = caplens[i];
      header.len = i == 0 ? 1500 : caplens[i];
      pcap_dump(reinterpret_cast<u_char*>(dumper), &header, bytes.data());
    }
    pcap_dump_close(dumper);
    pcap_close(dead);
  }
  PortRig rig;
  auto port = make(rig, {{"read", path("cut.pcap")}});
  const Value facts = port->show();
  EXPECT_EQ(facts["recorded_pkts"].as_int(), 2);
  EXPECT_EQ(facts["cut_pkts"].as_int(), 1);
  EXPECT_EQ(facts["out_of_order_pkts"].as_int(), 1);
  EXPECT_EQ(port->stats().rx_refused_pkts, 2U);
  Packet* pkts[4];
  ASSERT_EQ(port->rx_burst(pkts, 4, 0), 2U);
  EXPECT_EQ(pkts[0]->len_bytes(), 40U);
  rig.free({pkts[0], pkts[1]});
}

TEST_F(PcapTest, ARecordingIsForItsOwnerOnlyAndFollowsNoLink) {
  std::ofstream(path("victim")) << "precious";
  std::filesystem::create_symlink(path("victim"), path("link.pcap"));
  Environment env;
  EXPECT_NE(error_of([&] {
              make_port({"p0", "pcap", {{"write", path("link.pcap")}}}, env);
            }).find("it is a link"),
            std::string::npos);
  EXPECT_EQ(std::filesystem::file_size(path("victim")), 8U);
  make_port({"p0", "pcap", {{"write", path("mine.pcap")}}}, env);
  EXPECT_EQ(static_cast<unsigned>(std::filesystem::status(path("mine.pcap")).permissions()), 0600U);
}

TEST_F(PcapTest, BadFilesAreRefusedWithWords) {
  EXPECT_NE(error_of([&] { read_pcap(path("none.pcap"), "x"); }).find("No such file"),
            std::string::npos);
  std::ofstream(path("text.pcap")) << "this is no capture file at all";
  EXPECT_NE(error_of([&] { read_pcap(path("text.pcap"), "x"); }), "");
  for (const char* name : {"a.pcap", "a.pcapng"}) {
    const std::string good = write_frames(name, 3);
    std::filesystem::resize_file(good, std::filesystem::file_size(good) - 30);
    const std::string error = error_of([&] { read_pcap(good, "ports.p0.read"); });
    EXPECT_NE(error.find("damaged after packet 2"), std::string::npos) << error;
  }
  pcap_t* dead = pcap_open_dead(DLT_RAW, 65535);
  pcap_dump_close(pcap_dump_open(dead, path("raw.pcap").c_str()));
  pcap_close(dead);
  EXPECT_NE(error_of([&] { read_pcap(path("raw.pcap"), "x"); }).find("RAW"), std::string::npos);
  Environment env;
  EXPECT_NE(error_of([&] {
              make_port({"p0", "pcap", {}}, env);
            }).find("neither read nor write"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              make_port({"p0", "pcap", {{"write", "/none/x.pcap"}}}, env);
            }).find("cannot write"),
            std::string::npos);
}

}  // namespace
}  // namespace batchplane::ports

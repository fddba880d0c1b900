// SPDX-License-Identifier: BSD-3-Clause
// esp_test.cc - packets survive encryption and decryption, live edits lose no sequence number, and
// keys are never disclosed. The golden cases compare bytes with another program.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/rng.h"
#include "module_harness.h"
#include "modules/esp/esp_suite.h"

namespace batchplane {
namespace {

constexpr uint32_t kDataBytes = 9800;

Dict sa_of(uint32_t id, const std::string& suite, bool has_esn = false) {
  return {{"id", id},       {"spi", 0x1000 + id},   {"suite", suite},
          {"esn", has_esn}, {"local", "192.0.2.1"}, {"remote", "192.0.2.2"}};
}
// The SA for the receiving end.
Dict receiving(Dict sa) {
  sa["remote"] = sa["local"];
  sa.erase("local");
  return sa;
}
Dict params_of(const List& sas) { return {{"sas", sas}, {"test_keys", true}}; }

std::vector<Bytes> encrypted(ModuleHarness& encrypt, const std::vector<Bytes>& frames,
                             uint32_t id) {
  encrypt.meta().tunnel_id = id;
  return encrypt.run(frames).at(0);
}
uint32_t sequence_in(const Bytes& frame) { return net::load32(&frame[38]); }

// All strings in `value`, concatenated.
std::string strings_of(const Value& value) {
  std::string all;
  if (value.is_string()) all += value.as_string() + '\n';
  if (value.is_list()) {
    for (const Value& item : value.as_list()) all += strings_of(item);
  }
  if (value.is_dict()) {
    for (const auto& [key, item] : value.as_dict()) all += key + '\n' + strings_of(item);
  }
  return all;
}

class EspSuite : public testing::TestWithParam<std::string> {};

TEST_P(EspSuite, ComesOutAsItWentIn) {
  Rng rng(11);
  for (const bool has_esn : {false, true}) {
    const Dict sa = sa_of(5, GetParam(), has_esn);
    ModuleHarness encrypt("esp_encrypt", params_of({sa}), 1, nullptr, kDataBytes);
    ModuleHarness decrypt("esp_decrypt", params_of({receiving(sa)}), 3, nullptr, kDataBytes);
    for (uint32_t round = 0; round < 60; ++round) {
      std::vector<Bytes> frames;
      for (uint32_t n = 1 + rng.below(round % 3 == 0 ? 256 : 20); n > 0; --n) {
        Bytes frame = make_frame({.len_bytes = 60 + rng.below(round % 7 == 0 ? 9000 : 200)});
        for (size_t i = 42; i < frame.size(); ++i) frame[i] = static_cast<uint8_t>(rng.next());
        frames.push_back(std::move(frame));
      }
      const std::vector<Bytes> sent = encrypted(encrypt, frames, 5);
      ASSERT_EQ(sent.size(), frames.size());
      const Outcome outcome = decrypt.run(sent);
      const std::vector<Bytes> received = outcome.at(0);
      ASSERT_EQ(received.size(), frames.size());
      for (size_t i = 0; i < frames.size(); ++i) {
        ASSERT_EQ(Bytes(received[i].begin() + 14, received[i].end()),
                  Bytes(frames[i].begin() + 14, frames[i].end()));
        ASSERT_EQ(outcome.outputs[i].meta.tunnel_id, 5U);
      }
    }
    EXPECT_EQ(encrypt.leaked_pkts() + decrypt.leaked_pkts(), 0U);
  }
}

// ESN: half of a 64-bit number is sent; the other half is recovered when it changes, and
// authenticated.
TEST_P(EspSuite, CountsBeyond32Bits) {
  Dict sa = sa_of(5, GetParam(), true);
  ModuleHarness decrypt("esp_decrypt", params_of({receiving(sa)}), 3);
  sa["first_sequence"] = 0xffffff00;
  ModuleHarness encrypt("esp_encrypt", params_of({sa}));
  for (uint32_t round = 0; round < 20; ++round) {
    std::vector<Bytes> sent = encrypted(encrypt, std::vector<Bytes>(40, make_frame({})), 5);
    std::ranges::reverse(sent);
    EXPECT_EQ(decrypt.run(sent).at(0).size(), 40U);
    EXPECT_EQ(decrypt.run(sent).dropped_for("replayed"), 40U);
  }
  EXPECT_EQ(decrypt.command("list")["sas"].as_list()[0]["sequence"].as_int(), 0xffffff00 + 799LL);
}

// Benchmarks send the same packets over and over.
TEST_P(EspSuite, TakesRepeatedPacketsWhereTheyAreNew) {
  const Dict sa = sa_of(5, GetParam(), true);
  ModuleHarness encrypt("esp_encrypt", params_of({sa}));
  Environment env;
  env.repeats_packets = true;
  ModuleHarness decrypt("esp_decrypt", params_of({receiving(sa)}), 3, &env);
  const std::vector<Bytes> sent = encrypted(encrypt, std::vector<Bytes>(20, make_frame({})), 5);
  for (uint32_t round = 0; round < 3; ++round) EXPECT_EQ(decrypt.run(sent).at(0).size(), 20U);
}

// Flipping any authenticated bit makes the packet refused.
TEST_P(EspSuite, EveryBitCounts) {
  const Dict sa = sa_of(5, GetParam());
  ModuleHarness encrypt("esp_encrypt", params_of({sa}));
  ModuleHarness decrypt("esp_decrypt", params_of({receiving(sa)}), 3);
  const Bytes sent = encrypted(encrypt, {make_frame({.len_bytes = 70})}, 5).at(0);
  for (size_t byte = 38; byte < sent.size(); ++byte) {
    Bytes forged = sent;
    forged[byte] ^= static_cast<uint8_t>(1U << byte % 8);
    const Outcome outcome = decrypt.run({forged});
    EXPECT_EQ(outcome.dropped_for("bad_icv"), 1U) << byte;
  }
  EXPECT_EQ(decrypt.run({sent, sent}).dropped_for("replayed"), 1U);
}

// Encrypting the same plaintext twice gives nothing in common but the headers.
TEST_P(EspSuite, NoTwoPacketsLookAlike) {
  ModuleHarness encrypt("esp_encrypt", params_of({sa_of(5, GetParam())}));
  std::set<Bytes> bodies;
  for (const Bytes& out : encrypted(encrypt, std::vector<Bytes>(200, make_frame({})), 5)) {
    bodies.insert(Bytes(out.begin() + 42, out.begin() + 74));
  }
  EXPECT_EQ(bodies.size(), 200U);
}

std::vector<std::string> all_suites() {
  std::vector<std::string> names;
  for (const esp::Suite& suite : esp::suites()) names.emplace_back(suite.name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(All, EspSuite, testing::ValuesIn(all_suites()), [](const auto& case_of) {
  std::string name = case_of.param;
  std::erase(name, '-');
  return name;
});

// Packets of many SAs and all suites in one batch, with forged ones in between.
TEST(Esp, MixesSuitesInABatch) {
  Rng rng(3);
  List out;
  List in;
  const std::vector<std::string> names = all_suites();
  for (uint32_t id = 0; id < 64; ++id) {
    const Dict sa = sa_of(id, names[id % names.size()], id % 3 == 0);
    out.push_back(sa);
    in.push_back(receiving(sa));
  }
  ModuleHarness encrypt("esp_encrypt", params_of(out));
  ModuleHarness decrypt("esp_decrypt", params_of(in), 3);
  for (uint32_t round = 0; round < 20; ++round) {
    std::vector<Packet*> pkts;
    for (uint32_t i = 0; i < 200; ++i) {
      encrypt.meta().tunnel_id = rng.below(64);
      pkts.push_back(encrypt.make_packet(make_frame({.port_src = static_cast<uint16_t>(i)})));
    }
    std::vector<Bytes> frames = encrypt.run_packets(std::move(pkts)).at(0);
    ASSERT_EQ(frames.size(), 200U);
    uint32_t n_forged = 0;
    for (Bytes& frame : frames) {
      if (rng.below(4) != 0) continue;
      frame[50] ^= 1;
      ++n_forged;
    }
    const Outcome outcome = decrypt.run(frames);
    EXPECT_EQ(outcome.dropped_for("bad_icv"), n_forged);
    EXPECT_EQ(outcome.at(0).size(), 200 - n_forged);
  }
}

TEST(Esp, StopsBeforeNumbersBeginAnew) {
  Dict sa = sa_of(1, "aes-128-gcm");
  sa["first_sequence"] = 0xfffffffe;
  ModuleHarness encrypt("esp_encrypt", params_of({sa}));
  encrypt.meta().tunnel_id = 1;
  const Outcome outcome = encrypt.run(std::vector<Bytes>(4, make_frame({})));
  EXPECT_EQ(outcome.at(0).size(), 2U);
  EXPECT_EQ(outcome.dropped_for("sequence_exhausted"), 2U);
  EXPECT_EQ(encrypt.module().show()["exhausted_sas"].as_int(), 1);
}

TEST(Esp, EditsGoOnCounting) {
  Dict sa = sa_of(1, "aes-128-gcm");
  ModuleHarness encrypt("esp_encrypt", params_of({sa}));
  encrypted(encrypt, std::vector<Bytes>(10, make_frame({})), 1);
  sa["remote"] = "192.0.2.77";
  encrypt.command("add", sa);
  encrypt.command("add", sa_of(2, "aes-128-gcm"));
  encrypt.command("reload");
  const Bytes next = encrypted(encrypt, {make_frame({})}, 1).at(0);
  EXPECT_EQ(sequence_in(next), 11U);
  EXPECT_EQ(next[33], 77);
  // After an apply, the new module continues the sequence numbers.
  ModuleHarness later("esp_encrypt", params_of({sa}));
  later.module().inherit(encrypt.module());
  encrypted(encrypt, {make_frame({})}, 1);
  EXPECT_EQ(sequence_in(encrypted(later, {make_frame({})}, 1).at(0)), 13U);
  // Another suite means another key, and sequence numbers start anew.
  sa["suite"] = "chacha20-poly1305";
  later.command("add", sa);
  EXPECT_EQ(sequence_in(encrypted(later, {make_frame({})}, 1).at(0)), 1U);
}

TEST(Esp, ARefusedEditChangesNothing) {
  ModuleHarness encrypt("esp_encrypt", params_of({sa_of(1, "aes-128-gcm")}));
  const Value before = encrypt.command("list");
  Dict bad = sa_of(2, "aes-128-gcm");
  bad["spi"] = 7;
  EXPECT_NE(refusal_of([&] {
              encrypt.command("add", Dict{{"items", List{sa_of(3, "aes-128-gcm"), bad}}});
            }),
            "");
  EXPECT_NE(refusal_of([&] { encrypt.command("delete", Dict{{"id", 9}}); }), "");
  EXPECT_EQ(encrypt.command("list"), before);
}

// Key files, and messages about them.
class EspKeys : public testing::Test {
 protected:
  void SetUp() override {
    path_ = std::filesystem::temp_directory_path() / ("bp_esp_" + std::to_string(::getpid()));
  }
  void TearDown() override { std::filesystem::remove(path_); }
  void write(const std::string& text, mode_t mode = 0600) {
    std::ofstream(path_) << text;
    ::chmod(path_.c_str(), mode);
  }
  [[nodiscard]] Dict params(const List& sas) const {
    return {{"sas", sas}, {"keys", path_.string()}};
  }
  [[nodiscard]] std::string refusal(const List& sas) const {
    return refusal_of([&] { ModuleHarness("esp_encrypt", params(sas)); });
  }

  std::filesystem::path path_;
};

constexpr const char* kKey = "000102030405060708090a0b0c0d0e0fcafebabe";

TEST_F(EspKeys, AreReadAgainAtEveryEdit) {
  write(std::string("# id, key\n1 ") + kKey + "\n");
  ModuleHarness encrypt("esp_encrypt", params({sa_of(1, "aes-128-gcm")}));
  EXPECT_NE(refusal_of([&] { encrypt.command("add", sa_of(2, "aes-128-gcm")); }), "");
  encrypted(encrypt, {make_frame({})}, 1);
  write("1 0x000102030405060708090a0b0c0d0e0fcafebabe\n2 11" + std::string(38, '2') + "\n");
  encrypt.command("add", sa_of(2, "aes-128-gcm"));
  EXPECT_EQ(sequence_in(encrypted(encrypt, {make_frame({})}, 1).at(0)), 2U);
  write("1 ff" + std::string(38, '1') + "\n2 11" + std::string(38, '2') + "\n");
  encrypt.command("reload");
  EXPECT_EQ(sequence_in(encrypted(encrypt, {make_frame({})}, 1).at(0)), 1U);
}

TEST_F(EspKeys, AreToldToNobody) {
  write(std::string("1 ") + kKey + "\n2 00" + kKey + "\n");
  ModuleHarness encrypt("esp_encrypt", params({sa_of(1, "aes-128-gcm")}));
  std::string all = strings_of(encrypt.module().show()) + strings_of(encrypt.command("list")) +
                    strings_of(Value(encrypt.module().saved_params()));
  all += refusal({sa_of(2, "aes-128-gcm")});
  EXPECT_NE(all.find(":2"), std::string::npos) << all;  // FILE:LINE
  EXPECT_EQ(all.find("0a0b0c0d"), std::string::npos);
  EXPECT_EQ(all.find("cafebabe"), std::string::npos);
}

TEST_F(EspKeys, AreRefusedInALine) {
  const List one = {sa_of(1, "aes-128-gcm")};
  const auto says = [&](const std::string& text, const std::string& part, const List& sas,
                        mode_t mode = 0600) {
    write(text, mode);
    const std::string line = refusal(sas);
    EXPECT_NE(line.find(part), std::string::npos) << text << ": " << line;
    EXPECT_EQ(line.find('\n'), std::string::npos);
  };
  says("1\n", ":1", one);
  says("\n# no\nx y\n", ":3", one);
  says("1 zz\n", "hexadecimal", one);
  says("1 123\n", "hexadecimal", one);
  says(std::string("1 ") + kKey + "\n1 " + kKey + "\n", ":2", one);
  says(std::string("2 ") + kKey + "\n", "no key of SA 1", one);
  says("1 00112233\n", "takes 20", one);
  says(std::string("1 ") + kKey + " 00\n", "authentication key has 1", one);
  says(std::string("1 ") + kKey + "\n", "chmod", one, 0644);
  says(std::string("1 ") + kKey + "\n2 " + kKey + "\n", "same key",
       {sa_of(1, "aes-128-gcm"), sa_of(2, "aes-128-gcm")});
  EXPECT_NE(refusal_of([&] { ModuleHarness("esp_encrypt", Dict{{"sas", one}}); }), "");
}

TEST(Esp, RefusesWhatCannotBe) {
  const auto refused = [](const char* kind, Dict sa, const Dict& more = {}) {
    Dict params = params_of({std::move(sa)});
    for (const auto& [key, value] : more) params[key] = value;
    return refusal_of([&] { ModuleHarness(kind, params); });
  };
  const Dict good = sa_of(1, "aes-128-gcm");
  Dict sa = good;
  sa["remote"] = "2001:db8::1";
  EXPECT_NE(refused("esp_encrypt", sa).find("same version"), std::string::npos);
  sa = good, sa["suite"] = "des";
  EXPECT_NE(refused("esp_encrypt", sa).find("aes-128-gcm"), std::string::npos);
  sa = good, sa["spi"] = 255;
  EXPECT_NE(refused("esp_encrypt", sa).find("spi"), std::string::npos);
  sa = good, sa["key"] = "00";
  EXPECT_NE(refused("esp_encrypt", sa).find("unknown key"), std::string::npos);
  sa = receiving(good), sa["esn"] = true;
  EXPECT_NE(refused("esp_decrypt", sa, {{"replay_window_pkts", 0}}).find("window"),
            std::string::npos);
  EXPECT_EQ(refused("esp_decrypt", sa), "");
}

}  // namespace
}  // namespace batchplane

// SPDX-License-Identifier: BSD-3-Clause
// file_fuzz_test.cc - randomly changed files of routes, sessions, rules and keys: the module
// accepts them, or refuses them with one line, and goes on.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include "base/error.h"
#include "base/rng.h"
#include "module_harness.h"

namespace batchplane {
namespace {

constexpr std::array<const char*, 26> kWords = {"",
                                                "-1",
                                                "0",
                                                "4294967296",
                                                "18446744073709551616",
                                                "99999999999999999999999999999",
                                                "1e999",
                                                "0/0",
                                                "/33",
                                                "/129",
                                                "10.0.0.0/8",
                                                "::/0",
                                                "drop",
                                                "local",
                                                "#",
                                                "\"",
                                                "{}",
                                                "[]",
                                                "null",
                                                "@0.0.0.0/0",
                                                ":",
                                                "\t",
                                                "\n",
                                                "\r\n",
                                                "0x10/0x0",
                                                "65535 : 0"};

const char* const kRoutes =
    "# prefix, where to\n10.0.0.0/8 1\n11.0.0.0/8 drop # no\n12.0.0.0/8 local\n13.1.2.0/24 2\n";
const char* const kRoutes6 = "2001:db8::/32 1\nfe80::/10 local\n::/0 drop\n2001:db8:1::/48 2\n";
const char* const kRules =
    "@10.0.0.0/8 0.0.0.0/0 0 : 65535 80 : 80 0x06/0xFF\n"
    "@0.0.0.0/0 192.0.2.0/24 1000 : 2000 0 : 65535 0x11/0xFF\n";
const char* const kSessions =
    R"({"seid": 7, "ue": "10.45.0.7", "pdrs": [{"id": 1, "source": "core", "far": 1}], )"
    R"("fars": [{"id": 1, "teid": 5, "peer": "192.0.2.2"}]})"
    "\n# another\n"
    R"({"seid": 8, "ue": "10.45.0.8", "pdrs": [{"id": 1, "source": "core", "far": 1, "qers": [1]}], )"
    R"("fars": [{"id": 1, "teid": 6, "peer": "192.0.2.2"}], )"
    R"("qers": [{"id": 1, "mbr_down_bps": 1000000}]})"
    "\n";

uint32_t n_files() {
  const char* const is_long = std::getenv("BATCHPLANE_LONG");
  return is_long != nullptr && std::string_view(is_long) == "1" ? 2000 : 200;
}

std::string changed(std::string text, Rng& rng) {
  for (uint32_t n = 1 + rng.below(3); n > 0; --n) {
    const auto size = static_cast<uint32_t>(text.size());
    const uint32_t at = rng.below(size + 1);
    const uint32_t length = std::min(rng.below(16), size - at);
    const std::string word = kWords[rng.below(kWords.size())];
    switch (rng.below(5)) {
      case 0:
        text.replace(at, length, word);
        break;
      case 1:
        text.insert(at, word);
        break;
      case 2:
        text.erase(at, length);
        break;
      case 3:
        text.insert(at, text.substr(rng.below(size + 1), 40));
        break;
      default:
        if (at < size) text[at] = static_cast<char>(rng.below(256));
    }
  }
  return text;
}

const char* const kSnortRules =
    "# rules\nalert tcp any any -> any any (msg:\"a; b\"; content:\"GET |0d 0a|\"; nocase; "
    "content:\"x\\;y\"; sid:7; rev:2;)\ndrop udp any any -> any any (content:\"bad\"; sid:8;)\n";
const char* const kKeys =
    "# id, key\n1 000102030405060708090a0b0c0d0e0fcafebabe\n"
    "2 0x1112131415161718191a1b1c1d1e1f20cafebabe\n3 00 11\n";

struct FileCase {
  const char* name;
  const char* kind;
  const char* verb;  // null: the module is created again with the file
  const char* key;
  const char* text;
};

Dict params_of(const FileCase& given, const std::string& path) {
  Dict params{{given.key, path}};
  if (std::string_view(given.kind) != "esp_encrypt") return params;
  List sas;
  for (uint32_t id = 1; id <= 2; ++id) {
    sas.push_back(Dict{{"id", id},
                       {"spi", 4096 + id},
                       {"suite", "aes-128-gcm"},
                       {"local", "192.0.2.1"},
                       {"remote", "192.0.2.2"}});
  }
  params["sas"] = sas;
  return params;
}

class ChangedFiles : public testing::TestWithParam<FileCase> {};

TEST_P(ChangedFiles, AreTakenOrRefusedInALine) {
  const FileCase& given = GetParam();
  char folder[] = "/tmp/bp_file_fuzz_XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string path = std::string(folder) + "/table.txt";
  std::ofstream(path).close();
  std::filesystem::permissions(
      path, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  std::optional<ModuleHarness> harness;
  if (given.verb != nullptr) harness.emplace(given.kind, Dict{}, 4);
  uint32_t n_taken = 0;
  for (uint32_t i = 0; i < n_files(); ++i) {
    Rng rng(i + 1);
    std::ofstream(path, std::ios::binary) << (i == 0 ? given.text : changed(given.text, rng));
    try {
      if (given.verb != nullptr) {
        (void)harness->command(given.verb, Dict{{given.key, path}});
      } else {
        ModuleHarness(given.kind, params_of(given, path), 4);
      }
      ++n_taken;
    } catch (const ConfigError& error) {
      EXPECT_NE(i, 0U) << error.line();
      EXPECT_EQ(error.line().find('\n'), std::string::npos) << error.line();
    }
  }
  EXPECT_GT(n_taken, 0U);
  if (harness) (void)harness->module().show();
  std::filesystem::remove_all(folder);
}

INSTANTIATE_TEST_SUITE_P(
    All, ChangedFiles,
    testing::Values(FileCase{"routes", "ipv4_lookup", "replace", "file", kRoutes},
                    FileCase{"routes6", "ipv6_lookup", "replace", "file", kRoutes6},
                    FileCase{"acl", "acl", "replace", "rules_file", kRules},
                    FileCase{"sessions", "session_downlink", "replace", "file", kSessions},
                    FileCase{"dpi_rules", "dpi", nullptr, "rules_file", kSnortRules},
                    FileCase{"dpi_words", "dpi", nullptr, "words_file", kSnortRules},
                    FileCase{"esp_keys", "esp_encrypt", nullptr, "keys", kKeys}),
    [](const testing::TestParamInfo<FileCase>& given) { return std::string(given.param.name); });

}  // namespace
}  // namespace batchplane

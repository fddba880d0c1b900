// SPDX-License-Identifier: BSD-3-Clause
// file_fuzz_test.cc - files of routes, sessions and rules that modules read, changed by chance: taken, or
// refused in a line, and the module goes on.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>

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

struct FileCase {
  const char* kind;
  const char* verb;
  const char* key;
  const char* text;
};

class ChangedFiles : public testing::TestWithParam<FileCase> {};

TEST_P(ChangedFiles, AreTakenOrRefusedInALine) {
  const FileCase& given = GetParam();
  char folder[] = "/tmp/bp_file_fuzz_XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string path = std::string(folder) + "/table.txt";
  ModuleHarness harness(given.kind, {}, 4);
  uint32_t n_taken = 0;
  for (uint32_t i = 0; i < n_files(); ++i) {
    Rng rng(i + 1);
    std::ofstream(path, std::ios::binary) << (i == 0 ? given.text : changed(given.text, rng));
    try {
      (void)harness.command(given.verb, Dict{{given.key, path}});
      ++n_taken;
    } catch (const ConfigError& error) {
      EXPECT_NE(i, 0U) << error.line();
      EXPECT_EQ(error.line().find('\n'), std::string::npos) << error.line();
    }
  }
  EXPECT_GT(n_taken, 0U);
  (void)harness.module().show();
  std::filesystem::remove_all(folder);
}

INSTANTIATE_TEST_SUITE_P(
    All, ChangedFiles,
    testing::Values(FileCase{"ipv4_lookup", "replace", "file", kRoutes},
                    FileCase{"ipv6_lookup", "replace", "file", kRoutes6},
                    FileCase{"acl", "replace", "rules_file", kRules},
                    FileCase{"session_downlink", "replace", "file", kSessions}),
    [](const testing::TestParamInfo<FileCase>& given) { return std::string(given.param.kind); });

}  // namespace
}  // namespace batchplane

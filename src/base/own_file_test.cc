// SPDX-License-Identifier: BSD-3-Clause
// own_file_test.cc - files are private: no link is followed, and nobody else can read them.
#include "base/own_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace batchplane {
namespace {

class OwnFile : public testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/bp_own_file_XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    folder_ = folder;
    std::ofstream(at("victim")) << "precious";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::string at(const std::string& name) const { return folder_ + "/" + name; }
  [[nodiscard]] std::string content(const std::string& name) const {
    std::ifstream in(at(name));
    return {std::istreambuf_iterator<char>(in), {}};
  }
  // The reason for a failure; empty if writing succeeded.
  std::string write(const std::string& name) {
    std::string why_not;
    std::FILE* const stream = create_own_stream(at(name), why_not);
    if (stream == nullptr) return why_not;
    std::fputs("new", stream);
    std::fclose(stream);
    return "";
  }

  std::string folder_;
};

TEST_F(OwnFile, IsForItsOwnerOnlyWhateverTheMaskSays) {
  const mode_t mask = umask(0);
  EXPECT_EQ(write("a"), "");
  umask(mask);
  struct stat info {};
  ASSERT_EQ(stat(at("a").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  ASSERT_EQ(chmod(at("victim").c_str(), 0666), 0);
  EXPECT_EQ(write("victim"), "");
  EXPECT_EQ(content("victim"), "new");
  ASSERT_EQ(stat(at("victim").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
}

TEST_F(OwnFile, LinksLeadNowhere) {
  ASSERT_EQ(symlink(at("victim").c_str(), at("soft").c_str()), 0);
  ASSERT_EQ(symlink(at("nothing").c_str(), at("dangling").c_str()), 0);
  ASSERT_EQ(link(at("victim").c_str(), at("hard").c_str()), 0);
  EXPECT_NE(write("soft").find("a link"), std::string::npos);
  EXPECT_NE(write("dangling").find("a link"), std::string::npos);
  EXPECT_NE(write("hard").find("hard link"), std::string::npos);
  EXPECT_NE(why_no_own_file(at("soft")), "");
  EXPECT_NE(why_no_own_file(at("hard")), "");
  EXPECT_EQ(why_no_own_file(at("nothing")), "");
  EXPECT_EQ(content("victim"), "precious");
  EXPECT_FALSE(std::filesystem::exists(at("nothing")));
}

TEST_F(OwnFile, OtherThingsAreRefusedAtOnce) {
  EXPECT_NE(write(""), "");
  ASSERT_EQ(mkfifo(at("pipe").c_str(), 0600), 0);
  EXPECT_NE(write("pipe"), "");  // no reader: open must not block
  std::string why_not;
  const int null = create_own_file("/dev/null", why_not);
  EXPECT_GE(null, 0) << why_not;
  close(null);
  if (geteuid() != 0) GTEST_SKIP() << "NOT RUN: files of another user can be made by root only";
  ASSERT_EQ(chown(at("victim").c_str(), 65534, 65534), 0);
  EXPECT_NE(write("victim").find("another user"), std::string::npos);
  EXPECT_EQ(content("victim"), "precious");
}

}  // namespace
}  // namespace batchplane

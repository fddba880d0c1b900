// SPDX-License-Identifier: BSD-3-Clause
// own_file.cc - checks a file after opening it, before changing any of it.
#include "base/own_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace batchplane {
namespace {

// Reason not to write into it, or empty. A pipe to another program is fine if it belongs to this user.
std::string why_not_into(const struct stat& info) {
  if (S_ISLNK(info.st_mode)) return "it is a link, which may lead anywhere: name the file itself";
  if (S_ISDIR(info.st_mode)) return "it is a folder";
  if (S_ISCHR(info.st_mode)) return "";
  if (info.st_uid != geteuid()) return "it belongs to another user: remove it first";
  if (S_ISREG(info.st_mode) && info.st_nlink > 1) {
    return "it has another name elsewhere (a hard link): remove it first";
  }
  return S_ISREG(info.st_mode) || S_ISFIFO(info.st_mode) ? "" : "it is no file";
}

}  // namespace

std::string why_no_own_file(const std::string& path) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) return errno == ENOENT ? "" : std::strerror(errno);
  return why_not_into(info);
}

int create_own_file(const std::string& path, std::string& why_not) {
  // Opening must not block on a pipe without a reader, nor acquire a controlling terminal.
  constexpr int kFlags = O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  const int fd = open(path.c_str(), kFlags, 0600);
  if (fd < 0) {
    const int error = errno;
    why_not = error == ELOOP ? why_no_own_file(path) : std::strerror(error);
    return -1;
  }
  struct stat info {};
  why_not = fstat(fd, &info) == 0 ? why_not_into(info) : std::strerror(errno);
  const bool is_file = S_ISREG(info.st_mode);
  if (why_not.empty() && is_file && (fchmod(fd, 0600) != 0 || ftruncate(fd, 0) != 0)) {
    why_not = std::strerror(errno);
  }
  if (!why_not.empty()) {
    close(fd);
    return -1;
  }
  (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
  return fd;
}

std::FILE* create_own_stream(const std::string& path, std::string& why_not) {
  const int fd = create_own_file(path, why_not);
  if (fd < 0) return nullptr;
  std::FILE* const stream = fdopen(fd, "wb");
  if (stream == nullptr) {
    why_not = std::strerror(errno);
    close(fd);
  }
  return stream;
}

}  // namespace batchplane

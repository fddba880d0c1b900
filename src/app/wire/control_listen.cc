// SPDX-License-Identifier: BSD-3-Clause
// control_listen.cc - creates the socket file: its folder, its permissions, and removal of a stale one.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "app/wire/control_socket.h"
#include "base/error.h"

namespace batchplane::app {
namespace {

[[noreturn]] void refuse(const std::string& path, const std::string& what, const std::string& fix) {
  throw ConfigError(what, path, fix);
}

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    refuse(path, "the path is too long for a socket", "set BATCHPLANE_RUN_DIR to a shorter one");
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

void make_folder(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty() || std::filesystem::exists(folder)) return;
  std::error_code error;
  std::filesystem::create_directories(folder.parent_path(), error);
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    refuse(folder.string(), std::string("the folder cannot be made: ") + std::strerror(errno),
           "set BATCHPLANE_RUN_DIR to one of yours");
  }
}

// In a folder where others may create and remove files, they decide what a name refers to. In a folder with
// the sticky bit they cannot touch our files.
void require_own_folder(const std::string& path) {
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) folder = ".";
  const std::string fix = "set BATCHPLANE_RUN_DIR to a folder of yours, with mode 0700";
  struct stat info {};
  if (lstat(folder.c_str(), &info) != 0) {
    refuse(folder.string(), std::string("the folder cannot be used: ") + std::strerror(errno), fix);
  }
  if (!S_ISDIR(info.st_mode)) refuse(folder.string(), "it is no folder, or a link to one", fix);
  if (info.st_uid != geteuid() && info.st_uid != 0) {
    refuse(folder.string(), "the folder belongs to another user", fix);
  }
  const bool is_writable = (info.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  if (is_writable && (info.st_mode & S_ISVTX) == 0) {
    refuse(folder.string(), "others may write into the folder", fix);
  }
}

// A socket with a listener belongs to a live daemon; without one it is stale. False when there is no file.
bool is_leftover(const std::string& path, const sockaddr_un& address) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) return false;
  if (!S_ISSOCK(info.st_mode)) refuse(path, "there is a file that is no socket", "remove it");
  const Fd probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int result =
      connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  if (result == 0 || errno == EAGAIN || errno == EINPROGRESS) {
    refuse(path, "a daemon is running at this socket already", "stop it, or choose another --name");
  }
  if (errno != ECONNREFUSED) {
    refuse(path, std::string("the socket that is there cannot be asked: ") + std::strerror(errno),
           "remove it, or choose another --name");
  }
  return true;
}

}  // namespace

void ControlSocket::require_free(const std::string& path) {
  (void)is_leftover(path, address_of(path));
}

void ControlSocket::listen_on(const std::string& path) {
  const sockaddr_un address = address_of(path);
  make_folder(path);
  require_own_folder(path);
  // Two daemons of the same name may start at the same moment: the lock lets one at a time check and bind.
  const Fd lock(open(std::filesystem::path(path).parent_path().c_str(), O_RDONLY | O_CLOEXEC));
  if (lock.get() >= 0) flock(lock.get(), LOCK_EX);
  if (is_leftover(path, address)) unlink(path.c_str());
  Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // Restricts permissions from the start: nobody can connect between bind and chmod.
  const mode_t mask = umask(0177);
  const int bound = bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  const int bind_error = errno;
  umask(mask);
  if (bound != 0) {
    refuse(path, std::string("the socket cannot be made: ") + std::strerror(bind_error),
           "set BATCHPLANE_RUN_DIR to a folder of yours");
  }
  path_ = path;
  if (listen(fd.get(), SOMAXCONN) != 0) {
    refuse(path, std::string("the socket cannot be listened on: ") + std::strerror(errno), "");
  }
  listener_ = std::move(fd);
}

}  // namespace batchplane::app

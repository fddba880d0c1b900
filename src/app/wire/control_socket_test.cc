// SPDX-License-Identifier: BSD-3-Clause
// control_socket_test.cc - framing, limits, order and disconnecting clients, over socket pairs.
#include "app/wire/control_socket.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/error.h"

namespace batchplane::app {
namespace {

// A server with manual answers, and one client.
class Pair {
 public:
  Pair() {
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    client = Fd(fds[0]);
    id = server.adopt(Fd(fds[1]));
  }

  void send_text(const std::string& text) const {
    EXPECT_EQ(send(client.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  std::string receive() const {
    std::string all;
    char bytes[65536];
    for (ssize_t n = 0; (n = recv(client.get(), bytes, sizeof bytes, MSG_DONTWAIT)) > 0;) {
      all.append(bytes, static_cast<size_t>(n));
    }
    return all;
  }
  void turn(int times = 3) {
    for (int i = 0; i < times; ++i) server.poll_once(0, -1);
  }

  std::vector<std::string> lines;
  ControlSocket server{
      [this](ControlSocket::ClientId, std::string line) { lines.push_back(std::move(line)); }};
  Fd client;
  ControlSocket::ClientId id = 0;
};

TEST(ControlSocket, PutsPartsOfALineTogether) {
  Pair pair;
  pair.send_text("{\"a\"");
  pair.turn();
  EXPECT_TRUE(pair.lines.empty());
  pair.send_text(":1}\n");
  pair.turn();
  EXPECT_EQ(pair.lines, std::vector<std::string>{"{\"a\":1}"});
}

TEST(ControlSocket, HandsOutOneLineAtATimeAndKeepsTheirOrder) {
  Pair pair;
  pair.send_text("one\r\n\n\ntwo\nthree\n");
  pair.turn();
  EXPECT_EQ(pair.lines.size(), 1U);
  pair.server.answer(pair.id, "1");
  pair.turn();
  ASSERT_EQ(pair.lines.size(), 2U);
  pair.server.answer(pair.id, "2");
  pair.turn();
  EXPECT_EQ(pair.lines, (std::vector<std::string>{"one", "two", "three"}));
  EXPECT_EQ(pair.receive(), "1\n2\n");
}

TEST(ControlSocket, RefusesALineThatIsTooLong) {
  Pair pair;
  const std::string part(65536, 'x');
  for (size_t sent = 0; sent <= ControlSocket::kMaxRequestBytes; sent += part.size()) {
    pair.send_text(part);
    pair.turn();
  }
  EXPECT_NE(pair.receive().find("longer than 1 MiB"), std::string::npos);
  EXPECT_TRUE(pair.lines.empty());
  EXPECT_EQ(pair.server.n_clients(), 0U);
}

TEST(ControlSocket, ForgetsAClientThatGoes) {
  Pair pair;
  pair.send_text("half a li");
  pair.client = Fd();
  pair.turn();
  EXPECT_EQ(pair.server.n_clients(), 0U);
}

TEST(ControlSocket, AnswersNobodyWhenTheClientWentMeanwhile) {
  Pair pair;
  pair.send_text("request\n");
  pair.turn();
  ASSERT_EQ(pair.lines.size(), 1U);
  pair.client = Fd();
  pair.turn();
  pair.server.answer(pair.id, "late");
  pair.turn(5);
  EXPECT_EQ(pair.server.n_clients(), 0U);
}

TEST(ControlSocket, StillAnswersAClientThatClosedItsSendingSide) {
  Pair pair;
  pair.send_text("one\ntwo\n");
  shutdown(pair.client.get(), SHUT_WR);
  pair.turn();
  pair.server.answer(pair.id, "1");
  pair.turn();
  pair.server.answer(pair.id, "2");
  pair.turn();
  EXPECT_EQ(pair.receive(), "1\n2\n");
  EXPECT_EQ(pair.server.n_clients(), 0U);
}

TEST(ControlSocket, AClientThatDoesNotReadKeepsNobodyWaiting) {
  Pair slow;
  slow.send_text("big\nnext\n");
  slow.turn();
  slow.server.answer(slow.id, std::string(8U << 20, 'x'));
  slow.turn(10);
  // Its next request waits, while other clients are served.
  EXPECT_EQ(slow.lines.size(), 1U);
  int fds[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
  const Fd other(fds[0]);
  slow.server.adopt(Fd(fds[1]));
  ASSERT_EQ(send(other.get(), "hi\n", 3, 0), 3);
  slow.turn();
  EXPECT_EQ(slow.lines.back(), "hi");
  // Once it reads, it receives everything and continues.
  size_t received = 0;
  for (int i = 0; i < 1000 && slow.lines.back() != "next"; ++i) {
    received += slow.receive().size();
    slow.turn(1);
  }
  received += slow.receive().size();
  EXPECT_EQ(received, (8U << 20) + 1);
  EXPECT_EQ(slow.lines.back(), "next");
}

TEST(ControlSocket, ServesManyClients) {
  Pair first;
  std::vector<Fd> clients;
  for (int i = 0; i < 50; ++i) {
    int fds[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    clients.emplace_back(fds[0]);
    first.server.adopt(Fd(fds[1]));
    ASSERT_EQ(send(fds[0], "x\n", 2, 0), 2);
  }
  first.turn();
  EXPECT_EQ(first.lines.size(), 50U);
}

class SocketFile : public testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/bp_socket_test_XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    folder_ = folder;
    path_ = folder_ + "/run/a.sock";
  }
  void TearDown() override {
    unlink(path_.c_str());
    rmdir((folder_ + "/run").c_str());
    rmdir(folder_.c_str());
  }
  static uint32_t mode_of(const std::string& path) {
    struct stat info {};
    return stat(path.c_str(), &info) == 0 ? info.st_mode & 0777 : 0;
  }

  [[nodiscard]] Fd connected() const {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof address.sun_path - 1);
    Fd client(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0));
    EXPECT_EQ(connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0)
        << strerror(errno);
    return client;
  }

  std::string folder_;
  std::string path_;
};

// A client with a connect timeout is refused, not queued, when the listen backlog is full.
TEST_F(SocketFile, HasRoomForThoseThatComeBeforeItLooks) {
  ControlSocket server([](ControlSocket::ClientId, const std::string&) {});
  server.listen_on(path_);
  std::vector<Fd> clients;
  for (size_t i = 0; i < ControlSocket::kMaxClients; ++i) clients.push_back(connected());
}

TEST_F(SocketFile, IsOpenToItsOwnerOnly) {
  ControlSocket server([](ControlSocket::ClientId, const std::string&) {});
  server.listen_on(path_);
  EXPECT_EQ(mode_of(path_), 0600U);
  EXPECT_EQ(mode_of(folder_ + "/run"), 0700U);
}

TEST_F(SocketFile, LiesInAFolderThatNobodyElseWritesInto) {
  const std::string run = folder_ + "/run";
  ASSERT_EQ(mkdir(run.c_str(), 0700), 0);
  const auto is_taken = [&](const std::string& path) {
    ControlSocket server([](ControlSocket::ClientId, const std::string&) {});
    try {
      server.listen_on(path);
    } catch (const ConfigError&) {
      return false;
    }
    return true;
  };
  for (const mode_t mode : {0770, 0707, 0777}) {
    ASSERT_EQ(chmod(run.c_str(), mode), 0);
    EXPECT_FALSE(is_taken(path_)) << mode;
  }
  ASSERT_EQ(chmod(run.c_str(), 01777), 0);
  EXPECT_TRUE(is_taken(path_));
  ASSERT_EQ(chmod(run.c_str(), 0755), 0);
  EXPECT_TRUE(is_taken(path_));
  const std::string link = folder_ + "/link";
  ASSERT_EQ(symlink(run.c_str(), link.c_str()), 0);
  EXPECT_FALSE(is_taken(link + "/a.sock"));
  unlink(link.c_str());
  if (geteuid() != 0) GTEST_SKIP() << "NOT RUN: folders of another user can be made by root only";
  ASSERT_EQ(chown(run.c_str(), 65534, 65534), 0);
  EXPECT_FALSE(is_taken(path_));
}

TEST_F(SocketFile, IsNotTakenFromADaemonThatLives) {
  ControlSocket first([](ControlSocket::ClientId, const std::string&) {});
  first.listen_on(path_);
  ControlSocket second([](ControlSocket::ClientId, const std::string&) {});
  EXPECT_THROW(second.listen_on(path_), ConfigError);
}

TEST_F(SocketFile, OneMoreClientTakesThePlaceOfTheOneThatAskedNothingForLongest) {
  std::vector<std::string> lines;
  ControlSocket server(
      [&](ControlSocket::ClientId, std::string line) { lines.push_back(std::move(line)); });
  server.listen_on(path_);
  const auto turn = [&] {
    for (int i = 0; i < 3; ++i) server.poll_once(0, -1);
  };
  std::vector<Fd> clients;
  const auto connect_one = [&] {
    clients.push_back(connected());
    turn();
  };
  const auto ask = [&](size_t client, const std::string& line) {
    ASSERT_EQ(send(clients[client].get(), line.data(), line.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(line.size()));
    turn();
  };
  const auto is_open = [&](size_t client) {
    char bytes[4096];
    while (true) {
      const ssize_t n = recv(clients[client].get(), bytes, sizeof bytes, MSG_DONTWAIT);
      if (n <= 0) return n < 0 && errno == EAGAIN;
    }
  };
  for (size_t i = 0; i < ControlSocket::kMaxClients; ++i) connect_one();
  ask(0, "waits for its answer\n");
  ask(1, "half a request");
  connect_one();
  ask(ControlSocket::kMaxClients, "stop\n");
  EXPECT_EQ(lines.back(), "stop");
  EXPECT_EQ(server.n_clients(), ControlSocket::kMaxClients);
  EXPECT_TRUE(is_open(0));
  EXPECT_TRUE(is_open(1));
  EXPECT_FALSE(is_open(2));
  EXPECT_TRUE(is_open(3));
}

TEST_F(SocketFile, OfADeadDaemonIsReplaced) {
  ASSERT_EQ(mkdir((folder_ + "/run").c_str(), 0700), 0);
  {
    const Fd dead(socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof address.sun_path - 1);
    ASSERT_EQ(bind(dead.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  ControlSocket server([](ControlSocket::ClientId, const std::string&) {});
  EXPECT_NO_THROW(server.listen_on(path_));
}

TEST_F(SocketFile, NeverReplacesAnOrdinaryFile) {
  ASSERT_EQ(mkdir((folder_ + "/run").c_str(), 0700), 0);
  fclose(fopen(path_.c_str(), "w"));
  ControlSocket server([](ControlSocket::ClientId, const std::string&) {});
  EXPECT_THROW(server.listen_on(path_), ConfigError);
  EXPECT_EQ(access(path_.c_str(), F_OK), 0);
}

}  // namespace
}  // namespace batchplane::app

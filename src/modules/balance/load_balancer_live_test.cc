// SPDX-License-Identifier: BSD-3-Clause
// load_balancer_live_test.cc - adding and removing backends and services, the share moved, counters
// across changes, and bad input.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <thread>

#include "core/module/live_table.h"
#include "module_harness.h"

namespace batchplane {
namespace load_balancer_live_test {

constexpr uint32_t kVip = 0xc000020a;  // 192.0.2.10
constexpr uint32_t kGates = 32;

std::string label(const char* prefix, int number) {
  return std::string(prefix).append(std::to_string(number));
}

Dict backend(const std::string& name, int gate) { return {{"name", name}, {"gate", gate}}; }
Dict web(int n_backends) {
  List backends;
  for (int i = 0; i < n_backends; ++i) backends.push_back(backend(label("b", i), i));
  const Dict service{{"name", "web"},
                     {"address", "192.0.2.10"},
                     {"proto", "udp"},
                     {"port", 80},
                     {"backends", backends}};
  return {{"services", List{service}}};
}
Dict change(const std::string& name, int gate, int weight = 1) {
  return {{"service", "web"}, {"name", name}, {"gate", gate}, {"weight", weight}};
}
Dict removal(const std::string& name) { return {{"service", "web"}, {"name", name}}; }

std::vector<Bytes> flows(uint16_t n, uint16_t first = 0) {
  std::vector<Bytes> frames;
  for (uint16_t i = 0; i < n; ++i) {
    frames.push_back(
        make_frame({.ip_dst = kVip, .port_src = static_cast<uint16_t>(first + i), .port_dst = 80}));
  }
  return frames;
}

std::map<std::string, int64_t> counts(ModuleHarness& harness) {
  std::map<std::string, int64_t> found;
  const Value shown = harness.module().show();
  for (const auto& [service, backends] : shown["pkts"].as_dict()) {
    for (const auto& [name, pkts] : backends.as_dict()) found[name] += pkts.as_int();
  }
  return found;
}

TEST(LoadBalancerLive, AddingMovesHardlyMoreThanTheLeast) {
  ModuleHarness harness("load_balancer", web(10), kGates);
  const std::vector<Bytes> frames = flows(250);
  const std::vector<uint32_t> before = harness.run(frames).gates();
  const Value answer = harness.command("add", change("new", 20));
  EXPECT_NEAR(answer["min_share"].as_double(), 1.0 / 11, 0.001);
  EXPECT_GE(answer["moved_share"].as_double(), answer["min_share"].as_double());
  EXPECT_LE(answer["moved_share"].as_double(), answer["min_share"].as_double() + 0.01);
  EXPECT_EQ(answer["backends"].as_int(), 11);
  const std::vector<uint32_t> after = harness.run(frames).gates();
  uint32_t n_moved = 0;
  for (size_t i = 0; i < before.size(); ++i) n_moved += before[i] != after[i] ? 1 : 0;
  EXPECT_NEAR(n_moved / 250.0, answer["moved_share"].as_double(), 0.07);
  // Deleting the new backend restores the old mapping.
  const Value back = harness.command("delete", removal("new"));
  EXPECT_EQ(back["moved_slots"], answer["moved_slots"]);
  EXPECT_EQ(harness.run(frames).gates(), before);
}

TEST(LoadBalancerLive, ABackendThatIsThereIsChanged) {
  ModuleHarness harness("load_balancer", web(4), kGates);
  // A new gate for a backend moves no flow.
  const Value gate = harness.command("add", change("b2", 9));
  EXPECT_EQ(gate["moved_slots"].as_int(), 0);
  EXPECT_EQ(gate["backends"].as_int(), 4);
  EXPECT_FALSE(harness.run(flows(100)).at(9).empty());
  const Value weight = harness.command("add", change("b2", 9, 3));
  EXPECT_NEAR(weight["min_share"].as_double(), 0.25, 0.001);  // from a quarter to a half
  EXPECT_LE(weight["moved_share"].as_double(), 0.45);
  EXPECT_NEAR(harness.command("list")["backends"].as_list()[2]["share"].as_double(), 0.5, 0.001);
}

TEST(LoadBalancerLive, TheLastBackendMayGo) {
  ModuleHarness harness("load_balancer", web(1), kGates);
  EXPECT_EQ(harness.command("delete", removal("b0"))["moved_share"].as_double(), 1.0);
  EXPECT_EQ(harness.run(flows(10)).dropped_for("no_backend"), 10U);
  EXPECT_EQ(harness.command("add", change("c", 3))["moved_share"].as_double(), 1.0);
  EXPECT_EQ(harness.run(flows(10)).at(3).size(), 10U);
}

TEST(LoadBalancerLive, CountersGoWithTheBackend) {
  ModuleHarness harness("load_balancer", web(3), kGates);
  harness.run(flows(200));
  const auto first = counts(harness);
  EXPECT_EQ(first.at("b0") + first.at("b1") + first.at("b2"), 200);
  harness.command("add", change("new", 5));
  harness.command("delete", removal("b1"));
  EXPECT_EQ(counts(harness), (std::map<std::string, int64_t>{
                                 {"b0", first.at("b0")}, {"b2", first.at("b2")}, {"new", 0}}));
  // A backend added again under an old name starts at 0, whatever its number.
  harness.command("add", change("b1", 1));
  EXPECT_EQ(counts(harness).at("b1"), 0);
  const Outcome outcome = harness.run(flows(100));
  EXPECT_EQ(counts(harness).at("new"), static_cast<int64_t>(outcome.at(5).size()));
  EXPECT_EQ(counts(harness).at("b1"), static_cast<int64_t>(outcome.at(1).size()));
}

TEST(LoadBalancerLive, CountersSurviveAnApply) {
  ModuleHarness old("load_balancer", web(4), kGates);
  old.command("delete", removal("b0"));
  old.command("add", change("extra", 9));
  old.run(flows(200));
  const auto before = counts(old);
  ModuleHarness next("load_balancer", web(6), kGates);  // b0, b4, b5 are new; extra is gone
  next.module().inherit(old.module());
  EXPECT_EQ(counts(old), before);
  old.run(flows(50, 1000));
  const auto last = counts(old);
  next.module().adopt(old.module());
  EXPECT_EQ(counts(next), (std::map<std::string, int64_t>{{"b0", 0},
                                                          {"b1", last.at("b1")},
                                                          {"b2", last.at("b2")},
                                                          {"b3", last.at("b3")},
                                                          {"b4", 0},
                                                          {"b5", 0}}));
  const Outcome outcome = next.run(flows(200));
  for (uint32_t gate = 0; gate < 6; ++gate) {
    const std::string name = label("b", static_cast<int>(gate));
    const int64_t adopted = last.contains(name) ? last.at(name) : 0;
    EXPECT_EQ(counts(next).at(name), adopted + static_cast<int64_t>(outcome.at(gate).size()));
  }
}

TEST(LoadBalancerLive, ServicesComeAndGo) {
  ModuleHarness harness("load_balancer", web(2), kGates);
  const Bytes dns = make_frame({.ip_dst = kVip + 1, .port_dst = 53});
  EXPECT_EQ(harness.run({dns}).dropped_for("no_service"), 1U);
  const Dict service{
      {"name", "dns"}, {"address", "192.0.2.11"}, {"backends", List{backend("ns1", 7)}}};
  EXPECT_EQ(harness.command("add_service", service)["services"].as_int(), 2);
  EXPECT_EQ(harness.run({dns}).gates(), (std::vector<uint32_t>{7}));
  harness.command("delete_service", Dict{{"name", "web"}});
  EXPECT_EQ(harness.run({dns, flows(1)[0]}).dropped_for("no_service"), 1U);
  EXPECT_EQ(harness.command("list")["services"].as_list().size(), 1U);
  EXPECT_EQ(harness.module().saved_params().at("services").as_list().size(), 1U);
  EXPECT_EQ(counts(harness).at("ns1"), 2);
}

// A worker forwards packets during the changes: every packet gets a backend, and the counters match
// the packets.
TEST(LoadBalancerLive, NoPacketIsLostWhileBackendsChange) {
  Quiescence quiescence;
  Environment env;
  env.quiescence = &quiescence;
  ModuleHarness harness("load_balancer", web(8), kGates, &env);
  const std::vector<Bytes> frames = flows(64);
  std::atomic<bool> is_over{false};
  std::atomic<uint64_t> n_batches{0};
  uint64_t n_lost = 0;
  std::map<uint32_t, int64_t> n_by_gate;
  quiescence.set_online(0, true);
  std::thread worker([&] {
    while (!is_over) {
      const Outcome outcome = harness.run(frames);
      n_lost += frames.size() - outcome.outputs.size();
      for (const Output& output : outcome.outputs) ++n_by_gate[output.gate];
      ++n_batches;
      quiescence.pass(0);
    }
    quiescence.set_online(0, false);
  });
  for (int round = 0; round < 20; ++round) {
    const uint64_t before = n_batches;
    harness.command("add", change(label("new", round % 3), 20));
    harness.command("delete", removal(label("new", round % 3)));
    while (n_batches < before + 3) std::this_thread::yield();
  }
  is_over = true;
  worker.join();
  EXPECT_EQ(n_lost, 0U);
  const auto found = counts(harness);
  for (uint32_t gate = 0; gate < 8; ++gate) {
    EXPECT_EQ(found.at(label("b", static_cast<int>(gate))), n_by_gate[gate]);
  }
}

TEST(LoadBalancerLive, SavedParametersGiveTheSameBalancer) {
  ModuleHarness harness("load_balancer", web(3), kGates);
  Dict direct = change("direct", 8, 4);
  direct["mac"] = "02:00:00:00:00:09";
  harness.command("add", direct);
  Dict tunnelled = change("b1", 1, 2);
  tunnelled["tunnel_id"] = 77;
  harness.command("add", tunnelled);
  harness.command("add_service", Dict{{"name", "six"}, {"address", "2001:db8::1"}});
  const Dict saved = harness.module().saved_params();
  ModuleHarness again("load_balancer", saved, kGates);
  EXPECT_EQ(again.module().saved_params(), saved);
  EXPECT_EQ(again.run(flows(250)).gates(), harness.run(flows(250)).gates());
}

TEST(LoadBalancerLive, ListsARowForEachBackend) {
  ModuleHarness harness("load_balancer", web(3), kGates);
  harness.command("add_service", Dict{{"name", "empty"}, {"address", "2001:db8::1"}});
  const Outcome outcome = harness.run(flows(90));
  const Value all = harness.command("list");
  ASSERT_EQ(all["services"].as_list().size(), 2U);
  EXPECT_EQ(all["services"].as_list()[0]["pkts"].as_int(), 90);
  EXPECT_EQ(all["services"].as_list()[1]["backends"].as_int(), 0);
  EXPECT_EQ(all["services"].as_list()[1]["address"].as_string(), "2001:db8::1");
  ASSERT_EQ(all["backends"].as_list().size(), 3U);
  for (uint32_t i = 0; i < 3; ++i) {
    const Value& row = all["backends"].as_list()[i];
    EXPECT_EQ(row["service"].as_string(), "web");
    EXPECT_EQ(row["pkts"].as_int(), static_cast<int64_t>(outcome.at(i).size()));
    EXPECT_NEAR(row["share"].as_double(), 1 / 3.0, 0.001);
  }
  EXPECT_TRUE(harness.command("list", Dict{{"service", "empty"}})["backends"].as_list().empty());
  EXPECT_THROW(harness.command("list", Dict{{"name", "web"}}), ConfigError);
}

TEST(LoadBalancerLive, RefusedChangesChangeNothing) {
  ModuleHarness harness("load_balancer", web(3), 3);
  harness.run(flows(50));
  const Value list = harness.command("list");
  const Dict saved = harness.module().saved_params();
  const Value shown = harness.module().show();
  const auto refuses = [&](const std::string& verb, const Value& args, const std::string& words) {
    try {
      harness.command(verb, args);
      ADD_FAILURE() << "accepted: " << words;
    } catch (const ConfigError& error) {
      EXPECT_NE(error.line().find(words), std::string::npos) << error.line();
      EXPECT_EQ(error.line().find('\n'), std::string::npos);
    }
  };
  refuses("add", change("new", 3), "add.gate");
  refuses("add", change("new", 1, 0), "add.weight");
  refuses("add", change("", 1), "add.name");
  refuses("add", Dict{{"service", "mail"}, {"name", "a"}, {"gate", 0}}, "no service 'mail'");
  refuses("add", Dict{{"service", "web"}, {"name", "a"}}, "add.gate");
  refuses("add", Dict{{"service", "web"}, {"name", "a"}, {"gate", 0}, {"wieght", 2}}, "weight");
  refuses("add", Value(5), "expected {");
  refuses("delete", removal("b9"), "no backend 'b9'");
  refuses("delete", Dict{{"service", "web"}}, "delete.name");
  refuses("delete_service", Dict{{"name", "mail"}}, "no service 'mail'");
  refuses("add_service", Dict{{"name", "web"}, {"address", "192.0.2.99"}}, "called 'web'");
  refuses("add_service",
          Dict{{"name", "w"}, {"address", "192.0.2.10"}, {"proto", "udp"}, {"port", 80}},
          "same address");
  refuses("add_service",
          Dict{{"name", "w"},
               {"address", "192.0.2.9"},
               {"backends", List{backend("a", 0), backend("a", 1)}}},
          "backends[1]");
  refuses("replace", Dict{}, "replace");
  EXPECT_EQ(harness.command("list"), list);
  EXPECT_EQ(harness.module().saved_params(), saved);
  EXPECT_EQ(harness.module().show(), shown);
}

TEST(LoadBalancerLive, SaysWhatIsWrong) {
  const auto refuses = [](const Dict& service, const std::string& words, int n_slots = 1009) {
    try {
      ModuleHarness harness("load_balancer",
                            {{"services", List{service}}, {"table_slots", n_slots}});
      ADD_FAILURE() << "accepted: " << words;
    } catch (const ConfigError& error) {
      EXPECT_NE(error.line().find(words), std::string::npos) << error.line();
      EXPECT_FALSE(error.fix().empty()) << error.line();
    }
  };
  const auto service = [](const Dict& more) {
    Dict all{{"name", "s"}, {"address", "192.0.2.1"}};
    for (const auto& [key, value] : more) all[key] = value;
    return all;
  };
  const auto with_backend = [&](const Dict& more) {
    Dict one = backend("a", 0);
    for (const auto& [key, value] : more) one[key] = value;
    return service({{"backends", List{one}}});
  };
  refuses(service({}), "is no prime (the next one is 1013)", 1010);
  refuses(service({{"name", 5}}), "services[0].name");
  refuses(service({{"name", std::string(64, 'x')}}), "services[0].name");
  refuses(service({{"address", "192.0.2"}}), "address");
  refuses(service({{"address", "192.0.2.0/24"}}), "address");
  refuses(service({{"address", "0.0.0.0"}}), "no packet goes to");
  refuses(service({{"address", "::"}}), "no packet goes to");
  refuses(service({{"proto", "sctp"}}), "unknown protocol");
  refuses(service({{"port", 80}}), "a port of any protocol");
  refuses(service({{"proto", "tcp"}, {"port", 65536}}), "65536 is out of range");
  refuses(service({{"backend", List{}}}), "did you mean 'backends'");
  refuses(service({{"backends", 3}}), "expected a list");
  refuses(service({{"backends", List{3}}}), "backends[0]");
  refuses(with_backend({{"gate", 4096}}), "4096 is out of range");
  refuses(with_backend({{"gate", "one"}}), "expected gate");
  refuses(with_backend({{"weight", 1001}}), "1001 is out of range");
  refuses(with_backend({{"mac", "02:00"}}), "expected a MAC");
  refuses(with_backend({{"tunnel_id", -1}}), "-1 is out of range");
  refuses(service({{"backends",
                    List{backend("a", 0), backend("b", 0), backend("c", 0), backend("d", 0)}}}),
          "4 backends for 3 slots", 3);
}

TEST(LoadBalancerLive, AsManyBackendsAsFit) {
  List backends;
  for (int i = 0; i < 4096; ++i) backends.push_back(backend(label("b", i), i % 8));
  const Dict full{{"name", "web"}, {"address", "192.0.2.10"}, {"backends", backends}};
  ModuleHarness harness("load_balancer", {{"services", List{full}}}, 8);
  EXPECT_EQ(harness.run(flows(250)).outputs.size(), 250U);
  EXPECT_THROW(harness.command("add", change("more", 0)), ConfigError);
  harness.command("delete", removal("b17"));
  harness.command("add", change("more", 0));
  EXPECT_EQ(harness.module().show()["backends"].as_int(), 4096);
  // A pipeline with entirely different backends: they get numbers of their own.
  List others;
  for (int i = 0; i < 4096; ++i) others.push_back(backend(label("o", i), i % 8));
  const Dict next_full{{"name", "web"}, {"address", "192.0.2.10"}, {"backends", others}};
  ModuleHarness next("load_balancer", {{"services", List{next_full}}}, 8);
  next.module().inherit(harness.module());
  next.module().adopt(harness.module());
  for (const auto& [name, pkts] : counts(next)) EXPECT_EQ(pkts, 0) << name;
  EXPECT_EQ(next.run(flows(250)).outputs.size(), 250U);
}

}  // namespace load_balancer_live_test
}  // namespace batchplane

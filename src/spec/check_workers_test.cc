// SPDX-License-Identifier: BSD-3-Clause
// check_workers_test.cc - each end of a port and each task has one worker.
#include <gtest/gtest.h>

#include "spec/check.h"

namespace batchplane {
namespace check_workers_test {

Kinds kinds() {
  const std::vector<ParamSpec> port{{.name = "port", .type = ParamType::kPort}};
  Kinds known;
  known.modules["port_in"] = {.shape = Shape::kInput, .params = port};
  known.modules["port_out"] = {.shape = Shape::kTerminal, .params = port, .is_egress = true};
  known.modules["queue"] = {.shape = Shape::kQueue};
  known.modules["null"] = {};
  return known;
}

std::string mistakes_in(const PipelineSpec& spec, const Kinds& known = kinds()) {
  std::vector<ConfigError> errors;
  Mistakes mistakes{errors, spec.source_map};
  check_graph(spec, known, mistakes);
  std::string all;
  for (const ConfigError& error : errors) all += error.line() + "\n";
  return all;
}

// Two inputs and two ends, each on a worker of its own.
PipelineSpec two_tasks(const char* in, const char* in2, const char* out, const char* out2) {
  PipelineSpec spec;
  spec.workers = {{"w0", -1}, {"w1", -1}};
  spec.modules = {{"in", "port_in", {{"port", in}}},
                  {"out", "port_out", {{"port", out}}},
                  {"in2", "port_in", {{"port", in2}}},
                  {"out2", "port_out", {{"port", out2}}}};
  spec.modules[2].worker = "w1";  // modules without a worker go to the first one
  spec.edges = {{"in", "0", "out"}, {"in2", "0", "out2"}};
  return spec;
}

TEST(CheckWorkers, GiveEachEndOfAPortToOneWorker) {
  EXPECT_EQ(mistakes_in(two_tasks("p", "q", "q", "p")), "") << "one polls, the other sends";
  EXPECT_EQ(mistakes_in(two_tasks("p", "p", "p", "q")),
            "modules.in2: port 'p' is polled by 'in' on worker w0 and by 'in2' on worker w1 (one "
            "worker polls a port: put both on one, or hand packets on by a queue)\n");
  EXPECT_EQ(mistakes_in(two_tasks("p", "q", "p", "p")),
            "modules.out2: port 'p' is sent into by 'out' on worker w0 and by 'out2' on worker w1 "
            "(one worker sends into a port: put both on one, or join them by a queue)\n");
  PipelineSpec spec = two_tasks("p", "p", "p", "p");
  spec.modules[2].worker = "w0";
  EXPECT_EQ(mistakes_in(spec), "") << "one thread has them all";
  EXPECT_EQ(mistakes_in(two_tasks("p", "p", "p", "p"), {}), "") << "kinds that are not known";
}

TEST(CheckWorkers, AQueueHandsOnToAnotherWorker) {
  PipelineSpec spec = two_tasks("p", "q", "o", "o");
  spec.edges[1] = {"in2", "0", "between"};
  spec.modules.push_back({"between", "queue", {}});
  spec.edges.push_back({"between", "0", "out2"});
  EXPECT_EQ(mistakes_in(spec), "") << "the first worker has both ends behind the queue";
  spec.modules.back().worker = "w1";
  EXPECT_NE(mistakes_in(spec).find("port 'o' is sent into by"), std::string::npos);
}

TEST(CheckWorkers, InputsOfOneTaskAgree) {
  PipelineSpec spec = two_tasks("p", "q", "o", "o");
  spec.modules[0].worker = "w0";
  spec.modules.push_back({"both", "null", {}});
  spec.edges = {{"in", "0", "both"}, {"in2", "0", "both"}, {"both", "0", "out"}};
  spec.modules.erase(spec.modules.begin() + 3);
  EXPECT_EQ(mistakes_in(spec),
            "modules.in2: inputs of one task are given to workers 'w0' and 'w1' (put a queue "
            "between them, or use one worker)\n");
}

}  // namespace check_workers_test
}  // namespace batchplane

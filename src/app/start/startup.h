// SPDX-License-Identifier: BSD-3-Clause
// startup.h - an ordered table of steps from a pipeline file to a running pipeline.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/plan/core_plan.h"
#include "app/runtime/runtime.h"
#include "ports/eal.h"

namespace batchplane::app {

struct DaemonOptions {
  std::string name;
  std::string socket_path;
  std::string pipeline_path;
  std::string cores;
  std::string frames_path;  // routes: packets to walk besides the generators'
  bool groups_routes = false;
  uint64_t memory_mb = 0;  // 0 = computed
  double duration_s = 0;   // 0 = until told to stop
};

// State that the steps hand on to each other.
struct Startup {
  DaemonOptions options;
  // Every module runs on its worker: to measure costs or walk packets, devices do not matter.
  bool leaves_out_devices = false;
  PipelineSpec spec = {};
  CorePlan cores = {};
  uint64_t memory_mb = 0;
  uint64_t extra_memory_mb = 0;  // in addition to the pipeline's needs
  ports::EalFacts eal = {};
  std::shared_ptr<Quiescence> quiescence = {};
  // Declared before everything that holds its packets, so that it is destroyed last.
  std::unique_ptr<PacketPool> pool = {};
  std::unique_ptr<Environment> env = {};
  std::unique_ptr<Graph> graph = {};
  std::unique_ptr<Engine> engine = {};
  std::unique_ptr<GeneratorSet> generators = {};
  std::unique_ptr<Runtime> runtime = {};
};

// Runs all steps; throws ConfigErrors with every mistake of the step that failed.
void start_up(Startup& startup);
// Runs the steps before devices are opened, then checks. Returns {"plan"}; with `groups_routes`, and if
// flows with SLOs may come to packet schedulers, also {"routes"} as of route_file().
Dict check_file(Startup& startup, std::vector<ConfigError>& errors);
// The routes of the pipeline's traffic; without the packet backend, tables use plain memory.
Value route_file(Startup& startup);

// The first steps only: the pipeline, its cores, its memory; then the packet backend.
void plan(Startup& startup);
void start_packets(Startup& startup);
// PCI devices that a port names, as in devargs "0000:01:00.0,...".
std::vector<std::string> pci_devices(const PipelineSpec& spec);
// The name in /proc/cpuinfo.
std::string cpu_model();

// Reads a whole file; throws ConfigError.
std::string read_file(const std::string& path);

}  // namespace batchplane::app

// SPDX-License-Identifier: BSD-3-Clause
// runtime_trace.cc - traces packets that match a tcpdump expression.
#include <pcap/pcap.h>

#include <memory>

#include "app/runtime/packet_summary.h"
#include "app/runtime/runtime.h"
#include "core/module/kind.h"
#include "spec/field_reader.h"

namespace batchplane::app {
namespace {

constexpr uint64_t kMaxTraceNs = 60'000'000'000;

using Accepts = std::function<bool(const uint8_t*, uint32_t)>;

// A compiled tcpdump expression. Matching neither allocates nor locks, since workers do it.
class PacketFilter {
 public:
  explicit PacketFilter(const std::string& expression) {
    pcap_t* dead = pcap_open_dead(DLT_EN10MB, static_cast<int>(kMaxFrameBytes));
    const int result = pcap_compile(dead, &program_, expression.c_str(), 1, PCAP_NETMASK_UNKNOWN);
    const std::string problem = result == 0 ? "" : pcap_geterr(dead);
    pcap_close(dead);
    if (result != 0) {
      throw ConfigError("'" + expression + "' is no filter: " + problem, "filter",
                        "a tcpdump expression, for example 'udp and dst port 53'");
    }
  }
  ~PacketFilter() { pcap_freecode(&program_); }
  PacketFilter(const PacketFilter&) = delete;
  PacketFilter& operator=(const PacketFilter&) = delete;

  [[nodiscard]] bool accepts(const uint8_t* bytes, uint32_t n) const {
    pcap_pkthdr header{};
    header.caplen = header.len = n;
    return pcap_offline_filter(&program_, &header, bytes) != 0;
  }

 private:
  bpf_program program_{};
};

Accepts make_filter(const std::string& expression) {
  if (expression.empty()) return nullptr;
  auto filter = std::make_shared<const PacketFilter>(expression);
  return [filter](const uint8_t* bytes, uint32_t n) { return filter->accepts(bytes, n); };
}

std::string event_name(const TraceResult::Event& event, const Graph& graph) {
  if (event.event.kind != TraceEventKind::kEnd) {
    return kTraceEventNames[static_cast<uint32_t>(event.event.kind)];
  }
  const auto it = graph.index.find(event.module);
  const bool is_egress = it != graph.index.end() && graph.instances[it->second].info->is_egress;
  return is_egress ? "egress" : "end";
}

Value gate_value(const std::string& module, uint16_t gate, const Graph& graph) {
  const auto it = graph.index.find(module);
  if (it == graph.index.end()) return gate;
  const ModuleInfo& info = *graph.instances[it->second].info;
  for (uint32_t i = 0; i < info.gate_names.size(); ++i) {
    if (info.gate_number(i) == gate) return info.gate_names[i];
  }
  return static_cast<int>(gate);
}

// A packet's gate belongs to the run before it; a run after a wait reports how long the wait was.
List events_value(const TraceResult::Traced& traced, const Graph& graph) {
  List events;
  uint64_t held_since_ns = 0;
  std::string held_at;
  for (const TraceResult::Event& one : traced.events) {
    const TraceEvent& event = one.event;
    if (event.kind == TraceEventKind::kGate && !events.empty() &&
        events.back()["module"] == Value(one.module)) {
      Dict run = events.back().as_dict();
      run["gate"] = gate_value(one.module, event.detail, graph);
      events.back() = std::move(run);
      continue;
    }
    Dict out{{"at_ns", event.at_ns},
             {"module", one.module},
             {"event", event_name(one, graph)},
             {"batch_pkts", static_cast<int>(event.batch_pkts)}};
    if (event.kind == TraceEventKind::kDrop && event.detail < drop_reasons().size()) {
      out["reason"] = drop_reasons()[event.detail].name;
    }
    if (event.kind == TraceEventKind::kHold) {
      held_since_ns = event.at_ns;
      held_at = one.module;
    } else if (event.kind == TraceEventKind::kRun && held_at == one.module) {
      out["waited_ns"] = event.at_ns - held_since_ns;
      held_at.clear();
    }
    events.emplace_back(std::move(out));
  }
  return events;
}

}  // namespace

Value Runtime::trace(const Value& args) {
  std::vector<ConfigError> errors;
  const SourceMap nowhere;
  Mistakes mistakes{errors, nowhere};
  FieldReader fields(args, "", mistakes);
  const auto count = static_cast<uint32_t>(fields.integer("count", 1, 1, Tracer::kMaxPkts));
  const std::string expression = fields.string("filter");
  const uint64_t timeout_ns = fields.integer("timeout_ns", 2'000'000'000, 1, kMaxTraceNs);
  fields.finish();
  if (!errors.empty()) throw ConfigErrors(std::move(errors));
  const Accepts accepts = make_filter(expression);
  const std::lock_guard lock(locks_.trace);
  const TraceResult result = parts_.engine->trace(count, accepts, timeout_ns);
  const Graph& graph = parts_.engine->graph();
  List packets;
  for (size_t i = 0; i < result.packets.size(); ++i) {
    const TraceResult::Traced& traced = result.packets[i];
    packets.emplace_back(Dict{{"id", static_cast<uint64_t>(i)},
                              {"at_ns", traced.packet.at_ns},
                              {"len_bytes", traced.packet.len_bytes},
                              {"summary", summarize(traced.packet.bytes, traced.packet.snap_bytes,
                                                    traced.packet.len_bytes)},
                              {"events", events_value(traced, graph)}});
  }
  return Dict{{"packets", std::move(packets)}};
}

}  // namespace batchplane::app

// SPDX-License-Identifier: BSD-3-Clause
// route_walk.cc - walks one packet: through a module, out of its gate, into the next module.
#include "app/plan/route_walk.h"

#include <algorithm>
#include <cstring>

#include "core/module/kind.h"

namespace batchplane::app {
namespace {

constexpr uint64_t kStepNs = 1'000'000'000'000;
constexpr uint64_t kHousekeepNs = 1'000'000'000;

std::string gate_text(uint32_t gate) { return gate == kDropGate ? "drop" : std::to_string(gate); }

bool is_end(const ModuleInfo& info) { return info.shape == Shape::kTerminal; }
// Filled here and read outside of the pipeline (a queue is read by another task).
bool is_way_out(const ModuleInfo& info) { return info.shape == Shape::kQueue && info.is_egress; }

}  // namespace

RouteWalk::RouteWalk(Graph& graph, PacketPool& pool)
    : graph_(graph),
      ctx_(std::make_unique<Context>()),
      meter_(std::make_unique<exec::FlowMeter>(static_cast<uint32_t>(graph.flow_names.size()))) {
  for (const LinkedEdge& edge : graph.edges) edges_[{edge.from, edge.gate}] = edge;
  ctx_->pool = &pool;
  ctx_->meter = meter_.get();
  ctx_->batch_limit_pkts = graph.spec.engine.batch_pkts;
  ctx_->now_ns = kStepNs;
  // Some modules learn the pipeline's declarations (neighbours, for example) at their first timer call.
  for (const Instance& instance : graph_.instances) {
    if (instance.module->housekeep_interval_ns() == 0) continue;
    instance.module->housekeep(*ctx_, kHousekeepNs);
    (void)settle(nullptr, true);
  }
  ctx_->flush_free();
}

RouteWalk::~RouteWalk() { ctx_->flush_free(); }

Route RouteWalk::walk(uint32_t input, uint16_t in_interface, const std::vector<uint8_t>& frame,
                      const std::string& name) {
  ctx_->now_ns += kStepNs;
  name_ = name;
  route_ = {};
  path_ = {graph_.instances[input].name};
  first_gates_.clear();
  seen_.clear();
  stops_.clear();
  loops_.clear();
  from_ = kNowhere;
  Packet* const pkt = new_packet();
  pkt->reset(static_cast<uint32_t>(frame.size()));
  std::memcpy(pkt->data(), frame.data(), frame.size());
  PacketMeta meta{};
  meta.entry_ns = ctx_->now_ns;
  meta.in_interface = in_interface;
  pkt->meta() = meta;
  const PathState entry = graph_.paths->entry_state(input);
  const LinkedEdge& first = *edge_of(input, 0);
  follow(pkt, first.to, graph_.paths->next(input, 0, entry));
  tell_loops();
  // Restores the module's state for the next packet.
  for (const uint32_t keeper : keepers_) {
    graph_.instances[keeper].module->give_up_held([&](Packet* held) { ctx_->free(held); });
  }
  keepers_.clear();
  ctx_->flush_free();
  meter_->flush(ctx_->now_ns);
  return std::move(route_);
}

void RouteWalk::follow(Packet* pkt, uint32_t at, PathState state) {
  const size_t length = path_.size();
  for (bool goes_on = true; goes_on;) {
    const Instance& here = graph_.instances[at];
    const bool was_here = std::ranges::find(path_, here.name) != path_.end();
    path_.push_back(here.name);
    if (const auto [stop, is_new] = stop_of(*pkt, at, state); is_new) {
      from_ = stop;
    } else {
      // Another branch has arrived here with the same packet, or this one is in a loop.
      ctx_->free(pkt);
      if (was_here) loops_.push_back({stop, path_});
      break;
    }
    const std::vector<double> weights = here.module->blind_weights();
    if (!weights.empty()) {
      fork(pkt, at, state, weights);
      break;
    }
    goes_on = step(pkt, at, state);
  }
  path_.resize(length);
}

void RouteWalk::fork(Packet* pkt, uint32_t at, PathState state,
                     const std::vector<double>& weights) {
  const std::string& name = graph_.instances[at].name;
  free_.emplace(name, weights);
  const uint32_t here = from_;
  for (uint32_t gate = 0; gate < weights.size(); ++gate) {
    from_ = here;
    const LinkedEdge* const edge = edge_of(at, gate);
    if (edge == nullptr) {
      end_way({.path = path_, .drop_reason = "unconnected_gate"});
      continue;
    }
    follow(copy_of(*pkt), edge->to, graph_.paths->next(at, gate, state));
  }
  ctx_->free(pkt);
  ctx_->flush_free();
}

bool RouteWalk::step(Packet*& pkt, uint32_t& at, PathState& state) {
  const Instance& here = graph_.instances[at];
  const Outcome outcome = pass(pkt, at);
  if (outcome.fate == Fate::kTaken) {
    const bool is_egress = here.info->is_egress;
    const uint32_t flow = is_egress ? graph_.paths->flow_at(at, state) : 0;
    end_way({.path = path_, .flow = is_egress ? graph_.flow_names[flow] : ""});
    return false;
  }
  if (outcome.fate == Fate::kKept) {
    keepers_.insert(at);
    warn("'" + here.name + "' keeps packets until something comes that does not come here");
    end_way({.path = path_, .is_kept = true});
    return false;
  }
  const bool is_dropped = outcome.fate == Fate::kDropped;
  const uint32_t gate = is_dropped ? kDropGate : outcome.gate;
  note_gate(at, gate);
  const LinkedEdge* const edge = edge_of(at, gate);
  if (edge == nullptr) {
    const std::string reason =
        is_dropped ? drop_reasons()[outcome.reason].name : "unconnected_gate";
    end_way({.path = path_, .drop_reason = reason});
    ctx_->free(outcome.pkt);
    return false;
  }
  pkt = outcome.pkt;
  if (is_dropped) pkt->meta().drop_reason = outcome.reason;
  state = graph_.paths->next(at, gate, state);
  at = edge->to;
  return true;
}

RouteWalk::Outcome RouteWalk::pass(Packet* pkt, uint32_t at) {
  Instance& here = graph_.instances[at];
  if (here.info->is_passive) return {.pkt = pkt};
  if (is_way_out(*here.info)) {
    ctx_->free(pkt);
    return {.fate = Fate::kTaken};
  }
  Packet* slots[exec::kMaxBatchPkts + 8] = {pkt};  // vector loads may run past the last packet
  note_scheduled(here, *pkt);
  ctx_->gates[0] = 0;
  ctx_->worker_index = graph_.worker_index_of(here);
  here.info->run(here.works_on, *ctx_, slots, 1);
  Outcome outcome = settle(pkt, slots[0] != nullptr);
  if (outcome.fate == Fate::kDropped || outcome.fate == Fate::kKept) return outcome;
  if (is_end(*here.info)) return {.fate = Fate::kTaken};
  if (here.info->shape == Shape::kQueue) {
    if (here.info->poll(*here.works_on, *ctx_, slots, 1) != 1) return {.fate = Fate::kKept};
    return {.pkt = slots[0]};
  }
  if (here.info->shape == Shape::kSplitter && outcome.pkt == pkt && slots[0] != nullptr) {
    outcome.gate = ctx_->gates[0];
  }
  return outcome;
}

// Finds what a call did with `pkt`, and frees all other packets that it dropped or sent. A packet sent in its
// place (the reassembled one) or ahead of it (the first fragment, the only one with ports) is followed
// instead; packets that the module made itself are not.
RouteWalk::Outcome RouteWalk::settle(Packet* pkt, bool is_in_batch) {
  Outcome outcome{.fate = is_in_batch ? Fate::kGoesOn : Fate::kKept,
                  .pkt = is_in_batch ? pkt : nullptr};
  for (uint32_t i = 0; i < ctx_->n_dropped; ++i) {
    const auto [dropped, reason] = ctx_->dropped[i];
    if (dropped == pkt) {
      outcome = {.fate = Fate::kDropped, .pkt = pkt, .reason = reason};
    } else {
      ctx_->free(dropped);
    }
  }
  uint32_t n_more = 0;
  bool is_replaced = pkt == nullptr || outcome.fate == Fate::kDropped;
  for (uint32_t i = 0; i < ctx_->n_emitted; ++i) {
    const auto [emitted, gate] = ctx_->emitted[i];
    const bool is_its_own = (emitted->meta().flags & kMetaOriginated) != 0;
    if (is_replaced || is_its_own) {
      ctx_->free(emitted);
      ++n_more;
      continue;
    }
    if (outcome.fate == Fate::kGoesOn) {
      ctx_->free(pkt);
      ++n_more;
    }
    outcome = {.pkt = emitted, .gate = gate};
    is_replaced = true;
  }
  ctx_->n_fates = ctx_->n_removed = ctx_->n_dropped = ctx_->n_emitted = 0;
  if (n_more != 0 && pkt != nullptr && outcome.fate == Fate::kGoesOn) {
    warn("'" + path_.back() + "' sends more packets than it gets: those are not followed");
  }
  return outcome;
}

// The packet's position and contents as a stop of its way, linked to the previous stop. Times are left out:
// they do not affect the way.
std::pair<uint32_t, bool> RouteWalk::stop_of(Packet& pkt, uint32_t at, PathState state) {
  PacketMeta meta = pkt.meta();
  meta.entry_ns = 0;
  meta.task_entry_delta_ns = 0;
  meta.path_state = state;
  const uint32_t mark = pkt.mark();
  std::string key(reinterpret_cast<const char*>(&meta), sizeof(meta));
  key.append(reinterpret_cast<const char*>(&at), sizeof(at));
  key.append(reinterpret_cast<const char*>(&mark), sizeof(mark));
  key.append(reinterpret_cast<const char*>(pkt.data()), pkt.len_bytes());
  const auto [it, is_new] = seen_.try_emplace(std::move(key), static_cast<uint32_t>(stops_.size()));
  if (is_new) stops_.emplace_back();
  if (from_ != kNowhere) stops_[it->second].from.push_back(from_);
  return {it->second, is_new};
}

// A packet in a loop may still leave where a splitter on the way chooses blindly.
void RouteWalk::tell_loops() {
  if (loops_.empty()) return;
  std::vector<uint32_t> todo;
  for (uint32_t s = 0; s < stops_.size(); ++s) {
    if (stops_[s].can_end) todo.push_back(s);
  }
  while (!todo.empty()) {
    const uint32_t at = todo.back();
    todo.pop_back();
    for (const uint32_t from : stops_[at].from) {
      if (stops_[from].can_end) continue;
      stops_[from].can_end = true;
      todo.push_back(from);
    }
  }
  for (auto& [stop, path] : loops_) {
    if (stops_[stop].can_end) continue;
    warn("packets come back to '" + path.back() + "' as they were, and never leave");
    route_.ways.push_back({.path = std::move(path)});
  }
}

void RouteWalk::note_gate(uint32_t at, uint32_t gate) {
  const Instance& here = graph_.instances[at];
  const auto [it, is_first] = first_gates_.emplace(at, gate);
  if (!is_first && it->second != gate) {
    warn("'" + here.name + "' is passed twice, by gate " + gate_text(it->second) +
         " and then by gate " + gate_text(gate) + ": only the first is told");
  }
  if (is_first && (here.info->shape == Shape::kSplitter || gate == kDropGate)) {
    route_.gates[here.name] = gate;
  }
}

void RouteWalk::note_scheduled(const Instance& here, Packet& pkt) {
  const uint32_t flow =
      here.works_on == nullptr ? Module::kNotScheduled : here.works_on->scheduled_flow(pkt);
  if (flow == Module::kNotScheduled) return;
  const std::string& name = here.is_door() ? graph_.instances[here.door_of].name : here.name;
  if (here.works_on->is_scheduler()) schedulers_.insert(name);
  route_.gates.emplace(name, flow);
}

void RouteWalk::end_way(Way way) {
  stops_[from_].can_end = true;
  route_.ways.push_back(std::move(way));
}

void RouteWalk::warn(const std::string& text) {
  Warned& warned = warned_[text];
  if (warned.routes.empty()) warned.first = name_;
  warned.routes.insert(name_);
}

std::vector<std::string> RouteWalk::warnings() const {
  std::vector<std::string> lines;
  for (const auto& [text, warned] : warned_) {
    const size_t n_more = warned.routes.size() - 1;
    lines.push_back(text + " (" + warned.first +
                    (n_more == 0 ? "" : " and " + std::to_string(n_more) + " more") + ")");
  }
  return lines;
}

Packet* RouteWalk::new_packet() {
  Packet* pkt = nullptr;
  if (ctx_->pool->alloc_bulk(&pkt, 1)) return pkt;
  throw ConfigError("the packet pool is empty while routes are looked for", "modules",
                    "a module keeps more than it may: look at those that hold packets");
}

Packet* RouteWalk::copy_of(Packet& pkt) {
  Packet* const copy = new_packet();
  copy->reset(0);
  // Keeps the position of the data: modules may add and remove headers.
  const uint32_t from = copy->headroom_bytes();
  const uint32_t to = pkt.headroom_bytes();
  if (to < from) copy->push_front(from - to);
  if (to > from) {
    copy->set_len_bytes(to - from);
    copy->pull_front(to - from);
  }
  copy->set_len_bytes(pkt.len_bytes());
  std::memcpy(copy->data(), pkt.data(), pkt.len_bytes());
  copy_meta(pkt, *copy);
  return copy;
}

const LinkedEdge* RouteWalk::edge_of(uint32_t at, uint32_t gate) const {
  const auto it = edges_.find({at, gate});
  return it == edges_.end() ? nullptr : &it->second;
}

}  // namespace batchplane::app

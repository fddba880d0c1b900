// SPDX-License-Identifier: BSD-3-Clause
#include "spec/parts.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "base/nearest_word.h"
#include "exec/depth.h"
#include "spec/doors.h"

namespace batchplane {
namespace {

constexpr const char* kIn = "/in";
constexpr const char* kPollKey = "poll_pkts";

// Capacity in batches, and how many of them may wait unless a controller decides otherwise.
constexpr uint32_t kInQueueBatches = 8;
constexpr uint32_t kCreditBatches = 2;

// The queue before the module, on no worker yet.
ModuleSpec new_queue(const PipelineSpec& spec, const ModuleSpec& module) {
  ModuleSpec queue;
  queue.name = in_queue_name(module.name);
  queue.kind = "queue";
  queue.leads_to = module.name;
  // The turns of units do not consider rings: an explicitly scheduled task is held back as a whole, and two
  // such tasks could wait for each other.
  const bool holds_back = !spec.has_weighted_fair();
  queue.params = {{"size_pkts", in_queue_pkts(spec)}, {"backpressure", holds_back}};
  const Dict given = module.in_queue.is_dict() ? module.in_queue.as_dict() : Dict{};
  // Whoever describes the ring without a credit means all of it.
  if (given.empty() || (given.size() == 1 && given.contains(kPollKey))) {
    queue.params["credit_pkts"] = kCreditBatches * spec.engine.batch_pkts;
  }
  for (const auto& [key, value] : given) {
    if (key == kPollKey && value.is_int()) {
      queue.poll_pkts = static_cast<uint32_t>(value.as_int());
    } else {
      queue.params[key] = value;
    }
  }
  return queue;
}

// 0, or none: as many as it holds.
Value credit_of(const ModuleSpec& queue) {
  const auto credit = queue.params.find("credit_pkts");
  const bool is_all = credit == queue.params.end() || credit->second == Value(0);
  return is_all ? queue.params.at("size_pkts") : credit->second;
}

class PartMaker {
 public:
  PartMaker(PipelineSpec& spec, const Kinds& kinds) : spec_(spec), kinds_(kinds) {
    for (uint32_t m = 0; m < spec.modules.size(); ++m) index_.emplace(spec.modules[m].name, m);
    feeds_.resize(spec.modules.size());
    for (const EdgeSpec& edge : spec.edges) {
      if (has_both_ends(edge)) feeds_[index_.at(edge.to)].push_back(edge);
    }
  }

  [[nodiscard]] bool has_parts() const {
    for (uint32_t m = 0; m < spec_.modules.size(); ++m) {
      if (!spec_.modules[m].worker.empty() && !begins_task(m)) return true;
    }
    return false;
  }

  void run() {
    find_tasks();
    worker_.resize(spec_.modules.size());
    for (uint32_t m = 0; m < spec_.modules.size(); ++m) (void)worker_of(m);
    std::map<std::pair<std::string, std::string>, std::string> led;  // (from, to) -> queue
    std::vector<uint32_t> entered;
    for (EdgeSpec& edge : spec_.edges) {
      if (!has_both_ends(edge)) continue;
      const uint32_t to = index_.at(edge.to);
      if (takes_from_any(to) || sender(edge) == worker_of(to)) continue;
      if (std::ranges::find(entered, to) == entered.end()) entered.push_back(to);
      led[{edge.from, edge.to}] = in_queue_name(edge.to);
      edge.to = in_queue_name(edge.to);
    }
    for (const uint32_t m : entered) add_queue(m);
    for (FlowSpec& flow : spec_.flows) lead_through(flow.path, led);
  }

  // Moving a polled module moves the task that it feeds, with everything else that this task polls.
  void move(uint32_t m, const std::string& worker) {
    std::vector<uint32_t> together{m};
    find_tasks();
    for (uint32_t i = 0; begins_task(m) && i < spec_.modules.size(); ++i) {
      if (i != m && begins_task(i) && feeds_one_task(i, m)) together.push_back(i);
    }
    for (const uint32_t i : together) spec_.modules[i].worker.clear();
    find_tasks();
    worker_.assign(spec_.modules.size(), "");
    const bool is_polled_alone = begins_task(m) && !feeds_[m].empty();
    const std::string& otherwise = is_polled_alone ? spec_.first_worker() : worker_of(m);
    if (otherwise == worker) return;
    for (const uint32_t i : together) spec_.modules[i].worker = worker;
  }

 private:
  [[nodiscard]] bool has_both_ends(const EdgeSpec& edge) const {
    return index_.contains(edge.from) && index_.contains(edge.to);
  }
  [[nodiscard]] const KindFacts* kind_of(uint32_t m) const {
    const auto kind = kinds_.modules.find(spec_.modules[m].kind);
    return kind == kinds_.modules.end() ? nullptr : &kind->second;
  }
  // A module without incoming edges, whatever its kind, begins a task.
  [[nodiscard]] bool begins_task(uint32_t m) const {
    const KindFacts* const kind = kind_of(m);
    return feeds_[m].empty() || is_on_device(m) || (kind != nullptr && kind->begins_task());
  }
  // Doors let any worker put packets in.
  [[nodiscard]] bool takes_from_any(uint32_t m) const {
    const KindFacts* const kind = kind_of(m);
    return is_on_device(m) || (kind != nullptr && kind->hands_over());
  }
  [[nodiscard]] bool is_on_device(uint32_t m) const { return !spec_.modules[m].device.is_null(); }
  [[nodiscard]] bool is_polled(const EdgeSpec& edge) const {
    return begins_task(index_.at(edge.from)) && edge.gate != kDropGateName;
  }

  // Tasks as written: modules joined by edges, cut behind polled modules, and their polling workers.
  void find_tasks() {
    std::vector<std::pair<uint32_t, uint32_t>> joined;
    for (const EdgeSpec& edge : spec_.edges) {
      if (!has_both_ends(edge)) continue;
      const uint32_t from = index_.at(edge.from);
      const bool is_cut = is_polled(edge) && !feeds_[from].empty();
      if (!is_cut) joined.emplace_back(from, index_.at(edge.to));
    }
    task_ = exec::groups_of(static_cast<uint32_t>(spec_.modules.size()), joined);
    poller_.assign(task_.size(), spec_.first_worker());
    for (const EdgeSpec& edge : spec_.edges) {
      if (!has_both_ends(edge) || !is_polled(edge)) continue;
      const std::string& worker = spec_.modules[index_.at(edge.from)].worker;
      if (!worker.empty()) poller_[task_[index_.at(edge.to)]] = worker;
    }
  }
  [[nodiscard]] bool feeds_one_task(uint32_t a, uint32_t b) const {
    std::set<uint32_t> of_a;
    std::set<uint32_t> of_b;
    for (const EdgeSpec& edge : spec_.edges) {
      if (!has_both_ends(edge) || !is_polled(edge)) continue;
      const uint32_t from = index_.at(edge.from);
      if (from == a) of_a.insert(task_[index_.at(edge.to)]);
      if (from == b) of_b.insert(task_[index_.at(edge.to)]);
    }
    return std::ranges::any_of(of_a, [&](uint32_t task) { return of_b.contains(task); });
  }

  // The worker that brings packets by an edge. A queue's dropped packets come from the worker that fills it.
  const std::string& sender(const EdgeSpec& edge) {
    return is_polled(edge) ? poller_[task_[index_.at(edge.to)]] : worker_of(index_.at(edge.from));
  }

  // The worker that runs the module's node; for a queue, the one that fills it.
  const std::string& worker_of(uint32_t m) {
    if (!worker_[m].empty()) return worker_[m];
    worker_[m] = poller_[task_[m]];  // also in a cycle, which is reported elsewhere
    if (begins_task(m) && feeds_[m].empty()) return worker_[m];
    if (!spec_.modules[m].worker.empty() && !begins_task(m)) {
      return worker_[m] = spec_.modules[m].worker;
    }
    std::set<std::string> senders;
    for (const EdgeSpec& edge : feeds_[m]) senders.insert(sender(edge));
    if (senders.size() == 1) worker_[m] = *senders.begin();
    return worker_[m];
  }

  void add_queue(uint32_t m) {
    ModuleSpec queue = new_queue(spec_, spec_.modules[m]);
    queue.worker = worker_of(m);
    spec_.edges.push_back({queue.name, "0", queue.leads_to});
    spec_.modules.push_back(std::move(queue));
  }

  static void lead_through(std::vector<std::string>& path,
                           const std::map<std::pair<std::string, std::string>, std::string>& led) {
    const auto name_of = [](const std::string& step) { return step.substr(0, step.find(':')); };
    for (size_t i = 0; i + 1 < path.size(); ++i) {
      const auto queue = led.find({name_of(path[i]), name_of(path[i + 1])});
      if (queue == led.end()) continue;
      path.insert(path.begin() + static_cast<std::ptrdiff_t>(i) + 1, queue->second);
      ++i;
    }
  }

  PipelineSpec& spec_;
  const Kinds& kinds_;
  std::map<std::string, uint32_t> index_;
  std::vector<std::vector<EdgeSpec>> feeds_;  // by module: edges that lead to it
  std::vector<uint32_t> task_;                // by module, as if nothing were moved
  std::vector<std::string> poller_;           // by task
  std::vector<std::string> worker_;           // by module
};

void move_part(PipelineSpec& spec, const PartMove& move, const Kinds& kinds) {
  const auto& [module, worker] = move;
  std::vector<std::string> workers;
  for (const WorkerSpec& known : spec.workers) workers.push_back(known.name);
  if (workers.empty()) workers.push_back(spec.first_worker());
  if (std::ranges::find(workers, worker) == workers.end()) {
    throw ConfigError("there is no worker '" + worker + "'", "worker",
                      did_you_mean(worker, workers, "declare it under workers, and start anew"));
  }
  std::vector<std::string> modules;
  for (const ModuleSpec& known : spec.modules) modules.push_back(known.name);
  const auto found = std::ranges::find(modules, module);
  if (found == modules.end()) {
    throw ConfigError("there is no module '" + module + "'", "part", did_you_mean(module, modules));
  }
  const auto m = static_cast<uint32_t>(found - modules.begin());
  PartMaker(spec, kinds).move(m, worker);
}

}  // namespace

uint32_t in_queue_pkts(const PipelineSpec& spec) {
  return kInQueueBatches * spec.engine.batch_pkts;
}

std::string in_queue_name(const std::string& module) { return module + kIn; }

void add_parts(PipelineSpec& spec, const Kinds& kinds) {
  PartMaker maker(spec, kinds);
  if (maker.has_parts()) maker.run();
}

PipelineSpec without_parts(const PipelineSpec& spec) {
  std::map<std::string, std::string> led_to;  // by queue
  for (const ModuleSpec& module : spec.modules) {
    if (!module.leads_to.empty()) led_to[module.name] = module.leads_to;
  }
  if (led_to.empty()) return spec;
  PipelineSpec written = spec;
  std::erase_if(written.modules, [](const ModuleSpec& module) { return !module.leads_to.empty(); });
  std::erase_if(written.edges, [&](const EdgeSpec& edge) { return led_to.contains(edge.from); });
  for (EdgeSpec& edge : written.edges) {
    if (const auto queue = led_to.find(edge.to); queue != led_to.end()) edge.to = queue->second;
  }
  for (FlowSpec& flow : written.flows) {
    std::erase_if(flow.path, [&](const std::string& step) { return led_to.contains(step); });
  }
  return written;
}

void note_in_queues(PipelineSpec& spec) {
  for (const ModuleSpec& queue : spec.modules) {
    if (queue.leads_to.empty()) continue;
    const auto part = std::ranges::find(spec.modules, queue.leads_to, &ModuleSpec::name);
    if (part == spec.modules.end()) continue;
    const ModuleSpec anew = new_queue(spec, *part);
    const auto poll_pkts = [&](const ModuleSpec& of) {
      return of.poll_pkts == 0 ? spec.engine.batch_pkts : of.poll_pkts;
    };
    Dict noted = part->in_queue.is_dict() ? part->in_queue.as_dict() : Dict{};
    const size_t n_given = noted.size();
    if (credit_of(queue) != credit_of(anew)) noted["credit_pkts"] = credit_of(queue);
    if (poll_pkts(queue) != poll_pkts(anew)) noted[kPollKey] = poll_pkts(queue);
    if (n_given != 0 || !noted.empty()) part->in_queue = std::move(noted);
  }
}

PipelineSpec with_moves(const PipelineSpec& spec, const std::vector<PartMove>& moves,
                        const Kinds& kinds) {
  PipelineSpec next = without_parts(without_doors(spec));
  for (const PartMove& move : moves) move_part(next, move, kinds);
  add_parts(next, kinds);
  // A queue before a part that is still there is polled as before.
  for (ModuleSpec& module : next.modules) {
    const auto was = std::ranges::find(spec.modules, module.name, &ModuleSpec::name);
    if (!module.leads_to.empty() && was != spec.modules.end()) module.poll_pkts = was->poll_pkts;
  }
  add_doors(next, kinds);
  return next;
}

bool has_same_layout(const PipelineSpec& a, const PipelineSpec& b) {
  return std::ranges::equal(a.modules, b.modules,
                            [](const ModuleSpec& x, const ModuleSpec& y) {
                              return x.name == y.name && x.worker == y.worker;
                            }) &&
         std::ranges::equal(a.edges, b.edges, [](const EdgeSpec& x, const EdgeSpec& y) {
           return x.from == y.from && x.gate == y.gate && x.to == y.to;
         });
}

}  // namespace batchplane

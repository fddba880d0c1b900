// SPDX-License-Identifier: BSD-3-Clause
#include "profile/walk.h"

#include <algorithm>
#include <deque>
#include <map>

#include "core/module/kind.h"
#include "profile/stand_in.h"

namespace batchplane::profile {
namespace {

constexpr uint32_t kBatchPkts = 32;
constexpr uint32_t kMaxFeeds = 4096;

// Crosses a gate as the executor does, but without its queues.
void cross(const ExecNode& node, uint32_t gate, PacketImage& image) {
  if (!node.has_path_ops) return;
  const exec::PathOp& op = node.path_ops[gate];
  if (op.map != nullptr) {
    image.meta.path_state = op.map[image.meta.path_state];
  } else if (op.constant != exec::PathOp::kKeep) {
    image.meta.path_state = op.constant;
  }
}

class Walker {
 public:
  Walker(Stage& stage, Traffic& traffic, uint32_t max_pkts)
      : stage_(stage),
        traffic_(traffic),
        max_pkts_(max_pkts),
        arrived_(stage.graph().instances.size()) {
    for (uint32_t i = 0; i < arrived_.size(); ++i) {
      if (const ExecNode* node = stage.graph().instances[i].node) of_node_[node] = i;
    }
  }

  std::vector<Arrived> run() {
    for (const auto& task : stage_.graph().tasks) {
      if (task == nullptr) continue;
      for (const TaskInput& input : task->inputs) {
        if (!input.is_queue) bring_in(input);
      }
    }
    for (uint32_t i = 0; i < arrived_.size(); ++i) {
      if (arrived_[i].pkts.empty() && stage_.graph().instances[i].node != nullptr) stand_in(i);
    }
    stage_.collect();
    return std::move(arrived_);
  }

 private:
  struct Pending {
    uint32_t instance;
    std::vector<PacketImage> pkts;
  };

  uint32_t index_of(const Module* module) const {
    const auto& all = stage_.graph().instances;
    const auto found =
        std::ranges::find(all, module, [](const Instance& i) { return i.module.get(); });
    return static_cast<uint32_t>(found - all.begin());
  }

  // Polls one input until its own instance has seen max_pkts or no more packets come.
  void bring_in(const TaskInput& input) {
    const uint32_t own = index_of(input.module);
    const std::string& name = stage_.graph().instances[own].name;
    std::vector<PacketImage>& seen = arrived_[own].pkts;
    const std::string port = port_of(name);
    if (!port.empty() && !traffic_.feed(port)) {
      arrived_[own].is_stand_in = true;
      enter(input, seen, stand_in_for_input(stage_.graph(), name));
      carry_on();
      return;
    }
    for (uint32_t i = 0; i < kMaxFeeds && seen.size() < max_pkts_; ++i) {
      if (!port.empty() && i != 0 && !traffic_.feed(port)) break;
      if (poll(input, seen) == 0) break;
      carry_on();
    }
  }

  std::string port_of(const std::string& name) const {
    const auto& modules = stage_.graph().spec.modules;
    const auto spec = std::ranges::find(modules, name, &ModuleSpec::name);
    if (spec == modules.end() || find_module_kind(spec->kind)->feed != Feed::kPort) return "";
    return spec->params.at("port").as_string();
  }

  // Polls once; the packets become pending for the next module. A queue's instance records the
  // packets that are put in, so packets polled from it are not added.
  uint32_t poll(const TaskInput& input, std::vector<PacketImage>& seen) {
    Packet* pkts[exec::kMaxBatchPkts + 8];
    const uint32_t n = input.poll(*input.module, stage_.ctx(), pkts, kBatchPkts);
    if (n == 0) return 0;
    std::vector<PacketImage> images;
    for (uint32_t i = 0; i < n; ++i) images.push_back(image_of(*pkts[i]));
    PacketPool::free_bulk(pkts, n);
    enter(input, seen, std::move(images));
    return n;
  }

  void enter(const TaskInput& input, std::vector<PacketImage>& seen,
             std::vector<PacketImage> images) {
    for (PacketImage& image : images) {
      if (!input.is_queue && seen.size() < max_pkts_) seen.push_back(image);
      if (input.entry_state != exec::PathOp::kKeep) image.meta.path_state = input.entry_state;
    }
    pending_.push_back({of_node_.at(input.first), std::move(images)});
  }

  void carry_on() {
    while (!pending_.empty()) {
      Pending next = std::move(pending_.front());
      pending_.pop_front();
      pass(next.instance, next.pkts);
    }
  }

  // Runs one batch through one module; its output becomes pending for the modules behind it.
  void pass(uint32_t index, const std::vector<PacketImage>& images) {
    Arrived& arrived = arrived_[index];
    const Instance& instance = stage_.graph().instances[index];
    // max_pkts_ packets are enough; this also ends loops in the graph.
    if (arrived.pkts.size() >= max_pkts_) return;
    arrived.pkts.insert(arrived.pkts.end(), images.begin(), images.end());
    for (size_t done = 0; done < images.size(); done += kBatchPkts) {
      const auto n = static_cast<uint32_t>(std::min<size_t>(kBatchPkts, images.size() - done));
      run(instance, &images[done], n);
    }
    if (instance.info->shape == Shape::kQueue || instance.info->shape == Shape::kTerminal) {
      poll_behind();
    }
  }

  void run(const Instance& instance, const PacketImage* images, uint32_t n) {
    Context& ctx = stage_.ctx();
    const ExecNode& node = *instance.node;
    Packet* given[kBatchPkts];
    Packet* pkts[kBatchPkts];
    stage_.take(given, n);
    for (uint32_t i = 0; i < n; ++i) write_image(images[i], *given[i]);
    std::ranges::copy_n(given, n, pkts);
    ctx.worker_index = stage_.graph().worker_index_of(instance);
    node.run(node.module, ctx, pkts, n);
    const bool is_end = node.after == exec::After::kEnd;
    std::map<uint32_t, std::vector<PacketImage>> behind;
    for (uint32_t i = 0; i < ctx.n_emitted; ++i) {
      leave(node, ctx.emitted[i].gate, ctx.emitted[i].pkt, behind);
    }
    for (uint32_t i = 0; i < n && !is_end; ++i) {
      if (pkts[i] == nullptr) continue;
      leave(node, node.after == exec::After::kScatter ? ctx.gates[i] : 0, pkts[i], behind);
      PacketPool::free_bulk(&pkts[i], 1);
    }
    for (uint32_t i = 0; i < ctx.n_dropped && node.drop_target != nullptr; ++i) {
      ctx.dropped[i].pkt->meta().drop_reason = ctx.dropped[i].reason;
      leave(node, node.n_gates, ctx.dropped[i].pkt, behind);
    }
    stage_.settle();
    ctx.flush_free();
    for (auto& [to, out] : behind) pending_.push_back({to, std::move(out)});
  }

  void leave(const ExecNode& node, uint32_t gate, Packet* pkt,
             std::map<uint32_t, std::vector<PacketImage>>& behind) {
    const CoreQueue* queue = gate == node.n_gates ? node.drop_target : node.targets[gate];
    const auto to = std::ranges::find_if(
        of_node_, [&](const auto& entry) { return entry.first->queue == queue; });
    if (to == of_node_.end()) return;  // nothing is connected there
    PacketImage image = image_of(*pkt);
    cross(node, gate, image);
    behind[to->second].push_back(std::move(image));
  }

  // Polls packets that a terminal passed on through a queue or a looping port.
  void poll_behind() {
    for (const auto& task : stage_.graph().tasks) {
      if (task == nullptr) continue;
      for (const TaskInput& input : task->inputs) {
        const uint32_t own = index_of(input.module);
        if (stage_.graph().instances[own].info->feed == Feed::kItself) continue;
        while (poll(input, arrived_[own].pkts) != 0) {
        }
      }
    }
  }

  void stand_in(uint32_t index) {
    arrived_[index].is_stand_in = true;
    arrived_[index].pkts = stand_in_pkts(stage_.graph().instances[index]);
  }

  Stage& stage_;
  Traffic& traffic_;
  uint32_t max_pkts_;
  std::vector<Arrived> arrived_;
  std::map<const ExecNode*, uint32_t> of_node_;
  std::deque<Pending> pending_;
};

}  // namespace

std::vector<Arrived> walk(Stage& stage, Traffic& traffic, uint32_t max_pkts) {
  return Walker(stage, traffic, max_pkts).run();
}

}  // namespace batchplane::profile

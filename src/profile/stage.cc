// SPDX-License-Identifier: BSD-3-Clause
#include "profile/stage.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/clock.h"

namespace batchplane::profile {
namespace {

constexpr size_t kMaxGonePkts = 16384;
constexpr uint64_t kFirstTimerBudgetNs = 1'000'000'000;

}  // namespace

PacketImage image_of(Packet& pkt) {
  PacketImage image;
  image.bytes.assign(pkt.data(), pkt.data() + pkt.len_bytes());
  image.headroom_bytes = pkt.headroom_bytes();
  image.mark = pkt.mark();
  image.departure_ticks = pkt.departure_ticks();
  image.meta = pkt.meta();
  return image;
}

void write_image(const PacketImage& image, Packet& pkt) {
  const auto len_bytes = static_cast<uint32_t>(image.bytes.size());
  if (image.headroom_bytes >= kHeadroomBytes) {
    const uint32_t shift = image.headroom_bytes - kHeadroomBytes;
    pkt.reset(len_bytes + shift);
    if (shift != 0) pkt.pull_front(shift);
  } else {
    const uint32_t shift = kHeadroomBytes - image.headroom_bytes;
    pkt.reset(len_bytes - std::min(shift, len_bytes));
    pkt.push_front(std::min(shift, len_bytes));
  }
  std::memcpy(pkt.data(), image.bytes.data(), len_bytes);
  pkt.meta() = image.meta;
  if ((image.meta.flags & kMetaMarked) != 0) pkt.set_mark(image.mark);
  if (pkt.has_departure()) pkt.set_departure_ticks(image.departure_ticks);
}

Stage::Stage(Graph& graph, PacketPool& pool, std::map<std::string, std::string> feeders)
    : graph_(graph),
      pool_(pool),
      feeders_(std::move(feeders)),
      meter_(static_cast<uint32_t>(graph.flow_names.size())),
      ctx_(std::make_unique<Context>()) {
  gone_.reserve(kMaxGonePkts);
  ctx_->pool = &pool;
  ctx_->meter = &meter_;
  ctx_->now_ns = TscClock::instance().now_ns();
  ctx_->batch_limit_pkts = graph.spec.engine.batch_pkts;
  for (const auto& [name, port] : graph.env->ports) {
    if (auto* ring = dynamic_cast<RingPort*>(port.get()); ring != nullptr) rings_.push_back(ring);
  }
  for (const Instance& instance : graph.instances) {
    if (instance.info->shape == Shape::kQueue) queues_.push_back(instance.module.get());
    if (instance.module->housekeep_interval_ns() == 0) continue;
    instance.module->housekeep(*ctx_, kFirstTimerBudgetNs);
    settle();
  }
  collect();
}

Port* Stage::feeder_of(const std::string& port) const {
  const auto feeder = feeders_.find(port);
  return feeder == feeders_.end() ? nullptr : graph_.env->port(feeder->second).get();
}

Stage::~Stage() {
  collect();
  for (const Instance& instance : graph_.instances) {
    instance.module->give_up_held([](Packet* pkt) { PacketPool::free_bulk(&pkt, 1); });
  }
}

void Stage::take(Packet** pkts, uint32_t n) {
  if (pool_.alloc_bulk(pkts, n)) return;
  throw ConfigError("the modules hold so many packets that the pool of " +
                        std::to_string(pool_.size_pkts()) + " is empty",
                    "engine.pool_pkts", "give the pipeline a larger pool");
}

void Stage::read_clock() { ctx_->now_ns = TscClock::instance().now_ns(); }

void Stage::collect() {
  ctx_->flush_free();
  meter_.flush(ctx_->now_ns);
  if (!gone_.empty()) PacketPool::free_bulk(gone_.data(), static_cast<uint32_t>(gone_.size()));
  gone_.clear();
  empty_rings();
}

void Stage::empty_rings() {
  Packet* pkts[exec::kMaxBatchPkts + 8];
  for (RingPort* ring : rings_) {
    while (const uint32_t n = ring->rx_burst(pkts, exec::kMaxBatchPkts, ctx_->now_ns)) {
      PacketPool::free_bulk(pkts, n);
    }
  }
  for (Module* queue : queues_) {
    if (queue->held_pkts() == 0) continue;
    queue->give_up_held([](Packet* pkt) { PacketPool::free_bulk(&pkt, 1); });
  }
}

}  // namespace batchplane::profile

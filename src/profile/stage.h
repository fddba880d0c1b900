// SPDX-License-Identifier: BSD-3-Clause
// stage.h - an environment to call modules outside of any worker: a context, packets, and packet
// images from which a batch is restored.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/packet/packet_pool.h"
#include "ports/ring_port.h"

namespace batchplane::profile {

// A packet as it was in front of a module.
struct PacketImage {
  std::vector<uint8_t> bytes;
  uint32_t headroom_bytes = kHeadroomBytes;
  uint32_t mark = 0;
  uint32_t departure_ticks = 0;
  PacketMeta meta{};
};
[[nodiscard]] PacketImage image_of(Packet& pkt);
void write_image(const PacketImage& image, Packet& pkt);

// Owner: the thread that profiles; it is registered with the packet backend while this lives.
class Stage {
 public:
  // `feeders`: see Options.
  Stage(Graph& graph, PacketPool& pool, std::map<std::string, std::string> feeders = {});
  ~Stage();
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  [[nodiscard]] Context& ctx() { return *ctx_; }
  [[nodiscard]] Graph& graph() const { return graph_; }
  // The port that sends to `port` from outside; nullptr if there is none.
  [[nodiscard]] Port* feeder_of(const std::string& port) const;

  // Takes n packets from the pool; throws ConfigError if it has too few.
  void take(Packet** pkts, uint32_t n);
  // Books what a module dropped or emitted in a call, as the executor would: packets no longer in
  // the batch return to the pool at the next collect().
  void settle() {
    for (uint32_t i = 0; i < ctx_->n_dropped; ++i) gone_.push_back(ctx_->dropped[i].pkt);
    for (uint32_t i = 0; i < ctx_->n_emitted; ++i) gone_.push_back(ctx_->emitted[i].pkt);
    ctx_->n_fates = ctx_->n_removed = ctx_->n_dropped = ctx_->n_emitted = 0;
  }
  // Returns packets noted by settle(), freed by terminals, or left in rings and queues.
  void collect();
  // Sets the time that modules see.
  void read_clock();

 private:
  void empty_rings();

  Graph& graph_;
  PacketPool& pool_;
  std::map<std::string, std::string> feeders_;
  exec::FlowMeter meter_;
  std::unique_ptr<Context> ctx_;
  std::vector<Packet*> gone_;
  std::vector<RingPort*> rings_;
  std::vector<Module*> queues_;
};

}  // namespace batchplane::profile

// SPDX-License-Identifier: BSD-3-Clause
// null_port.cc - a port that receives nothing and frees everything sent.
#include "core/packet/packet_pool.h"
#include "ports/port_counters.h"
#include "ports/port_kinds.h"

namespace batchplane::ports {
namespace {

class NullPort final : public Port {
 public:
  explicit NullPort(const std::string& name) : mac_(local_mac(name)) {}

  uint32_t rx_burst(Packet** /*pkts*/, uint32_t /*max*/, uint64_t /*now_ns*/) noexcept override {
    return 0;
  }
  uint32_t tx_burst(Packet** pkts, uint32_t n) noexcept override {
    if (n == 0) return 0;
    counters_.tx_pkts.add(n);
    counters_.tx_bytes.add(sum_len_bytes(pkts, n));
    PacketPool::free_bulk(pkts, n);
    return n;
  }
  [[nodiscard]] PortStats stats() const override { return counters_.stats(); }
  [[nodiscard]] net::Mac mac() const override { return mac_; }
  [[nodiscard]] bool is_exhausted() const override { return true; }

 private:
  const net::Mac mac_;
  PortCounters counters_;
};

}  // namespace

PortKindInfo null_port_kind() {
  return {.kind = "null",
          .help = "Nothing arrives here; what is sent is counted and freed.",
          .is_memory = true,
          .make = [](const Args& args) -> std::shared_ptr<Port> {
            return std::make_shared<NullPort>(args.name());
          }};
}

}  // namespace batchplane::ports

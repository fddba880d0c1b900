// SPDX-License-Identifier: BSD-3-Clause
// router_advertiser.h - sends router advertisements with the prefixes of a link (RFC 4861, 6.2).
#pragma once

#include <string>
#include <vector>

#include "base/rng.h"
#include "base/value.h"
#include "core/module/context.h"
#include "core/module/environment.h"

namespace batchplane {

// Advertisement of one interface.
struct Advertisement {
  uint16_t interface = 0;
  std::vector<net::Prefix6> prefixes;
  std::vector<net::Address6> dns_servers;
  uint16_t router_lifetime_s = 1800;
  uint32_t valid_lifetime_s = 86'400;
  uint32_t preferred_lifetime_s = 14'400;
};

// Owner: one worker; made on the control thread.
class RouterAdvertiser {
 public:
  // Throws ConfigError for bad entries.
  RouterAdvertiser(const std::vector<Interface>& interfaces, const List& list,
                   const std::string& where, uint64_t interval_ns);

  [[nodiscard]] uint32_t n_interfaces() const { return static_cast<uint32_t>(links_.size()); }
  [[nodiscard]] uint64_t sent() const { return sent_; }

  // A host on the interface sent a solicitation: schedules an advertisement to all nodes.
  void solicited(uint64_t now_ns, uint16_t interface) noexcept;
  // Calls send(ctx, interface, packet) for each advertisement that is due.
  template <class SendFunction>
  void run(Context& ctx, SendFunction send) noexcept {
    for (Link& link : links_) {
      if (ctx.now_ns < link.due_ns) continue;
      Packet* pkt = ctx.originate(static_cast<uint32_t>(link.frame.size()));
      if (pkt == nullptr) return;  // retried at the next tick
      std::memcpy(pkt->data(), link.frame.data(), link.frame.size());
      plan_next(ctx.now_ns, link);
      send(ctx, link.interface, pkt);
    }
  }

 private:
  struct Link {
    uint16_t interface = 0;
    std::vector<uint8_t> frame;  // ready to send
    uint64_t due_ns = 0;
    uint64_t last_ns = 0;
    uint32_t n_sent = 0;
  };
  void plan_next(uint64_t now_ns, Link& link) noexcept;

  const uint64_t interval_ns_;
  std::vector<Link> links_;
  Rng rng_{1};
  uint64_t sent_ = 0;
};

}  // namespace batchplane

// SPDX-License-Identifier: BSD-3-Clause
// napt_commands.h - live commands of a napt module: list connections, edit the external addresses,
// flush the table.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "base/value.h"
#include "core/module/args.h"
#include "modules/nat/napt_translate.h"

namespace batchplane::nat {

// Parses addresses and prefixes; returns each address once, in host order. Throws ConfigError.
[[nodiscard]] std::vector<uint32_t> parse_externals(const List& items, const std::string& where);
[[nodiscard]] NaptConfig parse_config(const Args& args);
[[nodiscard]] std::vector<ParamSpec> napt_params();

// Queue of edits from the control thread to the worker, which applies them between two runs.
class NaptOrders {
 public:
  enum class Kind : uint8_t { kAdd, kWithdraw, kFlush };
  struct Order {
    Kind kind = Kind::kFlush;
    uint32_t address_raw = 0;
    std::unique_ptr<External> external;
  };

  // Control thread. False when the queue has no room for `n` more.
  [[nodiscard]] bool has_room(uint32_t n) const {
    return tail_.load(std::memory_order_relaxed) - head_.load(std::memory_order_acquire) + n <=
           kMax;
  }
  void push(Order order) {
    const uint32_t tail = tail_.load(std::memory_order_relaxed);
    orders_[tail % kMax] = std::move(order);
    tail_.store(tail + 1, std::memory_order_release);
  }
  // Worker.
  template <class Obey>
  void drain(Obey obey) noexcept {
    uint32_t head = head_.load(std::memory_order_relaxed);
    const uint32_t tail = tail_.load(std::memory_order_acquire);
    while (head != tail) obey(orders_[head++ % kMax]);
    head_.store(head, std::memory_order_release);
  }

 private:
  static constexpr uint32_t kMax = kMaxExternal;
  std::vector<Order> orders_{kMax};
  std::atomic<uint32_t> head_{0};
  std::atomic<uint32_t> tail_{0};
};

// The command `list`: {protocol, state, inside, outside, remote, limit}.
[[nodiscard]] Value list_connections(const NaptTable& table, const Value& args, uint32_t now);
[[nodiscard]] Dict show_napt(const NaptTranslator& translator);

}  // namespace batchplane::nat

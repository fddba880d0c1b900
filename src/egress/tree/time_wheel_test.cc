// SPDX-License-Identifier: BSD-3-Clause
// time_wheel_test.cc - the wheel against a sorted list.
#include "egress/tree/time_wheel.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/rng.h"

namespace batchplane::egress {
namespace time_wheel_test {

struct Item {
  WheelLink wheel;
  uint64_t due_ns = 0;
  bool waits = false;
};
struct Items {
  std::vector<Item> all;
  Item& operator[](uint32_t i) { return all[i]; }
  const Item& operator[](uint32_t i) const { return all[i]; }
  [[nodiscard]] uint64_t due_ns(uint32_t i) const { return all[i].due_ns; }
};

// Times from very short to very long.
uint64_t some_ns(Rng& rng) { return rng.next() >> (24 + rng.below(39)); }

class WheelRun {
 public:
  WheelRun(uint64_t seed, bool grows) : grows_(grows), rng_(seed) { items_.all.resize(50); }

  void step() {
    for (int k = 0; k < 5; ++k) put_or_take(rng_.below(50));
    Item& some = items_[rng_.below(50)];
    if (grows_ && some.waits) some.due_ns += some_ns(rng_);
    check_next_due();
    now_ns_ += some_ns(rng_);
    wheel_.advance(items_, now_ns_, [&](uint32_t i) {
      ASSERT_TRUE(items_[i].waits) << i;
      ASSERT_LE(items_[i].due_ns, now_ns_) << i;
      items_[i].waits = false;
      if (rng_.below(2) == 0) put_or_take(rng_.below(50));
    });
    for (const Item& item : items_.all) ASSERT_FALSE(item.waits && item.due_ns <= now_ns_);
  }

 private:
  void put_or_take(uint32_t i) {
    if (items_[i].waits) {
      wheel_.take_out(items_, i);
    } else {
      items_[i].due_ns = now_ns_ + 1 + some_ns(rng_);
      wheel_.put(items_, i);
    }
    items_[i].waits = !items_[i].waits;
  }
  // Never late and always after now; exact or the start of a coarse slot, unless some items were
  // put off.
  void check_next_due() {
    uint64_t first_ns = TimeWheel<Items>::kNever;
    for (const Item& item : items_.all) {
      if (item.waits) first_ns = std::min(first_ns, item.due_ns);
    }
    const uint64_t told_ns = wheel_.next_due_ns(items_);
    ASSERT_LE(told_ns, first_ns);
    ASSERT_GT(told_ns, now_ns_);
    ASSERT_TRUE(told_ns == first_ns || told_ns % (1 << 22) == 0 || grows_) << told_ns;
  }

  const bool grows_;
  Rng rng_;
  Items items_;
  TimeWheel<Items> wheel_;
  uint64_t now_ns_ = 0;
};

TEST(TimeWheel, TellsWhoIsDue) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    WheelRun run(seed, seed % 2 == 0);
    for (int k = 0; k < 3000 && !testing::Test::HasFatalFailure(); ++k) run.step();
  }
}

}  // namespace time_wheel_test
}  // namespace batchplane::egress

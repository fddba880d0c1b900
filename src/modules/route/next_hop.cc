// SPDX-License-Identifier: BSD-3-Clause
// next_hop.cc - next-hop entries: replaced by pointer, freed when no worker can see them any more.
#include "modules/route/next_hop.h"

#include <algorithm>
#include <bit>
#include <string>

#include "base/error.h"

namespace batchplane {
namespace {

// 64 buckets per member keep the error of a weight below 1 %; their number is fixed for groups of
// up to 16 members, so that flows stay where they are when a member is added or removed.
constexpr uint32_t kBucketsPerMember = 64;
constexpr uint32_t kMinBuckets = 1024;
constexpr uint32_t kMaxMembers = 256;

ForwardWord word_of(uint32_t id, const NextHop* hop) {
  const ForwardWord base = ForwardWord{id} << 32;
  if (hop == nullptr) return base | kForwardNoRoute;
  if (hop->kind == NextHop::Kind::kGroup) return base | kForwardGroup;
  if (hop->kind == NextHop::Kind::kDrop) return base | kForwardDrop;
  return base | hop->gate;
}

std::string text(uint32_t id) { return "next hop " + std::to_string(id); }

}  // namespace

std::vector<uint32_t> spread_buckets(const std::vector<NextHop::Member>& members,
                                     const std::vector<uint32_t>& old) {
  const auto n = static_cast<uint32_t>(members.size());
  const uint32_t n_buckets = std::max(std::bit_ceil(n * kBucketsPerMember), kMinBuckets);
  uint64_t weight_sum = 0;
  for (const auto& member : members) weight_sum += member.weight;
  // Quotas by cumulative rounding, so that they add up to n_buckets exactly.
  std::map<uint32_t, uint32_t> quota;
  uint64_t weight_before = 0;
  for (const auto& member : members) {
    const uint64_t first = weight_before * n_buckets / weight_sum;
    weight_before += member.weight;
    quota[member.id] += static_cast<uint32_t>(weight_before * n_buckets / weight_sum - first);
  }
  constexpr uint32_t kOpen = ~0U;
  std::vector<uint32_t> buckets(n_buckets, kOpen);
  for (uint32_t i = 0; i < n_buckets && old.size() == n_buckets; ++i) {
    const auto it = quota.find(old[i]);
    if (it == quota.end() || it->second == 0) continue;
    buckets[i] = old[i];
    --it->second;
  }
  auto next = quota.begin();
  for (uint32_t& bucket : buckets) {
    if (bucket != kOpen) continue;
    while (next->second == 0) ++next;
    bucket = next->first;
    --next->second;
  }
  return buckets;
}

NextHops::NextHops(uint32_t capacity, const Quiescence* quiescence)
    : capacity_(capacity),
      quiescence_(quiescence),
      forward_(std::make_unique<std::atomic<ForwardWord>[]>(capacity + 1)),
      entries_(std::make_unique<std::atomic<const NextHop*>[]>(capacity)),
      owned_(capacity),
      uses_(capacity),
      is_explicit_(capacity),
      is_reserved_(capacity),
      default_id_(capacity) {
  for (uint32_t id = 0; id <= capacity; ++id) forward_[id].store(word_of(id, nullptr));
  for (uint32_t id = 0; id < capacity; ++id) entries_[id].store(nullptr);
}

NextHops::Key NextHops::key_of(const NextHop& hop) {
  std::vector<uint64_t> rest;
  for (const auto& member : hop.members) rest.push_back(uint64_t{member.id} << 32 | member.weight);
  if (hop.has_mac) {
    uint64_t mac = 0;
    for (const uint8_t byte : hop.mac) mac = mac << 8 | byte;
    rest.push_back(mac);
  }
  return {hop.kind, hop.gate, hop.interface, hop.gateway, hop.gateway6, std::move(rest)};
}

void NextHops::check(uint32_t id, const NextHop& hop) const {
  if (hop.kind != NextHop::Kind::kGroup) return;
  if (hop.members.empty()) {
    throw ConfigError(text(id) + " is a group without members", "", "give it at least one");
  }
  if (hop.members.size() > kMaxMembers) {
    throw ConfigError(text(id) + " has more than " + std::to_string(kMaxMembers) + " members");
  }
  for (const auto& member : hop.members) {
    const NextHop* target = at(member.id);
    if (target == nullptr) {
      throw ConfigError("the group names " + text(member.id) + ", which does not exist", "",
                        "define it first");
    }
    if (target->kind == NextHop::Kind::kGroup || member.id == id) {
      throw ConfigError("the group names " + text(member.id) + ", which is a group", "",
                        "list that group's members instead");
    }
    if (member.weight == 0 || member.weight > 1'000'000) {
      throw ConfigError("weight of " + text(member.id) + " is out of range 1 .. 1000000");
    }
  }
}

void NextHops::set(uint32_t id, NextHop hop) {
  if (id >= capacity_) {
    throw ConfigError(text(id) + " is out of range 0 .. " + std::to_string(capacity_ - 1), "",
                      "use a smaller id, or raise max_next_hops");
  }
  if (owned_[id] != nullptr && !is_explicit_[id]) {
    throw ConfigError(
        "id " + std::to_string(id) + " is taken by a route that names a gate or a gateway", "",
        "use another id");
  }
  check(id, hop);
  if (hop.kind == NextHop::Kind::kGroup) {
    for (const auto& other : owned_) {
      if (other == nullptr || other->kind != NextHop::Kind::kGroup) continue;
      for (const auto& member : other->members) {
        if (member.id == id && other != owned_[id]) {
          throw ConfigError(text(id) + " is a member of a group and cannot become one");
        }
      }
    }
  }
  is_explicit_[id] = true;
  publish(id, std::make_unique<NextHop>(std::move(hop)));
}

void NextHops::publish(uint32_t id, std::unique_ptr<NextHop> hop) {
  std::unique_ptr<NextHop> old = std::move(owned_[id]);
  if (hop != nullptr && hop->kind == NextHop::Kind::kGroup) {
    hop->buckets =
        spread_buckets(hop->members, old != nullptr ? old->buckets : std::vector<uint32_t>{});
    for (const auto& member : hop->members) retain(member.id);
  }
  size_ += (hop != nullptr ? 1U : 0U) - (old != nullptr ? 1U : 0U);
  owned_[id] = std::move(hop);
  entries_[id].store(owned_[id].get(), std::memory_order_release);
  forward_[id].store(word_of(id, owned_[id].get()), std::memory_order_release);
  if (default_id_ == id) set_default(id);
  if (old == nullptr) return;
  if (quiescence_ != nullptr) quiescence_->wait();
  for (const auto& member : old->members) release(member.id);
}

void NextHops::erase(uint32_t id) {
  if (at(id) == nullptr || !is_explicit_[id]) throw ConfigError("there is no " + text(id));
  if (uses_[id] != 0) {
    throw ConfigError(text(id) + " is used by " + std::to_string(uses_[id]) + " routes or groups",
                      "", "delete or change those first");
  }
  is_explicit_[id] = false;
  publish(id, nullptr);
}

uint32_t NextHops::free_id(uint32_t preferred) const {
  if (preferred < capacity_ && owned_[preferred] == nullptr) return preferred;
  for (const bool may_take_reserved : {false, true}) {
    for (uint32_t id = capacity_; id-- > 0;) {
      if (owned_[id] == nullptr && (may_take_reserved || !is_reserved_[id])) return id;
    }
  }
  throw ConfigError("all " + std::to_string(capacity_) + " next hops are taken", "",
                    "raise max_next_hops");
}

uint32_t NextHops::intern(const NextHop& hop) {
  const Key key = key_of(hop);
  const auto it = implicit_.find(key);
  if (it != implicit_.end()) return it->second;
  check(capacity_, hop);
  const bool is_plain_gate =
      hop.kind == NextHop::Kind::kForward && hop.interface == kNoInterface && !hop.has_mac;
  const auto earlier = earlier_ids_.find(key);
  const uint32_t wanted = is_plain_gate ? hop.gate : capacity_;
  const uint32_t id = free_id(earlier != earlier_ids_.end() ? earlier->second : wanted);
  publish(id, std::make_unique<NextHop>(hop));
  implicit_.emplace(key, id);
  return id;
}

void NextHops::keep_ids_of(const NextHops& old) {
  earlier_ids_ = old.implicit_;
  for (uint32_t id = 0; id < std::min(capacity_, old.capacity_); ++id) {
    is_reserved_[id] = old.owned_[id] != nullptr;
  }
}

void NextHops::release(uint32_t id) {
  if (--uses_[id] != 0 || is_explicit_[id]) return;
  implicit_.erase(key_of(*owned_[id]));
  publish(id, nullptr);
}

void NextHops::drop_unused() {
  for (auto it = implicit_.begin(); it != implicit_.end();) {
    const uint32_t id = it->second;
    if (uses_[id] != 0) {
      ++it;
      continue;
    }
    it = implicit_.erase(it);
    publish(id, nullptr);
  }
}

void NextHops::set_default(uint32_t id) {
  default_id_ = id;
  const ForwardWord word = id == capacity_ ? word_of(id, nullptr) : forward(id);
  forward_[capacity_].store(word, std::memory_order_release);
}

std::vector<uint32_t> NextHops::explicit_ids() const {
  std::vector<uint32_t> ids;
  for (uint32_t id = 0; id < capacity_; ++id) {
    if (is_explicit_[id]) ids.push_back(id);
  }
  return ids;
}

uint32_t NextHops::highest_gate() const {
  uint32_t highest = 0;
  for (const auto& hop : owned_) {
    if (hop != nullptr) highest = std::max<uint32_t>(highest, hop->gate);
  }
  return highest;
}

}  // namespace batchplane

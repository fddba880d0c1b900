// SPDX-License-Identifier: BSD-3-Clause
// session_queue.cc - linked lists in arrays, and a hash table of queues by session number.
#include "modules/session/session_queue.h"

#include <algorithm>
#include <bit>

namespace batchplane::session {

SessionQueues::SessionQueues(uint32_t max_pkts)
    : entries_(max_pkts),
      queues_(max_pkts),
      buckets_(std::bit_ceil(std::max(max_pkts, 1U)), kNone) {
  active_.reserve(max_pkts);
  for (uint32_t i = max_pkts; i > 0; --i) {
    entries_[i - 1].next = free_entry_;
    queues_[i - 1].next_in_bucket = free_queue_;
    free_entry_ = free_queue_ = i - 1;
  }
}

uint32_t SessionQueues::find(uint32_t session) const {
  uint32_t queue = buckets_[bucket_of(session)];
  while (queue != kNone && queues_[queue].session != session) queue = queues_[queue].next_in_bucket;
  return queue;
}

bool SessionQueues::holds_rule(uint32_t queue, uint32_t slot) const {
  for (uint32_t at = queues_[queue].first; at != kNone; at = entries_[at].next) {
    if (slot_of(entries_[at].pkt->mark()) == slot) return true;
  }
  return false;
}

uint32_t SessionQueues::add_queue(uint32_t session) {
  const uint32_t queue = free_queue_;
  free_queue_ = queues_[queue].next_in_bucket;
  uint32_t& bucket = buckets_[bucket_of(session)];
  queues_[queue] = {.session = session,
                    .next_in_bucket = bucket,
                    .position = static_cast<uint32_t>(active_.size())};
  bucket = queue;
  active_.push_back(queue);
  return queue;
}

uint32_t SessionQueues::push(uint32_t session, Packet* pkt) {
  uint32_t queue = find(session);
  if (queue == kNone) queue = add_queue(session);
  const uint32_t at = free_entry_;
  free_entry_ = entries_[at].next;
  entries_[at] = {pkt, kNone};
  Queue& to = queues_[queue];
  (to.last == kNone ? to.first : entries_[to.last].next) = at;
  to.last = at;
  ++to.n_pkts;
  n_held_.add(1);
  return queue;
}

void SessionQueues::unlink(uint32_t queue, uint32_t before, uint32_t at) {
  Queue& from = queues_[queue];
  (before == kNone ? from.first : entries_[before].next) = entries_[at].next;
  if (from.last == at) from.last = before;
  --from.n_pkts;
  n_held_.set(n_held_.value() - 1);
  entries_[at] = {nullptr, free_entry_};
  free_entry_ = at;
}

void SessionQueues::remove(uint32_t queue) {
  const Queue gone = queues_[queue];
  uint32_t* link = &buckets_[bucket_of(gone.session)];
  while (*link != queue) link = &queues_[*link].next_in_bucket;
  *link = gone.next_in_bucket;
  active_[gone.position] = active_.back();
  queues_[active_.back()].position = gone.position;
  active_.pop_back();
  queues_[queue] = Queue{.next_in_bucket = free_queue_};
  free_queue_ = queue;
}

void SessionQueues::give_up(const std::function<void(Packet*)>& take) {
  while (!active_.empty()) {
    (void)sift(active_.back(), [&](Packet* pkt) {
      take(pkt);
      return Taken::kYes;
    });
  }
}

}  // namespace batchplane::session

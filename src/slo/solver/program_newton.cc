// SPDX-License-Identifier: BSD-3-Clause
// program_newton.cc - Newton steps on the dual where flows share modules. The matrix is a diagonal,
// from the modules that one flow alone passes, plus one rank for each set of flows that share a
// module: few, however many flows.
#include <algorithm>
#include <map>

#include "base/cholesky.h"
#include "slo/model/set_hash.h"
#include "slo/solver/program.h"

namespace batchplane::slo {
namespace {
constexpr uint32_t kMaxHalvings = 6;  // of a step that does not make the dual grow
// Of a row's diagonal: for flows that share all modules that hold them.
constexpr double kRidge = 1e-6;
}  // namespace

// Modules that the same flows share count as one.
void Solver::prepare_sets(const Program& program) {
  std::map<uint64_t, std::vector<uint32_t>> modules_of;
  for (uint32_t v = 0; v < program.modules.size(); ++v) {
    if (module_flows_begin_[v + 1] - module_flows_begin_[v] < 2) continue;
    uint64_t hash = 0;
    for (uint32_t i = module_flows_begin_[v]; i < module_flows_begin_[v + 1]; ++i) {
      hash += mixed_bits(module_flows_[i] + 1);
    }
    modules_of[hash].push_back(v);
  }
  std::vector<std::vector<uint32_t>> sets_of(program.flows.size());
  sets_.clear();
  set_modules_.clear();
  for (const auto& [hash, modules] : modules_of) {
    const uint32_t first = module_flows_begin_[modules.front()];
    for (uint32_t i = first; i < module_flows_begin_[modules.front() + 1]; ++i) {
      sets_of[module_flows_[i]].push_back(static_cast<uint32_t>(sets_.size()));
    }
    const auto begin = static_cast<uint32_t>(set_modules_.size());
    set_modules_.insert(set_modules_.end(), modules.begin(), modules.end());
    sets_.push_back({.begin = begin, .end = static_cast<uint32_t>(set_modules_.size())});
  }
  flow_sets_.clear();
  flow_sets_begin_.assign(1, 0);
  for (const std::vector<uint32_t>& sets : sets_of) {
    flow_sets_.insert(flow_sets_.end(), sets.begin(), sets.end());
    flow_sets_begin_.push_back(static_cast<uint32_t>(flow_sets_.size()));
  }
  own_entry_.reserve(program.flows.size());
  seen_sets_.reserve(sets_.size());
  ranks_.reserve(sets_.size());
  matrix_.reserve(sets_.size() * sets_.size());
}

// Decrease of the budget used per unit of price, of a module whose size is within its bounds.
double Solver::entry_of(uint32_t v) {
  return is_free_[v] != 0 ? held_at(v, module_price_[v]).entry : 0;
}

// Gives the set its entry and, if it moves anything, a row of the matrix.
void Solver::see_set(Set& set, uint32_t s) {
  if (set.is_seen) return;
  set.is_seen = true;
  seen_sets_.push_back(s);
  set.entry = 0;
  for (uint32_t i = set.begin; i < set.end; ++i) set.entry += entry_of(set_modules_[i]);
  set.row = static_cast<uint32_t>(ranks_.size());
  if (set.entry > 0) ranks_.push_back(0);
}

// step_ becomes the excess use of the budgets, own_entry_ the diagonal; sets get their ranks. False
// when some price moves nothing.
bool Solver::set_curvature() {
  for (const uint32_t s : seen_sets_) sets_[s].is_seen = false;
  seen_sets_.clear();
  ranks_.clear();
  own_entry_.clear();
  for (size_t r = 0; r < active_.size(); ++r) {
    const uint32_t f = active_[r];
    double used = 0;
    double own = 0;
    double whole = 0;
    for (const uint32_t v : free_path(f)) {
      const Held& held = held_at(v, std::max(0.0, module_price_[v]));
      used += held.used_ns;
      whole += held.entry;
      if (module_flows_begin_[v + 1] - module_flows_begin_[v] == 1) own += held.entry;
    }
    if (!(whole > 0)) return false;
    step_[r] = used - room_ns_[f];
    for (uint32_t i = flow_sets_begin_[f]; i < flow_sets_begin_[f + 1]; ++i) {
      see_set(sets_[flow_sets_[i]], flow_sets_[i]);
    }
    own_entry_.push_back(own + kRidge * whole);
  }
  return true;
}

// By way of the sets (Woodbury): one row for each set that moves anything.
bool Solver::solve_by_sets() {
  const size_t m = ranks_.size();
  matrix_.assign(m * m, 0);
  for (const uint32_t s : seen_sets_) {
    const Set& set = sets_[s];
    if (set.entry > 0) matrix_[set.row * m + set.row] = 1 / set.entry;
  }
  const auto each_set = [&](size_t r, const auto& fn) {
    for (uint32_t i = flow_sets_begin_[active_[r]]; i < flow_sets_begin_[active_[r] + 1]; ++i) {
      if (const Set& set = sets_[flow_sets_[i]]; set.entry > 0) fn(set.row);
    }
  };
  for (size_t r = 0; r < active_.size(); ++r) {
    each_set(r, [&](uint32_t row) {
      ranks_[row] += step_[r] / own_entry_[r];
      each_set(r, [&](uint32_t column) {
        if (column <= row) matrix_[row * m + column] += 1 / own_entry_[r];
      });
    });
  }
  if (!solve_in_place(matrix_, ranks_)) return false;
  for (size_t r = 0; r < active_.size(); ++r) {
    each_set(r, [&](uint32_t row) { step_[r] -= ranks_[row]; });
    step_[r] /= own_entry_[r];
  }
  return true;
}

// One projected Newton step on the prices above zero, if the dual grows by it.
void Solver::newton(const Group& group) {
  active_.clear();
  for (uint32_t i = group.begin; i < group.end; ++i) {
    if (point_.price[group_flows_[i]] > 0 && is_short_[group_flows_[i]] == 0)
      active_.push_back(group_flows_[i]);
  }
  const size_t n = active_.size();
  if (n < 2 || !set_curvature() || !solve_by_sets()) return;
  const double before = dual_value(group);
  for (uint32_t halving = 0; halving < kMaxHalvings; ++halving) {
    for (size_t r = 0; r < n; ++r) {
      const double old = point_.price[active_[r]];
      own_entry_[r] = std::max(-old, step_[r]);  // from here on free: remembers how to step back
      add_price(active_[r], own_entry_[r]);
    }
    if (dual_value(group) > before) return;
    for (size_t r = 0; r < n; ++r) {
      add_price(active_[r], -own_entry_[r]);
      step_[r] /= 2;
    }
  }
}

}  // namespace batchplane::slo

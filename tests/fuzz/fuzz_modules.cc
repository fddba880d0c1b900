// SPDX-License-Identifier: BSD-3-Clause
// fuzz_modules.cc - the same frames through every kind of module, each packet's fate accounted for.
//
// Modules keep their state between inputs, as in a pipeline that runs. With heap packets under
// AddressSanitizer every byte outside a packet's data is poisoned.
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <set>

#include "app/json_value.h"
#include "core/environment.h"
#include "core/module.h"
#include "frames.h"
#include "module_cases.h"
#include "ports/port_kinds.h"

namespace batchplane::fuzz {
namespace {

constexpr uint32_t kPoolPkts = 1024;
constexpr uint64_t kCheckPoolEvery = BATCHPLANE_DPDK ? 512 : 1;  // DPDK walks its caches for it

std::string tap_path() {
  const auto name = "batchplane_fuzz_" + std::to_string(getpid()) + ".pcap";
  return (std::filesystem::temp_directory_path() / name).string();
}

std::unique_ptr<Environment> make_environment() {
  auto env = std::make_unique<Environment>();
  env->ports["null"] = make_port("null", {}, "null", *env);
  const auto add = [&](const char* name, uint16_t index, const char* address,
                       const char* address6) {
    env->interfaces.push_back({.name = name,
                               .port = "null",
                               .index = index,
                               .mac = {2, 0, 0, 0, 0, static_cast<uint8_t>(index + 1)},
                               .addresses = {*net::parse_interface_address(address)},
                               .addresses6 = {*net::parse_interface_address6(address6)}});
    Interface& added = env->interfaces.back();
    added.addresses6.push_back({net::link_local_of(added.mac), 64});
  };
  add("lan", 0, "10.0.1.1/24", "2001:db8:1::1/64");
  add("wan", 1, "10.0.2.1/24", "2001:db8:2::1/64");
  return env;
}

class Subject {
 public:
  Subject(const ModuleCase& from, Environment& env)
      : info_(*find_module_kind(from.kind)), name_(std::string(from.kind) + " " + from.params) {
    std::string params = from.params;
    if (const size_t at = params.find("@TAP"); at != std::string::npos)
      params.replace(at, 4, tap_path());
    std::vector<ConfigError> errors;
    Args args(info_.params, app::parse_json(params, name_).as_dict(), name_, errors);
    if (!errors.empty()) fail(errors.front().line());
    args.set_name(from.kind);
    args.set_env(&env);
    module_ = info_.make(args);
    module_->set_name(from.kind);
    gates_ = info_.shape == Shape::kSplitter ? module_->gates_used(from.connected_gates) : 1;
  }

  // All that went in comes out once, or is held.
  void run(Context& ctx, Packet** pkts, uint32_t n) {
    Batch batch{pkts, n, ctx.now_ns};
    n_seen_ = 0;
    const uint64_t held_before = module_->held_pkts();
    if (n != 0) {
      info_.run(module_.get(), ctx, pkts, n);
    } else if (module_->housekeep_interval_ns() != 0) {
      module_->housekeep(ctx, 100'000);
    } else {
      return;
    }
    const bool is_end = info_.shape == Shape::kTerminal || info_.shape == Shape::kQueue;
    uint32_t n_gone = 0;
    for (uint32_t i = 0; i < n; ++i) {
      if (batch[i] == nullptr) {
        ++n_gone;
      } else if (!is_end) {
        leave(ctx, batch[i], info_.shape == Shape::kSplitter ? ctx.gates[i] : 0);
      }
    }
    if (n_gone != ctx.n_removed) fail(name_ + ": slots emptied behind the engine's back");
    for (uint32_t i = 0; i < ctx.n_emitted; ++i)
      leave(ctx, ctx.emitted[i].pkt, ctx.emitted[i].gate);
    for (uint32_t i = 0; i < ctx.n_dropped; ++i) {
      if (ctx.dropped[i].reason >= drop_reasons().size())
        fail(name_ + ": a reason that nobody knows");
      leave(ctx, ctx.dropped[i].pkt, 0);
    }
    // In place and splitters: what is not held any more was emitted or dropped, and the other way
    // round.
    const uint64_t n_out = n_seen_;
    if (!is_end && held_before + n + ctx.originated_pkts != n_out + module_->held_pkts()) {
      fail(name_ + ": packets lost or made from nothing");
    }
    ctx.originated_pkts = 0;
    ctx.n_removed = ctx.n_dropped = ctx.n_emitted = ctx.n_fates = 0;
    if (info_.shape == Shape::kQueue) take_back(ctx);
    ctx.flush_free();
  }

  [[nodiscard]] const ModuleInfo& info() const { return info_; }
  [[nodiscard]] Module& module() { return *module_; }

 private:
  void leave(Context& ctx, Packet* pkt, uint32_t gate) {
    if (gate >= gates_) fail(name_ + ": a gate that it does not have");
    if (pkt->len_bytes() > kMaxFrameBytes) fail(name_ + ": a packet longer than any");
    if (std::find(seen_, seen_ + n_seen_, pkt) != seen_ + n_seen_)
      fail(name_ + ": a packet came out twice");
    if (n_seen_ == std::size(seen_)) fail(name_ + ": more packets than it can have had");
    seen_[n_seen_++] = pkt;
    ctx.free(pkt);
  }
  void take_back(Context& ctx) {
    Packet* pkts[kMostFrames];
    while (const uint32_t n = info_.poll(*module_, ctx, pkts, kMostFrames)) ctx.free(pkts, n);
  }

  const ModuleInfo& info_;
  std::string name_;
  std::unique_ptr<Module> module_;
  uint32_t gates_ = 1;
  Packet* seen_[kPoolPkts];
  uint32_t n_seen_ = 0;
};

// Live edits, as a control thread makes them; what the tables refuse is refused.
void edit(Module& module, const std::string& kind, uint32_t which, uint32_t id) {
  const std::string net24 = "10." + std::to_string(id % 16) + "." + std::to_string(id) + ".0/24";
  const Dict values{{"values", List{"0x0800", net::format_ipv4(0x0a000000 + id), id}},
                    {"gate", id % 3}};
  const std::string mac = net::format_mac({2, 0, 0, 0, 0, static_cast<uint8_t>(id)});
  const Dict host{{"interface", id % 2 != 0 ? "lan" : "wan"},
                  {"address", net::format_ipv4(0x0a000100 + id)}};
  try {
    if (kind == "ipv4_lookup" && which == 1) {
      module.command("add", Dict{{"prefix", net24}, {"gate", id % 2}});
    } else if (kind == "ipv4_lookup" && which == 2) {
      module.command("delete", Dict{{"prefix", net24}});
    } else if (kind == "ipv4_lookup" && which == 3) {
      module.command("next_hop",
                     Dict{{"id", 1 + id % 4}, {"via", net::format_ipv4(0x0a000200 + id)}});
    } else if (kind == "exact_match" && which == 4) {
      module.command("add", values);
    } else if (kind == "l2_table" && which == 5) {
      module.command("add", Dict{{"mac", mac}, {"gate", id % 2}});
    } else if (kind == "neighbour" && which == 6) {
      Dict with_mac = host;
      with_mac["mac"] = mac;
      module.command("add", with_mac);
    } else if (kind == "neighbour" && which == 7) {
      module.command("delete", host);
    } else if (kind == "session_downlink" && which < 4) {
      const Dict pdr{{"id", id % 3}, {"source", "core"}, {"far", 0}};
      module.command("add", Dict{{"seid", 1 + id % 5},
                                 {"ue", net::format_ipv4(0x0a000100 + id)},
                                 {"pdrs", List{pdr}},
                                 {"fars", List{Dict{{"id", 0}}}}});
    } else if (kind == "session_downlink" && which >= 4) {
      module.command("delete", Dict{{"seid", 3 + id % 3}});
    } else if (kind == "load_balancer" && which < 5) {
      const std::string name(1, static_cast<char>('a' + id % 3));
      module.command("add", Dict{{"service", "all"}, {"name", name}, {"gate", id % 3}});
    } else if (kind == "load_balancer" && which >= 5) {
      const std::string name(1, static_cast<char>('a' + id % 3));
      module.command("delete", Dict{{"service", "all"}, {"name", name}});
    }
  } catch (const ConfigError&) {
  }
}

class Bench {
 public:
  Bench() : env_(make_environment()), pool_("fuzz_modules", kPoolPkts, kMostFrameBytes), meter_(1) {
    ctx_->pool = &pool_;
    ctx_->meter = &meter_;
    ctx_->batch_limit_pkts = kMostFrames;
    std::set<std::string> covered(std::begin(kNotFuzzed), std::end(kNotFuzzed));
    for (const ModuleCase& one : module_cases()) {
      subjects_.push_back(std::make_unique<Subject>(one, *env_));
      covered.insert(one.kind);
    }
    for (const ModuleInfo* info : all_module_kinds()) {
      if (!covered.contains(info->kind))
        fail("module kind '" + info->kind + "' has no case in module_cases.h");
    }
  }
  ~Bench() { std::filesystem::remove(tap_path()); }

  void run(const Frames& frames) {
    ctx_->now_ns += frames.step_ns;
    for (const auto& subject : subjects_) {
      if (frames.edit != 0)
        edit(subject->module(), subject->info().kind, frames.edit, frames.meta.next_hop);
      Packet* pkts[kMostFrames];
      const uint32_t n = fill(frames, pkts);
      if (n != 0) subject->run(*ctx_, pkts, n);
      subject->run(*ctx_, pkts, 0);
      tally.pkts += n;
    }
    if (++n_inputs_ % kCheckPoolEvery == 0) check_pool();
  }

 private:
  uint32_t fill(const Frames& frames, Packet** pkts) {
    const auto n = static_cast<uint32_t>(frames.all.size());
    if (n == 0) return 0;
    require(pool_.alloc_bulk(pkts, n),
            "the pool has run dry: a module keeps what it does not report");
    for (uint32_t i = 0; i < n; ++i) {
      const auto bytes = frames.all[i];
      pkts[i]->reset(static_cast<uint32_t>(bytes.size()));
      if (!bytes.empty()) std::memcpy(pkts[i]->data(), bytes.data(), bytes.size());
      pkts[i]->meta() = frames.meta;
      pkts[i]->meta().entry_ns = ctx_->now_ns;
      if (frames.mark != 0) pkts[i]->set_mark(frames.mark);
    }
    return n;
  }
  void check_pool() {
    uint64_t held = 0;
    for (const auto& subject : subjects_) held += subject->module().held_pkts();
    if (pool_.available_pkts() + held != kPoolPkts) fail("packets have leaked or were freed twice");
  }

  std::unique_ptr<Environment> env_;
  PacketPool pool_;
  exec::FlowMeter meter_;
  std::unique_ptr<Context> ctx_ = std::make_unique<Context>();
  std::vector<std::unique_ptr<Subject>> subjects_;
  uint64_t n_inputs_ = 0;
};

}  // namespace

int fuzz_modules(const uint8_t* data, size_t size) {
  static Bench bench;
  bench.run(cut_frames(data, size));
  return 0;
}

}  // namespace batchplane::fuzz

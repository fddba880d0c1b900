// SPDX-License-Identifier: BSD-3-Clause
// module.h - what a network function is: one class, one file, one registration line.
//
// A module class is `final`, derives from Module and has exactly one of these members; the shape
// follows from it:
//   void process(Context&, Batch&) noexcept     in-place: edits the batch, which moves on by pointer
//   void classify(Context&, Batch&) noexcept    splitter: fills ctx.gates[i] for each packet i
//   void consume(Context&, Batch&) noexcept     terminal: takes the packets (frees, sends)
//   uint32_t poll(Context&, Packet** pkts, uint32_t max) noexcept   input: fills up to max packets
// A class with consume and poll is a queue: terminal of one task and input of another.
//
// Fate of a packet: it stays in the batch, or ctx.drop(batch, i, kReason), or ctx.keep(batch, i).
// New or kept packets leave with ctx.emit(gate, pkt). Packets removed in this call must not be
// touched again (their slot is null). process/classify/consume see batch.size_pkts in 1..B.
//
// On the data path: no throw, no allocation, no lock, no log, no system call, no clock
// (ctx.now_ns).
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/args.h"
#include "core/context.h"
#include "core/environment.h"
#include "spec/kinds.h"

namespace batchplane {

// Control-side interface of every module. All of it runs on the control thread unless said
// otherwise.
class Module {
 public:
  virtual ~Module() = default;
  Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  // Told once, before it runs: gates 0..connected-1 are connected in the pipeline (some of them may
  // not be). Returns how many it has, all of which it may write to ctx.gates: the engine links each
  // to a module or, when nothing is connected, to a dead end (drop reason unconnected_gate).
  // In-place: 1.
  virtual uint32_t link(uint32_t connected) { return connected; }

  // Live commands ("add", "delete", "replace", ...) on tables; throws ConfigError. `args` was not
  // checked. Unknown commands throw.
  virtual Value command(const std::string& verb, const Value& args);
  // Splitters whose choice does not depend on the packet: each gate's share of the packets. Empty:
  // what is in the packet decides.
  [[nodiscard]] virtual std::vector<double> blind_weights() const { return {}; }
  // State worth showing (table sizes, counters); a dict.
  [[nodiscard]] virtual Value show() const { return Dict{}; }
  // Parameters as they are now, live edits included, in the form the constructor takes; merged over
  // the original ones by `save`.
  [[nodiscard]] virtual Dict saved_params() const { return {}; }

  // Copies what may take long (live routes, say) from the same-named module of the running graph.
  // Control thread, before adopt(); `old` still works. `old` is of the same class.
  virtual void inherit(Module& old) { (void)old; }
  // Takes over the state of the same-named module of the graph that this one replaces. Runs on the
  // worker between two runs: O(1) moves only. `old` is of the same class.
  virtual void adopt(Module& old) noexcept { (void)old; }

  // Packets kept inside (ctx.keep), and the most there can ever be; sizes pool and queues.
  [[nodiscard]] virtual uint64_t held_pkts() const { return 0; }
  [[nodiscard]] virtual uint32_t max_held_pkts() const { return 0; }
  // A queue to another task: packets ever put in (on the worker that fills it) and ever taken out
  // (on the one that polls it); their difference is what it holds.
  [[nodiscard]] virtual uint64_t put_pkts() const { return 0; }
  [[nodiscard]] virtual uint64_t taken_pkts() const { return 0; }
  // Whether it may emit packets of its own making; sizes queues.
  [[nodiscard]] virtual bool may_emit() const { return max_held_pkts() != 0; }
  // Terminals that can be full: how many packets they would take now from `worker`. The worker asks
  // before it polls the task's inputs, and polls nothing while there is no room for a batch.
  // Worker.
  [[nodiscard]] virtual bool wants_backpressure() const { return false; }
  [[nodiscard]] virtual uint32_t room_pkts(uint32_t worker) const noexcept {
    return (void)worker, ~0U;
  }
  // Timers. Worker, between runs, about every housekeep_interval_ns(); may emit() and drop_owned().
  // 0 = never called. Budget is the time it may take.
  [[nodiscard]] virtual uint64_t housekeep_interval_ns() const { return 0; }
  virtual void housekeep(Context& ctx, uint64_t budget_ns) noexcept { (void)ctx, (void)budget_ns; }
  // At the end, or when an older graph is given up: hand out what is kept, for the engine to count.
  // Worker or, when no worker runs any more, control thread.
  virtual void give_up_held(const std::function<void(Packet*)>& take) { (void)take; }

  // The ends of ports that it works on. Each end belongs to one worker.
  struct PortEnds {
    const Port* polled = nullptr;
    const Port* sent_into = nullptr;
  };
  [[nodiscard]] virtual PortEnds port_ends() const { return {}; }
  // Inputs: what waits to be polled (the polling worker, between two runs), and what has come
  // without being taken (any thread).
  [[nodiscard]] virtual exec::RingCounts ring_counts() const noexcept { return {}; }
  virtual void begin_fill_period() noexcept {}  // the highest fill is told anew from here on
  [[nodiscard]] virtual exec::ArrivalCounts arrival_counts() const { return {}; }

  [[nodiscard]] const std::string& name() const { return *name_; }
  void set_name(const std::string& name) { *name_ = name; }

  // Egress modules: which flow a packet that leaves here belongs to. Set by the graph builder.
  void set_flows(uint16_t static_flow, const uint16_t* flow_of_state) {
    static_flow_ = static_flow;
    flow_of_state_ = flow_of_state;
  }
  [[nodiscard]] bool has_static_flow() const { return flow_of_state_ == nullptr; }
  [[nodiscard]] uint16_t static_flow() const { return static_flow_; }
  [[nodiscard]] uint16_t flow_of(uint16_t path_state) const { return flow_of_state_[path_state]; }

 private:
  // Kept small: with hundreds of modules what each run touches decides whether all stay in L1.
  std::unique_ptr<std::string> name_ = std::make_unique<std::string>();
  const uint16_t* flow_of_state_ = nullptr;
  uint16_t static_flow_ = 0;
};

using ExecNode = exec::Node<struct CoreTraits>;

// What packets leave behind in a module, and so what several workers that share its work must heed.
enum class StateOf : uint8_t {
  kNone,      // nothing but counts: each worker may have a module of its own
  kShared,    // tables that any number of workers read; the control side edits them
  kSharded,   // of flows or hosts: each worker may have a part, when all of a flow comes to one
  kOneOwner,  // an end of a port, one rate for all, a file: one worker alone
};

// Where an input's packets come from.
enum class Feed : uint8_t { kNone, kPort, kQueue, kItself };

// Modules that name the same table have it together; the largest declaration counts.
struct TableMemory {
  std::string table;
  uint64_t bytes = 0;
};

// A file or device, and the kind, without parameters, that takes a module's place where nothing may
// be opened.
struct Opens {
  std::string what;
  std::string stand_in;
};

struct ModuleInfo {
  std::string kind;
  std::optional<StateOf> state = std::nullopt;  // every kind says which
  std::string help = "";                        // one sentence
  std::vector<ParamSpec> params = {};
  std::vector<std::string> gate_names = {};  // gates with a meaning; else they are numbers
  uint32_t first_named_gate = 0;             // number of gate_names[0]; the others follow it
  std::vector<const DropReason*> drops = {};
  bool is_egress = false;  // terminal where flows end and delays are taken
  std::string notes = "";  // what else a user should know (formats, live commands)
  // Packets leave as they came: whoever only asks where they go may leave the module out.
  bool is_passive = false;

  // What others must know of a kind, for whom it is one of many.
  Feed feed = Feed::kNone;   // inputs only
  bool is_for_ipv6 = false;  // such packets are what it is measured with
  // The longest frame that it brings or puts together, in bytes.
  std::function<uint64_t(const Dict& params)> frame_bytes = nullptr;
  // The tables that a module called `name` would fill.
  std::function<std::vector<TableMemory>(const std::string& name, const Dict& params)> tables =
      nullptr;
  // What of the machine it would open, where that is more than memory.
  std::function<std::optional<Opens>(const Dict& params)> opens = nullptr;

  // Filled by Register.
  Shape shape = Shape::kInPlace;
  std::function<std::unique_ptr<Module>(const Args&)> make = nullptr;
  void (*run)(void* module, Context&, Packet** pkts, uint32_t n_pkts) noexcept = nullptr;
  uint32_t (*poll)(Module&, Context&, Packet**, uint32_t) noexcept = nullptr;

  [[nodiscard]] uint32_t gate_number(uint32_t name_index) const {
    return first_named_gate + name_index;
  }
};

// All module kinds of this program, by name. nullptr when unknown.
const ModuleInfo* find_module_kind(const std::string& kind);
std::vector<const ModuleInfo*> all_module_kinds();
// What the rules of pipelines ask of them; of ports they know nothing.
Kinds module_kind_facts();
void register_module_kind(ModuleInfo info);

template <class T>
concept HasProcess = requires(T m, Context& c, Batch& b) {
  { m.process(c, b) } noexcept;
};
template <class T>
concept HasClassify = requires(T m, Context& c, Batch& b) {
  { m.classify(c, b) } noexcept;
};
template <class T>
concept HasConsume = requires(T m, Context& c, Batch& b) {
  { m.consume(c, b) } noexcept;
};
template <class T>
concept HasPoll = requires(T m, Context& c, Packet** p, uint32_t n) {
  { m.poll(c, p, n) } noexcept -> std::same_as<uint32_t>;
};

// Books the packets of an egress node that `consume` did not drop. Defined in core/module_run.h.
template <class T>
void run_egress(void* module, Context& ctx, Packet** pkts, uint32_t n_pkts) noexcept;
template <class T>
void run_plain(void* module, Context& ctx, Packet** pkts, uint32_t n_pkts) noexcept;

// const Register<Ttl> kTtl{
//     {.kind = "ttl", .state = StateOf::kNone, .help = "...", .params = {...}, .drops = {&kTtlExpired}}};
template <class T>
struct Register {
  explicit Register(ModuleInfo info) {
    static_assert(std::derived_from<T, Module>);
    constexpr int kShapes = HasProcess<T> + HasClassify<T> + HasConsume<T>;
    static_assert(kShapes == 1 || (kShapes == 0 && HasPoll<T>), "exactly one shape");
    if constexpr (HasProcess<T>) info.shape = Shape::kInPlace;
    if constexpr (HasClassify<T>) info.shape = Shape::kSplitter;
    if constexpr (HasConsume<T>) info.shape = HasPoll<T> ? Shape::kQueue : Shape::kTerminal;
    if constexpr (kShapes == 0) info.shape = Shape::kInput;
    if constexpr (HasPoll<T> && HasConsume<T>) info.feed = Feed::kQueue;
    info.make = [](const Args& args) { return std::make_unique<T>(args); };
    if constexpr (kShapes == 1) info.run = info.is_egress ? &run_egress<T> : &run_plain<T>;
    if constexpr (HasPoll<T>) {
      info.poll = [](Module& module, Context& ctx, Packet** pkts, uint32_t max) noexcept {
        return static_cast<T&>(module).poll(ctx, pkts, max);
      };
    }
    register_module_kind(std::move(info));
  }
};

}  // namespace batchplane

#include "core/module_run.h"

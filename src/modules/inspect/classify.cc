// SPDX-License-Identifier: BSD-3-Clause
// classify.cc - classifies packets with a multi-layer perceptron and sends each class to its own
// gate.
//
// in: 1   out: a gate for each class, up to 4096   state: the weights, replaced live; packets per
// class
#include "core/module/kernel.h"
#include "core/module/live_table.h"
#include "core/module/register.h"
#include "modules/common/item_syntax.h"
#include "modules/common/tally.h"
#include "modules/inspect/mlp.h"

namespace batchplane {
namespace {

constexpr KernelSource kClassifySource{
#include "modules/inspect/classify.cl.h"
    ,
#include "modules/inspect/classify.ptx.h"
};

using inspect::Mlp;

std::vector<uint32_t> widths_of(const Args& args) {
  std::vector<uint32_t> widths;
  const List& list = args.list("random");
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string where = args.where() + ".random[" + std::to_string(i) + "]";
    widths.push_back(static_cast<uint32_t>(int_value(list[i], 1, Mlp::kMaxWidth, where)));
  }
  if (list.size() == 1 || list.size() > Mlp::kMaxLayers + 1) {
    throw ConfigError(
        "expected the widths of layers", args.where() + ".random",
        "from 2 to " + std::to_string(Mlp::kMaxLayers + 1) + " of them, such as [256, 128, 8]");
  }
  return widths;
}

// The weights and the scratch memory that a worker needs with them.
class Classifier final : public KernelTable {
 public:
  explicit Classifier(Mlp weights) : mlp_(std::move(weights)), scratch_(mlp_.n_scratch_floats()) {}

  [[nodiscard]] const Mlp& mlp() const { return mlp_; }
  void classify(const inspect::Text* texts, uint32_t n, inspect::Choice* choices) const noexcept {
    mlp_.classify(texts, n, scratch_.data(), choices);
  }
  [[nodiscard]] std::vector<uint32_t> words() const override { return mlp_.words(); }
  [[nodiscard]] uint32_t most_input_bytes() const override { return mlp_.n_inputs(); }

 private:
  const Mlp mlp_;
  mutable std::vector<float> scratch_;
};
using ClassifierPtr = std::shared_ptr<Classifier>;

class Classify final : public Module, public Kernel {
 public:
  explicit Classify(const Args& args)
      : where_(args.where()),
        widths_(widths_of(args)),
        weights_(args.string("weights")),
        takes_frame_(args.string("scan") == "frame"),
        sets_mark_(args.flag("mark")),
        live_(std::make_unique<ClassifierPtr>(), std::make_unique<ClassifierPtr>(),
              args.env().quiescence) {
    if (weights_.empty() == widths_.empty()) {
      throw ConfigError("the weights come from nowhere, or from two places", where_,
                        "give weights: FILE; or random: [256, 128, 8], for load and tests");
    }
    replace(weights_);
  }

  // New weights may have fewer classes than the old ones, but not more.
  uint32_t link(uint32_t connected) override {
    n_gates_ = std::max(connected, live_.current()->mlp().n_classes());
    counts_ = std::make_unique<Tally[]>(n_gates_);
    return n_gates_;
  }

  void classify(Context& ctx, Batch& batch) noexcept {
    inspect::Text texts[exec::kMaxBatchPkts];
    inspect::Choice choices[exec::kMaxBatchPkts];
    for (uint32_t i = 0; i < batch.size_pkts; ++i) texts[i] = text_of(*batch[i]);
    live_.read()->classify(texts, batch.size_pkts, choices);
    use(ctx, batch, choices);
  }

  Kernel* kernel() override { return this; }
  [[nodiscard]] KernelSource source() const override { return kClassifySource; }
  [[nodiscard]] const char* entry() const override { return "classify"; }
  [[nodiscard]] uint32_t result_bytes() const override { return sizeof(inspect::Choice); }
  // As in classify.cl.
  [[nodiscard]] uint32_t lanes() const override { return 128; }
  [[nodiscard]] uint32_t group_inputs() const override { return 8; }
  [[nodiscard]] Input input_of(Packet& pkt) const noexcept override {
    const inspect::Text text = text_of(pkt);
    return {text.data, text.len_bytes};
  }
  [[nodiscard]] KernelTable* table() noexcept override { return live_.read().get(); }
  void compute(const KernelTable* table, const Input* inputs, uint32_t n,
               uint8_t* results) noexcept override {
    const auto& classifier = static_cast<const Classifier&>(*table);
    inspect::Text texts[exec::kMaxBatchPkts];
    for (uint32_t at = 0; at < n; at += exec::kMaxBatchPkts) {
      const uint32_t n_texts = std::min(exec::kMaxBatchPkts, n - at);
      for (uint32_t i = 0; i < n_texts; ++i) {
        texts[i] = {inputs[at + i].data(), static_cast<uint32_t>(inputs[at + i].size())};
      }
      classifier.classify(texts, n_texts, reinterpret_cast<inspect::Choice*>(results) + at);
    }
  }
  void apply(KernelTable* table, Context& ctx, Batch& batch,
             const uint8_t* results) noexcept override {
    const auto& classifier = static_cast<const Classifier&>(*table);
    inspect::Choice choices[exec::kMaxBatchPkts];
    for (uint32_t i = 0; i < batch.size_pkts; ++i) {
      choices[i] = reinterpret_cast<const inspect::Choice*>(results)[i];
      if (choices[i].chosen < classifier.mlp().n_classes()) [[likely]]
        continue;
      const inspect::Text text =
          text_of(*batch[i]);  // a class read back from a device may be anything
      classifier.classify(&text, 1, &choices[i]);
    }
    use(ctx, batch, choices);
  }

  Value command(const std::string& verb, const Value& args) override {
    if (verb == "reload" && !weights_.empty()) {
      replace(weights_);
      return show();
    }
    if (verb != "replace") return Module::command(verb, args);
    check_keys(args, {"weights"}, "replace");
    if (!args["weights"].is_string()) {
      throw ConfigError("expected a file", "replace.weights", "give weights: FILE");
    }
    replace(args["weights"].as_string());
    weights_ = args["weights"].as_string();
    return show();
  }
  [[nodiscard]] Value show() const override {
    const Mlp& mlp = live_.current()->mlp();
    List classes;
    for (uint32_t i = 0; i < mlp.n_classes() && counts_ != nullptr; ++i) {
      classes.emplace_back(counts_[i].value());
    }
    return Dict{{"inputs", mlp.n_inputs()},
                {"classes", mlp.n_classes()},
                {"weights", mlp.n_weights()},
                {"pkts_of_class", classes}};
  }
  [[nodiscard]] Dict saved_params() const override {
    if (weights_.empty()) return {};
    return {{"weights", weights_}, {"random", List{}}};
  }
  void adopt(Module& old) noexcept override {
    auto& other = static_cast<Classify&>(old);
    for (uint32_t i = 0; i < std::min(n_gates_, other.n_gates_); ++i) {
      counts_[i].set(other.counts_[i].value());
    }
  }

 private:
  [[nodiscard]] inspect::Text text_of(Packet& pkt) const noexcept {
    uint8_t proto = 0;
    return inspect::text_of(pkt, takes_frame_, proto);
  }
  void use(Context& ctx, Batch& batch, const inspect::Choice* choices) noexcept {
    for (uint32_t i = 0; i < batch.size_pkts; ++i) {
      const uint32_t chosen = choices[i].chosen;
      ctx.gates[i] = static_cast<GateIndex>(chosen);
      counts_[chosen].add(1);
      if (sets_mark_) batch[i]->set_mark(chosen);
    }
  }
  void replace(const std::string& weights) {
    Mlp mlp = weights.empty() ? Mlp::random(widths_) : Mlp::from_file(weights, where_);
    if (n_gates_ != 0 && mlp.n_classes() > n_gates_) {
      throw ConfigError("there are more classes than before", where_,
                        "at most " + std::to_string(n_gates_) + "; apply a pipeline instead");
    }
    const auto next = std::make_shared<Classifier>(std::move(mlp));
    live_.replace(std::make_unique<ClassifierPtr>(next), std::make_unique<ClassifierPtr>(next));
  }

  const std::string where_;
  const std::vector<uint32_t> widths_;
  std::string weights_;
  const bool takes_frame_;
  const bool sets_mark_;
  uint32_t n_gates_ = 0;  // number of linked gates
  std::unique_ptr<Tally[]> counts_;
  LiveTable<ClassifierPtr> live_;
};

const Register<Classify> kClassify{{
    .kind = "classify",
    .state = StateOf::kShared,
    .help = "Sends each packet to the gate of the class that a multi-layer perceptron puts it in.",
    .params = {{.name = "weights",
                .type = ParamType::kString,
                .default_value = "",
                .help =
                    "file of numpy.savez with w0, b0, w1, b1, ..: layer i has a row in w<i> for "
                    "each input; the inputs of w0 are bytes over 255"},
               {.name = "random",
                .type = ParamType::kList,
                .default_value = List{},
                .help = "widths of layers with random weights, such as [256, 128, 8]: for load and "
                        "tests"},
               {.name = "mark",
                .type = ParamType::kBool,
                .default_value = false,
                .help = "make the class the packet's mark"},
               {.name = "scan",
                .type = ParamType::kString,
                .default_value = "frame",
                .help = "which bytes: all from the IP header on, or what the transport carries",
                .choices = {"frame", "payload"}}},
    .notes = "Outputs that are negative become 0 in all layers but the last, whose highest one is "
             "the class. Four packets share each reading of the weights. Live commands: replace "
             "{weights}, reload (reads the file again).",
    .can_offload = true,
}};

}  // namespace
}  // namespace batchplane

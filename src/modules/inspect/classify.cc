// SPDX-License-Identifier: BSD-3-Clause
// classify.cc - sends packets to gates by what a multi-layer perceptron takes them for.
//
// in: 1   out: a gate for each class, up to 4096   state: the weights, replaced live; packets by class
#include "core/module/live_table.h"
#include "core/module/register.h"
#include "modules/common/item_syntax.h"
#include "modules/common/tally.h"
#include "modules/inspect/mlp.h"

namespace batchplane {
namespace {

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

// The weights, and what a worker needs beside them.
struct Classifier {
  std::shared_ptr<const Mlp> mlp;
  std::shared_ptr<std::vector<float>> scratch;
};

class Classify final : public Module {
 public:
  explicit Classify(const Args& args)
      : where_(args.where()),
        widths_(widths_of(args)),
        weights_(args.string("weights")),
        takes_frame_(args.string("scan") == "frame"),
        sets_mark_(args.flag("mark")),
        live_(std::make_unique<Classifier>(), std::make_unique<Classifier>(),
              args.env().quiescence) {
    if (weights_.empty() == widths_.empty()) {
      throw ConfigError("the weights come from nowhere, or from two places", where_,
                        "give weights: FILE; or random: [256, 128, 8], for load and tests");
    }
    replace(weights_);
  }

  // Classes may become fewer, when weights are replaced, and not more.
  uint32_t link(uint32_t connected) override {
    n_gates_ = std::max(connected, live_.current().mlp->n_classes());
    counts_ = std::make_unique<Tally[]>(n_gates_);
    return n_gates_;
  }

  void classify(Context& ctx, Batch& batch) noexcept {
    const Classifier& classifier = live_.read();
    const uint32_t n = batch.size_pkts;
    inspect::Text texts[exec::kMaxBatchPkts];
    uint32_t classes[exec::kMaxBatchPkts];
    for (uint32_t i = 0; i < n; ++i) {
      uint8_t proto = 0;
      texts[i] = inspect::text_of(*batch[i], takes_frame_, proto);
    }
    classifier.mlp->classify(texts, n, classifier.scratch->data(), classes);
    for (uint32_t i = 0; i < n; ++i) {
      ctx.gates[i] = static_cast<GateIndex>(classes[i]);
      counts_[classes[i]].add(1);
      if (sets_mark_) batch[i]->set_mark(classes[i]);
    }
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
    const Mlp& mlp = *live_.current().mlp;
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
  void replace(const std::string& weights) {
    auto mlp = std::make_shared<const Mlp>(weights.empty() ? Mlp::random(widths_)
                                                           : Mlp::from_file(weights, where_));
    if (n_gates_ != 0 && mlp->n_classes() > n_gates_) {
      throw ConfigError("there are more classes than before", where_,
                        "at most " + std::to_string(n_gates_) + "; apply a pipeline instead");
    }
    const Classifier next{mlp, std::make_shared<std::vector<float>>(mlp->n_scratch_floats())};
    live_.replace(std::make_unique<Classifier>(next), std::make_unique<Classifier>(next));
  }

  const std::string where_;
  const std::vector<uint32_t> widths_;
  std::string weights_;
  const bool takes_frame_;
  const bool sets_mark_;
  uint32_t n_gates_ = 0;  // as linked
  std::unique_ptr<Tally[]> counts_;
  LiveTable<Classifier> live_;
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

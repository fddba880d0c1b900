// SPDX-License-Identifier: BSD-3-Clause
// controllers.cc - creates a controller from its name.
#include "slo/controllers.h"

#include <charconv>

#include "base/error.h"
#include "slo/model/without_weights.h"
#include "slo/optimal/optimal.h"
#include "slo/optimal/wfq.h"
#include "slo/papers/controllers.h"

namespace batchplane::slo {
namespace {

struct Entry {
  const char* name;
  std::unique_ptr<Controller> (*make)(const Model&, const Settings&);
  bool sets_weights = false;
};

// One line per controller, by name.
constexpr Entry kControllers[] = {
    {"null", [](const Model& model,
                const Settings& settings) { return make_fixed("null", model, settings, 0); }},
    {"max",
     [](const Model& model, const Settings& settings) {
       return make_fixed("max", model, settings, model.batch_limit_pkts);
     }},
    {"onoff", make_onoff},
    {"feasdir", make_feasdir},
    {"full", [](const Model& model,
                const Settings& settings) { return make_full("full", model, settings, {}); }},
    {"full+age",
     [](const Model& model, const Settings& settings) {
       return make_full("full+age", model, settings, {.has_age_limits = true});
     }},
    {"full(original)",
     [](const Model& model, const Settings& settings) {
       return make_full("full(original)", model, settings, {.is_original = true});
     }},
    {"primal(static)",
     [](const Model& model, const Settings& settings) {
       return make_primal("primal(static)", model, settings, BudgetStep::kStatic);
     }},
    {"primal(fixstep)",
     [](const Model& model, const Settings& settings) {
       return make_primal("primal(fixstep)", model, settings, BudgetStep::kFixed);
     }},
    {"primal(diminishing)",
     [](const Model& model, const Settings& settings) {
       return make_primal("primal(diminishing)", model, settings, BudgetStep::kDiminishing);
     }},
    {"optimal", make_optimal},
    {"nfvnice", make_nfvnice, true},
    {"wfq", make_wfq, true},
};

std::string names_as_text() {
  std::string text;
  for (const std::string& name : controller_names()) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// "fixed(8)" -> 8.
bool parse_fixed(const std::string& text, uint32_t& trigger_pkts) {
  constexpr std::string_view kPrefix = "fixed(";
  if (!text.starts_with(kPrefix) || !text.ends_with(')')) return false;
  const char* const begin = text.data() + kPrefix.size();
  const char* const end = text.data() + text.size() - 1;
  const auto [stop, error] = std::from_chars(begin, end, trigger_pkts);
  return error == std::errc() && stop == end;
}

}  // namespace

std::vector<std::string> controller_names() {
  std::vector<std::string> names;
  for (const Entry& entry : kControllers) names.emplace_back(entry.name);
  names.emplace_back("fixed(k)");
  return names;
}

std::unique_ptr<Controller> make_controller(const std::string& text, const Model& model,
                                            const Settings& settings) {
  for (const Entry& entry : kControllers) {
    if (text != entry.name) continue;
    std::unique_ptr<Controller> controller = entry.make(model, settings);
    return entry.sets_weights ? std::move(controller)
                              : without_weights(std::move(controller), model);
  }
  uint32_t trigger_pkts = 0;
  if (!parse_fixed(text, trigger_pkts)) {
    throw ConfigError("no controller '" + text + "'", "controller", "one of " + names_as_text());
  }
  if (trigger_pkts > model.batch_limit_pkts) {
    throw ConfigError(
        "trigger " + std::to_string(trigger_pkts) + " is larger than the batch size " +
            std::to_string(model.batch_limit_pkts),
        "controller", "fixed(0) to fixed(" + std::to_string(model.batch_limit_pkts) + ")");
  }
  return without_weights(make_fixed(text, model, settings, trigger_pkts), model);
}

}  // namespace batchplane::slo

// SPDX-License-Identifier: BSD-3-Clause
#include "controller.h"

#include <nanobind/stl/string.h>

#include <memory>
#include <string>

#include "base/error.h"
#include "exec/ring_size.h"
#include "model.h"
#include "slo/controllers.h"
#include "slo/model/cost_pool.h"
#include "slo/model/settings.h"
#include "telemetry/explanation.h"
#include "values.h"

namespace batchplane::native {
namespace {

// Columns that a period leaves out are zeroes; there are no other rows than the model's.
template <class Row>
void fit(std::vector<Row>& rows, size_t size, const char* section) {
  if (rows.size() > size) {
    throw ConfigError(
        "has " + std::to_string(rows.size()) + " rows, the model has " + std::to_string(size),
        section);
  }
  rows.resize(size);
}

class PyController {
 public:
  PyController(const nb::dict& model, const std::string& name, const nb::dict& settings)
      : PyController(to_value(model), name, to_value(settings)) {}

  nb::dict step(const nb::dict& given) {
    exec::PeriodSnapshot period = period_from_python(given);
    fit(period.modules, model_.modules.size(), "modules");
    fit(period.flows, model_.flows.size(), "flows");
    fit(period.tasks, model_.tasks.size(), "tasks");
    fit(period.legs, model_.legs.all.size(), "legs");
    if (given.contains("inputs")) fit(period.inputs, model_.inputs.size(), "inputs");
    // Who measures costs elsewhere says them; else they are the model's, as samples correct them.
    if (!nb::cast<nb::dict>(given["modules"]).contains("cost_per_batch_ns")) costs_.update(period);
    return decision_to_python(controller_->step(period));
  }
  nb::object explain() {
    return to_python(telemetry::explanation_value(controller_->explain(), model_));
  }

 private:
  PyController(const Value& model, const std::string& name, const Value& settings)
      : model_(model_from(model)),
        costs_(costs_from(model)),
        controller_(slo::make_controller(name, model_, slo::settings_from(settings))) {}

  exec::ControlModel model_;
  slo::CostEstimator costs_;
  std::unique_ptr<slo::Controller> controller_;  // looks into the model
};

}  // namespace

void add_controller(nb::module_& m) {
  nb::class_<PyController>(m, "Controller")
      .def(nb::init<const nb::dict&, const std::string&, const nb::dict&>(), nb::arg("model"),
           nb::arg("name"), nb::arg("settings"))
      .def("step", &PyController::step, nb::arg("period"))
      .def("explain", &PyController::explain);
  m.attr("DEFAULT_RING_PKTS") = exec::kDefaultRingPkts;
}

}  // namespace batchplane::native

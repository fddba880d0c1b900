// SPDX-License-Identifier: BSD-3-Clause
#include "plan.h"

#include <nanobind/stl/string.h>

#include "sim/planner.h"
#include "slo/model/settings.h"
#include "values.h"

namespace batchplane::native {
namespace {

// One specification, read once; each plan stands for itself.
class PyPlanner {
 public:
  explicit PyPlanner(nb::dict spec) : spec_(spec_from_python(spec)) {}

  // request: controller, settings, slo_ns {flow: ns}, merged {module, gate}; each may be missing.
  nb::object plan(nb::dict given) const {
    const Value value = to_value(given);
    sim::PlanRequest request;
    if (value.has("controller")) request.controller = value["controller"].as_string();
    request.settings = slo::settings_from(value["settings"]);
    if (value.has("slo_ns")) {
      for (const auto& [flow, ns] : value["slo_ns"].as_dict()) {
        request.slo_ns[flow] = static_cast<uint64_t>(ns.as_int());
      }
    }
    if (!value["merged"].is_null()) {
      request.merged = {value["merged"]["module"].as_string(),
                        static_cast<uint32_t>(value["merged"]["gate"].as_int())};
    }
    Value made;
    {
      const nb::gil_scoped_release unlocked;
      made = sim::plan(spec_, request);
    }
    return to_python(made);
  }

 private:
  sim::Spec spec_;
};

}  // namespace

void add_plan(nb::module_& m) {
  nb::class_<PyPlanner>(m, "Planner")
      .def(nb::init<nb::dict>(), nb::arg("spec"))
      .def("plan", &PyPlanner::plan, nb::arg("request") = nb::dict());
}

}  // namespace batchplane::native

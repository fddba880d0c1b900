// SPDX-License-Identifier: BSD-3-Clause
// check.cc - mistakes of a canonical pipeline, as (key, message, fix).
#include "check.h"

#include <nanobind/stl/string.h>

#include "spec/check.h"
#include "spec/config_json.h"
#include "spec/doors.h"
#include "spec/parts.h"
#include "values.h"

namespace batchplane::native {
namespace {

nb::tuple told(const ConfigError& error) {
  return nb::make_tuple(error.where(), std::string(error.what()), error.fix());
}

// Errors and warnings. `schema`: what `batchplaned --modules` prints; empty where it is not known.
nb::tuple check(const nb::dict& pipeline, const nb::dict& schema) {
  std::vector<ConfigError> errors;
  PipelineSpec spec = spec_from_value(to_value(pipeline), errors);
  spec.source_map.clear();
  const Kinds kinds = kinds_from_value(to_value(schema));
  Mistakes mistakes{errors, spec.source_map};
  if (errors.empty()) {
    add_parts(spec, kinds);
    add_doors(spec, kinds);
    check_pipeline(spec, kinds, mistakes);
  }
  nb::list noted;
  for (const ConfigError& error : errors) noted.append(told(error));
  nb::list warnings;
  for (const ConfigError& warning : warnings_of(spec, kinds)) warnings.append(told(warning));
  return nb::make_tuple(noted, warnings);
}

}  // namespace

void add_check(nb::module_& m) {
  m.def("check_pipeline", &check, nb::arg("pipeline"), nb::arg("schema"));
}

}  // namespace batchplane::native

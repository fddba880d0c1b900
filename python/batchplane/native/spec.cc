// SPDX-License-Identifier: BSD-3-Clause
// spec.cc - a simulation's specification, with the columns of its traces past plain values:
// those take 64 bytes a number, and a capture has millions.
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include "base/error.h"
#include "values.h"

namespace batchplane::native {
namespace {

template <class T>
using Column = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// False where it is no array of these numbers. As they lie there: what is negative is found later.
template <class T, class To>
bool copy_column(nb::handle from, std::vector<To>& to) {
  static_assert(sizeof(T) == sizeof(To));
  Column<T> column;
  if (!nb::ndarray_check(from) || !nb::try_cast(from, column, false)) return false;
  const T* const begin = column.data();
  to.assign(begin, begin + column.shape(0));
  return true;
}

bool copy_trace(const nb::dict& columns, sim::TraceArrivals& trace) {
  for (const char* name : {"time_ns", "flow", "size_bytes"}) {
    if (!columns.contains(name)) return false;
  }
  return copy_column<int64_t>(columns["time_ns"], trace.time_ns) &&
         copy_column<int32_t>(columns["flow"], trace.flow) &&
         copy_column<int32_t>(columns["size_bytes"], trace.size_bytes);
}

}  // namespace

sim::Spec spec_from_python(nb::dict spec) {
  sim::Traces traces;
  if (!spec.contains("simulation") || !nb::isinstance<nb::dict>(spec["simulation"])) {
    return sim::parse_spec(to_value(spec));
  }
  const nb::dict simulation(spec["simulation"]);
  if (!simulation.contains("traces") || !nb::isinstance<nb::dict>(simulation["traces"])) {
    return sim::parse_spec(to_value(spec));
  }
  nb::dict others;
  for (const auto& [name, columns] : nb::cast<nb::dict>(simulation["traces"])) {
    sim::TraceArrivals trace;
    if (nb::isinstance<nb::dict>(columns) && copy_trace(nb::cast<nb::dict>(columns), trace)) {
      traces[nb::cast<std::string>(nb::str(name))] = std::move(trace);
    } else {
      others[name] = columns;
    }
  }
  // The caller's own stays as it is.
  nb::dict rest;
  nb::dict whole;
  for (const auto& [key, value] : simulation) rest[key] = value;
  for (const auto& [key, value] : spec) whole[key] = value;
  rest["traces"] = others;
  whole["simulation"] = rest;
  return sim::parse_spec(to_value(whole), std::move(traces));
}

}  // namespace batchplane::native

// SPDX-License-Identifier: BSD-3-Clause
// flood.h - senders that load the kernel's own packet scheduler.
#pragma once

#include <nanobind/nanobind.h>

namespace batchplane::native {

// Adds udp_flood.
void add_flood(nanobind::module_& m);

}  // namespace batchplane::native

// SPDX-License-Identifier: BSD-3-Clause
// daemon.h - runs a daemon from its start to its last report.
#pragma once

#include "app/start/startup.h"

namespace batchplane::app {

// Blocks SIGTERM, SIGINT and SIGHUP in all threads: the daemon's loop reads them from a descriptor.
void block_signals();

// Opens the socket, prints `ready` and serves clients until told to stop; then stops traffic and reports.
// True when every packet was accounted for. Throws ConfigError when the socket cannot be opened.
bool serve(Startup& startup);

}  // namespace batchplane::app

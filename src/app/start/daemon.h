// SPDX-License-Identifier: BSD-3-Clause
// daemon.h - the life of a daemon between its start and its last report.
#pragma once

#include "app/start/startup.h"

namespace batchplane::app {

// Keeps SIGTERM, SIGINT and SIGHUP from threads: the daemon's loop reads them from a descriptor.
void block_signals();

// Opens the socket, says `ready` and serves clients until it is told to stop; then stops traffic
// and reports. True when every packet was accounted for. Throws ConfigError when the socket cannot
// be had.
bool serve(Startup& startup);

}  // namespace batchplane::app

// SPDX-License-Identifier: BSD-3-Clause
// doors.h - one queue or egress scheduler that several workers put packets into.
#pragma once

#include "spec/kinds.h"
#include "spec/pipeline_spec.h"

namespace batchplane {

// A task belongs to one worker, and what fills a queue is part of that task. So a queue that several
// workers fill gets a door for each of them but the first: a module NAME@WORKER of the same kind, into which
// that worker's edges lead and from which the queue's edges leave. Paths that name the queue go
// through the door that they reach. What has mistakes in it is left as it is.
void add_doors(PipelineSpec& spec, const Kinds& kinds);

// The pipeline as it was written.
[[nodiscard]] PipelineSpec without_doors(const PipelineSpec& spec);

}  // namespace batchplane

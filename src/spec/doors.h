// SPDX-License-Identifier: BSD-3-Clause
// doors.h - lets several workers put packets into one queue or egress scheduler.
#pragma once

#include "spec/kinds.h"
#include "spec/pipeline_spec.h"

namespace batchplane {

// A task belongs to one worker, and the node that fills a queue is part of that task. Therefore a queue that
// several workers fill gets a door for each of them except the first: a module NAME@WORKER of the same kind,
// into which that worker's edges lead and from which the queue's edges leave. Paths that name the queue go
// through the door that they reach. Invalid parts are left unchanged.
void add_doors(PipelineSpec& spec, const Kinds& kinds);

// The pipeline without doors, as it was written.
[[nodiscard]] PipelineSpec without_doors(const PipelineSpec& spec);

}  // namespace batchplane

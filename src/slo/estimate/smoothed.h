// SPDX-License-Identifier: BSD-3-Clause
// smoothed.h - a value followed over periods.
#pragma once

namespace batchplane::slo {

// A smoothed count: it jumps to a new value that differs by more than chance, and follows slowly
// otherwise.
struct Smoothed {
  double value = 0;
  bool is_known = false;
  // sigmas: how many standard deviations still count as chance.
  void follow(double measured, double events, double sigmas = 3);
};

}  // namespace batchplane::slo

// A report of a step, for tests of what shows and records it.
#pragma once

#include "easydel/train/report.h"

namespace easydel::test {

inline train::StepReport report(int64_t step, double loss) {
  train::StepReport out;
  out.step = step, out.steps = 8, out.epoch = static_cast<double>(step) / 4;
  out.loss = out.mean_loss = loss, out.mean_steps = 10, out.learning_rate = 1e-3, out.gradient_norm = 2.5;
  out.tokens_per_second = 12345, out.seconds_left = 75;
  out.teraflops = 0.25, out.share_of_peak = 0.5;
  out.metrics = {{"entropy", 1.5}};
  out.logged = true;
  return out;
}

}  // namespace easydel::test

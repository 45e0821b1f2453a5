// The learning rate of each step: transformers' formulas (transformers/optimization.py). No torch.
#pragma once

#include <cstdint>
#include <string>

namespace easydel::train {

struct Schedule {
  enum class Shape : uint8_t {
    constant,
    linear,
    cosine,
    cosine_warmup,  // the first step is not lost: transformers' cosine_warmup_with_min_lr
    cosine_with_restarts,
    polynomial,
    inverse_sqrt,
    warmup_stable_decay
  };
  enum class Curve : uint8_t { linear, cosine, one_minus_sqrt };

  Shape shape = Shape::constant;
  double rate = 0;                 // at its highest
  double rate_end = 0;             // linear, cosine, polynomial, warmup_stable_decay
  int64_t warmup = 0;              // steps in which the rate rises: k / warmup, k from 0
  double warmup_from = -1;         // cosine_warmup: the first step's share of the rate; -1: 1 / warmup
  int64_t steps = 1;               // of the run
  double cycles = 0.5;             // cosine: waves; cosine_with_restarts: whole ones
  double power = 1;                // polynomial
  int64_t timescale = 0;           // inverse_sqrt; 0: warmup, or 10000 without one
  int64_t decay = 0, stable = -1;  // warmup_stable_decay; stable -1: the remaining steps
  Curve warmup_curve = Curve::linear, decay_curve = Curve::cosine;

  double at(int64_t step) const;  // steps count from 0
};

}  // namespace easydel::train

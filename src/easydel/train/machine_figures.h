// What the machine can do and what this process takes of it, for reports.
#pragma once

#include <optional>

#include "easydel/models/model.h"

namespace easydel::train {

// The most that the processor computes, in TFLOP/s; takes a moment. Nothing: the model is on another device.
std::optional<double> measured_peak(const models::Model& model);

double peak_memory_bytes();  // of this process so far

}  // namespace easydel::train

// The implementation of elarge::Session on torch.
#pragma once

#include <memory>
#include <optional>

#include "easydel/data/run_data.h"
#include "easydel/elarge/core.h"
#include "easydel/nn/quantization.h"

namespace easydel::elarge {

// Quantization for loading models; UserError as QuantizationConfig::weight_format.
std::optional<nn::Quantization> quantization_of(const QuantizationConfig& config);

// As Core::merge.
void merge_core(const MergeRequest& request);

// As Core::run_data.
data::RunData run_data(const Config& config);

// As Core::check.
void check_session(const Config& config, int64_t ranks, Purpose purpose);
std::unique_ptr<Session> open_session(const Config& config, bool trains);

}  // namespace easydel::elarge

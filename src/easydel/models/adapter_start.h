// Starts of A and B that take a part of the base's weight into the adapter: PiSSA (arXiv:2404.02948), OLoRA
// (arXiv:2406.01775) and LoftQ (arXiv:2310.08659). Formulas are those of PEFT 0.21.2.
#pragma once

#include <string>

#include "easydel/models/lora_config.h"
#include "easydel/tensor/torch.h"

namespace easydel::models {

struct LowRankStart {
  Tensor a, b;  // fp32 [r, in] and [out, r]
  Tensor base;  // fp32 [out, in]: what stays of the weight
};

// `weight` [out, in] of the layer `module`, in any floating dtype; config.init_lora_weights changes the base. It
// depends on nothing else, so that the base of a saved adapter is found again: the random numbers of pissa_niter_n are
// a function of `module` alone. Rows of A and columns of B above the weight's smaller side are zero.
LowRankStart low_rank_start(const LoraConfig& config, const std::string& module, const Tensor& weight);

}  // namespace easydel::models

// What Granite's families share: multipliers, and experts that are chosen before their softmax.
#pragma once

#include "easydel/models/decoder_keys.h"
#include "easydel/nn/moe.h"

namespace easydel::models {

// embedding_multiplier, residual_multiplier, logits_scaling and attention_multiplier; attention_bias.
void read_granite(const ConfigReader& config, DecoderSpec& spec);

// num_local_experts of `inner` units under "block_sparse_moe".
nn::MoeSpec read_granite_experts(const ConfigReader& config, const DecoderSpec& spec, int64_t inner);

// The spec's mlp under "shared_mlp", with shared_intermediate_size units, `otherwise` if that is absent; it is applied
// to every token. 0: none.
void read_granite_shared(const ConfigReader& config, DecoderSpec& spec, int64_t otherwise);

// Sets the feed of every layer of `built`: the experts in parallel with the mlp of `spec`.
void set_granite_experts(DecoderSpec& built, const std::shared_ptr<const DecoderSpec>& spec, const nn::MoeSpec& moe);

}  // namespace easydel::models

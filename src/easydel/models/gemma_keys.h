// The keys of config.json that gemma's dense families share.
#pragma once

#include "easydel/models/decoder_keys.h"

namespace easydel::models {

// Norms that multiply by 1 + weight, scaled embeddings, attention_bias.
void read_gemma(const ConfigReader& config, DecoderSpec& spec);

// Gemma 2 and later: a configured scale of scores and a norm before each part. `norm_after`: one after it as well.
DecoderSpec read_gemma2(const ConfigReader& config, int64_t vocabulary, int64_t max_positions, bool norm_after,
                        const RopeDefaults& rope = {});

// UserError for use_bidirectional_attention: its meaning in these families depends on padding and attention backend.
void refuse_both_sides(const ConfigReader& config);
// Windows in every second layer, soft-caps of scores and logits. UserError as refuse_both_sides.
void read_gemma2_windows_and_caps(const ConfigReader& config, DecoderSpec& spec);

}  // namespace easydel::models

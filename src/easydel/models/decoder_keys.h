// The keys of config.json that Llama-shaped families share.
#pragma once

#include "easydel/models/config_reader.h"
#include "easydel/models/decoder.h"

namespace easydel::models {

// What a family assumes where its config.json says nothing; 0: derived (kv_heads from heads, head_dim from hidden).
struct DecoderDefaults {
  int64_t vocabulary = 0, hidden = 0, intermediate = 0, layers = 0, heads = 0, kv_heads = 0, head_dim = 0;
  int64_t max_positions = 0;
};

// Sizes, norms, activation, rope, ties, dropout and initial range; no window, every bias off.
DecoderSpec read_decoder(const ConfigReader& config, const DecoderDefaults& defaults);

// sliding_window; 4096 where it is absent, 0 (none) where it is null.
int64_t read_window(const ConfigReader& config);

// Windows by layer_types, else by use_sliding_window and max_window_layers: the qwen families' rule.
void read_layer_windows(const ConfigReader& config, DecoderSpec& spec);

}  // namespace easydel::models

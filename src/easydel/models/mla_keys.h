// The keys of config.json that families with multi-head latent attention (MLA) share.
#pragma once

#include "easydel/models/config_reader.h"
#include "easydel/models/decoder_keys.h"
#include "easydel/nn/mla.h"

namespace easydel::models {

// A family's defaults.
struct MlaDefaults {
  int64_t q_rank = 0, kv_rank = 512, plain_dim = 128, rope_dim = 64, v_dim = 128;
  double theta = 10000.0;
  bool interleaved = true;  // rotary pairs are adjacent dimensions
};

// As read_decoder, for families whose attention is MLA in every layer: head_dim is the rotated part. `intermediate`:
// the mlps' size, if the family has another key for it; 0: intermediate_size.
DecoderSpec read_latent_decoder(const ConfigReader& config, DecoderDefaults defaults, int64_t intermediate = 0);

// q_lora_rank, kv_lora_rank, qk_nope_head_dim, qk_rope_head_dim, v_head_dim, attention_bias and rotary positions, whose
// yarn scaling also increases the scale of the scores. Sizes and deviations are `spec`'s.
nn::MlaSpec read_mla(const ConfigReader& config, const DecoderSpec& spec, const MlaDefaults& defaults);

// index_n_heads, index_head_dim and index_topk; `interleaved`: its rotary pairs are adjacent
// dimensions.
void read_indexer(const ConfigReader& config, nn::MlaSpec& mla, int64_t heads, int64_t dim, int64_t top,
                  bool interleaved);

// Sets every layer's mixer. shares_index: for each layer, whether it reuses the keys chosen by the last layer before it
// that has an indexer; empty: none does.
void set_mla(DecoderSpec& spec, const nn::MlaSpec& mla, const std::vector<bool>& shares_index = {});

}  // namespace easydel::models

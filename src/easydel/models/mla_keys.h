// The keys of config.json that families with compressed attention share.
#pragma once

#include "easydel/models/config_reader.h"
#include "easydel/models/decoder_keys.h"
#include "easydel/nn/mla.h"

namespace easydel::models {

// What a family assumes where its config.json says nothing.
struct MlaDefaults {
  int64_t q_rank = 0, kv_rank = 512, plain_dim = 128, rope_dim = 64, v_dim = 128;
  double theta = 10000.0;
  bool interleaved = true;  // rotary pairs are neighbours
};

// As read_decoder, for families whose attention is all of this kind: head_dim is what turns. `intermediate`: of the
// mlps, where the family calls it otherwise; 0: intermediate_size.
DecoderSpec read_latent_decoder(const ConfigReader& config, DecoderDefaults defaults, int64_t intermediate = 0);

// q_lora_rank, kv_lora_rank, qk_nope_head_dim, qk_rope_head_dim, v_head_dim, attention_bias and rotary positions, whose
// yarn scaling grows the scores' scale as well. Sizes and deviations are `spec`'s.
nn::MlaSpec read_mla(const ConfigReader& config, const DecoderSpec& spec, const MlaDefaults& defaults);

// index_n_heads, index_head_dim and index_topk; `interleaved`: its rotary pairs are neighbours.
void read_indexer(const ConfigReader& config, nn::MlaSpec& mla, int64_t heads, int64_t dim, int64_t top,
                  bool interleaved);

// Every layer's mixer. shares_index: of each layer, whether it takes the choice of the last one before it that has an
// indexer; empty: none does.
void set_mla(DecoderSpec& spec, const nn::MlaSpec& mla, const std::vector<bool>& shares_index = {});

}  // namespace easydel::models

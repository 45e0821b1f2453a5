// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434): keys and values of a token are projected from one latent
// vector, which is all that the cache keeps. Decoding absorbs the projections: queries are projected to the latent
// space, and results from it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "easydel/nn/layer.h"
#include "easydel/nn/layers.h"

namespace easydel::nn {

struct MlaSpec {
  std::string name = "self_attn";
  int64_t size = 0, heads = 0;
  int64_t q_rank = 0;  // of the queries' latent vector; 0: queries are projected from the input
  int64_t kv_rank = 0;
  int64_t plain_dim = 0, rope_dim = 0, v_dim = 0;  // of a head: without and with rotary positions, values
  double scale = 1.0;
  double q_multiplier = 1.0, kv_multiplier = 1.0;  // of queries, and of the normed latent vector (longcat_flash)
  double norm_epsilon = 1e-6;
  bool bias = false;  // of the projections that read or write the residual stream
  std::shared_ptr<const ops::RopeSpec>
      rope;  // of rope_dim; null: no rotary positions. Shared, so that a pass computes the angles once
  double dropout = 0.0, deviation = 0.02, output_deviation = 0.02;
  int64_t cache_heads = 1, cache_head = 0;  // if several MLAs of a layer share its layer of the cache

  // The lightning indexer (DeepSeek-V3.2): a token sees the `index_top` earlier tokens that its index heads score best.
  int64_t index_heads = 0, index_dim = 0, index_top = 0;  // index_top 0: none
  int64_t index_source = -1;  // the layer whose choice this one uses instead of an indexer; -1: none
  std::shared_ptr<const ops::RopeSpec> index_rope;
};

// The token mixer of layer `layer`, with one layer of the cache.
std::unique_ptr<Layer> build_mla(const Scope& block, const MlaSpec& spec, int64_t layer);

}  // namespace easydel::nn

// Attention whose keys and values come from one short vector a token (DeepSeek-V2, arXiv 2405.04434). That vector is
// what the cache keeps; decoding multiplies queries and results by the weights that would make keys and values of it.
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
  int64_t q_rank = 0;  // of the queries' short vector; 0: queries come straight from the input
  int64_t kv_rank = 0;
  int64_t plain_dim = 0, rope_dim = 0, v_dim = 0;  // of a head: what does not turn, what turns, of its values
  double scale = 1.0;
  double q_multiplier = 1.0, kv_multiplier = 1.0;  // of queries, and of the normed short vector (longcat_flash)
  double norm_epsilon = 1e-6;
  bool bias = false;  // of the projections that read or write the residual stream
  std::shared_ptr<const ops::RopeSpec>
      rope;  // of rope_dim; null: nothing turns. Shared, so that a pass makes its angles once
  double dropout = 0.0, deviation = 0.02, output_deviation = 0.02;
  int64_t cache_heads = 1, cache_head = 0;  // where several of a layer share its layer of the cache

  // The lightning indexer (DeepSeek-V3.2): a token sees the `index_top` before it that its index heads score best.
  int64_t index_heads = 0, index_dim = 0, index_top = 0;  // index_top 0: there is none
  int64_t index_source = -1;  // the layer whose choice this one takes, and has no indexer; -1: it has its own
  std::shared_ptr<const ops::RopeSpec> index_rope;
};

// The part of layer number `layer`; it has one layer of the cache.
std::unique_ptr<Layer> build_mla(const Scope& block, const MlaSpec& spec, int64_t layer);

}  // namespace easydel::nn

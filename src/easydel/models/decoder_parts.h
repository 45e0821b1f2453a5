// The parts of a decoder's block as its spec says them, for blocks that a family builds itself.
#pragma once

#include <memory>

#include "easydel/models/decoder.h"

namespace easydel::models {

// Sizes of a layer: its own, else the spec's.
struct LayerSizes {
  int64_t heads, kv_heads, head_dim, v_dim, intermediate;
};
LayerSizes sizes_of(const DecoderSpec& spec, int64_t layer);

// `scope` is the part's own ("model.layers.3.self_attn"). The spec outlives what is built.
std::unique_ptr<nn::Layer> build_attention(const nn::Scope& scope, const DecoderSpec& spec, int64_t layer);
std::unique_ptr<nn::Layer> build_feed(const nn::Scope& scope, const DecoderSpec& spec, int64_t layer);
// `scope` is the block's ("model.layers.3").
std::unique_ptr<nn::Layer> build_block(const nn::Scope& scope, const DecoderSpec& spec, int64_t layer);

}  // namespace easydel::models

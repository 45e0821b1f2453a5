// Dense decoders as a record: embed, a stack of blocks, a last norm, a head. A family fills in a DecoderSpec; nothing
// here asks which family it is.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "easydel/models/model.h"
#include "easydel/nn/layers.h"
#include "easydel/nn/lm_head.h"
#include "easydel/nn/part.h"
#include "easydel/nn/run_layer.h"
#include "easydel/ops/rope.h"

namespace easydel::models {

// The names of the parts in a checkpoint. The defaults are most families'.
struct DecoderNames {
  std::string base = "model", embedding = "embed_tokens", positions = "wpe", layers = "layers", norm = "norm";
  std::string input_norm = "input_layernorm", post_norm = "post_attention_layernorm";
  std::string attention = "self_attn", mlp = "mlp", output = "o_proj", qkv = "c_attn", up = "up_proj", down = "down_proj";
  std::string head = "lm_head";
};

// What differs from layer to layer.
struct DecoderLayerSpec {
  int64_t window = 0;  // 0: sees everything before it
  double scale = 1.0;  // of attention scores
  nn::PartBuilder mixer;  // in place of attention; empty: attention as the spec says
  nn::PartBuilder feed;   // in place of the mlp; empty: the mlp as the spec says
  // The whole block, where it is built otherwise; empty: Block of decoder.cpp.
  std::function<std::unique_ptr<nn::Layer>(const nn::Scope& block, int64_t layer)> block;
};

struct DecoderSpec {
  DecoderNames names;
  int64_t vocabulary = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, intermediate = 0;
  int64_t max_positions = 0;               // as the configuration says; a limit only where positions are learned
  std::vector<DecoderLayerSpec> layers;
  nn::Norm::Options norm;
  bool qk_norm = false;                    // queries and keys are normalised per head before they turn
  bool qkv_bias = false, output_bias = false, mlp_bias = false;
  bool fused_qkv = false;                  // one weight gives q, k and v, in this order
  bool transposed = false;                 // the checkpoint holds the blocks' weights as [in, out]
  bool gated = true;                       // down(act(gate) * up), else down(act(up))
  bool parallel_residual = false;          // attention and mlp both read the block's input
  ops::Activation activation = ops::Activation::silu;
  std::optional<ops::RopeSpec> rope;
  bool learned_positions = false;
  int64_t padding = -1;                    // the embedding's row that learns nothing; -1: none
  bool tied = false;                       // the head reuses the embedding
  double attention_dropout = 0, residual_dropout = 0, embedding_dropout = 0;
  double deviation = 0.02;                 // of initial weights
  double output_deviation = 0.02;          // of the weights that write into the residual stream
};

std::unique_ptr<Model> build_decoder(DecoderSpec spec, nn::Building& building);

}  // namespace easydel::models

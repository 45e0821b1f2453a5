// Decoders as a record: embed, a stack of blocks, a last norm, a head. A family fills in a DecoderSpec; nothing here
// asks which family it is. An encoder is such a stack whose tokens attend in both directions.
//
// A member of DecoderNames, DecoderLayerSpec or DecoderSpec is set by at least two families (a test counts them). What
// one family alone needs lives in its file: as a layer of its own, as a class derived from DecoderAttention or Decoder
// (models/decoder_parts.h, models/decoder_model.h), or as an embedding or adapter of its own.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "easydel/models/model.h"
#include "easydel/nn/layers.h"
#include "easydel/nn/masked_head.h"
#include "easydel/nn/run_layer.h"
#include "easydel/ops/attention.h"
#include "easydel/ops/rope.h"

namespace easydel::models {

struct DecoderSpec;

// Names of the parts in a checkpoint. The defaults are those of most families. A norm exists if it has a name.
struct DecoderNames {
  std::string base = "model", embedding = "embed_tokens", layers = "layers";
  std::string embedding_norm = "", norm = "norm";  // after the embedding; after the stack
  // Of a block: before and after what mixes tokens, before and after what feeds each token forward.
  std::string before_mixer = "input_layernorm", after_mixer = "";
  std::string before_feed = "post_attention_layernorm", after_feed = "";
  std::string attention = "self_attn", q = "q_proj", k = "k_proj", v = "v_proj", qkv = "qkv_proj", output = "o_proj";
  std::string q_norm = "q_norm", k_norm = "k_norm";
  std::string mlp = "mlp";  // empty: blocks have no feed
  std::string gate = "gate_proj", up = "up_proj", gate_up = "", down = "down_proj";
  std::string head = "lm_head";
};

// How one weight holds queries, keys and values, if it holds all three.
enum class QkvLayout : uint8_t {
  separate,    // three weights
  sequential,  // all queries, all keys, all values
  grouped      // for each kv head: its queries, its key, its value
};

// What the norms of queries and keys cover.
enum class QkNorm : uint8_t {
  none,
  head,       // a head's dimensions, with one weight for all heads
  each_head,  // a head's dimensions, with a weight for each head: [heads, head_dim]
  whole       // the whole projection
};

// Norms queries or keys x [tokens, heads, head_dim].
class HeadNorm {
 public:
  virtual ~HeadNorm() = default;
  virtual Tensor operator()(const Tensor& x) const = 0;
};

// What a block's residual sums hold.
enum class Residual : uint8_t {
  input,       // x + part(norm(x))
  normed,      // norm(x) + part(norm(x))
  norm_of_sum  // norm(x + part(x)): the norm after a part takes the sum
};

// Queries grow with the position: times 1 + factor * log(1 + floor((position + shift) / length)). factor 0: they do
// not.
struct QueryScaling {
  double factor = 0.0;
  int64_t length = 1, shift = 0;
};

// Sizes of one layer. v_dim: of a head's values.
struct LayerSizes {
  int64_t heads = 0, kv_heads = 0, head_dim = 0, v_dim = 0, intermediate = 0;
};

// What differs from layer to layer.
struct DecoderLayerSpec {
  LayerSizes sizes;  // 0: the spec's; v_dim 0: head_dim
  // What is computed here: scale, window, chunk, softcap, slopes. Kind, v_dim, dropout and sinks are filled in by the
  // layer.
  ops::AttentionSpec attention;
  bool rotary = true;                         // rotary positions, if the spec has them; false: none (NoPE)
  std::shared_ptr<const ops::RopeSpec> rope;  // instead of the spec's
  QueryScaling query_scaling;
  bool sinks = false;      // a learned logit in addition to each row of scores
  nn::LayerBuilder mixer;  // instead of attention; empty: attention as the spec says
  nn::LayerBuilder feed;   // instead of the mlp; empty: the mlp as the spec says
  nn::LayerBuilder block;  // the whole block; empty: as the spec says
};

// Turns tokens into the rows that enter the stack.
class DecoderEmbedding {
 public:
  virtual ~DecoderEmbedding() = default;
  virtual Tensor operator()(const Inputs& inputs, nn::Pass& pass) const = 0;  // -> [tokens, hidden]
  // [vocabulary, width]. A tied head reads it, and every head is as wide.
  virtual nn::Parameter table() const = 0;
  // x [tokens, hidden] after the last norm -> [tokens, width], what enters the head.
  virtual Tensor leave(const Tensor& x, nn::Pass&) const { return x; }
};

// What a family puts between the embedding and the blocks, and between the blocks and the last norm. What travels from
// block to block may be wider than `hidden`: rows [tokens, anything].
class StackBoundary {
 public:
  virtual ~StackBoundary() = default;
  virtual Tensor enter(const Inputs& inputs, const Tensor& embedded, nn::Pass& pass) const = 0;
  virtual Tensor leave(const Tensor& x, nn::Pass& pass) const = 0;  // -> [tokens, hidden]
};

// Builds a part of layer `layer` from the model's spec, which outlives it. scope: as the functions of
// models/decoder_parts.h take it.
using SpecBuilder =
    std::function<std::unique_ptr<nn::Layer>(const nn::Scope& scope, const DecoderSpec& spec, int64_t layer)>;

struct DecoderSpec {
  DecoderNames names;
  int64_t vocabulary = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, intermediate = 0;
  int64_t max_positions = 0;  // as the configuration says; a limit only if positions are learned
  std::vector<DecoderLayerSpec> layers;
  nn::Norm::Options norm;                      // of blocks and of the stack
  std::optional<nn::Norm::Options> last_norm;  // of the stack, if it is not `norm`

  // Attention
  bool causal = true;  // false: tokens see all of their sequence, and windows reach to both sides
  QkvLayout qkv = QkvLayout::separate;
  bool qkv_bias = false, output_bias = false;
  QkNorm qk_norm = QkNorm::none;
  // Builds the norm of queries or keys of layer `layer` instead of the one that qk_norm describes; null: the layer has
  // none.
  std::function<std::unique_ptr<HeadNorm>(const nn::Scope& scope, const DecoderSpec& spec, int64_t heads,
                                          int64_t layer)>
      qk_norm_builder;
  bool qk_norm_after_rope = false;  // else before it
  bool attention_gate = false;      // a head's query is followed by a gate, whose sigmoid multiplies what it mixed
  double clip_qkv = 0.0;            // queries, keys and values are clamped to +-this; 0: not
  std::optional<ops::RopeSpec> rope;
  SpecBuilder attention_builder;  // of a class derived from DecoderAttention; empty: DecoderAttention itself

  // Feed-forward
  bool gated = true;  // down(act(gate) * up), else down(act(up))
  bool mlp_bias = false;
  ops::Activation activation = ops::Activation::silu;
  bool xielu = false;  // learned activation (arXiv 2411.13010) instead of `activation`

  // The block
  bool parallel_residual = false;  // attention and mlp both read the block's input, of one norm or of two
  Residual residual = Residual::input;
  double residual_multiplier = 1.0;  // of what a part adds
  SpecBuilder block_builder;         // calls build_block with another spec or scope; empty: build_block with these

  // Before and after the stack
  // Empty: a table and, as the members below say, a multiplier, learned positions and a norm.
  std::function<std::unique_ptr<DecoderEmbedding>(const nn::Scope& base, const DecoderSpec& spec)> embedding;
  std::function<std::unique_ptr<StackBoundary>(const nn::Scope& base)> boundary;  // empty: none
  double embedding_multiplier = 1.0;
  nn::Norm::Options embedding_norm;  // if names.embedding_norm says that there is one
  bool learned_positions = false;    // "wpe"
  int64_t padding = -1;              // the embedding's row that learns nothing; -1: none
  bool tied = false;                 // the head reuses the embedding
  bool head_bias = false;
  double logit_multiplier = 1.0;
  double logit_softcap = 0.0;                     // 0: off
  std::optional<nn::MaskedHeadSpec> masked_head;  // the language head, if it is one of these
  std::optional<nn::ClassHeadSpec> classes;  // instead of what Building::head plans, if that is not a language head

  std::optional<RouterLoss> router_loss;  // as Model::router_loss

  double attention_dropout = 0, embedding_dropout = 0;
  double residual_dropout = 0;        // after attention and after the mlp
  std::optional<double> mlp_dropout;  // after the mlp, if it differs
  double deviation = 0.02;            // of initial weights
  double output_deviation = 0.02;     // of the weights that write into the residual stream
};

// UserError if `share` is not a probability below 1.
void check_dropout(double share);

// `spec` must hold positive sizes.
std::unique_ptr<Model> build_decoder(DecoderSpec spec, nn::Building& building);

}  // namespace easydel::models

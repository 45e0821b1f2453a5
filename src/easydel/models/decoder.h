// Decoders as a record: embed, a stack of blocks, a last norm, a head. A family fills in a DecoderSpec; nothing here
// asks which family it is. An encoder is such a stack whose tokens see both sides.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "easydel/models/model.h"
#include "easydel/nn/layer.h"
#include "easydel/nn/layers.h"
#include "easydel/nn/masked_head.h"
#include "easydel/nn/run_layer.h"
#include "easydel/ops/rope.h"

namespace easydel::models {

// The names of the parts in a checkpoint. The defaults are most families'. A norm stands where it has a name.
struct DecoderNames {
  std::string base = "model", embedding = "embed_tokens", positions = "wpe", layers = "layers";
  std::string token_types = "token_type_embeddings";
  std::string embedding_norm = "", norm = "norm";  // behind the embedding; behind the stack
  // Of a block: before and behind what mixes tokens, before and behind what feeds each forward.
  std::string before_mixer = "input_layernorm", after_mixer = "";
  std::string before_feed = "post_attention_layernorm", after_feed = "";
  std::string attention = "self_attn", q = "q_proj", k = "k_proj", v = "v_proj", qkv = "qkv_proj", output = "o_proj";
  std::string q_norm = "q_norm", k_norm = "k_norm",
              mixed_norm = "";  // mixed_norm: of what enters the output projection
  std::string mlp = "mlp";      // empty: blocks have no feed
  std::string gate = "gate_proj", up = "up_proj", gate_up = "", down = "down_proj";
  std::string inner_norm = "";  // of what enters the down projection
  std::string head = "lm_head";
};

// How one weight holds queries, keys and values, where it holds all three.
enum class QkvLayout : uint8_t {
  separate,    // three weights
  sequential,  // all queries, all keys, all values
  grouped      // for each kv head: its queries, its key, its value
};

// What the norms of queries and keys go over.
enum class QkNorm : uint8_t {
  none,
  head,       // a head's dimensions, with one weight for all heads
  each_head,  // a head's dimensions, with a weight for each head: [heads, head_dim], or `names.q_norm`.norms.N where
              // split
  whole       // the whole projection
};

// What stands in a block's residual sums.
enum class Residual : uint8_t {
  input,       // x + part(norm(x))
  normed,      // norm(x) + part(norm(x))
  norm_of_sum  // norm(x + part(x)): the norm behind a part takes the sum
};

// Queries grow with the position: times 1 + factor * log(1 + floor((position + shift) / length)). factor 0: they do
// not.
struct QueryGrowth {
  double factor = 0.0;
  int64_t length = 1, shift = 0;
};

// What differs from layer to layer. A size of 0 is the spec's.
struct DecoderLayerSpec {
  int64_t window = 0;  // 0: sees everything before it
  int64_t chunk = 0;   // sees only its own chunk of so many positions; 0: off
  double scale = 1.0;  // of attention scores
  int64_t heads = 0, kv_heads = 0, head_dim = 0, v_dim = 0, intermediate = 0;
  bool turned = true;                         // by rotary positions, where the spec has them; false: none (NoPE)
  std::shared_ptr<const ops::RopeSpec> rope;  // in place of the spec's
  QueryGrowth growth;
  bool norm_before_mixer = true;  // where it has a name; false: none here
  bool qk_norm = true;            // as the spec says; false: none here
  bool sinks = false;             // a learned logit beside each row of scores
  nn::LayerBuilder mixer;         // in place of attention; empty: attention as the spec says
  nn::LayerBuilder feed;          // in place of the mlp; empty: the mlp as the spec says
  // The whole block, where it is built otherwise; empty: as the spec says.
  nn::LayerBuilder block;
};

// What a family puts between the embedding and the blocks, and between the blocks and the last norm. What travels from
// block to block may be wider than `hidden`: rows [tokens, anything].
class DecoderEnds {
 public:
  virtual ~DecoderEnds() = default;
  virtual Tensor enter(const Tensor& tokens, const Tensor& embedded, nn::Pass& pass) const = 0;
  virtual Tensor leave(const Tensor& x, nn::Pass& pass) const = 0;  // -> [tokens, hidden]
};

struct DecoderSpec {
  DecoderNames names;
  int64_t vocabulary = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, intermediate = 0;
  int64_t v_dim = 0;          // of a head's values; 0: head_dim
  int64_t max_positions = 0;  // as the configuration says; a limit only where positions are learned
  std::vector<DecoderLayerSpec> layers;
  nn::Norm::Options norm;                      // of blocks and of the stack
  std::optional<nn::Norm::Options> last_norm;  // of the stack, where it is not `norm`

  // Attention
  bool causal = true;  // false: tokens see all of their sequence, and windows reach to both sides
  QkvLayout qkv = QkvLayout::separate;
  bool qkv_bias = false, output_bias = false;
  QkNorm qk_norm = QkNorm::none;
  std::optional<nn::Norm::Options> qk_norm_options;  // where they are not `norm`
  bool qk_norm_split = false;                        // each_head: a parameter for each head
  bool qk_norm_after_rope = false;                   // else before it
  bool attention_gate = false;  // a head's query is followed by a gate, whose sigmoid multiplies what it mixed
  double clip_qkv = 0.0;        // queries, keys and values are cut off at +-this; 0: not
  double value_multiplier = 1.0;
  std::optional<ops::RopeSpec> rope;
  std::vector<float> slopes;       // ALiBi (arXiv 2108.12409), one a head; empty: off
  bool slopes_in_bf16 = false;     // as ops::AttentionSpec
  double attention_softcap = 0.0;  // 0: off
  ops::Blind blind = ops::Blind::weighs_all;

  // Feed-forward
  bool gated = true;  // down(act(gate) * up), else down(act(up))
  bool mlp_bias = false;
  ops::Activation activation = ops::Activation::silu;
  bool xielu = false;  // learned activation (arXiv 2411.13010) in place of `activation`

  // The block
  bool parallel_residual = false;  // attention and mlp both read the block's input, of one norm or of two
  Residual residual = Residual::input;
  double residual_multiplier = 1.0;  // of what a part adds
  bool transposed = false;           // the checkpoint holds the blocks' weights as [in, out]

  // The ends
  std::function<std::unique_ptr<DecoderEnds>(const nn::Scope& base)> ends;  // empty: none
  double embedding_multiplier = 1.0;
  int64_t embedding_size = 0;        // of the table, projected to hidden and back by project_in, project_out; 0: hidden
  nn::Norm::Options embedding_norm;  // where names.embedding_norm says that there is one
  bool learned_positions = false;
  int64_t position_offset = 0;         // row of position 0
  bool positions_skip_hidden = false;  // learned positions count what is not hidden
  int64_t positions_skip_id = -1;      // they count tokens of other ids, and those of this one have a row of their own
                                       // before the first, which learns nothing; -1: all count
  int64_t token_types = 0;             // rows of a table of kinds of tokens, which stands beside the embedding; 0: none
  int64_t padding = -1;                // the embedding's row that learns nothing; -1: none
  bool tied = false;                   // the head reuses the embedding
  bool head_bias = false;
  double logit_multiplier = 1.0;
  double logit_softcap = 0.0;                     // 0: off
  std::optional<nn::MaskedHeadSpec> masked_head;  // the language head, where it is one of these
  std::optional<nn::ClassHeadSpec> classes;  // in place of what Building::head plans, where that is no language head

  std::optional<RouterLoss> router_loss;  // as Model::router_loss
  int64_t restart_length = 0;             // as Model::restart_length

  double attention_dropout = 0, embedding_dropout = 0;
  double residual_dropout = 0;        // behind attention and behind the mlp
  std::optional<double> mlp_dropout;  // behind the mlp, where it is another
  double layer_dropout = 0;           // share of the layers that training leaves out (arXiv 1909.11556)
  double inner_dropout = 0;           // of what enters a gated mlp's down projection
  double deviation = 0.02;            // of initial weights
  std::optional<double> gate_deviation, head_deviation;  // of the mlp's gate and of the head, where they are others
  double output_deviation = 0.02;                        // of the weights that write into the residual stream
};

// `spec` must hold positive sizes.
std::unique_ptr<Model> build_decoder(DecoderSpec spec, nn::Building& building);

}  // namespace easydel::models

// Llama 4, text: layers with chunked attention and rotary positions, layers with full attention and no positions;
// experts whose router weight multiplies their input, and one shared expert for every token.
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"
#include "easydel/models/moe_keys.h"
#include "easydel/ops/norm.h"

namespace easydel::models::zoo::llama4_text {
namespace {

// An RMS norm of each head without a weight.
class UnitHeadNorm final : public HeadNorm {
 public:
  explicit UnitHeadNorm(double epsilon) : epsilon_(epsilon) {}
  Tensor operator()(const Tensor& x) const override { return ops::rms_norm(x, {}, epsilon_); }

 private:
  double epsilon_;
};

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_decoder(config, {.vocabulary = 202048,
                                           .hidden = 5120,
                                           .intermediate = 8192,
                                           .layers = 48,
                                           .heads = 40,
                                           .kv_heads = 8,
                                           .head_dim = 128,
                                           .max_positions = 131072,
                                           .rope = {.theta = 500000.0},
                                           .epsilon = 1e-5});
  const auto layers = int64_t(spec.layers.size());
  const int64_t inner = spec.intermediate;
  spec.names.mlp = "feed_forward";
  spec.intermediate = integer_of(config, {"intermediate_size_mlp"}, 16384);
  spec.qkv_bias = spec.output_bias = config.boolean("attention_bias", false);
  spec.rope->interleaved = true;
  std::vector<int64_t> rotary = config.integers("no_rope_layers");
  const int64_t every = config.integer("no_rope_layer_interval", 4);
  config.positive("no_rope_layer_interval", every);
  if (rotary.empty())
    for (int64_t i = 0; i < layers; ++i) rotary.push_back((i + 1) % every != 0);
  if (int64_t(rotary.size()) < layers) check_one_a_layer(config, "no_rope_layers", rotary.size(), spec.layers.size());
  const auto types = config.texts("layer_types");
  if (!types.empty()) check_one_a_layer(config, "layer_types", types.size(), spec.layers.size());
  for (int64_t i = 0; i < layers; ++i) {
    DecoderLayerSpec& layer = spec.layers[size_t(i)];
    layer.rotary = rotary[size_t(i)] != 0;
    const bool chunked = types.empty() ? layer.rotary : types[size_t(i)] == "chunked_attention";
    if (chunked) layer.attention.chunk = config.integer("attention_chunk_size", 8192);
    if (!layer.rotary && config.boolean("attn_temperature_tuning", true))
      layer.query_scaling = {config.number("attn_scale", 0.1), config.integer("floor_scale", 8192), 1};
  }
  if (config.boolean("use_qk_norm", true)) spec.qk_norm = QkNorm::head;
  spec.qk_norm_after_rope = true;
  spec.qk_norm_builder = [](const nn::Scope&, const DecoderSpec& whole, int64_t, int64_t layer) {
    return whole.layers[size_t(layer)].rotary ? std::make_unique<UnitHeadNorm>(whole.norm.epsilon) : nullptr;
  };
  nn::MoeSpec moe = moe_of(config, spec, integer_of(config, {"num_local_experts"}, 16),
                           config.integer("num_experts_per_tok", 1), inner);
  moe.name = "feed_forward";
  moe.router.scoring = ops::Scoring::sigmoid_of_chosen;
  moe.router_names.weight = "router.weight";
  moe.experts.weigh_input = true;
  moe.experts.files = {nn::ExpertFiles::fused("experts.gate_up_proj", "experts.down_proj")};
  moe.experts.files.front().transposed = true;
  moe.shared = "shared_expert";
  moe.shared_inner = inner;
  std::vector<bool> sparse(size_t(layers), false);
  if (config.find("moe_layers")) {
    for (const int64_t layer : config.integers("moe_layers"))
      if (layer >= 0 && layer < layers) sparse[size_t(layer)] = true;
  } else {
    const int64_t step = integer_of(config, {"interleave_moe_layer_step"}, 1);
    for (int64_t i = step - 1; i < layers; i += step) sparse[size_t(i)] = true;
  }
  set_experts(spec, moe, sparse);
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"llama4_text", "model", {"rotary_emb.inv_freq"}, build, false}; }

}  // namespace easydel::models::zoo::llama4_text

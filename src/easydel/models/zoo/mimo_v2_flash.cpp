// MiMo-V2-Flash (arXiv 2601.02780): windowed layers with twice the kv heads, sinks and a rotary base of their own;
// scaled values; the experts of DeepSeek-V3.
#include "easydel/models/decoder_keys.h"
#include "easydel/models/decoder_parts.h"
#include "easydel/models/family.h"
#include "easydel/models/moe_keys.h"

namespace easydel::models::zoo::mimo_v2_flash {
namespace {

// Each type of layer has its own rotary positions; by default a third of each head is rotated.
std::shared_ptr<const ops::RopeSpec> rope_of_layer(const ConfigReader& config, bool sliding, const DecoderSpec& spec) {
  const char* type = sliding ? "sliding_attention" : "full_attention";
  const Value* all = config.find("rope_parameters");
  const Value* own = all && all->is_map() ? all->find(type) : nullptr;
  Value wrapped = Value::map();
  wrapped.set("rope_parameters", own && own->is_map() ? *own : Value::map());
  const ConfigReader in(wrapped, config.where().below(type));
  return std::make_shared<ops::RopeSpec>(in.rope(
      spec.head_dim, spec.max_positions, {.theta = sliding ? 10000.0 : 5e6, .partial = 0.334, .reads_partial = true}));
}

class Attention final : public DecoderAttention {
 public:
  Attention(const nn::Scope& scope, const DecoderSpec& spec, int64_t layer, double value_scale)
      : DecoderAttention(scope, spec, layer), value_scale_(value_scale) {}

 protected:
  Tensor adjust_values(const Tensor& v) const override { return v * value_scale_; }

 private:
  double value_scale_;
};

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_decoder(config, {.vocabulary = 152576,
                                           .hidden = 4096,
                                           .intermediate = 16384,
                                           .layers = 48,
                                           .heads = 64,
                                           .kv_heads = 4,
                                           .head_dim = 192,
                                           .max_positions = 131072,
                                           .rope = {.by_layer_type = true},
                                           .epsilon = 1e-5});
  const int64_t v_dim = integer_of(config, {"v_head_dim"}, 128);
  spec.qkv_bias = config.boolean("attention_bias", false);
  if (!config.has("attention_value_scale") || config.find("attention_value_scale"))
    spec.attention_builder = [scale = config.number("attention_value_scale", 0.707)](
                                 const nn::Scope& scope, const DecoderSpec& whole, int64_t layer) {
      return std::make_unique<Attention>(scope, whole, layer, scale);
    };
  int64_t window = read_window(config, 129);
  if (config.find("sliding_window_size")) window = config.integer("sliding_window_size", 0) + 1;
  const auto sliding =
      read_sliding_layers(config, spec.layers.size(), [](int64_t i) { return i != 0 && (i + 1) % 6 != 0; });
  set_windows(spec, sliding, window);
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    DecoderLayerSpec& layer = spec.layers[i];
    layer.rope = rope_of_layer(config, sliding[i], spec);
    layer.sizes.v_dim = v_dim;
    if (!sliding[i]) continue;
    layer.sizes.kv_heads = 2 * spec.kv_heads;
    layer.sinks = true;
  }
  nn::MoeSpec moe =
      moe_of(config, spec, integer_of(config, {"n_routed_experts", "num_local_experts"}, 256),
             config.integer("num_experts_per_tok", 8), integer_of(config, {"moe_intermediate_size"}, 2048));
  read_corrected_router(config, moe, 1, 1, true, 1.0);
  set_experts(spec, moe, read_sparse_layers(config, spec, 1));
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() {
  return {.model_type = "mimo_v2_flash",
          .base_prefix = "model",
          .ignored = {"rotary_emb.inv_freq"},
          .build = build,
          .spellings = {{".self_attn.sinks", ".self_attn.attention_sink_bias"}},
          .ignored_parts = {"model.mtp."}};
}

}  // namespace easydel::models::zoo::mimo_v2_flash

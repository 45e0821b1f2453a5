// BitNet b1.58 (arXiv 2504.12285) with unpacked weights: Llama with a norm before each output projection.
#include "easydel/models/decoder_keys.h"
#include "easydel/models/decoder_parts.h"
#include "easydel/models/family.h"

namespace easydel::models::zoo::bitnet {
namespace {

// Its norms need whole rows, so every rank computes all of them.
class Attention final : public DecoderAttention {
 public:
  Attention(const nn::Scope& scope, const DecoderSpec& spec, int64_t layer)
      : DecoderAttention(scope, spec, layer, /*divided=*/false),
        norm_(scope / "attn_sub_norm", spec.heads * spec.head_dim, spec.norm) {}

 protected:
  Tensor before_output(const Tensor& mixed) const override { return norm_(mixed); }

 private:
  nn::Norm norm_;
};

class Feed final : public nn::Layer {
 public:
  Feed(const nn::Scope& scope, const DecoderSpec& spec)
      : activation_(spec.activation),
        gate_(scope / "gate_proj", spec.hidden, spec.intermediate, options(spec, nn::Split::output)),
        up_(scope / "up_proj", spec.hidden, spec.intermediate, options(spec, nn::Split::output)),
        norm_(scope / "ffn_sub_norm", spec.intermediate, spec.norm),
        down_(scope / "down_proj", spec.intermediate, spec.hidden, options(spec, nn::Split::input)) {}

  nn::LayerOutput forward(const Tensor& x, nn::Pass& pass) const override {
    const Tensor gate = gate_(x, pass, "mlp_gate"), up = up_(x, pass, "mlp_up");
    return {down_(norm_(ops::gated(gate, up, activation_)), pass, "mlp_down"), {}};
  }

 private:
  static nn::LinearOptions options(const DecoderSpec& spec, nn::Split split) {
    return {.split = split, .deviation = spec.deviation};
  }

  ops::Activation activation_;
  nn::Linear gate_, up_;
  nn::Norm norm_;
  nn::Linear down_;
};

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_decoder(config, {.vocabulary = 128256,
                                           .hidden = 2560,
                                           .intermediate = 6912,
                                           .layers = 30,
                                           .heads = 20,
                                           .kv_heads = 5,
                                           .max_positions = 2048,
                                           .whole_heads = true,
                                           .rope = {.theta = 500000.0},
                                           .epsilon = 1e-5,
                                           .activation = "relu2"});
  if (spec.xielu) config.refuse_key("hidden_act", "'xielu' is not built for this family");
  spec.qkv_bias = spec.output_bias = config.boolean("attention_bias", false);
  spec.attention_builder = [](const nn::Scope& scope, const DecoderSpec& whole, int64_t layer) {
    return std::make_unique<Attention>(scope, whole, layer);
  };
  const auto whole = std::make_shared<const DecoderSpec>(spec);
  for (DecoderLayerSpec& layer : spec.layers)
    layer.feed = [whole](const nn::Scope& block, int64_t) { return std::make_unique<Feed>(block / "mlp", *whole); };
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"bitnet", "model", {"rotary_emb.inv_freq"}, build, false}; }

}  // namespace easydel::models::zoo::bitnet

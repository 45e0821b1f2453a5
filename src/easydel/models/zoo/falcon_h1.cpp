// Falcon-H1 (arXiv 2507.22448): attention and Mamba-2 in parallel on the same input; fixed multipliers everywhere.
#include "easydel/base/error.h"
#include "easydel/models/decoder_keys.h"
#include "easydel/models/decoder_parts.h"
#include "easydel/models/family.h"
#include "easydel/models/recurrent_keys.h"

namespace easydel::models::zoo::falcon_h1 {
namespace {

// The numbers of a list; all 1 if the key is absent.
template <size_t count>
std::array<double, count> read_multipliers(const ConfigReader& config, std::string_view key) {
  std::array<double, count> out;
  out.fill(1.0);
  const Value* list = config.find(key);
  if (!list) return out;
  if (!list->is_list() || list->items.size() != count)
    config.refuse_key(key, str(to_json(*list), " is not a list of ", count, " numbers"));
  for (size_t i = 0; i < count; ++i) {
    const auto number = list->items[i].as_double();
    if (!number) config.refuse_key(key, str(to_json(list->items[i]), " is not a number"));
    out[i] = *number;
  }
  return out;
}

struct Multipliers {
  double attention_in = 1, attention_out = 1, state_space_out = 1;
  std::array<double, 2> mlp = {1, 1};  // of the gate before its activation, of the output
};

class Mixer final : public nn::Layer {
 public:
  Mixer(const nn::Scope& block, const DecoderSpec& spec, const nn::Mamba2Spec& mamba, const Multipliers& multipliers,
        int64_t layer)
      : multipliers_(multipliers),
        mamba_(block / "mamba", mamba, layer),
        attention_(build_attention(block / "self_attn", spec, layer)) {}

  nn::LayerOutput forward(const Tensor& x, nn::Pass& pass) const override {
    const Tensor remembered = mamba_.forward(x, pass).x * multipliers_.state_space_out;
    const Tensor attended = attention_->forward(x * multipliers_.attention_in, pass).x * multipliers_.attention_out;
    return {remembered + attended, {}};
  }
  nn::CacheLayer cache() const override {
    nn::CacheLayer both = attention_->cache();
    both.states = mamba_.cache().states;
    return both;
  }
  double mixing_flops(int64_t length) const override {
    return mamba_.mixing_flops(length) + attention_->mixing_flops(length);
  }

 private:
  Multipliers multipliers_;
  nn::Mamba2 mamba_;
  std::unique_ptr<nn::Layer> attention_;
};

class Feed final : public nn::Layer {
 public:
  Feed(const nn::Scope& scope, const DecoderSpec& spec, const Multipliers& multipliers)
      : multipliers_(multipliers.mlp),
        activation_(spec.activation),
        gate_(scope / "gate_proj", spec.hidden, spec.intermediate,
              {.bias = spec.mlp_bias, .deviation = spec.deviation}),
        up_(scope / "up_proj", spec.hidden, spec.intermediate, {.bias = spec.mlp_bias, .deviation = spec.deviation}),
        down_(scope / "down_proj", spec.intermediate, spec.hidden,
              {.bias = spec.mlp_bias, .deviation = spec.output_deviation}) {}

  nn::LayerOutput forward(const Tensor& x, nn::Pass& pass) const override {
    const Tensor gate = gate_(x, pass, "mlp_gate") * multipliers_[0];
    return {down_.gated(gate, up_(x, pass, "mlp_up"), activation_, pass, "mlp_down") * multipliers_[1], {}};
  }

 private:
  std::array<double, 2> multipliers_;
  ops::Activation activation_;
  nn::Linear gate_, up_, down_;
};

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  // The layers keep a reference to it.
  auto spec = std::make_shared<DecoderSpec>(read_decoder(config, {.vocabulary = 128000,
                                                                  .hidden = 4096,
                                                                  .intermediate = 14336,
                                                                  .layers = 32,
                                                                  .heads = 32,
                                                                  .kv_heads = 8,
                                                                  .max_positions = 8192,
                                                                  .padding = 0}));
  spec->names.norm = "final_layernorm";
  spec->names.before_feed = "pre_ff_layernorm";
  spec->names.mlp = "feed_forward";
  spec->norm.epsilon = config.number("rms_norm_eps", 1e-5);
  spec->qkv_bias = spec->output_bias = config.boolean("attention_bias", false);
  spec->mlp_bias = config.boolean("mlp_bias", false);
  spec->embedding_multiplier = config.number("embedding_multiplier", 1.0);
  spec->logit_multiplier = config.number("lm_head_multiplier", 1.0);

  nn::Mamba2Spec mamba =
      read_bamba_mixer(config, *spec, config.has("mamba_d_ssm") ? config.integer("mamba_d_ssm", 0) : 1024);
  mamba.output_bias = config.boolean("projectors_bias", false);
  mamba.input_multiplier = config.number("ssm_in_multiplier", 1.0);
  mamba.multipliers = read_multipliers<5>(config, "ssm_multipliers");
  using Gate = nn::Mamba2Spec::Gate;
  mamba.gate = !config.boolean("mamba_rms_norm", false)         ? Gate::no_norm
               : config.boolean("mamba_norm_before_gate", true) ? Gate::after_norm
                                                                : Gate::before_norm;
  const Multipliers multipliers{
      config.number("attention_in_multiplier", 1.0), config.number("attention_out_multiplier", 1.0),
      config.number("ssm_out_multiplier", 1.0), read_multipliers<2>(config, "mlp_multipliers")};
  const double key_multiplier = config.number("key_multiplier", 1.0);
  for (DecoderLayerSpec& layer : spec->layers) {
    layer.attention.scale *= key_multiplier;  // scales the keys, and so every score
  }
  DecoderSpec built = *spec;
  for (DecoderLayerSpec& layer : built.layers) {
    layer.mixer = [spec, mamba, multipliers](const nn::Scope& block, int64_t index) {
      return std::make_unique<Mixer>(block, *spec, mamba, multipliers, index);
    };
    layer.feed = [spec, multipliers](const nn::Scope& block, int64_t) {
      return std::make_unique<Feed>(block / "feed_forward", *spec, multipliers);
    };
  }
  return build_decoder(std::move(built), building);
}

}  // namespace

Family family() { return {"falcon_h1", "model", {"rotary_emb.inv_freq", "mup_vector"}, build, false}; }

}  // namespace easydel::models::zoo::falcon_h1

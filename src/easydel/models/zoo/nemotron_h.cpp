// Nemotron-H (arXiv 2504.03624): each layer is a single part: Mamba-2, attention without positions, an mlp, or experts.
#include <cmath>

#include "easydel/base/error.h"
#include "easydel/models/decoder_keys.h"
#include "easydel/models/decoder_parts.h"
#include "easydel/models/family.h"
#include "easydel/models/moe_keys.h"
#include "easydel/models/recurrent_keys.h"

namespace easydel::models::zoo::nemotron_h {
namespace {

// Experts without gates (in a latent space if `latent` is given), in parallel with an mlp for every token.
class Experts final : public nn::Layer {
 public:
  Experts(const nn::Scope& scope, const nn::MoeSpec& moe, int64_t hidden, int64_t latent, int64_t shared, bool bias)
      : router_(scope, hidden, moe.router, moe.router_names, true, moe.experts.deviation),
        experts_(scope, moe.experts) {
    const nn::LinearOptions plain{.bias = bias, .deviation = moe.experts.deviation};
    if (latent > 0) {
      into_.emplace(scope / "fc1_latent_proj", hidden, latent, plain);
      out_of_.emplace(scope / "fc2_latent_proj", latent, hidden, plain);
    }
    shared_.emplace(scope / "shared_experts", hidden, shared, moe.experts.activation, plain, plain,
                    nn::Mlp::Names{"up_proj", "down_proj"});
  }

  nn::LayerOutput forward(const Tensor& x, nn::Pass& pass) const override {
    auto [routing, logits] = router_(x, pass);
    Tensor out = experts_(into_ ? (*into_)(x, pass, "moe_latent") : x, routing.indices, routing.weights, pass);
    if (out_of_) out = (*out_of_)(out, pass, "moe_expert_output");
    nn::LayerOutput result{out + (*shared_)(x, pass), {}};
    result.extras["router_logits"] = logits;
    return result;
  }
  double idle_elements() const override { return experts_.idle_elements(router_.spec().top_k); }

 private:
  nn::Router router_;
  nn::Experts experts_;
  std::optional<nn::Linear> into_, out_of_;
  std::optional<nn::Mlp> shared_;
};

// The kinds of layers: a list, or a letter for each.
std::vector<std::string> read_layers(const ConfigReader& config) {
  const std::vector<std::string_view> known = {"linear_attention", "full_attention", "mlp", "moe"};
  for (const char* key : {"layers_block_type", "layer_types"})
    if (auto kinds = read_kinds(config, key, known); !kinds.empty()) return kinds;
  const std::string pattern = config.text("hybrid_override_pattern", "");
  std::vector<std::string> kinds;
  for (const char letter : pattern) {
    switch (letter) {
      case 'M':
        kinds.push_back("linear_attention");
        break;
      case '*':
        kinds.push_back("full_attention");
        break;
      case '-':
        kinds.push_back("mlp");
        break;
      case 'E':
        kinds.push_back("moe");
        break;
      default:
        config.refuse_key("hybrid_override_pattern", str("'", std::string(1, letter), "' is not a layer type"),
                          "known: M, *, -, E");
    }
  }
  if (kinds.empty()) kinds = {"linear_attention", "moe", "full_attention", "mlp"};
  return kinds;
}

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  auto spec = std::make_shared<DecoderSpec>();
  spec->names = {.base = "model",
                 .embedding = "embeddings",
                 .norm = "norm_f",
                 .before_mixer = "norm",
                 .attention = "mixer",
                 .mlp = ""};
  spec->vocabulary = read_size(config, "vocab_size", 131072);
  spec->hidden = read_size(config, "hidden_size", 4096);
  spec->heads = read_size(config, "num_attention_heads", 32);
  spec->kv_heads = read_size(config, "num_key_value_heads", 8);
  check_kv_heads(config, "num_key_value_heads", spec->kv_heads, spec->heads);
  spec->head_dim = read_size(config, "head_dim", 128);
  spec->intermediate = read_size(config, "intermediate_size", 21504);
  spec->max_positions = read_size(config, "max_position_embeddings", 4096);
  spec->norm = {.epsilon = config.number("layer_norm_epsilon", 1e-5)};
  spec->attention_dropout = config.number("attention_dropout", 0.0);
  spec->deviation = spec->output_deviation = config.number("initializer_range", 0.02);
  spec->gated = false;
  spec->mlp_bias = config.boolean("mlp_bias", false);
  spec->activation = ops::activation_of(config.text("mlp_hidden_act", "relu2"), config.where().below("mlp_hidden_act"));
  const std::vector<std::string> kinds = read_layers(config);
  spec->layers.resize(kinds.size());
  for (DecoderLayerSpec& layer : spec->layers) layer.attention.scale = 1.0 / std::sqrt(double(spec->head_dim));

  const auto either = [&](const char* key, const char* older, int64_t otherwise) {
    return read_size(config, config.find(older) ? older : key, otherwise);
  };
  nn::Mamba2Spec mamba;
  mamba.hidden = spec->hidden;
  mamba.heads = read_size(config, "mamba_num_heads", 128);
  mamba.head_dim = read_size(config, "mamba_head_dim", 64);
  mamba.inner = mamba.heads * mamba.head_dim;
  mamba.state = read_size(config, "ssm_state_size", 128);
  mamba.groups = either("n_groups", "mamba_n_groups", 8);
  if (mamba.heads % mamba.groups != 0)
    config.refuse_key("n_groups", str(mamba.groups, " groups do not divide ", mamba.heads, " heads"));
  mamba.width = either("conv_kernel", "mamba_d_conv", 4);
  mamba.bias = mamba.output_bias = config.boolean("use_bias", false);
  mamba.convolution_bias = config.boolean(config.find("mamba_conv_bias") ? "mamba_conv_bias" : "use_conv_bias", true);
  mamba.activation =
      ops::activation_of(config.text("mamba_hidden_act", "silu"), config.where().below("mamba_hidden_act"));
  mamba.min_step = config.number(config.find("mamba_dt_min") ? "mamba_dt_min" : "time_step_min", 0.001);
  mamba.epsilon = spec->norm.epsilon;
  mamba.deviation = spec->deviation;
  mamba.step_bias = read_steps(config).initial();
  if (config.boolean("rescale_prenorm_residual", true))
    mamba.output = read_output_start(config, mamba.inner, kinds.size(), true);

  DecoderSpec built = *spec;
  for (size_t i = 0; i < kinds.size(); ++i) {
    DecoderLayerSpec& layer = built.layers[i];
    if (kinds[i] == "linear_attention") {
      layer.mixer = mixer_builder<nn::Mamba2>("mixer", mamba);
    } else if (kinds[i] == "full_attention") {
      layer.mixer = [spec](const nn::Scope& block, int64_t index) {
        return build_attention(block / "mixer", *spec, index);
      };
    } else if (kinds[i] == "mlp") {
      layer.mixer = [spec](const nn::Scope& block, int64_t index) { return build_feed(block / "mixer", *spec, index); };
    } else {
      nn::MoeSpec moe =
          moe_of(config, *spec, integer_of(config, {"n_routed_experts", "num_local_experts"}, 8),
                 config.integer("num_experts_per_tok", 2), integer_of(config, {"moe_intermediate_size"}, 7688));
      read_corrected_router(config, moe, 1, 1, true, 1.0);
      const int64_t latent = config.integer("moe_latent_size", 0),
                    shared = read_size(config, "moe_shared_expert_intermediate_size", 7688);
      if (latent > 0) moe.experts.size = latent;
      moe.experts.gated = false;
      moe.experts.files = {{.gate = "", .up = "experts.{}.up_proj.weight", .down = "experts.{}.down_proj.weight"},
                           {.gate = "", .up = "experts.up_proj", .down = "experts.down_proj"}};
      layer.mixer = [spec, moe, latent, shared](const nn::Scope& block, int64_t) {
        return std::make_unique<Experts>(block / "mixer", moe, spec->hidden, latent, shared, spec->mlp_bias);
      };
    }
  }
  return build_decoder(std::move(built), building);
}

}  // namespace

Family family() {
  return {.model_type = "nemotron_h",
          .base_prefix = "model",
          .ignored = {},
          .build = build,
          .spellings = {{"model.", "backbone."}},
          .ignored_parts = {"mtp."}};
}

}  // namespace easydel::models::zoo::nemotron_h

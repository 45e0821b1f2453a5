// ModernBERT (arXiv 2412.13663): an encoder with rotary positions, gated mlps, and bidirectional sliding windows in
// most layers.
#include <cmath>

#include "easydel/base/error.h"
#include "easydel/models/bert_keys.h"
#include "easydel/models/decoder_parts.h"
#include "easydel/models/heads.h"

namespace easydel::models::zoo::modernbert {
namespace {

// A gated mlp with dropout of its inner units.
class Feed final : public nn::Layer {
 public:
  Feed(const nn::Scope& scope, const DecoderSpec& spec, double dropout)
      : dropout_(dropout),
        activation_(spec.activation),
        gate_up_(scope / spec.names.gate_up, spec.hidden, 2 * spec.intermediate,
                 {.bias = spec.mlp_bias, .split = nn::Split::output, .deviation = spec.deviation}),
        down_(scope / spec.names.down, spec.intermediate, spec.hidden,
              {.bias = spec.mlp_bias, .split = nn::Split::input, .deviation = spec.output_deviation}) {}

  nn::LayerOutput forward(const Tensor& x, nn::Pass& pass) const override {
    const auto [gate, up] = halves(gate_up_(x, pass, "mlp_gate_up"));
    if (!pass.random().training || dropout_ <= 0.0) return {down_.gated(gate, up, activation_, pass, "mlp_down"), {}};
    const Tensor inner = pass.random().dropout("mlp_inner_dropout", ops::gated(gate, up, activation_), dropout_);
    return {down_(inner, pass, "mlp_down"), {}};
  }

 private:
  double dropout_;
  ops::Activation activation_;
  nn::Linear gate_up_, down_;
};

DecoderSpec read(const ConfigReader& config) {
  DecoderSpec spec;
  spec.names = {.base = "model",
                .embedding = "embeddings.tok_embeddings",
                .embedding_norm = "embeddings.norm",
                .norm = "final_norm",
                .before_mixer = "attn_norm",
                .before_feed = "mlp_norm",
                .attention = "attn",
                .qkv = "Wqkv",
                .output = "Wo",
                .gate_up = "Wi",
                .down = "Wo"};
  spec.causal = false;
  spec.vocabulary = read_size(config, "vocab_size", 50368);
  spec.hidden = read_size(config, "hidden_size", 768);
  spec.heads = spec.kv_heads = read_size(config, "num_attention_heads", 12);
  spec.head_dim = head_size(config, "hidden_size", spec);
  if (spec.head_dim % 2 != 0)
    config.refuse_key("num_attention_heads",
                      str(spec.head_dim, " dimensions a head; rotary positions need an even number"));
  spec.intermediate = read_size(config, "intermediate_size", 1152);
  spec.max_positions = read_size(config, "max_position_embeddings", 8192);
  spec.padding = read_padding(config, 50283, spec.vocabulary);
  spec.layers.resize(size_t(read_size(config, "num_hidden_layers", 22)));
  const int64_t every = read_size(config, "global_attn_every_n_layers", 3);
  const auto sliding = read_sliding_layers(config, spec.layers.size(), [&](int64_t i) { return i % every != 0; });
  // Half of local_attention to each side.
  const int64_t side = config.integer("sliding_window", config.integer("local_attention", 128) / 2);
  if (side < 0) config.refuse_key(config.find("sliding_window") ? "sliding_window" : "local_attention", "is negative");
  set_windows(spec, sliding, side + 1);
  const auto rope = [&](const char* layer_type, const char* key, double theta) {
    return config.rope_of(layer_type, spec.head_dim, spec.max_positions, config.number(key, theta), "rope_scaling");
  };
  spec.rope = rope("full_attention", "global_rope_theta", 160000.0);
  const auto local = std::make_shared<const ops::RopeSpec>(rope("sliding_attention", "local_rope_theta", 10000.0));
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    spec.layers[i].attention.scale = std::pow(double(spec.head_dim), -0.5);
    if (sliding[i]) spec.layers[i].rope = local;
  }
  spec.qkv = QkvLayout::sequential;
  spec.qkv_bias = spec.output_bias = config.boolean("attention_bias", false);
  spec.mlp_bias = config.boolean("mlp_bias", false);
  spec.norm = {.kind = nn::NormKind::layer,
               .epsilon = config.number("norm_eps", 1e-5),
               .bias = config.boolean("norm_bias", false)};
  spec.embedding_norm = spec.norm;
  read_activation(config, "hidden_activation", "gelu", spec);
  if (spec.xielu) config.refuse_key("hidden_activation", "'xielu' is not built for this family");
  spec.tied = config.boolean("tie_word_embeddings", true);
  spec.embedding_dropout = config.number("embedding_dropout", 0.0);
  spec.attention_dropout = spec.residual_dropout = config.number("attention_dropout", 0.0);
  const double mlp_dropout = config.number("mlp_dropout", 0.0);
  check_dropout(mlp_dropout);
  spec.deviation = config.number("initializer_range", 0.02);
  spec.output_deviation = spec.deviation / std::sqrt(2.0 * double(spec.layers.size()));
  config.boolean("deterministic_flash_attn", false);  // all attention here is deterministic
  const auto whole = std::make_shared<const DecoderSpec>(spec);
  for (DecoderLayerSpec& layer : spec.layers)
    layer.feed = [whole, mlp_dropout](const nn::Scope& block, int64_t) {
      return std::make_unique<Feed>(block / "mlp", *whole, mlp_dropout);
    };
  // Instead of its own first norm, the first block uses the embedding's.
  const auto first = std::make_shared<DecoderSpec>(spec);
  first->names.before_mixer = "";
  spec.block_builder = [first](const nn::Scope& scope, const DecoderSpec& all, int64_t layer) {
    return build_block(scope, layer == 0 ? *first : all, layer);
  };
  return spec;
}

// The dense layer, activation and norm before every output layer.
struct Before {
  std::string dense = "head.dense", norm = "head.norm";
  bool bias;
  ops::Activation activation;
};

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read(config);
  building.normal_cutoff =
      config.number("initializer_cutoff_factor", config.has("initializer_cutoff_factor") ? 3.0 : 2.0);
  const Before before{.bias = config.boolean("classifier_bias", false),
                      .activation = ops::activation_of(config.text("classifier_activation", "gelu"),
                                                       config.where().below("classifier_activation"))};
  const Task task = task_of(config);
  if (building.head.language) {
    spec.masked_head = {.dense = before.dense,
                        .norm = before.norm,
                        .decoder = "decoder",
                        .shared_bias = "",
                        .dense_bias = before.bias,
                        .output_bias = config.boolean("decoder_bias", true),
                        .activation = before.activation,
                        .norm_options = spec.norm,
                        .deviation = spec.output_deviation,
                        .output_deviation = spec.output_deviation};
  } else if (task != Task::base) {
    nn::ClassHeadSpec classes =
        read_encoder_classes(config, config.number("classifier_dropout", 0.0), spec.output_deviation);
    const std::string pooling = config.text("classifier_pooling", "cls");
    if (pooling != "cls" && pooling != "mean")
      config.refuse_key("classifier_pooling", str("'", pooling, "' is not known"), "known: cls, mean");
    if (task == Task::sequence_classification)
      classes.pooling = pooling == "cls" ? nn::Pooling::first : nn::Pooling::mean;
    classes.dense = before.dense, classes.norm = before.norm, classes.output = "classifier";
    classes.dense_bias = before.bias, classes.activation = before.activation;
    classes.norm_bias = spec.norm.bias, classes.norm_epsilon = spec.norm.epsilon;
    classes.output_deviation = std::pow(double(spec.hidden), -0.5);
    spec.classes = std::move(classes);
  }
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() {
  return {.model_type = "modernbert",
          .base_prefix = "model",
          .ignored = {"decoder.weight", "inv_freq"},
          .build = build,
          .tied_by_default = true};
}

}  // namespace easydel::models::zoo::modernbert

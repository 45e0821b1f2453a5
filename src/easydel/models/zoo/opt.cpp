// OPT (arXiv 2205.01068): learned positions that count unmasked tokens, layer norms before or after each part, an
// embedding that may be narrower than the stack.
#include <cmath>

#include "easydel/models/decoder_keys.h"
#include "easydel/models/decoder_model.h"
#include "easydel/models/decoder_parts.h"
#include "easydel/models/family.h"

namespace easydel::models::zoo::opt {
namespace {

class Embedding final : public DecoderEmbedding {
 public:
  Embedding(const nn::Scope& base, const DecoderSpec& spec, int64_t width)
      : table_(base / "embed_tokens", spec.vocabulary, width, spec.deviation, nn::Split::vocabulary, spec.padding),
        positions_(base / "embed_positions", spec.max_positions + offset, spec.hidden, spec.deviation,
                   nn::Split::none) {
    if (width == spec.hidden) return;
    const nn::LinearOptions options{.deviation = spec.deviation};
    project_in_.emplace(base / "project_in", width, spec.hidden, options);
    project_out_.emplace(base / "project_out", spec.hidden, width, options);
  }

  Tensor operator()(const Inputs& inputs, nn::Pass& pass) const override {
    Tensor x = table_(inputs.tokens, pass);
    if (project_in_) x = (*project_in_)(x, pass, "project_in");
    const nn::Stream& stream = pass.stream();
    const Tensor positions = stream.masked.defined()
                                 ? counted_positions(stream.masked.logical_not().to(at::kLong), stream)
                                 : stream.positions;
    return x + positions_(positions + offset, pass);
  }
  nn::Parameter table() const override { return table_.weight(); }
  Tensor leave(const Tensor& x, nn::Pass& pass) const override {
    return project_out_ ? (*project_out_)(x, pass, "project_out") : x;
  }

 private:
  static constexpr int64_t offset = 2;  // row of position 0

  nn::Embedding table_, positions_;
  std::optional<nn::Linear> project_in_, project_out_;
};

// A training step drops a fraction of the blocks (arXiv 1909.11556).
class Opt final : public Decoder {
 public:
  Opt(DecoderSpec spec, nn::Building& building, double layer_dropout)
      : Decoder(std::move(spec), building), layer_dropout_(layer_dropout) {}

 protected:
  bool leaves_out(const std::string& path, const nn::Pass& pass) const override {
    return pass.random().leaves_out(path, layer_dropout_);
  }

 private:
  double layer_dropout_;
};

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec;
  spec.vocabulary = read_size(config, "vocab_size", 50272);
  spec.hidden = read_size(config, "hidden_size", 768);
  spec.heads = spec.kv_heads = read_size(config, "num_attention_heads", 12);
  spec.head_dim = head_size(config, "hidden_size", spec);
  spec.intermediate = read_size(config, "ffn_dim", 3072);
  spec.max_positions = read_size(config, "max_position_embeddings", 2048);
  spec.layers.resize(size_t(read_size(config, "num_hidden_layers", 12)));
  for (DecoderLayerSpec& layer : spec.layers) layer.attention.scale = std::pow(double(spec.head_dim), -0.5);
  const int64_t width = read_size(config, "word_embed_proj_dim", spec.hidden);
  spec.embedding = [width](const nn::Scope& base, const DecoderSpec& whole) {
    return std::make_unique<Embedding>(base, whole, width);
  };

  const bool before = config.boolean("do_layer_norm_before", true);
  spec.names = {
      .base = "model.decoder", .attention = "self_attn", .output = "out_proj", .mlp = "", .up = "fc1", .down = "fc2"};
  spec.names.norm = before && !config.boolean("_remove_final_layer_norm", false) ? "final_layer_norm" : "";
  spec.names.before_mixer = before ? "self_attn_layer_norm" : "";
  spec.names.after_mixer = before ? "" : "self_attn_layer_norm";
  spec.names.before_feed = before ? "final_layer_norm" : "";
  spec.names.after_feed = before ? "" : "final_layer_norm";
  if (!before) spec.residual = Residual::norm_of_sum;
  const bool affine = config.boolean("layer_norm_elementwise_affine", true);
  spec.norm = {.kind = nn::NormKind::layer, .epsilon = 1e-5, .bias = affine, .weight = affine};
  read_activation(config, "activation_function", "relu", spec);
  spec.qkv_bias = spec.output_bias = spec.mlp_bias = config.boolean("enable_bias", true);
  spec.gated = false;
  spec.padding = read_padding(config, 1, spec.vocabulary);
  spec.tied = config.boolean("tie_word_embeddings", true);
  const double layer_dropout = config.number("layerdrop", 0.0);
  check_dropout(layer_dropout);
  spec.attention_dropout = config.number("attention_dropout", 0.0);
  spec.residual_dropout = config.number("dropout", 0.1);
  spec.deviation = spec.output_deviation = config.number("init_std", 0.02);
  // Its weights belong to the block itself, without a name of their own.
  const auto whole = std::make_shared<const DecoderSpec>(spec);
  for (DecoderLayerSpec& layer : spec.layers)
    layer.feed = [whole](const nn::Scope& block, int64_t index) { return build_feed(block, *whole, index); };
  return std::make_unique<Opt>(std::move(spec), building, layer_dropout);
}

}  // namespace

Family family() { return {"opt", "model", {}, build, true}; }

}  // namespace easydel::models::zoo::opt

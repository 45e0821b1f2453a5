// StableLM (arXiv 2402.17834): layer norms, rotary positions on a part of each head; attention and mlp may be in
// parallel.
#include <ATen/ops/stack.h>

#include "easydel/models/decoder_keys.h"
#include "easydel/models/decoder_parts.h"
#include "easydel/models/family.h"
#include "easydel/models/rotated_pairs.h"

namespace easydel::models::zoo::stablelm {
namespace {

// A parameter for each head.
class SplitHeadNorm final : public HeadNorm {
 public:
  SplitHeadNorm(const nn::Scope& scope, const DecoderSpec& spec, int64_t heads) : options_(spec.norm) {
    for (int64_t head = 0; head < heads; ++head)
      weights_.push_back(
          (scope / "norms" / head)
              .parameter("weight", {spec.head_dim}, nn::Role::norm, {nn::Split::none, nn::Initial::ones(), "scale"}));
  }
  Tensor operator()(const Tensor& x) const override {
    std::vector<Tensor> rows;
    for (const nn::Parameter& weight : weights_) rows.push_back(weight.value().to(at::kFloat));
    return norm_of_each_head(x, at::stack(rows), options_);
  }

 private:
  nn::Norm::Options options_;
  std::vector<nn::Parameter> weights_;
};

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_decoder(config, {.vocabulary = 50304,
                                           .hidden = 2560,
                                           .intermediate = 6912,
                                           .layers = 32,
                                           .heads = 32,
                                           .kv_heads = 32,
                                           .max_positions = 4096,
                                           .reads_head_dim = false,
                                           .whole_heads = true,
                                           .rope = {.partial = 0.25, .reads_partial = true},
                                           .epsilon_key = "layer_norm_eps",
                                           .epsilon = 1e-5});
  settle_odd_rotation(config, *spec.rope);
  spec.norm = {.kind = nn::NormKind::layer, .epsilon = spec.norm.epsilon};
  spec.names.q_norm = "q_layernorm";
  spec.names.k_norm = "k_layernorm";
  spec.parallel_residual = config.boolean("use_parallel_residual", false);
  if (spec.parallel_residual) spec.names.before_feed = "";
  spec.qkv_bias = config.boolean("use_qkv_bias", false);
  if (config.boolean("qk_layernorm", false)) spec.qk_norm = QkNorm::each_head;
  spec.qk_norm_builder = [](const nn::Scope& scope, const DecoderSpec& whole, int64_t heads, int64_t) {
    return std::make_unique<SplitHeadNorm>(scope, whole, heads);
  };
  spec.mlp_dropout = config.number("hidden_dropout", 0.0);
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"stablelm", "model", {"rotary_emb.inv_freq"}, build, false}; }

}  // namespace easydel::models::zoo::stablelm

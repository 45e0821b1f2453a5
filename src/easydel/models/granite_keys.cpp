#include "easydel/models/granite_keys.h"

#include "easydel/models/decoder_parts.h"
#include "easydel/models/moe_keys.h"

namespace easydel::models {
namespace {

class Both final : public nn::Layer {
 public:
  Both(std::unique_ptr<nn::Layer> experts, std::unique_ptr<nn::Layer> shared)
      : experts_(std::move(experts)), shared_(std::move(shared)) {}
  nn::LayerOutput forward(const Tensor& x, nn::Pass& pass) const override {
    nn::LayerOutput out = experts_->forward(x, pass);
    out.x = out.x + shared_->forward(x, pass).x;
    return out;
  }
  double idle_elements() const override { return experts_->idle_elements(); }

 private:
  std::unique_ptr<nn::Layer> experts_, shared_;
};

}  // namespace

void read_granite(const ConfigReader& config, DecoderSpec& spec) {
  spec.qkv_bias = spec.output_bias = config.boolean("attention_bias", false);
  spec.embedding_multiplier = config.number("embedding_multiplier", 1.0);
  spec.residual_multiplier = config.number("residual_multiplier", 1.0);
  spec.logit_multiplier = 1.0 / config.number("logits_scaling", 1.0);
  const double scale = config.number("attention_multiplier", 1.0);
  for (DecoderLayerSpec& layer : spec.layers) layer.attention.scale = scale;
}

nn::MoeSpec read_granite_experts(const ConfigReader& config, const DecoderSpec& spec, int64_t inner) {
  nn::MoeSpec moe = moe_of(config, spec, integer_of(config, {"num_local_experts"}, 8),
                           config.integer("num_experts_per_tok", 2), inner);
  moe.router.scoring = ops::Scoring::softmax_of_chosen;
  moe.name = "block_sparse_moe";
  moe.router_names.weight = "router.layer.weight";
  moe.experts.files = {nn::ExpertFiles::fused("input_linear.weight", "output_linear.weight"),
                       nn::ExpertFiles::fused("experts.gate_up_proj", "experts.down_proj")};
  return moe;
}

void read_granite_shared(const ConfigReader& config, DecoderSpec& spec, int64_t otherwise) {
  spec.names.mlp = "shared_mlp";
  spec.names.gate_up = "input_linear";
  spec.names.down = "output_linear";
  spec.intermediate = config.integer("shared_intermediate_size", otherwise);
  if (spec.intermediate < 0) config.positive("shared_intermediate_size", spec.intermediate);
}

void set_granite_experts(DecoderSpec& built, const std::shared_ptr<const DecoderSpec>& spec, const nn::MoeSpec& moe) {
  for (DecoderLayerSpec& layer : built.layers)
    layer.feed = [spec, moe](const nn::Scope& block, int64_t index) -> std::unique_ptr<nn::Layer> {
      auto experts = std::make_unique<nn::Moe>(block, moe);
      if (spec->intermediate == 0) return experts;
      return std::make_unique<Both>(std::move(experts), build_feed(block / "shared_mlp", *spec, index));
    };
}

}  // namespace easydel::models

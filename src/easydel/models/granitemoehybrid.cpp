// Granite 4: Mamba-2 with attention in some layers; experts, if there are any, beside an mlp that every token meets.
#include "easydel/base/error.h"
#include "easydel/models/decoder_keys.h"
#include "easydel/models/decoder_parts.h"
#include "easydel/models/family.h"
#include "easydel/models/moe_keys.h"
#include "easydel/models/recurrent_keys.h"

namespace easydel::models {
namespace {

class Both final : public nn::Part {
 public:
  Both(std::unique_ptr<nn::Part> experts, std::unique_ptr<nn::Part> shared)
      : experts_(std::move(experts)), shared_(std::move(shared)) {}
  nn::LayerOutput forward(const Tensor& x, nn::Pass& pass) const override {
    nn::LayerOutput out = experts_->forward(x, pass);
    out.x = out.x + shared_->forward(x, pass).x;
    return out;
  }
  double idle_elements() const override { return experts_->idle_elements(); }

 private:
  std::unique_ptr<nn::Part> experts_, shared_;
};

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  auto spec = std::make_shared<DecoderSpec>(
      read_decoder(config, {.vocabulary = 32000,
                            .hidden = 4096,
                            .intermediate = 11008,
                            .layers = 32,
                            .heads = 32,
                            .max_positions = 2048,
                            .rope = {.none = config.text("position_embedding_type", "none") != "rope"}}));
  spec->qkv_bias = spec->output_bias = config.boolean("attention_bias", false);
  spec->embedding_multiplier = config.number("embedding_multiplier", 1.0);
  spec->residual_multiplier = config.number("residual_multiplier", 1.0);
  spec->logit_multiplier = 1.0 / config.number("logits_scaling", 1.0);
  const int64_t experts = config.integer("num_local_experts", 8), inner = spec->intermediate;
  const int64_t top_k = config.integer("num_experts_per_tok", 2);
  spec->names.mlp = "shared_mlp";
  spec->names.gate_up = "input_linear";
  spec->names.down = "output_linear";
  spec->intermediate = read_size(config, "shared_intermediate_size", 1024);

  std::vector<std::string> kinds = read_kinds(config, config.find("layer_types") ? "layer_types" : "layers_block_type",
                                              {"linear_attention", "full_attention"}, spec->layers.size());
  if (kinds.empty()) kinds.assign(spec->layers.size(), "linear_attention");
  const nn::Mamba2Spec mamba = read_bamba_mixer(config, *spec);
  for (DecoderLayerSpec& layer : spec->layers) layer.scale = config.number("attention_multiplier", 1.0);
  DecoderSpec built = *spec;
  for (size_t i = 0; i < kinds.size(); ++i)
    if (kinds[i] == "linear_attention") built.layers[i].mixer = mixer_builder<nn::Mamba2>("mamba", mamba);
  if (experts > 0) {
    nn::MoeSpec moe = moe_of(config, *spec, experts, top_k, inner);
    moe.router.scoring = ops::Scoring::softmax_of_chosen;
    moe.name = "block_sparse_moe";
    moe.router_names.weight = "router.layer.weight";
    moe.experts.files = {nn::ExpertFiles::fused("input_linear.weight", "output_linear.weight"),
                         nn::ExpertFiles::fused("experts.gate_up_proj", "experts.down_proj")};
    built.router_loss = read_router_loss(config, moe.router);
    for (DecoderLayerSpec& layer : built.layers)
      layer.feed = [spec, moe](const nn::Scope& block, int64_t index) {
        return std::make_unique<Both>(std::make_unique<nn::Moe>(block, moe),
                                      build_feed(block / "shared_mlp", *spec, index));
      };
  }
  return build_decoder(std::move(built), building);
}

}  // namespace

Family granitemoehybrid() {
  return {
      "granitemoehybrid", "model", {"rotary_emb.inv_freq"}, build, false, {{".router.layer.weight", ".router.weight"}}};
}

}  // namespace easydel::models

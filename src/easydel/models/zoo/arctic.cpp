// Snowflake Arctic: experts in every second layer; in parallel with them an mlp reads the attention output, while the
// experts read the block's input.
#include "easydel/base/error.h"
#include "easydel/models/decoder_keys.h"
#include "easydel/models/decoder_parts.h"
#include "easydel/models/family.h"
#include "easydel/models/moe_keys.h"

namespace easydel::models::zoo::arctic {
namespace {

using nn::Scope;

// mixed + mlp(norm(mixed)) + experts(norm(x)), mixed being x + attention(norm(x)).
class Block final : public nn::Layer {
 public:
  Block(const Scope& scope, const DecoderSpec& spec, const nn::MoeSpec& moe, const DecoderSpec& residual_spec,
        int64_t layer) {
    const auto norm = [&](std::optional<nn::Norm>& place, const char* name) {
      place.emplace(scope / name, spec.hidden, spec.norm);
    };
    norm(before_mixer_, "input_layernorm");
    mixer_ = build_attention(scope / spec.names.attention, spec, layer);
    norm(before_mlp_, "residual_layernorm");
    mlp_ = build_feed(scope / "residual_mlp", residual_spec, layer);
    norm(before_experts_, "post_attention_layernorm");
    experts_ = std::make_unique<nn::Moe>(scope, moe);
  }

  nn::LayerOutput forward(const Tensor& x, nn::Pass& pass) const override {
    const Tensor mixed = pass.name("residual", x + mixer_->forward((*before_mixer_)(x), pass).x);
    nn::LayerOutput out = experts_->forward((*before_experts_)(x), pass);
    out.x = mixed + mlp_->forward((*before_mlp_)(mixed), pass).x + out.x;
    return out;
  }

  nn::CacheLayer cache() const override { return mixer_->cache(); }
  double mixing_flops(int64_t length) const override { return mixer_->mixing_flops(length); }
  double idle_elements() const override { return experts_->idle_elements(); }

 private:
  std::optional<nn::Norm> before_mixer_, before_mlp_, before_experts_;
  std::unique_ptr<nn::Layer> mixer_, mlp_, experts_;
};

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  auto spec = std::make_shared<DecoderSpec>(read_decoder(config, {.vocabulary = 32000,
                                                                  .hidden = 4096,
                                                                  .intermediate = 14336,
                                                                  .layers = 32,
                                                                  .heads = 32,
                                                                  .max_positions = 4096,
                                                                  .rope = {.theta = 1e6},
                                                                  .epsilon = 1e-5}));
  spec->names.mlp = "block_sparse_moe.mlp";
  spec->names.gate = "w1";
  spec->names.up = "w3";
  spec->names.down = "w2";
  spec->qkv_bias = spec->output_bias = config.boolean("attention_bias", false);
  for (DecoderLayerSpec& layer : spec->layers) layer.attention.window = read_window(config, 0);
  const auto residual_spec = std::make_shared<DecoderSpec>(*spec);
  residual_spec->intermediate = spec->hidden;

  nn::MoeSpec moe = moe_of(config, *spec, integer_of(config, {"num_local_experts"}, 8),
                           integer_of(config, {"num_experts_per_tok"}, 1), spec->intermediate);
  moe.router.normalise = moe.router.top_k > 1;
  moe.name = "block_sparse_moe";
  moe.experts.files = nn::ExpertFiles::numbered();
  const int64_t step = read_size(config, "moe_layer_frequency", 2);
  const bool parallel = config.boolean("parallel_attn_mlp_res", false);
  DecoderSpec built = *spec;
  built.router_loss = read_router_loss(config, moe.router);
  std::vector<bool> sparse;
  for (size_t i = 0; i < built.layers.size(); ++i) {
    sparse.push_back((int64_t(i) + 1) % step == 0);
    if (sparse.back() && parallel)
      built.layers[i].block = [spec, moe, residual_spec](const Scope& scope, int64_t layer) {
        return std::make_unique<Block>(scope, *spec, moe, *residual_spec, layer);
      };
  }
  if (!parallel) set_experts(built, moe, sparse);
  return build_decoder(std::move(built), building);
}

}  // namespace

Family family() { return {"arctic", "model", {"rotary_emb.inv_freq"}, build, false}; }

}  // namespace easydel::models::zoo::arctic

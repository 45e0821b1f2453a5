// JetMoE (arXiv 2404.07413): experts in the feed-forward; queries and the output of attention are computed by experts,
// too.
#include <ATen/ops/cat.h>

#include <cmath>

#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"
#include "easydel/models/moe_keys.h"

namespace easydel::models::zoo::jetmoe {
namespace {

using nn::Pass;
using nn::Scope;

struct MixerSpec {
  int64_t hidden, kv_heads, head_dim;
  ops::RouterSpec router;
  double deviation, dropout;
  std::shared_ptr<const ops::RopeSpec> rope;
};

// Each expert that a token chooses computes one set of queries; all of them attend to the same keys, and their results
// go through the same experts' output weights.
class Mixer final : public nn::Layer {
 public:
  Mixer(const Scope& scope, const MixerSpec& spec, int64_t layer)
      : spec_(spec),
        layer_(layer),
        router_(scope / "experts", spec.hidden, spec.router, {.weight = "router.layer.weight"}, false, spec.deviation),
        in_(scope / "experts.input_linear", spec.router.experts, spec.hidden, width(),
            {.deviation = spec.deviation, .sources = {}, .bias_sources = {}}),
        out_(scope / "experts.output_linear", spec.router.experts, width(), spec.hidden,
             {.deviation = spec.deviation, .sources = {}, .bias_sources = {}}),
        kv_(scope / "kv_proj", spec.hidden, 2 * width(), {.deviation = spec.deviation}),
        bias_((scope / "experts").parameter("bias", {spec.hidden}, nn::Role::bias, {})) {
    attention_.scale = std::pow(double(spec.head_dim), -0.5);
    attention_.dropout = spec.dropout;
  }

  nn::LayerOutput forward(const Tensor& x, Pass& pass) const override {
    const int64_t tokens = x.size(0), top_k = spec_.router.top_k, heads = top_k * spec_.kv_heads;
    auto [routing, logits] = router_(x, pass);
    const ops::ExpertRows rows = ops::sort_by_expert(routing.indices, spec_.router.experts);
    const Tensor sorted = in_(ops::gather_rows(x, rows), rows, pass);
    // The heads of one choice are contiguous; the backend needs those of one kv head to be.
    const auto transposed = [&](const Tensor& t, int64_t a, int64_t b) {
      return t.view({tokens, a, b, spec_.head_dim}).transpose(1, 2).reshape({tokens, a * b, spec_.head_dim});
    };
    Tensor q = sorted.index_select(0, rows.place.view({-1})).view({tokens, heads, spec_.head_dim});
    const Tensor kv = kv_(x, pass, "attn_key_value");
    Tensor k = kv.narrow(1, 0, width()).reshape({tokens, spec_.kv_heads, spec_.head_dim});
    const Tensor v = kv.narrow(1, width(), width()).reshape({tokens, spec_.kv_heads, spec_.head_dim});
    const ops::RopeTable& table = pass.stream().rope_table(*spec_.rope);
    q = ops::rope(q, table);
    k = ops::rope(k, table);
    const Tensor mixed = pass.attend(layer_, attention_, transposed(q, top_k, spec_.kv_heads), k, v);
    const Tensor by_choice = transposed(mixed.contiguous(), spec_.kv_heads, top_k).view({tokens * top_k, width()});
    const Tensor outputs = out_(by_choice.index_select(0, rows.choice), rows, pass);
    const Tensor out = ops::combine_rows(outputs, routing.weights, rows.place);
    nn::LayerOutput result{out + bias_.value().to(out.scalar_type()), {}};
    // Stored twice, because transformers records it both for its attention and for the gating inside.
    result.extras["attention_router_logits"] = result.extras["gating_router_logits"] = logits;
    if (pass.requests("expert_tokens"))
      result.extras["attention_expert_tokens"] = ops::tokens_of_experts(routing.indices, spec_.router.experts);
    return result;
  }

  nn::CacheLayer cache() const override { return {spec_.kv_heads, spec_.head_dim, spec_.head_dim, {}}; }
  double mixing_flops(int64_t length) const override {
    return 2.0 * double(spec_.router.top_k * spec_.kv_heads * spec_.head_dim) * double(length);
  }
  double idle_elements() const override {
    return 2.0 * double(spec_.router.experts - spec_.router.top_k) * double(width() * spec_.hidden);
  }

 private:
  int64_t width() const { return spec_.kv_heads * spec_.head_dim; }

  MixerSpec spec_;
  int64_t layer_;
  ops::AttentionSpec attention_;
  nn::Router router_;
  nn::ExpertLinear in_, out_;
  nn::Linear kv_;
  nn::Parameter bias_;
};

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec;
  spec.vocabulary = integer_of(config, {"vocab_size"}, 32000);
  spec.hidden = integer_of(config, {"hidden_size"}, 2048);
  spec.intermediate = integer_of(config, {"intermediate_size"}, 5632);
  spec.kv_heads = integer_of(config, {"num_key_value_heads"}, 16);
  spec.head_dim = integer_of(config, {"kv_channels", "head_dim"}, 128);
  const int64_t experts = integer_of(config, {"num_local_experts"}, 8),
                top_k = integer_of(config, {"num_experts_per_tok"}, 2);
  spec.heads = spec.kv_heads * top_k;
  spec.max_positions = integer_of(config, {"max_position_embeddings"}, 4096);
  spec.layers.resize(size_t(integer_of(config, {"num_hidden_layers"}, 12)));
  spec.rope = config.rope(spec.head_dim, spec.max_positions);
  spec.norm = {nn::NormKind::rms, 1e-6, 0.0, false};
  spec.last_norm = spec.norm;
  spec.last_norm->epsilon = config.number("rms_norm_eps", 1e-6);
  read_activation(config, "activation_function", "silu", spec);
  spec.padding = read_padding(config, -1, spec.vocabulary);
  spec.tied = config.boolean("tie_word_embeddings", true);
  spec.deviation = spec.output_deviation = config.number("initializer_range", 0.01);
  nn::MoeSpec moe = moe_of(config, spec, experts, top_k, spec.intermediate);
  moe.router.scoring = ops::Scoring::softmax_of_chosen;
  moe.router_names.weight = "router.layer.weight";
  moe.experts.files = {nn::ExpertFiles::fused("input_linear.weight", "output_linear.weight")};
  moe.output_bias = true;
  spec.router_loss = read_router_loss(config, moe.router, 0.01, "aux_loss_coef");
  set_experts(spec, moe, all_layers(spec));
  const MixerSpec mixer{spec.hidden,
                        spec.kv_heads,
                        spec.head_dim,
                        moe.router,
                        spec.deviation,
                        config.number("attention_dropout", 0.0),
                        std::make_shared<ops::RopeSpec>(*spec.rope)};
  for (DecoderLayerSpec& layer : spec.layers)
    layer.mixer = [mixer](const Scope& block, int64_t index) {
      return std::make_unique<Mixer>(block / "self_attention", mixer, index);
    };
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"jetmoe", "model", {"rotary_emb.inv_freq"}, build, true}; }

}  // namespace easydel::models::zoo::jetmoe

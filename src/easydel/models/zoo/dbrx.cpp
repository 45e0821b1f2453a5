// DBRX: fused and clamped queries, keys and values, layer norms without bias, experts stored in flat tensors.
#include <cmath>

#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"
#include "easydel/models/moe_keys.h"

namespace easydel::models::zoo::dbrx {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  static const Value none = Value::map();
  const auto section = [&](const char* key) {
    const Value* value = config.find(key);
    return ConfigReader(value && value->is_map() ? *value : none, config.where().below(key));
  };
  const ConfigReader attention = section("attn_config"), feed = section("ffn_config");
  DecoderSpec spec;
  spec.names = {.base = "transformer",
                .embedding = "wte",
                .layers = "blocks",
                .norm = "norm_f",
                .before_mixer = "norm_attn_norm.norm_1",
                .before_feed = "norm_attn_norm.norm_2",
                .attention = "norm_attn_norm.attn",
                .qkv = "Wqkv",
                .output = "out_proj",
                .mlp = "ffn"};
  spec.vocabulary = integer_of(config, {"vocab_size"}, 32000);
  spec.hidden = integer_of(config, {"d_model", "hidden_size"}, 2048);
  spec.heads = integer_of(config, {"n_heads", "num_attention_heads"}, 16);
  spec.kv_heads = integer_of(attention, {"kv_n_heads"}, 1);
  check_kv_heads(attention, "kv_n_heads", spec.kv_heads, spec.heads, "n_heads");
  spec.head_dim = head_size(config, "d_model", spec);
  spec.max_positions = integer_of(config, {"max_seq_len", "max_position_embeddings"}, 2048);
  spec.layers.resize(size_t(integer_of(config, {"n_layers", "num_hidden_layers"}, 24)));
  for (DecoderLayerSpec& layer : spec.layers) layer.attention.scale = std::pow(double(spec.head_dim), -0.5);
  spec.rope = config.rope(spec.head_dim, spec.max_positions, {.theta = attention.number("rope_theta", 10000.0)});
  spec.norm = {nn::NormKind::layer, 1e-5, 0.0, false};
  spec.qkv = QkvLayout::sequential;
  spec.clip_qkv = attention.number("clip_qkv", 0.0);
  spec.padding = read_padding(config, -1, spec.vocabulary);
  if (config.boolean("tie_word_embeddings", false))
    config.refuse_key("tie_word_embeddings", "true is not known to this family");
  spec.attention_dropout = attention.number("attn_pdrop", 0.0);
  spec.residual_dropout = config.number("resid_pdrop", 0.0);
  spec.deviation = spec.output_deviation = config.number("initializer_range", 0.02);
  const int64_t inner = spec.intermediate = integer_of(feed, {"ffn_hidden_size"}, 3584);
  const Value* activation = feed.find("ffn_act_fn");
  spec.activation = ops::activation_of(
      activation && activation->is_map() ? ConfigReader(*activation, feed.where()).text("name", "silu") : "silu",
      feed.where().below("ffn_act_fn"));
  nn::MoeSpec moe =
      moe_of(feed, spec, integer_of(feed, {"moe_num_experts"}, 4), integer_of(feed, {"moe_top_k"}, 1), inner);
  moe.router.normalise = !feed.has("moe_normalize_expert_weights") || feed.find("moe_normalize_expert_weights");
  moe.router.norm_order = feed.number("moe_normalize_expert_weights", 1.0);
  moe.input_jitter = feed.number("moe_jitter_eps", 0.0);
  moe.output_dropout = spec.residual_dropout;
  moe.name = "ffn";
  moe.router_names.weight = "router.layer.weight";
  nn::ExpertFiles files;
  files.gate = "experts.mlp.w1", files.up = "experts.mlp.v1", files.down = "experts.mlp.w2";
  files.flat = true;
  moe.experts.files = {files};
  spec.router_loss = read_router_loss(config, moe.router);
  spec.router_loss->coefficient = feed.number("moe_loss_weight", 0.01);
  set_experts(spec, moe, all_layers(spec));
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"dbrx", "transformer", {"rotary_emb.inv_freq"}, build, false}; }

}  // namespace easydel::models::zoo::dbrx

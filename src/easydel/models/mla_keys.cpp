#include "easydel/models/mla_keys.h"

#include <cmath>

#include "easydel/base/error.h"
#include "easydel/models/moe_keys.h"

namespace easydel::models {

DecoderSpec read_latent_decoder(const ConfigReader& config, DecoderDefaults defaults, int64_t intermediate) {
  defaults.head_dim = config.integer("qk_rope_head_dim", 64);
  if (intermediate > 0) defaults.intermediate = intermediate;
  // Every head has its own keys; num_key_value_heads is ignored.
  Value plain = config.document();
  plain.set("num_key_value_heads", Value());
  DecoderSpec spec = read_decoder(ConfigReader(plain, config.where()), defaults);
  if (intermediate > 0) spec.intermediate = intermediate;
  spec.rope.reset();
  return spec;
}

nn::MlaSpec read_mla(const ConfigReader& config, const DecoderSpec& spec, const MlaDefaults& defaults) {
  nn::MlaSpec mla;
  mla.size = spec.hidden;
  mla.heads = spec.heads;
  // null: queries are projected directly from the input.
  mla.q_rank = config.has("q_lora_rank") ? config.integer("q_lora_rank", 0) : defaults.q_rank;
  mla.kv_rank = integer_of(config, {"kv_lora_rank"}, defaults.kv_rank);
  mla.plain_dim = integer_of(config, {"qk_nope_head_dim"}, defaults.plain_dim);
  mla.rope_dim = integer_of(config, {"qk_rope_head_dim"}, defaults.rope_dim);
  mla.v_dim = integer_of(config, {"v_head_dim"}, defaults.v_dim);
  mla.bias = config.boolean("attention_bias", false);
  if (mla.rope_dim % 2 != 0)
    config.refuse_key("qk_rope_head_dim",
                      str(mla.rope_dim, " rotated dimensions; rotary positions need an even number"));
  const double partial =
      config.rope_parameters().number("partial_rotary_factor", config.number("partial_rotary_factor", 1));
  if (partial != 1.0) config.refuse_key("partial_rotary_factor", str(partial, " is not built for this family"));
  ops::RopeSpec rope = config.rope(mla.rope_dim, spec.max_positions, {.theta = defaults.theta});
  rope.interleaved = defaults.interleaved;
  mla.scale = std::pow(double(mla.plain_dim + mla.rope_dim), -0.5);
  if (rope.type != ops::RopeType::standard && rope.mscale_all_dim.value_or(0.0) != 0.0) {
    const double grown = rope.factor <= 1 ? 1.0 : 0.1 * *rope.mscale_all_dim * std::log(rope.factor) + 1.0;
    mla.scale *= grown * grown;
  }
  mla.rope = std::make_shared<ops::RopeSpec>(std::move(rope));
  mla.dropout = spec.attention_dropout;
  mla.deviation = spec.deviation;
  mla.output_deviation = spec.output_deviation;
  return mla;
}

void read_indexer(const ConfigReader& config, nn::MlaSpec& mla, int64_t heads, int64_t dim, int64_t top,
                  bool interleaved) {
  mla.index_heads = integer_of(config, {"index_n_heads"}, heads);
  mla.index_dim = integer_of(config, {"index_head_dim"}, dim);
  mla.index_top = integer_of(config, {"index_topk"}, top);
  ops::RopeSpec rope = *mla.rope;
  rope.interleaved = interleaved;
  mla.index_rope = std::make_shared<ops::RopeSpec>(std::move(rope));
  if (mla.index_dim < mla.rope_dim)
    config.refuse_key("index_head_dim", str(mla.index_dim, " is less than qk_rope_head_dim, ", mla.rope_dim));
  if (mla.q_rank == 0) config.refuse_key("q_lora_rank", "is missing", "the indexer reads the queries' short vector");
}

void set_mla(DecoderSpec& spec, const nn::MlaSpec& mla, const std::vector<bool>& shares_index) {
  nn::MlaSpec own = mla;
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    const bool shares = !shares_index.empty() && shares_index[i];
    if (!shares) own.index_source = -1;
    spec.layers[i].mixer = [own](const nn::Scope& block, int64_t index) { return nn::build_mla(block, own, index); };
    if (!shares) own.index_source = int64_t(i);
  }
}

}  // namespace easydel::models

// GPT-Neo: learned positions, unscaled scores, layers that see all and layers with a window in turns.
#include "easydel/base/error.h"
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"

namespace easydel::models {
namespace {

// attention_types is a list of [[names of layers], how often].
std::vector<std::string> layer_types(const ConfigReader& config) {
  const Value* types = config.find("attention_types");
  std::vector<std::string> out;
  if (!types)
    for (int i = 0; i < 12; ++i) out.insert(out.end(), {"global", "local"});
  for (const Value& item : types ? types->items : std::vector<Value>()) {
    const bool fits = item.is_list() && item.items.size() == 2 && item.items[0].is_list() && item.items[1].as_int();
    if (!fits) config.refuse_key("attention_types", to_json(item) + " is no pair of names and a count");
    for (int64_t i = 0; i < *item.items[1].as_int(); ++i)
      for (const Value& name : item.items[0].items) out.push_back(name.as_string().value_or(to_json(name)));
  }
  return out;
}

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec;
  spec.names = {.base = "transformer",
                .embedding = "wte",
                .layers = "h",
                .norm = "ln_f",
                .before_mixer = "ln_1",
                .before_feed = "ln_2",
                .attention = "attn.attention",
                .output = "out_proj",
                .up = "c_fc",
                .down = "c_proj"};
  spec.vocabulary = read_size(config, "vocab_size", 50257);
  spec.hidden = read_size(config, "hidden_size", 2048);
  spec.heads = spec.kv_heads = read_size(config, "num_heads", "num_attention_heads", 16);
  spec.head_dim = head_size(config, "hidden_size", spec);
  spec.intermediate = read_size(config, "intermediate_size", 4 * spec.hidden);
  spec.max_positions = read_size(config, "max_position_embeddings", 2048);
  spec.layers.resize(size_t(read_size(config, "num_layers", "num_hidden_layers", 24)));
  const int64_t window = read_size(config, "window_size", 256);
  const auto types = layer_types(config);
  if (types.size() != spec.layers.size())
    config.refuse_key("attention_types", str("names ", types.size(), " layers; num_layers is ", spec.layers.size()));
  for (size_t i = 0; i < types.size(); ++i) {
    if (types[i] != "global" && types[i] != "local")
      config.refuse_key("attention_types", str("'", types[i], "' is no type of layer"), "known: global, local");
    spec.layers[i].window = types[i] == "local" ? window : 0;
  }
  spec.blind = ops::Blind::weighs_past;
  spec.norm = {.kind = nn::NormKind::layer, .epsilon = config.number("layer_norm_epsilon", 1e-5)};
  read_activation(config, "activation_function", "gelu_new", spec);
  spec.output_bias = spec.mlp_bias = spec.learned_positions = true;
  spec.gated = false;
  spec.tied = config.boolean("tie_word_embeddings", true);
  spec.attention_dropout = config.number("attention_dropout", 0.0);
  spec.residual_dropout = config.number("resid_dropout", 0.0);
  spec.embedding_dropout = config.number("embed_dropout", 0.0);
  spec.deviation = spec.output_deviation = config.number("initializer_range", 0.02);
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family gpt_neo() {
  return {"gpt_neo", "transformer", {".attention.bias", ".attention.masked_bias"}, build, true};
}

}  // namespace easydel::models

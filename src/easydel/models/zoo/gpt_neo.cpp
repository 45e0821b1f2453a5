// GPT-Neo: learned positions, unscaled scores, full attention and sliding windows in alternate layers.
#include "easydel/base/error.h"
#include "easydel/models/family.h"
#include "easydel/models/gpt_keys.h"

namespace easydel::models::zoo::gpt_neo {
namespace {

// attention_types is a list of [[names of layers], repetitions]; attention_layers, if given, names each layer.
std::vector<std::string> layer_types(const ConfigReader& config) {
  const Value* types = config.find("attention_types");
  std::vector<std::string> out = config.texts("attention_layers");
  if (!out.empty()) return out;
  if (!types)
    for (int i = 0; i < 12; ++i) out.insert(out.end(), {"global", "local"});
  for (const Value& item : types ? types->items : std::vector<Value>()) {
    const bool fits = item.is_list() && item.items.size() == 2 && item.items[0].is_list() && item.items[1].as_int();
    if (!fits) config.refuse_key("attention_types", to_json(item) + " is not a pair of names and a count");
    for (int64_t i = 0; i < *item.items[1].as_int(); ++i)
      for (const Value& name : item.items[0].items) out.push_back(name.as_string().value_or(to_json(name)));
  }
  return out;
}

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_gpt(config, {.hidden = 2048,
                                       .heads = 16,
                                       .layers = 24,
                                       .max_positions = 2048,
                                       .hidden_key = "hidden_size",
                                       .heads_key = "num_heads",
                                       .layers_key = "num_layers",
                                       .positions_key = "max_position_embeddings",
                                       .inner_key = "intermediate_size",
                                       .attention_dropout_key = "attention_dropout",
                                       .residual_dropout_key = "resid_dropout",
                                       .embedding_dropout_key = "embed_dropout"});
  spec.names.attention = "attn.attention";
  spec.names.output = "out_proj";
  const int64_t window = read_size(config, "window_size", 256);
  const auto types = layer_types(config);
  if (types.size() != spec.layers.size())
    config.refuse_key("attention_types", str("names ", types.size(), " layers; num_layers is ", spec.layers.size()));
  for (size_t i = 0; i < types.size(); ++i) {
    if (types[i] != "global" && types[i] != "local")
      config.refuse_key("attention_types", str("'", types[i], "' is not a layer type"), "known: global, local");
    spec.layers[i].attention.scale = 1.0;
    spec.layers[i].attention.window = types[i] == "local" ? window : 0;
    spec.layers[i].attention.fully_masked = ops::FullyMasked::uniform_over_past;
  }
  spec.output_bias = spec.learned_positions = true;
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"gpt_neo", "transformer", {".attention.bias", ".attention.masked_bias"}, build, true}; }

}  // namespace easydel::models::zoo::gpt_neo

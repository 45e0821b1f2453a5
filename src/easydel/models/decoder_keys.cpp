#include "easydel/models/decoder_keys.h"

#include <cmath>

#include "easydel/base/error.h"

namespace easydel::models {

DecoderSpec read_decoder(const ConfigReader& config, const DecoderDefaults& defaults) {
  DecoderSpec spec;
  const auto size = [&](const char* key, int64_t otherwise) {
    const int64_t value = config.integer(key, otherwise);
    config.positive(key, value);
    return value;
  };
  spec.vocabulary = size("vocab_size", defaults.vocabulary);
  spec.hidden = size("hidden_size", defaults.hidden);
  spec.intermediate = size("intermediate_size", defaults.intermediate);
  spec.heads = size("num_attention_heads", defaults.heads);
  // Absent: the family's default; null: derived.
  const auto derived = [&](const char* key, int64_t otherwise, int64_t from_others) {
    return size(key, otherwise && !config.has(key) ? otherwise : from_others);
  };
  spec.kv_heads = derived("num_key_value_heads", defaults.kv_heads, spec.heads);
  if (spec.heads % spec.kv_heads != 0)
    config.refuse_key("num_key_value_heads", str(spec.kv_heads, " does not divide num_attention_heads, ", spec.heads));
  if (!config.find("head_dim") && !defaults.head_dim && spec.hidden % spec.heads != 0)
    config.refuse_key("hidden_size", str(spec.hidden, " is not a multiple of num_attention_heads, ", spec.heads));
  spec.head_dim = derived("head_dim", defaults.head_dim, spec.hidden / spec.heads);
  spec.max_positions = size("max_position_embeddings", defaults.max_positions);
  spec.rope = config.rope(spec.head_dim, spec.max_positions);
  if (spec.rope->dim % 2 != 0)
    config.refuse_key("head_dim", str(spec.rope->dim, " rotated dimensions; rotary positions need an even number"));
  spec.layers.resize(size_t(size("num_hidden_layers", defaults.layers)));
  for (DecoderLayerSpec& layer : spec.layers) layer.scale = std::pow(double(spec.head_dim), -0.5);
  spec.norm = {nn::NormKind::rms, config.number("rms_norm_eps", 1e-6), 0.0, false};
  spec.activation = ops::activation_of(config.text("hidden_act", "silu"), str(config.where(), ": hidden_act"));
  if (const auto padding = config.integer("pad_token_id")) {
    spec.padding = *padding < 0 ? *padding + spec.vocabulary : *padding;
    if (spec.padding < 0 || spec.padding >= spec.vocabulary)
      config.refuse_key("pad_token_id", str(*padding, " is outside the vocabulary of ", spec.vocabulary));
  }
  spec.tied = config.boolean("tie_word_embeddings", false);
  spec.attention_dropout = config.number("attention_dropout", 0.0);
  spec.deviation = config.number("initializer_range", 0.02);
  if (spec.deviation == 0.0) spec.deviation = 0.02;  // as transformers reads it
  spec.output_deviation = spec.deviation;
  return spec;
}

int64_t read_window(const ConfigReader& config) {
  if (!config.has("sliding_window")) return 4096;
  const int64_t window = config.integer("sliding_window", 0);  // null: none
  if (window < 0) config.refuse_key("sliding_window", str(window, " is negative"));
  return window;
}

void read_layer_windows(const ConfigReader& config, DecoderSpec& spec) {
  const bool used = config.boolean("use_sliding_window", false);
  const int64_t window = used ? read_window(config) : 0;
  const auto types = config.texts("layer_types");
  if (!types.empty() && types.size() != spec.layers.size())
    config.refuse_key("layer_types", str("names ", types.size(), " layers; num_hidden_layers is ", spec.layers.size()));
  const int64_t from = config.integer("max_window_layers", 28);
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    bool sliding = int64_t(i) >= from;
    if (!types.empty()) {
      if (types[i] != "sliding_attention" && types[i] != "full_attention")
        config.refuse_key("layer_types", str("'", types[i], "' is not built for this family"),
                          "known: full_attention, sliding_attention");
      sliding = types[i] == "sliding_attention";
      if (sliding && !window)
        config.refuse_key("layer_types", "asks for sliding_attention, but there is no sliding window",
                          "set use_sliding_window and sliding_window");
    }
    if (sliding) spec.layers[i].window = window;
  }
}

}  // namespace easydel::models

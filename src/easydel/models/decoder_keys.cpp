#include "easydel/models/decoder_keys.h"

#include <ATen/ops/tensor.h>

#include <bit>
#include <cmath>

#include "easydel/base/error.h"
#include "easydel/models/rotated_pairs.h"

namespace easydel::models {

int64_t read_size(const ConfigReader& config, std::string_view key, int64_t otherwise) {
  const int64_t value = config.integer(key, otherwise);
  config.positive(key, value);
  return value;
}

int64_t read_size(const ConfigReader& config, std::string_view key, std::string_view also, int64_t otherwise) {
  return read_size(config, config.find(key) || !config.find(also) ? key : also, otherwise);
}

int64_t read_padding(const ConfigReader& config, int64_t otherwise, int64_t vocabulary) {
  const auto given = config.integer("pad_token_id");
  if (!given) return config.has("pad_token_id") || otherwise >= vocabulary ? -1 : otherwise;
  const int64_t padding = *given < 0 ? *given + vocabulary : *given;
  if (padding < 0 || padding >= vocabulary)
    config.refuse_key("pad_token_id", str(*given, " is outside the vocabulary of ", vocabulary));
  return padding;
}

void read_activation(const ConfigReader& config, std::string_view key, std::string_view otherwise, DecoderSpec& spec) {
  const std::string name = config.text(key, otherwise);
  spec.xielu = name == "xielu";
  if (!spec.xielu) spec.activation = ops::activation_of(name, config.where().below(key));
}

void check_kv_heads(const ConfigReader& config, std::string_view key, int64_t kv_heads, int64_t heads,
                    std::string_view heads_key) {
  if (heads % kv_heads != 0) config.refuse_key(key, str(kv_heads, " does not divide ", heads_key, ", ", heads));
}

int64_t head_size(const ConfigReader& config, const char* hidden_key, const DecoderSpec& spec) {
  if (spec.hidden % spec.heads != 0)
    config.refuse_key(hidden_key, str(spec.hidden, " is not a multiple of num_attention_heads, ", spec.heads));
  return spec.hidden / spec.heads;
}

DecoderSpec read_decoder(const ConfigReader& config, const DecoderDefaults& defaults) {
  DecoderSpec spec;
  const auto size = [&](const char* key, int64_t otherwise) { return read_size(config, key, otherwise); };
  if (config.find("per_layer_config") && !defaults.reads_layer_config)
    config.refuse_key("per_layer_config", "is not built for this family");
  spec.vocabulary = size("vocab_size", defaults.vocabulary);
  spec.hidden = size("hidden_size", defaults.hidden);
  spec.intermediate = size("intermediate_size", defaults.intermediate);
  spec.heads = size("num_attention_heads", defaults.heads);
  // Absent: the family's default; null: derived.
  const auto derived = [&](const char* key, int64_t otherwise, int64_t from_others) {
    return size(key, otherwise && !config.has(key) ? otherwise : from_others);
  };
  spec.kv_heads = derived("num_key_value_heads", defaults.kv_heads, spec.heads);
  check_kv_heads(config, "num_key_value_heads", spec.kv_heads, spec.heads);
  const bool own_head_dim =
      defaults.reads_head_dim && (config.find("head_dim") || (defaults.head_dim && !config.has("head_dim")));
  if (own_head_dim)
    spec.head_dim = size("head_dim", defaults.head_dim);
  else
    spec.head_dim = defaults.whole_heads ? head_size(config, "hidden_size", spec) : spec.hidden / spec.heads;
  if (spec.head_dim < 1)
    config.refuse_key("hidden_size", str(spec.hidden, " is less than num_attention_heads, ", spec.heads));
  spec.max_positions = size("max_position_embeddings", defaults.max_positions);
  if (!defaults.rope.none && !defaults.rope.by_layer_type)
    spec.rope = config.rope(spec.head_dim, spec.max_positions, defaults.rope);
  if (spec.rope) check_rotated_pairs(config, *spec.rope, spec.head_dim);
  const int64_t layers = size("num_hidden_layers", defaults.layers);
  constexpr int64_t max_layers = 1 << 16;  // each is allocated before any weight is read
  if (layers > max_layers)
    config.refuse_key("num_hidden_layers", str(layers, " is more than the ", max_layers, " that are built"));
  spec.layers.resize(size_t(layers));
  for (DecoderLayerSpec& layer : spec.layers) layer.attention.scale = std::pow(double(spec.head_dim), -0.5);
  spec.norm = {.kind = nn::NormKind::rms, .epsilon = config.number(defaults.epsilon_key, defaults.epsilon)};
  read_activation(config, defaults.activation_key, defaults.activation, spec);
  spec.padding = read_padding(config, defaults.padding, spec.vocabulary);
  spec.tied = config.boolean("tie_word_embeddings", defaults.tied);
  spec.attention_dropout = config.number("attention_dropout", defaults.attention_dropout);
  spec.deviation = config.number("initializer_range", defaults.deviation);
  if (spec.deviation == 0.0) spec.deviation = 0.02;  // as in transformers
  spec.output_deviation = spec.deviation;
  return spec;
}

int64_t read_window(const ConfigReader& config, int64_t otherwise) {
  if (!config.has("sliding_window")) return otherwise;
  const int64_t window = config.integer("sliding_window", 0);  // null: none
  if (window < 0) config.refuse_key("sliding_window", str(window, " is negative"));
  return window;
}

void check_one_a_layer(const ConfigReader& config, std::string_view key, size_t listed, size_t layers) {
  if (listed != layers) config.refuse_key(key, str("names ", listed, " layers; num_hidden_layers is ", layers));
}

std::vector<bool> read_sliding_layers(const ConfigReader& config, size_t layers,
                                      const std::function<bool(int64_t)>& sliding) {
  const auto types = config.texts("layer_types");
  if (!types.empty()) check_one_a_layer(config, "layer_types", types.size(), layers);
  std::vector<bool> out;
  for (size_t i = 0; i < layers; ++i) {
    if (!types.empty() && types[i] != "sliding_attention" && types[i] != "full_attention")
      config.refuse_key("layer_types", str("'", types[i], "' is not built for this family"),
                        "known: full_attention, sliding_attention");
    out.push_back(types.empty() ? sliding(int64_t(i)) : types[i] == "sliding_attention");
  }
  return out;
}

std::function<bool(int64_t)> all_but_each(int64_t pattern) {
  return [pattern](int64_t layer) { return pattern == 0 || (layer + 1) % pattern != 0; };
}

void set_windows(DecoderSpec& spec, const std::vector<bool>& sliding, int64_t window) {
  for (size_t i = 0; i < spec.layers.size(); ++i) spec.layers[i].attention.window = sliding[i] ? window : 0;
}

void read_layer_windows(const ConfigReader& config, DecoderSpec& spec) {
  const bool used = config.boolean("use_sliding_window", false);
  const int64_t window = used ? read_window(config) : 0, from = config.integer("max_window_layers", 28);
  const auto sliding = read_sliding_layers(config, spec.layers.size(), [&](int64_t i) { return i >= from; });
  for (const bool slides : sliding)
    if (slides && !window && config.find("layer_types"))
      config.refuse_key("layer_types", "requires sliding_attention, but there is no sliding window",
                        "set use_sliding_window and sliding_window");
  set_windows(spec, sliding, window);
}

std::vector<float> alibi_slopes(int64_t heads) {
  const auto closest = int64_t(std::bit_floor(uint64_t(heads)));
  const auto base = [](int64_t n) { return float(std::exp2(-std::exp2(-(std::log2(double(n)) - 3)))); };
  std::vector<float> slopes;
  for (int64_t i = 1; i <= closest; ++i) slopes.push_back(std::pow(base(closest), float(i)));
  for (int64_t i = 0; i < heads - closest; ++i) slopes.push_back(std::pow(base(2 * closest), float(2 * i + 1)));
  return slopes;
}

void set_slopes(DecoderSpec& spec, const std::vector<float>& slopes) {
  const Tensor all = at::tensor(at::ArrayRef<float>(slopes), at::TensorOptions().dtype(at::kFloat));
  for (DecoderLayerSpec& layer : spec.layers) layer.attention.slopes = all;
}

}  // namespace easydel::models

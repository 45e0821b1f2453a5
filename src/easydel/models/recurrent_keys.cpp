#include "easydel/models/recurrent_keys.h"

#include <algorithm>
#include <cmath>

#include "easydel/base/error.h"
#include "easydel/base/names.h"

namespace easydel::models {

std::vector<std::string> read_kinds(const ConfigReader& config, std::string_view key,
                                    std::vector<std::string_view> known, size_t layers) {
  std::vector<std::string> kinds = config.texts(key);
  if (!kinds.empty() && layers > 0) check_one_a_layer(config, key, kinds.size(), layers);
  for (std::string& kind : kinds) {
    if (kind == "mamba" || kind == "mamba2") kind = "linear_attention";
    if (kind == "attention") kind = "full_attention";
    if (std::find(known.begin(), known.end(), kind) == known.end())
      config.refuse_key(key, str("'", kind, "' is not a layer type of this family"),
                        str("known: ", join(std::vector<std::string>(known.begin(), known.end()), ", ")));
  }
  return kinds;
}

std::vector<std::string> read_interval_kinds(const ConfigReader& config, size_t layers) {
  std::vector<std::string> kinds = read_kinds(config, "layer_types", {"linear_attention", "full_attention"}, layers);
  if (kinds.empty()) {
    const int64_t interval = read_size(config, "full_attention_interval", 4);
    for (size_t i = 0; i < layers; ++i)
      kinds.push_back((int64_t(i) + 1) % interval ? "linear_attention" : "full_attention");
  }
  return kinds;
}

int64_t read_step_rank(const ConfigReader& config, std::string_view key, int64_t hidden) {
  const Value* rank = config.find(key);
  return !rank || rank->as_string() == "auto" ? (hidden + 15) / 16 : read_size(config, key, 0);
}

void read_step_limit(const ConfigReader& config, std::string_view key, nn::Mamba2Spec& spec) {
  const Value* limit = config.find(key);
  if (!limit) return;
  const auto number = [&](const Value& value) -> std::optional<double> {
    // transformers writes infinity as {"__float__": "Infinity"}.
    const Value* inner = value.is_map() ? value.find("__float__") : nullptr;
    if (!inner) return value.as_double();
    if (inner->as_string() == "Infinity") return std::numeric_limits<double>::infinity();
    return inner->as_double();
  };
  const bool is_range = limit->is_list() && limit->items.size() == 2;
  const auto min_step = is_range ? number(limit->items[0]) : std::nullopt,
             max_step = is_range ? number(limit->items[1]) : std::nullopt;
  if (!min_step || !max_step || *min_step > *max_step)
    config.refuse_key(key, to_json(*limit) + " is not a pair of numbers, the lesser first");
  spec.min_step = *min_step;
  spec.max_step = *max_step;
}

nn::TimeSteps read_steps(const ConfigReader& config) {
  return {config.number("time_step_min", 0.001), config.number("time_step_max", 0.1),
          config.number("time_step_floor", 1e-4)};
}

nn::Initial of_inputs(int64_t inputs) { return nn::Initial::uniform(1.0 / std::sqrt(double(inputs))); }

nn::Initial read_output_start(const ConfigReader& config, int64_t inner, size_t layers, bool rescaled) {
  if (!config.boolean("rescale_prenorm_residual", rescaled)) return of_inputs(inner);
  return nn::Initial::uniform(1.0 / std::sqrt(double(inner) * double(layers)));
}

nn::Mamba2Spec read_bamba_mixer(const ConfigReader& config, const DecoderSpec& spec, int64_t inner) {
  nn::Mamba2Spec mixer;
  mixer.hidden = spec.hidden;
  mixer.inner = inner > 0 ? inner : read_size(config, "mamba_expand", 2) * spec.hidden;
  mixer.heads = read_size(config, "mamba_n_heads", 128);
  if (mixer.inner % mixer.heads != 0)
    config.refuse_key("mamba_n_heads", str(mixer.heads, " heads do not divide ", mixer.inner, " channels"));
  const Value* head_dim = config.find("mamba_d_head");
  mixer.head_dim =
      !head_dim || head_dim->as_string() == "auto" ? mixer.inner / mixer.heads : read_size(config, "mamba_d_head", 0);
  if (mixer.head_dim * mixer.heads != mixer.inner)
    config.refuse_key("mamba_d_head",
                      str(mixer.heads, " heads of ", mixer.head_dim, " are not ", mixer.inner, " channels"));
  mixer.state = read_size(config, "mamba_d_state", 256);
  mixer.groups = read_size(config, "mamba_n_groups", 1);
  if (mixer.heads % mixer.groups != 0)
    config.refuse_key("mamba_n_groups", str(mixer.groups, " groups do not divide ", mixer.heads, " heads"));
  mixer.width = read_size(config, "mamba_d_conv", 4);
  mixer.convolution_bias = config.boolean("mamba_conv_bias", true);
  mixer.bias = mixer.output_bias = config.boolean("mamba_proj_bias", false);
  mixer.activation = spec.activation;
  mixer.epsilon = spec.norm.epsilon;
  mixer.deviation = spec.deviation;
  read_step_limit(config, "time_step_limit", mixer);
  return mixer;
}

DecoderSpec read_mamba_stack(const ConfigReader& config, const MambaDefaults& defaults) {
  DecoderSpec spec;
  spec.names = {.base = "backbone",
                .embedding = "embeddings",
                .layers = "layers",
                .norm = "norm_f",
                .before_mixer = "norm",
                .attention = "mixer",
                .mlp = ""};
  spec.vocabulary = read_size(config, "vocab_size", defaults.vocabulary);
  spec.hidden = read_size(config, "hidden_size", defaults.hidden);
  spec.norm = {.epsilon = config.number("layer_norm_epsilon", 1e-5)};
  spec.tied = config.boolean("tie_word_embeddings", defaults.tied);
  spec.deviation = config.number("initializer_range", 0.1);
  spec.layers.resize(size_t(read_size(config, "num_hidden_layers", defaults.layers)));
  return spec;
}

DecoderSpec read_mamba(const ConfigReader& config, nn::MambaSpec& mixer) {
  DecoderSpec spec = read_mamba_stack(config, {.vocabulary = 50280, .hidden = 768, .layers = 32, .tied = true});
  mixer.hidden = spec.hidden;
  mixer.inner = read_size(config, "intermediate_size", int64_t(config.number("expand", 2) * double(spec.hidden)));
  mixer.state = read_size(config, "state_size", 16);
  mixer.rank = read_step_rank(config, "time_step_rank", spec.hidden);
  mixer.width = read_size(config, "conv_kernel", 4);
  mixer.bias = config.boolean("use_bias", false);
  mixer.convolution_bias = config.boolean("use_conv_bias", true);
  mixer.activation = ops::activation_of(config.text("hidden_act", "silu"), config.where().below("hidden_act"));
  mixer.step_bias = read_steps(config).initial();
  const std::string scheme = config.text("time_step_init_scheme", "random");
  if (scheme != "random" && scheme != "constant")
    config.refuse_key("time_step_init_scheme", str("'", scheme, "' is not known"), "known: random, constant");
  const double bound = config.number("time_step_scale", 1.0) / std::sqrt(double(mixer.rank));
  mixer.step_weight = scheme == "constant" ? nn::Initial::constant(bound) : nn::Initial::uniform(bound);
  mixer.deviation = spec.deviation;
  mixer.kernel = of_inputs(mixer.width);
  mixer.output = read_output_start(config, mixer.inner, spec.layers.size());
  for (DecoderLayerSpec& layer : spec.layers) layer.mixer = mixer_builder<nn::Mamba>("mixer", mixer);
  return spec;
}

}  // namespace easydel::models

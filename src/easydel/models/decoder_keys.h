// The keys of config.json that Llama-shaped families share.
#pragma once

#include <functional>

#include "easydel/models/config_reader.h"
#include "easydel/models/decoder.h"

namespace easydel::models {

// A family's defaults for keys that config.json does not have (those of transformers' configuration class), and its
// spelling of keys with several names. 0: derived (kv_heads from heads, head_dim from hidden).
struct DecoderDefaults {
  int64_t vocabulary = 0, hidden = 0, intermediate = 0, layers = 0, heads = 0, kv_heads = 0, head_dim = 0;
  int64_t max_positions = 0;
  bool reads_layer_config = false;  // per_layer_config
  bool reads_head_dim = true;       // false: always from hidden and heads
  bool whole_heads =
      false;  // refuse a number of heads that does not divide hidden, as transformers does; else round head_dim down
  RopeDefaults rope = {};
  std::string_view epsilon_key = "rms_norm_eps", activation_key = "hidden_act";
  double epsilon = 1e-6;
  std::string_view activation = "silu";
  int64_t padding = -1;  // -1: none
  double deviation = 0.02, attention_dropout = 0.0;
  bool tied = false;
};

// Reads sizes, norms, activation, rope, ties, dropout and initial range: RMS norms before each part, no window, no
// biases.
DecoderSpec read_decoder(const ConfigReader& config, const DecoderDefaults& defaults);

// A positive integer. With two spellings: the first key that is present.
int64_t read_size(const ConfigReader& config, std::string_view key, int64_t otherwise);
int64_t read_size(const ConfigReader& config, std::string_view key, std::string_view also, int64_t otherwise);
// pad_token_id: the embedding's row that gets no gradient. `otherwise` if the key is absent; -1: none.
int64_t read_padding(const ConfigReader& config, int64_t otherwise, int64_t vocabulary);
// Reads the activation under `key`; xielu has learned parameters.
void read_activation(const ConfigReader& config, std::string_view key, std::string_view otherwise, DecoderSpec& spec);
// UserError "key: ..." if that number of key heads does not divide the number of query heads, which the file calls
// `heads_key`.
void check_kv_heads(const ConfigReader& config, std::string_view key, int64_t kv_heads, int64_t heads,
                    std::string_view heads_key = "num_attention_heads");
// hidden / heads. UserError if that is not an integer.
int64_t head_size(const ConfigReader& config, const char* hidden_key, const DecoderSpec& spec);

// sliding_window; `otherwise` if it is absent, 0 (none) if it is null.
int64_t read_window(const ConfigReader& config, int64_t otherwise = 4096);
// UserError if the list under `key` does not have `layers` (num_hidden_layers) entries.
void check_one_a_layer(const ConfigReader& config, std::string_view key, size_t listed, size_t layers);
// layer_types: whether each layer is "sliding_attention" and not "full_attention". If the key is absent, as `sliding`
// says.
std::vector<bool> read_sliding_layers(const ConfigReader& config, size_t layers,
                                      const std::function<bool(int64_t)>& sliding);
// All layers slide except every `pattern`-th; 0: all layers slide.
std::function<bool(int64_t)> all_but_each(int64_t pattern);
void set_windows(DecoderSpec& spec, const std::vector<bool>& sliding, int64_t window);
// Windows as the qwen families choose them: by layer_types, else by use_sliding_window and max_window_layers.
void read_layer_windows(const ConfigReader& config, DecoderSpec& spec);

// The slopes of ALiBi (arXiv 2108.12409): powers of 2^(-8/n); if the number of heads is not a power of two, completed
// by every second slope of twice as many heads.
std::vector<float> alibi_slopes(int64_t heads);
// Sets the slopes of all layers, one per head.
void set_slopes(DecoderSpec& spec, const std::vector<float>& slopes);

}  // namespace easydel::models

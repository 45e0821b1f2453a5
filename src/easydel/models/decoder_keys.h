// The keys of config.json that Llama-shaped families share.
#pragma once

#include <functional>

#include "easydel/models/config_reader.h"
#include "easydel/models/decoder.h"

namespace easydel::models {

// What a family assumes where its config.json says nothing (the defaults of transformers' configuration class), and how
// it spells what has several spellings. 0: derived (kv_heads from heads, head_dim from hidden).
struct DecoderDefaults {
  int64_t vocabulary = 0, hidden = 0, intermediate = 0, layers = 0, heads = 0, kv_heads = 0, head_dim = 0;
  int64_t max_positions = 0;
  bool reads_layer_config = false;  // per_layer_config
  bool reads_head_dim = true;       // false: always from hidden and heads
  bool whole_heads =
      false;  // heads that do not divide hidden are refused, as transformers does; else a head is rounded down
  RopeDefaults rope = {};
  std::string_view epsilon_key = "rms_norm_eps", activation_key = "hidden_act";
  double epsilon = 1e-6;
  std::string_view activation = "silu";
  int64_t padding = -1;  // -1: none
  double deviation = 0.02, attention_dropout = 0.0;
  bool tied = false;
};

// Sizes, norms, activation, rope, ties, dropout and initial range; rms norms before each part, no window, every bias
// off.
DecoderSpec read_decoder(const ConfigReader& config, const DecoderDefaults& defaults);

// A positive integer; with two spellings, under the first that is there.
int64_t read_size(const ConfigReader& config, std::string_view key, int64_t otherwise);
int64_t read_size(const ConfigReader& config, std::string_view key, std::string_view also, int64_t otherwise);
// pad_token_id as the row of an embedding that learns nothing; `otherwise` where the key is absent; -1: none.
int64_t read_padding(const ConfigReader& config, int64_t otherwise, int64_t vocabulary);
// The activation under `key`; xielu has parameters of its own.
void read_activation(const ConfigReader& config, std::string_view key, std::string_view otherwise, DecoderSpec& spec);
// Heads must divide hidden, for families whose class in transformers asks for it: their size.
int64_t head_size(const ConfigReader& config, const char* hidden_key, const DecoderSpec& spec);

// sliding_window; `otherwise` where it is absent, 0 (none) where it is null.
int64_t read_window(const ConfigReader& config, int64_t otherwise = 4096);
// UserError where `key` lists another number of layers than num_hidden_layers, `layers`.
void check_one_a_layer(const ConfigReader& config, std::string_view key, size_t listed, size_t layers);
// layer_types, one a layer, "full_attention" or "sliding_attention"; what `sliding` says of a layer where it is absent.
std::vector<bool> read_sliding_layers(const ConfigReader& config, size_t layers,
                                      const std::function<bool(int64_t)>& sliding);
// Every layer whose number modulo `pattern` is not the last slides: the rule that several families share. 0: none is
// full.
std::function<bool(int64_t)> all_but_each(int64_t pattern);
void set_windows(DecoderSpec& spec, const std::vector<bool>& sliding, int64_t window);
// Windows by layer_types, else by use_sliding_window and max_window_layers: the qwen families' rule.
void read_layer_windows(const ConfigReader& config, DecoderSpec& spec);

// The slopes of ALiBi (arXiv 2108.12409): powers of 2^(-8/n), with every second of the next size where the number of
// heads is no power of two.
std::vector<float> alibi_slopes(int64_t heads);
// Sets the slopes, one a head, of all layers.
void set_slopes(DecoderSpec& spec, const std::vector<float>& slopes);

}  // namespace easydel::models

// What GPT-2 and the families that kept its shape read of config.json.
#pragma once

#include "easydel/models/decoder_keys.h"

namespace easydel::models {

// A family's defaults for keys that config.json does not have, and its spelling of keys.
struct GptDefaults {
  int64_t vocabulary = 50257, hidden = 768, heads = 12, layers = 12, max_positions = 1024;
  std::string_view activation = "gelu_new";
  double dropout = 0.0;
  bool tied = true;
  const char *hidden_key = "n_embd", *heads_key = "n_head", *layers_key = "n_layer", *positions_key = "n_positions";
  const char* inner_key = "n_inner";
  const char *attention_dropout_key = "attn_pdrop", *residual_dropout_key = "resid_pdrop",
             *embedding_dropout_key = "embd_pdrop";
};

// Sizes, layer norms, activation, ties, dropouts and initial range; names "transformer.h.N.ln_1", "attn", "mlp.c_fc"; a
// plain mlp with biases, scores scaled by the head's size. UserError for cross attention.
DecoderSpec read_gpt(const ConfigReader& config, const GptDefaults& defaults);

}  // namespace easydel::models

// GPT-J: attention and mlp in parallel after one layer norm; interleaved rotary positions on the first dimensions of
// each head.
#include "easydel/base/error.h"
#include "easydel/models/family.h"
#include "easydel/models/gpt_keys.h"

namespace easydel::models::zoo::gptj {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_gpt(
      config, {.vocabulary = 50400, .hidden = 4096, .heads = 16, .layers = 28, .max_positions = 2048, .tied = false});
  spec.names.before_feed = "";
  spec.names.output = "out_proj";
  spec.names.up = "fc_in";
  spec.names.down = "fc_out";
  spec.rope.emplace();
  spec.rope->dim = config.has("rotary_dim") ? config.integer("rotary_dim", 0) : 64;
  spec.rope->interleaved = true;
  if (spec.rope->dim < 2 || spec.rope->dim % 2 != 0 || spec.rope->dim > spec.head_dim)
    config.refuse_key("rotary_dim", str(spec.rope->dim, " is not an even number up to a head's ", spec.head_dim));
  spec.parallel_residual = spec.head_bias = true;
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"gptj", "transformer", {".attn.bias", ".attn.masked_bias"}, build, false}; }

}  // namespace easydel::models::zoo::gptj

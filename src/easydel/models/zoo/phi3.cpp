// Phi-3 and Phi-4 (arXiv 2404.14219): Llama with one fused weight for q, k and v, one for gate and up, and longrope.
#include "easydel/models/decoder_keys.h"
#include "easydel/models/decoder_model.h"
#include "easydel/models/family.h"

namespace easydel::models::zoo::phi3 {
namespace {

class Phi3 final : public Decoder {
 public:
  using Decoder::Decoder;
  // Longer sequences use other frequencies, from their first token on.
  int64_t restart_length() const override {
    return spec().rope->type == ops::RopeType::longrope ? spec().rope->original_max_positions : 0;
  }
};

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec =
      read_decoder(config, {.vocabulary = 32064,
                            .hidden = 3072,
                            .intermediate = 8192,
                            .layers = 32,
                            .heads = 32,
                            .max_positions = 4096,
                            .rope = {.reads_partial = true, .original_max_positions = 4096, .only_longrope = true},
                            .epsilon = 1e-5,
                            .padding = 32000});
  spec.qkv = QkvLayout::sequential;
  spec.names.gate_up = "gate_up_proj";
  const int64_t window = read_window(config, 0);
  for (DecoderLayerSpec& layer : spec.layers) layer.attention.window = window;
  spec.residual_dropout = config.number("resid_pdrop", 0.0);
  config.number("embd_pdrop", 0.0);  // the family's modules do not use it
  return std::make_unique<Phi3>(std::move(spec), building);
}

}  // namespace

Family family() { return {"phi3", "model", {"rotary_emb.inv_freq"}, build, false}; }

}  // namespace easydel::models::zoo::phi3

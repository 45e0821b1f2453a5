// The keys of config.json that recurrent and hybrid families share.
#pragma once

#include "easydel/models/decoder_keys.h"
#include "easydel/nn/mamba.h"

namespace easydel::models {

// The mixer of each layer: the list under `key`, in transformers' current names ("linear_attention", "full_attention")
// whichever names the file has ("mamba", "attention"). UserError: a name that is not in `known`, a list of other than
// `layers` entries (0: any number). Empty: the key is absent.
std::vector<std::string> read_kinds(const ConfigReader& config, std::string_view key,
                                    std::vector<std::string_view> known, size_t layers = 0);

// The mixer of each layer by layer_types, else full attention in every `full_attention_interval`-th.
std::vector<std::string> read_interval_kinds(const ConfigReader& config, size_t layers);

// The rank of a selective scan's steps: a number, or "auto" (the default), a sixteenth of `hidden`.
int64_t read_step_rank(const ConfigReader& config, std::string_view key, int64_t hidden);

// Bounds of the steps of a selective scan: a list of two numbers, the second may be infinite.
void read_step_limit(const ConfigReader& config, std::string_view key, nn::Mamba2Spec& spec);

// time_step_min, time_step_max and time_step_floor: initial biases of the steps.
nn::TimeSteps read_steps(const ConfigReader& config);

// torch's initial values of a linear layer with that many inputs.
nn::Initial of_inputs(int64_t inputs);

// The same for a Mamba's output projection; rescaled: divided by the square root of the number of layers
// (rescale_prenorm_residual).
nn::Initial read_output_start(const ConfigReader& config, int64_t inner, size_t layers, bool rescaled = false);

// mamba_n_heads, mamba_d_head, ... of bamba, falcon_h1 and granitemoehybrid. inner 0: mamba_expand * hidden.
nn::Mamba2Spec read_bamba_mixer(const ConfigReader& config, const DecoderSpec& spec, int64_t inner = 0);

// The stack of the Mamba families, before its mixers: each block is only its mixer.
struct MambaDefaults {
  int64_t vocabulary, hidden, layers;
  bool tied;
};
DecoderSpec read_mamba_stack(const ConfigReader& config, const MambaDefaults& defaults);

// All of mamba and falcon_mamba.
DecoderSpec read_mamba(const ConfigReader& config, nn::MambaSpec& mixer);

// A builder of Mamba or Mamba2 under `name` in the block.
template <class Mixer, class Spec>
nn::LayerBuilder mixer_builder(std::string name, Spec spec) {
  return [name = std::move(name), spec = std::move(spec)](const nn::Scope& block, int64_t layer) {
    return std::make_unique<Mixer>(block / name, spec, layer);
  };
}

}  // namespace easydel::models

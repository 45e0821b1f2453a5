// Mamba-2 (arXiv 2405.21060): one decay per head, states shared by groups of heads.
#include "easydel/base/error.h"
#include "easydel/models/family.h"
#include "easydel/models/recurrent_keys.h"

namespace easydel::models::zoo::mamba2 {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_mamba_stack(config, {.vocabulary = 32768, .hidden = 4096, .layers = 64, .tied = false});
  nn::Mamba2Spec mixer;
  mixer.hidden = spec.hidden;
  mixer.inner = int64_t(config.number("expand", 2) * double(spec.hidden));
  mixer.heads = read_size(config, "num_heads", 128);
  mixer.head_dim = read_size(config, "head_dim", 64);
  if (mixer.heads * mixer.head_dim != mixer.inner)
    config.refuse_key("num_heads", str(mixer.heads, " heads of head_dim ", mixer.head_dim,
                                       " are not expand * hidden_size, ", mixer.inner));
  mixer.state = read_size(config, "state_size", 128);
  mixer.groups = read_size(config, "n_groups", 8);
  if (mixer.heads % mixer.groups != 0)
    config.refuse_key("n_groups", str(mixer.groups, " groups do not divide ", mixer.heads, " heads"));
  mixer.width = read_size(config, "conv_kernel", 4);
  mixer.bias = mixer.output_bias = config.boolean("use_bias", false);
  mixer.convolution_bias = config.boolean("use_conv_bias", true);
  mixer.activation = ops::activation_of(config.text("hidden_act", "silu"), config.where().below("hidden_act"));
  read_step_limit(config, "time_step_limit", mixer);
  mixer.epsilon = spec.norm.epsilon;
  mixer.step_bias = read_steps(config).initial();
  mixer.deviation = spec.deviation;
  mixer.kernel = of_inputs(mixer.width);
  mixer.output = read_output_start(config, mixer.inner, spec.layers.size());
  for (DecoderLayerSpec& layer : spec.layers) layer.mixer = mixer_builder<nn::Mamba2>("mixer", mixer);
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"mamba2", "backbone", {}, build, false}; }

}  // namespace easydel::models::zoo::mamba2

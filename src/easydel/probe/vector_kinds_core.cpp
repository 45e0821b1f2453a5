// The kinds of recorded cases whose answers need torch.
#include "easydel/probe/vectors.h"

namespace easydel::probe {

// Each in vectors_<kind or group>_core.cpp.
VectorKind clip_grad_norm_vectors();
VectorKind config_behaviour_vectors();
VectorKind cross_entropy_vectors();
VectorKind jsd_vectors();
VectorKind kl_estimators_vectors();
VectorKind lora_targets_vectors();
VectorKind peft_adapter_vectors();
VectorKind losses_vectors();
VectorKind mask_info_vectors();
VectorKind model_logits_vectors();
VectorKind model_param_mapping_vectors();
VectorKind model_partition_specs_vectors();
VectorKind model_quantize_vectors();
VectorKind moe_load_balancing_vectors();
VectorKind nash_md_loss_vectors();
VectorKind ppo_vectors();
VectorKind quant_bnb_4bit_vectors();
VectorKind quant_bnb_4bit_double_quant_vectors();
VectorKind quant_fp8_vectors();
VectorKind quant_gguf_vectors();
VectorKind quant_int8_vectors();
VectorKind quant_mxfp4_gpt_oss_vectors();
VectorKind quantization_vectors();
VectorKind rope_vectors();
VectorKind sampling_generate_vectors();
VectorKind sampling_logits_processors_vectors();
VectorKind schedule_vectors();
VectorKind step_tables_vectors();
VectorKind xpo_loss_vectors();

const std::vector<VectorKind>& core_vector_kinds() {
  static const std::vector<VectorKind> kinds = {
      clip_grad_norm_vectors(),
      config_behaviour_vectors(),
      cross_entropy_vectors(),
      jsd_vectors(),
      kl_estimators_vectors(),
      lora_targets_vectors(),
      peft_adapter_vectors(),
      losses_vectors(),
      mask_info_vectors(),
      model_logits_vectors(),
      model_param_mapping_vectors(),
      model_partition_specs_vectors(),
      model_quantize_vectors(),
      moe_load_balancing_vectors(),
      nash_md_loss_vectors(),
      ppo_vectors(),
      quant_bnb_4bit_vectors(),
      quant_bnb_4bit_double_quant_vectors(),
      quant_fp8_vectors(),
      quant_gguf_vectors(),
      quant_int8_vectors(),
      quant_mxfp4_gpt_oss_vectors(),
      quantization_vectors(),
      rope_vectors(),
      sampling_generate_vectors(),
      sampling_logits_processors_vectors(),
      schedule_vectors(),
      step_tables_vectors(),
      xpo_loss_vectors(),
  };
  return kinds;
}

}  // namespace easydel::probe

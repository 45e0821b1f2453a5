// The kinds of recorded cases whose answers need torch.
#include "easydel/cli/vectors.h"

namespace easydel::cli {

// Each in vectors_<kind or group>_core.cpp.
VectorKind clip_grad_norm_vectors();
VectorKind config_behaviour_vectors();
VectorKind cross_entropy_vectors();
VectorKind jsd_vectors();
VectorKind kl_estimators_vectors();
VectorKind lora_targets_vectors();
VectorKind losses_vectors();
VectorKind mask_info_vectors();
VectorKind model_param_mapping_vectors();
VectorKind model_partition_specs_vectors();
VectorKind moe_load_balancing_vectors();
VectorKind rope_vectors();
VectorKind sampling_generate_vectors();
VectorKind sampling_logits_processors_vectors();
VectorKind schedule_vectors();
VectorKind step_tables_vectors();

const std::vector<VectorKind>& core_vector_kinds() {
  static const std::vector<VectorKind> kinds = {
      clip_grad_norm_vectors(),
      config_behaviour_vectors(),
      cross_entropy_vectors(),
      jsd_vectors(),
      kl_estimators_vectors(),
      lora_targets_vectors(),
      losses_vectors(),
      mask_info_vectors(),
      model_param_mapping_vectors(),
      model_partition_specs_vectors(),
      moe_load_balancing_vectors(),
      rope_vectors(),
      sampling_generate_vectors(),
      sampling_logits_processors_vectors(),
      schedule_vectors(),
      step_tables_vectors(),
  };
  return kinds;
}

}  // namespace easydel::cli

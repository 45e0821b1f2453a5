// The section `base_config`, which overrides the model's configuration. Its `values` are EasyDeL's own settings and
// keys of the model's config.json.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "easydel/config/fields.h"
#include "easydel/elarge/model_config.h"
#include "easydel/elarge/sharding_config.h"
#include "easydel/nn/checkpointing_config.h"
#include "easydel/ops/attention_config.h"
#include "easydel/ops/moe_config.h"

namespace easydel::elarge {

using nn::GradientCheckpointing;
using ops::AttentionMechanism;
using ops::MoeMethod;

enum class EasyMethod { train, serve, convert };
constexpr auto choices(EasyMethod) {
  using config::Choice;
  return std::array{Choice{EasyMethod::train, "train"}, Choice{EasyMethod::serve, "serve"}.also("eval"),
                    Choice{EasyMethod::convert, "convert"}};
}

struct BaseValues {
  AttentionMechanism attn_mechanism = AttentionMechanism::automatic;
  std::optional<AttentionMechanism> decode_attn_mechanism;
  AttentionMechanism mla_attn_mechanism = AttentionMechanism::automatic;
  std::optional<DTypeSetting> attn_dtype, kvdtype, mla_attn_dtype, mla_attn_softmax_dtype;
  DTypeSetting attn_softmax_dtype = DTypeSetting::fp32;
  GradientCheckpointing gradient_checkpointing = GradientCheckpointing::none;
  std::optional<std::vector<std::string>> gradient_checkpointing_targets;
  std::optional<int64_t> lmhead_chunksize;
  bool use_scan_mlp = false;
  int64_t scan_mlp_chunk_size = 1024;
  std::optional<int64_t> mask_max_position_embeddings, freq_max_position_embeddings;
  MoeMethod moe_method = MoeMethod::fused_moe;
  bool use_expert_tensor_mode = false;
  std::optional<std::vector<int64_t>> sharding_axis_dims, sharding_dcn_axis_dims;
  std::optional<std::vector<std::string>> sharding_axis_names;
  Value partition_axis;
  bool use_sharded_kv_caching = false;
  std::optional<Backend> backend;
  std::optional<KernelPlatform> platform;
  EasyMethod easy_method = EasyMethod::train;
  std::optional<int64_t> bits;
  Value kv_cache_quantization_config, quantization_config;
  double fcm_max_ratio = 0, fcm_min_ratio = 0;
  std::optional<bool> use_ring_of_experts, fsdp_is_ep_bound, sp_is_ep_bound;
  int64_t blocksize_q = 128, blocksize_k = 128, blocksize_b = 1;
  int64_t moe_tiling_size_batch = 4, moe_tiling_size_seqlen = 128, moe_tiling_size_dim = 128;
  int64_t pallas_m_block_size = 128, pallas_k_block_size = 128, pallas_n_block_size = 128;
  bool use_sharding_constraint = false, scan_ring_attention = true, scan_attention_layers = false,
       precompute_masks = true;
  bool hardware_abstraction = true, moe_force_xla_gmm = false, use_qmm_best_config = false;
  std::string sequence_axis_name = "sp";
  config::Many<std::string> kv_cache_sharding_sequence_axis_name = {"sp"};
  std::string flash_attention_backward_pass_impl = "triton";
  std::optional<std::string> qmm_platform_override, qmm_tpu_path_override;
  Value config_json;  // all other keys: they replace those of the model's config.json

  static constexpr auto doc =
      "EasyDeL's own model settings. Any other key must be a key of the model's config.json, whose value it replaces.";
  static constexpr auto unknown_keys = &BaseValues::config_json;
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    constexpr auto kernels = no_effect("kernels are chosen for the machine");
    constexpr auto compiler = no_effect("nothing is compiled by XLA");
    constexpr auto chunks = no_effect("not built yet: the MLP processes all tokens at once, with the same results");
    constexpr auto attention =
        no_effect("not built yet: attention uses the dtype of the model and accumulates in fp32");
    constexpr auto length = not_built("a length other than the model's");
    constexpr auto elsewhere = not_built("overriding the section `sharding` in base_config");
    return std::array{
        field<&C::attn_mechanism>(
            "Attention backend; auto: the fastest one that supports the model. Most users should leave this alone."),
        field<&C::decode_attn_mechanism>("Attention backend while generating; null: attn_mechanism.",
                                         not_built("a different backend while generating")),
        field<&C::mla_attn_mechanism>("Attention backend of multi-head latent attention (MLA).",
                                      not_built("latent attention")),
        field<&C::attn_dtype>("Dtype of attention; null: loader.dtype.", attention),
        field<&C::kvdtype>("Dtype of the KV cache: bf16 halves the memory of one in fp32. Null or auto: the model's. "
                           "quantization.kv_cache makes it smaller still."),
        field<&C::mla_attn_dtype>("Dtype of multi-head latent attention.", not_built("latent attention")),
        field<&C::mla_attn_softmax_dtype>("Dtype of the softmax in multi-head latent attention.",
                                          not_built("latent attention")),
        field<&C::attn_softmax_dtype>("Dtype of the attention softmax.", not_built("a softmax dtype other than fp32")),
        field<&C::gradient_checkpointing>(
            "Which activations each layer keeps for the backward pass; the others are recomputed. nothing_saveable "
            "uses the least memory and costs one more forward pass; none keeps all. Change it if training runs out of "
            "memory."),
        field<&C::gradient_checkpointing_targets>("Names of the tensors to keep, for the policies that take names."),
        field<&C::lmhead_chunksize>("Number of tokens whose logits are computed at once; null: chosen by "
                                    "size. Smaller chunks save memory with large vocabularies.",
                                    at_least(1)),
        field<&C::use_scan_mlp>("Run the MLP over chunks of tokens to save memory.", chunks),
        field<&C::scan_mlp_chunk_size>("Number of tokens in a chunk of use_scan_mlp.", at_least(1), chunks),
        field<&C::mask_max_position_embeddings>("Maximum sequence length; null: the model's.", at_least(1), length),
        field<&C::freq_max_position_embeddings>("Number of positions with rotary tables; null: the model's.",
                                                at_least(1), length),
        field<&C::moe_method>(
            "How experts are computed: fused_moe groups tokens by expert, standard_moe runs one expert after the "
            "other, dense_moe computes every expert for every token. Most users should leave this alone."),
        field<&C::use_expert_tensor_mode>("Shard experts over tp.", not_built("sharding experts over tp")),
        field<&C::sharding_axis_dims>("The same as sharding.axis_dims.", elsewhere),
        field<&C::sharding_dcn_axis_dims>("The same as sharding.dcn_axis_dims.", elsewhere),
        field<&C::sharding_axis_names>("The same as sharding.axis_names.", elsewhere),
        field<&C::partition_axis>("The same as sharding.partition_axis.", elsewhere),
        field<&C::use_sharded_kv_caching>("Shard the KV cache over ranks.", not_built("a sharded KV cache")),
        field<&C::backend>("The same as platform.backend."),
        field<&C::platform>("Kernel implementation.", kernels),
        field<&C::easy_method>("What the model is built for.", no_effect("one forward serves training and generation")),
        field<&C::bits>("Number of bits of a weight, for information.", no_effect("for information only")),
        field<&C::kv_cache_quantization_config>("The same as quantization.kv_cache.", not_built("quantization")),
        field<&C::quantization_config>("The same as quantization.model.", not_built("quantization")),
        field<&C::fcm_max_ratio>("Largest share of tokens that forgetful causal masking masks.", between(0, 1),
                                 not_built("forgetful causal masking")),
        field<&C::fcm_min_ratio>("Smallest share of tokens that forgetful causal masking masks.", between(0, 1),
                                 not_built("forgetful causal masking")),
        field<&C::use_ring_of_experts>("The same as sharding.use_ring_of_experts.", elsewhere),
        field<&C::fsdp_is_ep_bound>("The same as sharding.fsdp_is_ep_bound.", elsewhere),
        field<&C::sp_is_ep_bound>("The same as sharding.sp_is_ep_bound.", elsewhere),
        field<&C::blocksize_q>("Number of queries in an attention block.", kernels),
        field<&C::blocksize_k>("Number of keys in an attention block.", kernels),
        field<&C::blocksize_b>("Number of sequences in an attention block.", kernels),
        field<&C::moe_tiling_size_batch>("Tile size of expert products, batch dimension.", kernels),
        field<&C::moe_tiling_size_seqlen>("Tile size of expert products, token dimension.", kernels),
        field<&C::moe_tiling_size_dim>("Tile size of expert products, feature dimension.", kernels),
        field<&C::pallas_m_block_size>("Tile size of products, rows of the result.", kernels),
        field<&C::pallas_k_block_size>("Tile size of products, inner dimension.", kernels),
        field<&C::pallas_n_block_size>("Tile size of products, columns of the result.", kernels),
        field<&C::use_sharding_constraint>("Add sharding constraints for the compiler.", compiler),
        field<&C::scan_ring_attention>("Compile ring attention as a scan.", compiler),
        field<&C::scan_attention_layers>("Compile the layers as a scan.", compiler),
        field<&C::precompute_masks>("Compute attention masks in advance.", no_effect("masks are never materialized")),
        field<&C::hardware_abstraction>("Choose kernels by hardware.", kernels),
        field<&C::moe_force_xla_gmm>("Use XLA's grouped matrix products for experts.", compiler),
        field<&C::use_qmm_best_config>("Use tuned TPU kernels for quantized products.", kernels),
        field<&C::sequence_axis_name>("Mesh axis that sequences are sharded over.",
                                      not_built("a different sequence axis")),
        field<&C::kv_cache_sharding_sequence_axis_name>("Mesh axis that the KV cache is sharded over.",
                                                        not_built("a different sequence axis")),
        field<&C::flash_attention_backward_pass_impl>("Implementation of flash attention's backward pass.", kernels),
        field<&C::qmm_platform_override>("Kernel implementation of quantized products.", kernels),
        field<&C::qmm_tpu_path_override>("TPU kernel of quantized products.", kernels),
    };
  }
  void settle(config::Keys& keys);
};

struct OperationConfig {
  Value settings;

  static constexpr auto doc = "Block sizes for the kernel of one operation.";
  static constexpr auto unknown_keys = &OperationConfig::settings;
  template <class C>
  static constexpr auto fields() {
    return std::array<config::Field, 0>{};
  }
  void settle(config::Keys& keys) {
    for (const auto& [name, value] : settings.entries) keys.no_effect(name, "kernels are chosen for the machine");
  }
};

struct BaseConfig {
  BaseValues values;
  std::map<std::string, std::optional<OperationConfig>> operation_configs;

  static constexpr auto doc = "Keys that replace those of the model's configuration.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::values>("Configuration keys to override, by name."),
        field<&C::operation_configs>("Kernel settings by operation: flash_attn2, ring, sdpa, ..."),
    };
  }
  void settle(config::Keys& keys);
};

}  // namespace easydel::elarge

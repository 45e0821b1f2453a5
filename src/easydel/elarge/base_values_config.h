// Overrides of the model's configuration: the section `base_config`. Its `values` are EasyDeL's own fields of every
// model and, beyond them, keys of the model's config.json.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "easydel/config/fields.h"
#include "easydel/elarge/model_config.h"
#include "easydel/elarge/sharding_config.h"

namespace easydel::elarge {

enum class AttentionMechanism {
  automatic,
  vanilla,
  sdpa,
  flash_attn2,
  blocksparse,
  blockwise,
  ring,
  cudnn,
  autoregressive_decodeattn,
  page_attention,
  ragged_page_attention_v2,
  ragged_page_attention_v3,
  multi_latent_ragged_page_attention_v1,
  unified_attention,
  paged_flash_attention
};
constexpr auto choices(AttentionMechanism) {
  using enum AttentionMechanism;
  using config::Choice;
  return std::array{Choice{automatic, "auto"},
                    Choice{vanilla, "vanilla"},
                    Choice{sdpa, "sdpa"},
                    Choice{flash_attn2, "flash_attn2"}.also("flash"),
                    Choice{blocksparse, "blocksparse"}.also("splash"),
                    Choice{blockwise, "blockwise"},
                    Choice{ring, "ring"}.not_built(),
                    Choice{cudnn, "cudnn"},
                    Choice{autoregressive_decodeattn, "autoregressive_decodeattn"},
                    Choice{page_attention, "page_attention"}.not_built(),
                    Choice{ragged_page_attention_v2, "ragged_page_attention_v2"}.not_built(),
                    Choice{ragged_page_attention_v3, "ragged_page_attention_v3"}.not_built(),
                    Choice{multi_latent_ragged_page_attention_v1, "multi_latent_ragged_page_attention_v1"}.not_built(),
                    Choice{unified_attention, "unified_attention"}.not_built(),
                    Choice{paged_flash_attention, "paged_flash_attention"}.not_built()};
}

enum class GradientCheckpointing {
  none,
  nothing_saveable,
  everything_saveable,
  checkpoint_dots,
  checkpoint_dots_with_no_batch_dims,
  dots_saveable,
  dots_with_no_batch_dims_saveable,
  save_anything_except_these_names,
  save_any_names_but_these,
  save_only_these_names,
  save_from_both_policies,
  mlp_notsaveable,
  attn_notsaveable,
  mlp_attn_notsaveable
};
constexpr auto choices(GradientCheckpointing) {
  using enum GradientCheckpointing;
  using config::Choice;
  return std::array{Choice{none, "none"}.also(""),
                    Choice{nothing_saveable, "nothing_saveable"},
                    Choice{everything_saveable, "everything_saveable"},
                    Choice{checkpoint_dots, "checkpoint_dots"},
                    Choice{checkpoint_dots_with_no_batch_dims, "checkpoint_dots_with_no_batch_dims"},
                    Choice{dots_saveable, "dots_saveable"},
                    Choice{dots_with_no_batch_dims_saveable, "dots_with_no_batch_dims_saveable"},
                    Choice{save_anything_except_these_names, "save_anything_except_these_names"},
                    Choice{save_any_names_but_these, "save_any_names_but_these"},
                    Choice{save_only_these_names, "save_only_these_names"},
                    Choice{save_from_both_policies, "save_from_both_policies"},
                    Choice{mlp_notsaveable, "mlp_notsaveable"},
                    Choice{attn_notsaveable, "attn_notsaveable"},
                    Choice{mlp_attn_notsaveable, "mlp_attn_notsaveable"}};
}

enum class MoeMethod { fused_moe, standard_moe, dense_moe };
constexpr auto choices(MoeMethod) {
  using config::Choice;
  return std::array{Choice{MoeMethod::fused_moe, "fused_moe"},
                    Choice{MoeMethod::standard_moe, "standard_moe"}.also("einsum"),
                    Choice{MoeMethod::dense_moe, "dense_moe"}};
}
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
  std::optional<DType> attn_dtype, kvdtype, mla_attn_dtype, mla_attn_softmax_dtype;
  DType attn_softmax_dtype = DType::fp32;
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
  Value config_json;  // other keys: of the model's config.json

  static constexpr auto doc = "EasyDeL's own fields of a model; any other key must be one of its config.json.";
  static constexpr auto unknown_keys = &BaseValues::config_json;
  static constexpr auto fields() {
    using namespace config;
    constexpr auto kernels = no_effect("kernels are chosen for the machine");
    constexpr auto compiler = no_effect("nothing is compiled by XLA");
    constexpr auto chunks = no_effect("not built yet: the MLP takes all tokens at once; results are the same");
    constexpr auto attention = no_effect("not built yet: attention takes the model's type and adds up in fp32");
    constexpr auto length = not_built("another length than the model's");
    constexpr auto elsewhere = not_built("overriding the section `sharding` here");
    return std::tuple{
        field<&BaseValues::attn_mechanism>("Attention backend; auto: the best that can serve the model."),
        field<&BaseValues::decode_attn_mechanism>("Attention backend while generating; null: the same.",
                                                  not_built("another backend while generating")),
        field<&BaseValues::mla_attn_mechanism>("Attention backend of latent attention.", not_built("latent attention")),
        field<&BaseValues::attn_dtype>("Number type of attention; null: loader.dtype.", attention),
        field<&BaseValues::kvdtype>("Number type of cached keys and values; null: as attention.", attention),
        field<&BaseValues::mla_attn_dtype>("Number type of latent attention.", not_built("latent attention")),
        field<&BaseValues::mla_attn_softmax_dtype>("Number type of its softmax.", not_built("latent attention")),
        field<&BaseValues::attn_softmax_dtype>("Number type of attention's softmax.",
                                               not_built("a softmax in another type than fp32")),
        field<&BaseValues::gradient_checkpointing>("What a layer keeps for the backward pass."),
        field<&BaseValues::gradient_checkpointing_targets>("Names of tensors, for the policies that take names."),
        field<&BaseValues::lmhead_chunksize>("Tokens whose logits are computed at once; null: chosen by size.",
                                             at_least(1)),
        field<&BaseValues::use_scan_mlp>("Run the MLP over chunks of tokens.", chunks),
        field<&BaseValues::scan_mlp_chunk_size>("Tokens in such a chunk.", at_least(1), chunks),
        field<&BaseValues::mask_max_position_embeddings>("Longest sequence; null: the model's.", at_least(1), length),
        field<&BaseValues::freq_max_position_embeddings>("Positions with rotary tables; null: the model's.",
                                                         at_least(1), length),
        field<&BaseValues::moe_method>("How experts are computed."),
        field<&BaseValues::use_expert_tensor_mode>("Experts cut over tp.", not_built("models with experts")),
        field<&BaseValues::sharding_axis_dims>("As sharding.axis_dims.", elsewhere),
        field<&BaseValues::sharding_dcn_axis_dims>("As sharding.dcn_axis_dims.", elsewhere),
        field<&BaseValues::sharding_axis_names>("As sharding.axis_names.", elsewhere),
        field<&BaseValues::partition_axis>("As sharding.partition_axis.", elsewhere),
        field<&BaseValues::use_sharded_kv_caching>("Cut the cache over ranks.", not_built("a cut KV cache")),
        field<&BaseValues::backend>("As platform.backend."),
        field<&BaseValues::platform>("Whose kernels.", kernels),
        field<&BaseValues::easy_method>("What the model is built for.",
                                        no_effect("one forward serves training and generation")),
        field<&BaseValues::bits>("Bits of the weights, for information.", no_effect("for information only")),
        field<&BaseValues::kv_cache_quantization_config>("As quantization.kv_cache.", not_built("quantization")),
        field<&BaseValues::quantization_config>("As quantization.model.", not_built("quantization")),
        field<&BaseValues::fcm_max_ratio>("Most tokens hidden by forgetful causal masking.", between(0, 1),
                                          not_built("forgetful causal masking")),
        field<&BaseValues::fcm_min_ratio>("Fewest of them.", between(0, 1), not_built("forgetful causal masking")),
        field<&BaseValues::use_ring_of_experts>("As sharding.use_ring_of_experts.", elsewhere),
        field<&BaseValues::fsdp_is_ep_bound>("As sharding.fsdp_is_ep_bound.", elsewhere),
        field<&BaseValues::sp_is_ep_bound>("As sharding.sp_is_ep_bound.", elsewhere),
        field<&BaseValues::blocksize_q>("Queries in a block.", kernels),
        field<&BaseValues::blocksize_k>("Keys in a block.", kernels),
        field<&BaseValues::blocksize_b>("Sequences in a block.", kernels),
        field<&BaseValues::moe_tiling_size_batch>("Tile of experts.", kernels),
        field<&BaseValues::moe_tiling_size_seqlen>("Tile of experts.", kernels),
        field<&BaseValues::moe_tiling_size_dim>("Tile of experts.", kernels),
        field<&BaseValues::pallas_m_block_size>("Tile of products.", kernels),
        field<&BaseValues::pallas_k_block_size>("Tile of products.", kernels),
        field<&BaseValues::pallas_n_block_size>("Tile of products.", kernels),
        field<&BaseValues::use_sharding_constraint>("Sharding constraints.", compiler),
        field<&BaseValues::scan_ring_attention>("Ring attention as a scan.", compiler),
        field<&BaseValues::scan_attention_layers>("Layers as a scan.", compiler),
        field<&BaseValues::precompute_masks>("Masks made once.", no_effect("no mask is ever made whole")),
        field<&BaseValues::hardware_abstraction>("Kernels by hardware.", kernels),
        field<&BaseValues::moe_force_xla_gmm>("XLA's grouped products.", compiler),
        field<&BaseValues::use_qmm_best_config>("Tuned TPU kernels.", kernels),
        field<&BaseValues::sequence_axis_name>("Axis that cuts sequences.", not_built("another sequence axis")),
        field<&BaseValues::kv_cache_sharding_sequence_axis_name>("Axis that cuts the cache.",
                                                                 not_built("another sequence axis")),
        field<&BaseValues::flash_attention_backward_pass_impl>("Whose backward pass.", kernels),
        field<&BaseValues::qmm_platform_override>("Whose kernels.", kernels),
        field<&BaseValues::qmm_tpu_path_override>("Which TPU kernels.", kernels),
    };
  }
  void settle(config::Keys& keys);
};

struct OperationConfig {
  Value settings;

  static constexpr auto doc = "Block sizes of one operation's kernel.";
  static constexpr auto unknown_keys = &OperationConfig::settings;
  static constexpr auto fields() { return std::tuple{}; }
  void settle(config::Keys& keys) {
    for (const auto& [name, value] : settings.entries) keys.no_effect(name, "kernels are chosen for the machine");
  }
};

struct BaseConfig {
  BaseValues values;
  std::map<std::string, std::optional<OperationConfig>> operation_configs;

  static constexpr auto doc = "Overrides of the model's configuration.";
  static constexpr auto fields() {
    using namespace config;
    return std::tuple{
        field<&BaseConfig::values>("Overrides by name."),
        field<&BaseConfig::operation_configs>("Kernel settings by operation: flash_attn2, ring, sdpa, ..."),
    };
  }
  void settle(config::Keys& keys);
};

}  // namespace easydel::elarge

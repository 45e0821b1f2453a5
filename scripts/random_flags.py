"""Random sizes and flags for a family from one configuration of it: every key has a rule by its name, so that a family
needs no table of its own. What transformers refuses is drawn again by the caller. Used by random_configs.py."""
import random

# Made from other keys, or without a meaning for what is computed.
DERIVED = {"architectures", "model_type", "transformers_version", "dtype", "qk_head_dim", "attention_head_dim", "attention_hidden_size",
           "n_mamba_heads", "bos_token_id", "eos_token_id", "hybrid_layer_ids", "use_mamba_kernels", "use_mambapy",
           "use_mem_eff_path", "use_cache", "use_associative_scan", "pretraining_tp", "chunk_size"}
FIXED = {"is_decoder", "add_cross_attention", "mtp_layers_block_type", "moe_shared_expert_overlap", "residual_in_fp32", "use_mem_rope",
         "attn_implementation", "use_bidirectional_attention", "is_encoder_decoder", "rescale_prenorm_residual",
         "enable_moe_block", "use_double_wide_mlp", "use_long_context", "mode", "return_last_states", "chunkwise_kernel",
         "tie_word_embeddings", "output_router_logits", "alibi", "use_qkv_bias_in_fp32"}
SIZES = {"vocab_size": [96, 131], "intermediate_size": [24, 40, 64], "shared_intermediate_size": [16, 24], "ffn_dim": [24, 48],
         "n_inner": [None, 40], "ffn_hidden_size": [24, 48], "expert_ffn_hidden_size": [12, 20], "moe_intermediate_size": [12, 20],
         "shared_expert_intermediate_size": [12, 24], "moe_shared_expert_intermediate_size": [12, 24], "intermediate_size_mlp": [24, 40],
         "head_dim": [8, 12, 16], "sliding_window": [3, 5, 8], "attention_chunk_size": [3, 5, 8], "window_size": [3, 5],
         "num_experts": [4, 6, 8], "num_local_experts": [4, 6, 8], "n_routed_experts": [4, 8], "moe_num_experts": [4, 6],
         "num_experts_per_tok": [1, 2, 3], "moe_topk": [1, 2, 3], "moe_k": [1, 2, 3], "num_experts_per_token": [1, 2, 3], "top_k_experts": [1, 2],
         "n_shared_experts": [1, 2], "num_shared_experts": [1, 2], "moe_num_shared_experts": [1, 2], "zero_expert_num": [1, 2, 3],
         "first_k_dense_replace": [0, 1, 2], "decoder_sparse_step": [1, 2], "interleave_moe_layer_step": [1, 2],
         "q_lora_rank": [None, 8, 12], "kv_lora_rank": [8, 16], "qk_nope_head_dim": [6, 8], "qk_rope_head_dim": [4, 8], "v_head_dim": [6, 8, 12],
         "index_topk": [2, 4, 8], "index_n_heads": [2, 4], "index_head_dim": [8, 16],
         "mamba_d_conv": [2, 4], "mamba_d_state": [4, 8], "mamba_dt_rank": [2, 4], "state_size": [4, 8], "conv_kernel": [2, 4], "ssm_state_size": [4, 8],
         "mamba_expand": [2, 3], "expand": [2, 3], "mamba_n_groups": [1, 2], "mamba_ngroups": [1, 2], "n_groups": [1, 2], "time_step_rank": [2, 3],
         "attn_layer_offset": [0, 1], "expert_layer_offset": [0, 1], "adapter_rank": [2, 4], "conv_L_cache": [2, 3, 4],
         "linear_conv_kernel_dim": [2, 4], "linear_head_dim": [4, 8], "linear_key_head_dim": [4, 8], "linear_value_head_dim": [4, 8],
         "max_window_layers": [0, 1, 2], "block_size": [4, 8, 16], "num_mem_blocks": [1, 2], "laurel_rank": [4, 8], "moe_layer_interval": [1, 2],
         "moe_layer_start_index": [0, 1, 2], "num_kv_shared_layers": None, "no_rope_layer_interval": [2, 3], "attention_multiplier": [0.1, 0.3],
         "scoring_func": None, "topk_method": None}
EPSILONS = ("eps", "epsilon")
SCALES = ("multiplier", "scaling", "_scale", "alpha_factor", "beta_factor", "multipliers", "logit_softcapping", "router_aux_loss_coef",
          "moe_loss_weight", "swiglu_limit", "soft_cap")
ACTIVATIONS = ["silu", "silu", "gelu", "gelu_pytorch_tanh", "relu", "relu2"]
LAYER_LISTS = ("layer_types", "mlp_layer_types", "layers_block_type", "no_rope_layers", "moe_layers", "indexer_types")
HEADS = [(4, 2), (4, 4), (4, 1), (2, 2), (6, 3), (8, 2)]


def scaled(value, r):
    if isinstance(value, list):
        return [scaled(v, r) for v in value]
    return value * r.choice([0.5, 1.0, 1.7]) if isinstance(value, float) else value


def rotary(parameters, r):
    if "rope_type" not in parameters:  # by type of layer
        return {k: rotary(v, r) if isinstance(v, dict) else v for k, v in parameters.items()}
    out = dict(parameters, rope_theta=r.choice([10000.0, 500000.0]))
    if out["rope_type"] == "default" and "mrope_section" not in out and "partial_rotary_factor" not in out and r.random() < 0.5:
        kind = r.choice(["linear", "dynamic", "yarn", "llama3"])
        out.update(rope_type=kind, factor=r.choice([2.0, 4.0]))
        if kind in ("yarn", "llama3"):
            out["original_max_position_embeddings"] = r.choice([16, 32])
        if kind == "llama3":
            out.update(low_freq_factor=1.0, high_freq_factor=4.0)
        if kind == "yarn" and r.random() < 0.5:
            out.update(mscale=r.choice([0.7, 1.0]), mscale_all_dim=r.choice([0.5, 1.0]))
    return out


def mutated(base, r):
    """A configuration like `base` (a map of its keys) with other sizes and flags."""
    c = {k: v for k, v in base.items() if k not in DERIVED}
    latent = "kv_lora_rank" in c
    if latent:
        c.pop("head_dim", None)
    if "num_attention_heads" in c and r.random() < 0.7:
        heads, kv = r.choice(HEADS)
        if "num_key_value_heads" in c:
            c["num_key_value_heads"] = heads if latent or c["num_key_value_heads"] == c["num_attention_heads"] else kv
        c["num_attention_heads"] = heads
        if "num_query_groups" in c:
            c["num_query_groups"] = heads
    if "hidden_size" in c and r.random() < 0.4:
        c["hidden_size"] = r.choice([24, 32, 48])
    for key, value in c.items():
        if key in FIXED or key in ("num_attention_heads", "num_key_value_heads", "hidden_size", "num_query_groups"):
            continue
        if key in SIZES:
            if SIZES[key] and r.random() < 0.5 and value is not None:
                c[key] = r.choice(SIZES[key])
        elif key in LAYER_LISTS and isinstance(value, list):
            if r.random() < 0.5:
                c[key] = r.sample(value, len(value)) if r.random() < 0.5 else [r.choice(value) for _ in value]
        elif key == "rope_parameters" and isinstance(value, dict):
            c[key] = rotary(value, r)
        elif key.endswith(("hidden_act", "hidden_activation", "activation_function")) and isinstance(value, str):
            if value in ("silu", "gelu", "gelu_pytorch_tanh", "relu", "relu2") and r.random() < 0.5:
                c[key] = r.choice(ACTIVATIONS)
        elif isinstance(value, bool):
            if r.random() < 0.35:
                c[key] = not value
        elif isinstance(value, dict):
            c[key] = mutated(value, r)
        elif key.endswith(EPSILONS) and isinstance(value, float):
            c[key] = r.choice([1e-6, 1e-5, 1e-3])
        elif any(s in key for s in SCALES) and r.random() < 0.5:
            c[key] = scaled(value, r)
    if "tie_word_embeddings" in c:
        c["tie_word_embeddings"] = r.random() < 0.3
    if "output_router_logits" in c:
        c["output_router_logits"] = r.random() < 0.4
        if c.get("router_aux_loss_coef"):
            c["router_aux_loss_coef"] = r.choice([0.01, 0.3])
    layers = c.get("num_hidden_layers")
    if layers and not any(isinstance(c.get(k), list) for k in LAYER_LISTS) and r.random() < 0.5:
        c["num_hidden_layers"] = r.choice([2, 3, 4])
    if latent and "head_dim" in base:  # of some families it is what turns
        c["head_dim"] = c["qk_rope_head_dim"]
    if "n_group" in c:
        c["n_group"], c["topk_group"] = r.choice([(1, 1), (2, 1), (2, 2), (4, 2), (4, 3)])
    return c

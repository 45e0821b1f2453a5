"""Varies sizes and flags of a configuration at random. Each key has a rule by its name, so no family needs a table. The caller
retries if transformers refuses the result. Used by random_configs.py."""
import math
import random

# Derived from other keys, or without effect on the results.
DERIVED = {"architectures", "model_type", "transformers_version", "dtype", "qk_head_dim", "attention_head_dim", "attention_hidden_size",
           "n_mamba_heads", "bos_token_id", "eos_token_id", "use_mamba_kernels", "use_mambapy",
           "use_mem_eff_path", "use_cache", "use_associative_scan", "pretraining_tp"}
FIXED = {"is_decoder", "add_cross_attention", "mtp_layers_block_type", "moe_shared_expert_overlap", "residual_in_fp32", "use_mem_rope",
         "attn_implementation", "use_bidirectional_attention", "is_encoder_decoder", "rescale_prenorm_residual",
         "use_long_context", "mode", "return_last_states", "chunkwise_kernel",
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
         "scoring_func": ["softmax", "sigmoid"], "topk_method": ["greedy", "group_limited_greedy"],
         "max_position_embeddings": [32, 48, 64], "n_positions": [48, 64], "max_seq_len": [48, 64], "model_max_length": [48, 64],
         "d_model": [32, 48], "n_heads": [2, 4], "n_head": [2, 4], "n_embd": [32, 40], "n_layer": [2, 3], "n_layers": [2, 3],
         "num_layers": [1, 2, 3], "expansion_ratio": [2, 3], "rotary_dim": [2, 4, 8], "word_embed_proj_dim": [16, 32], "kv_channels": [4, 8],
         "chunk_size": [4, 8, 16], "mamba_chunk_size": [4, 8, 16], "mamba_n_heads": [4, 8], "mamba_num_heads": [4, 8], "mamba_d_head": [8, 16, "auto"],
         "mamba_head_dim": [8, 16], "mamba_headdim": [8, 16], "mamba_d_ssm": [32, 64, None], "linear_num_value_heads": [2, 4],
         "linear_num_key_heads": [1, 2], "linear_num_heads": [2, 4], "num_heads": [2, 4, 8], "num_dense_layers": [0, 1, 2], "block_multiple_of": [8, 256],
         "attn_layer_period": [2, 3], "expert_layer_period": [1, 2, 3], "floor_scale": [2, 8], "moe_layer_end_index": [-1, 0, 1, 2],
         "num_kv_heads": [1, 2, 4], "context_length": [48, 64], "sliding_window_pattern": [2, 3], "query_pre_attn_scalar": [8, 20, 256],
         "hidden_size_per_layer_input": [4, 8, 12], "vocab_size_per_layer_input": [96, 131, 160], "altup_active_idx": [0, 1, 2],
         "altup_num_inputs": [2, 3, 4], "num_nextn_predict_layers": [0, 1], "mlp_only_layers": [[], [0], [1], [0, 1]], "num_expert_group": [1, 2],
         "topk_group": [1, 2], "attn_layer_indices": [[0], [1], [0, 1], []], "full_attn_idxs": [[0], [1], [1, 2]], "hybrid_layer_ids": [[0], [1, 3], [0, 2]],
         "global_head_dim": [8, 16], "num_global_key_value_heads": [1, 2], "ffn_round_up_to_multiple_of": [16, 32], 
         "num_blocks": [1, 2], "v_dim_factor": [0.5, 1.0], "qk_dim_factor": [0.5, 1.0], "ffn_proj_factor": [1.0, 2.0], "activation_sparsity_pattern":
         [[0.8, 0.0, 0.5, 0.0], [0.0] * 4, [0.95, 0.95, 0.0, 0.3]], "attention_types": [[[["global", "local"], 1]], [[["local"], 2]], [[["global"], 2]]],
         "time_step_limit": [[0.0, math.inf], [0.05, 0.5], [0.0, 0.3]], "time_step_min": [0.001, 0.05], "time_step_max": [0.1, 0.5],
         "time_step_floor": [1e-4, 0.01], "altup_coef_clip": [120.0, 0.1, None], "clip_qkv": [None, 0.4, 0.9], "router_jitter_noise": [0.0, 0.01, 0.2],
         "input_jitter_noise": [0.0, 0.1], "swiglu_alpha": [1.702, 1.0], "moe_norm_min": [1e-12, 0.3], "z_loss_coefficient": [0.0, 0.1],
         "router_z_loss_coef": [0.0, 0.1], "aux_loss_coef": [0.01, 0.3], "logit_scale": [0.5, 1.3], "rescale_every": [0, 1, 6],
         "position_embedding_type": [None, "rope"], "moe_latent_size": [None, 12]}
# Where the golden configuration has null.
ABSENT = {"sliding_window": [3, 5, 8], "pad_token_id": [0, 3, 7], "clip_qkv": [0.4, 0.9], "n_inner": [40], "final_logit_softcapping": [5.0, 30.0],
          "attn_logit_softcapping": [5.0, 50.0], "num_ln_in_parallel_attn": [1, 2], "q_lora_rank": [8], "moe_latent_size": [12],
          "position_embedding_type": ["rope"], "top_k_experts": [1, 2], "full_attn_idxs": [[0], [1, 2]], "head_dim": [8, 12]}
EPSILONS = ("eps", "epsilon")
SCALES = ("multiplier", "scaling", "_scale", "alpha_factor", "beta_factor", "multipliers", "logit_softcapping", "router_aux_loss_coef",
          "moe_loss_weight", "swiglu_limit", "soft_cap")
ACTIVATIONS = ["silu", "silu", "gelu", "gelu_pytorch_tanh", "relu", "relu2", "gelu_new", "quick_gelu", "mish", "tanh"]
LAYER_LISTS = ("layer_types", "mlp_layer_types", "layers_block_type", "no_rope_layers", "moe_layers", "indexer_types")
HEADS = [(4, 2), (4, 4), (4, 1), (2, 2), (6, 3), (8, 2)]


def scaled(value, r):
    if isinstance(value, list):
        return [scaled(v, r) for v in value]
    return value * r.choice([0.5, 1.0, 1.7]) if isinstance(value, float) else value


def rotary(parameters, r, head_dim=None):
    """Other rotary positions; longrope's lists fit a whole head or the part that turns."""
    if "rope_type" not in parameters:  # by type of layer
        return {k: rotary(v, r) if isinstance(v, dict) else v for k, v in parameters.items()}
    out = dict(parameters, rope_theta=r.choice([10000.0, 500000.0]))
    if "partial_rotary_factor" in out and r.random() < 0.4:
        out["partial_rotary_factor"] = r.choice([0.25, 0.5, 1.0])
    if out["rope_type"] == "default" and "mrope_section" not in out and r.random() < 0.5:
        kind = r.choice(["linear", "dynamic", "yarn", "llama3", "longrope"] if head_dim else ["linear", "dynamic", "yarn", "llama3"])
        out.update(rope_type=kind, factor=r.choice([2.0, 4.0]))
        if kind in ("yarn", "llama3", "longrope"):
            out["original_max_position_embeddings"] = r.choice([8, 16, 32])
        if kind == "llama3":
            out.update(low_freq_factor=r.choice([1.0, 0.5]), high_freq_factor=r.choice([4.0, 2.0]))
        if kind == "longrope":
            turned = int(head_dim * out.get("partial_rotary_factor", 1.0)) // 2
            out["short_factor"] = [round(r.uniform(1, 1.5), 3) for _ in range(turned)]
            out["long_factor"] = [round(r.uniform(1, 4), 3) for _ in range(turned)]
            if r.random() < 0.5:
                out.pop("factor")
        if kind == "yarn":
            for key, values in {"beta_fast": [16, 32.0], "beta_slow": [1, 2.0], "attention_factor": [0.9, 1.25], "mscale": [0.7, 1.0],
                                "mscale_all_dim": [0.5, 1.0], "truncate": [True, False]}.items():
                if r.random() < 0.3:
                    out[key] = r.choice(values)
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
    for key, value in list(c.items()):
        if key in FIXED or key in ("num_attention_heads", "num_key_value_heads", "hidden_size", "num_query_groups"):
            continue
        if key in SIZES:
            if SIZES[key] and r.random() < 0.4 and value is not None:
                c[key] = r.choice(SIZES[key])
            elif value is None and r.random() < 0.3:
                c[key] = r.choice(ABSENT.get(key, [None]))
        elif value is None:
            if key in ABSENT and r.random() < 0.3:
                c[key] = r.choice(ABSENT[key])
        elif key == "pad_token_id":
            if r.random() < 0.3:
                c[key] = r.choice([None, 0, 3, 7, c.get("vocab_size", 96) - 1])
        elif key in LAYER_LISTS and isinstance(value, list):
            if r.random() < 0.3:
                c.pop(key)
            elif r.random() < 0.5:
                c[key] = r.sample(value, len(value)) if r.random() < 0.5 else [r.choice(value) for _ in value]
        elif key == "rope_parameters" and isinstance(value, dict):
            c[key] = rotary(value, r, c.get("qk_rope_head_dim") or c.get("head_dim"))
        elif (key.endswith(("hidden_act", "hidden_activation", "activation_function")) or key == "activation") and isinstance(value, str):
            if r.random() < 0.5:
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
    if "embedding_dim" in c:  # one size under two names
        c["embedding_dim"] = c["hidden_size"]
    layers = c.get("num_hidden_layers")
    if layers and not any(isinstance(c.get(k), list) for k in LAYER_LISTS) and r.random() < 0.5:
        c["num_hidden_layers"] = r.choice([2, 3, 4])
    if latent and "head_dim" in base:  # of some families it is what turns
        c["head_dim"] = c["qk_rope_head_dim"]
    if "n_group" in c:
        c["n_group"], c["topk_group"] = r.choice([(1, 1), (2, 1), (2, 2), (4, 2), (4, 3)])
    return c

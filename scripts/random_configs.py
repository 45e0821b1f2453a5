#!/usr/bin/env python3
"""Makes small models with random sizes and flags, and records what transformers computes with them, in the format of
tests/data/hf_goldens (tests/models/golden_test.cpp compares the program with them).

    python scripts/random_configs.py --out DIR [--families llama,gpt2] [--count 20] [--seed 0] [--flags]

Families in the table below have their own rules; the others, and all with --flags, vary a golden configuration
(random_flags.py).

Needs torch, transformers, numpy and safetensors.
"""
import argparse
import json
import os
import random
import tempfile

import numpy as np
import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText

from random_flags import mutated
from random_spellings import old_style, respelled

GOLDENS = os.path.join(os.path.dirname(__file__), "..", "tests", "data", "hf_goldens")


def rope(r, head_dim, max_positions):
    kind = r.choice(["default", "default", "linear", "dynamic", "yarn", "llama3", "longrope"])
    p = {"rope_type": kind, "rope_theta": r.choice([10000.0, 500000.0, 1e6])}
    if kind in ("linear", "dynamic"):
        p["factor"] = r.choice([2.0, 4.0, 1.5])
    if kind in ("yarn", "llama3", "longrope"):
        p["original_max_position_embeddings"] = max_positions // r.choice([2, 4])
    if kind == "yarn":
        p["factor"] = r.choice([2.0, 4.0])
        for key, values in {"beta_fast": [16, 32.0], "beta_slow": [1, 2.0], "attention_factor": [0.9, 1.25],
                            "mscale": [0.7, 1.0], "mscale_all_dim": [0.5, 1.0], "truncate": [True, False]}.items():
            if r.random() < 0.4:
                p[key] = r.choice(values)
    if kind == "llama3":
        p.update(factor=8.0, low_freq_factor=r.choice([1.0, 0.5]), high_freq_factor=4.0)
    if kind == "longrope":
        p["short_factor"] = [round(r.uniform(1, 1.5), 3) for _ in range(head_dim // 2)]
        p["long_factor"] = [round(r.uniform(1, 4), 3) for _ in range(head_dim // 2)]
        if r.random() < 0.5:
            p["factor"] = r.choice([2.0, 4.0])
    return p


ACTIVATIONS = ["silu", "silu", "gelu", "gelu_pytorch_tanh", "relu", "gelu_new", "quick_gelu", "relu2", "tanh", "mish"]
# Layer norms, and what their epsilon is called.
LAYER_NORMS = {"phi": "layer_norm_eps", "stablelm": "layer_norm_eps", "persimmon": "layer_norm_eps", "gpt_neox": "layer_norm_eps",
               "cohere": "layer_norm_eps", "cohere2": "layer_norm_eps", "starcoder2": "norm_epsilon", "nemotron": "norm_eps"}
OWN_HEAD = ("llama", "mistral", "qwen3", "ministral", "ministral3", "gemma", "gemma2", "gemma3_text", "vaultgemma", "glm", "glm4",
            "seed_oss", "ernie4_5", "arcee", "nemotron", "hunyuan_v1_dense")
ALWAYS_OWN_HEAD = ("qwen3", "ministral", "hunyuan_v1_dense", "gemma", "gemma2", "gemma3_text", "vaultgemma", "glm", "glm4", "ministral3", "seed_oss", "ernie4_5")
ONE_KEY_PER_HEAD = ("persimmon", "gpt_neox", "gptj", "gpt_neo", "opt", "bloom", "mpt", "gpt2", "gpt_bigcode")
WITH_BIAS_KEY = ("llama", "qwen3", "arcee", "apertus", "bitnet", "cohere", "cohere2", "gemma", "gemma2", "gemma3_text", "vaultgemma",
                 "glm", "glm4", "granite", "helium", "hunyuan_v1_dense", "nemotron", "olmo", "olmo2", "olmo3", "smollm3",
                 "seed_oss", "gpt_neox")
WITH_MLP_BIAS_KEY = ("llama", "arcee", "granite", "nemotron", "seed_oss", "smollm3")
PARTIAL = ("phi", "stablelm", "persimmon", "gpt_neox", "glm", "glm4", "nemotron", "phi3")


def gpt_like(family, r):
    """Families whose configuration has names of its own."""
    heads = r.choice([2, 4, 5, 6])
    head_dim = r.choice([8, 10])
    hidden, layers, vocab = heads * head_dim, r.choice([2, 3]), r.choice([96, 131])
    tied, eps, act = r.random() < 0.6, r.choice([1e-5, 1e-3]), r.choice(["gelu_new", "gelu", "relu", "silu", "gelu_pytorch_tanh", "quick_gelu"])
    if family == "gpt_neo":
        pair = r.choice([["global", "local"], ["local"], ["global"], ["local", "global"]])
        return dict(hidden_size=hidden, num_heads=heads, num_layers=2 * len(pair), attention_types=[[pair, 2]], window_size=r.choice([3, 5, 8]),
                    max_position_embeddings=64, vocab_size=vocab, intermediate_size=r.choice([None, 40]), activation_function=act,
                    layer_norm_epsilon=eps, tie_word_embeddings=tied)
    if family == "gpt_bigcode":
        return dict(n_embd=hidden, n_head=heads, n_layer=layers, n_positions=64, vocab_size=vocab, n_inner=r.choice([None, 40]),
                    activation_function=act, layer_norm_epsilon=eps, multi_query=r.random() < 0.6, scale_attn_weights=r.random() < 0.7,
                    tie_word_embeddings=tied, attn_pdrop=0.0, resid_pdrop=0.0, embd_pdrop=0.0)
    if family == "gptj":
        return dict(n_embd=hidden, n_head=heads, n_layer=layers, n_positions=64, vocab_size=vocab, n_inner=r.choice([None, 40]),
                    activation_function=act, layer_norm_epsilon=eps, rotary_dim=r.choice([2, 4, 8]), tie_word_embeddings=tied)
    if family == "opt":
        return dict(hidden_size=hidden, num_attention_heads=heads, num_hidden_layers=layers, ffn_dim=r.choice([40, 64]),
                    max_position_embeddings=64, vocab_size=vocab, word_embed_proj_dim=r.choice([None, hidden - 4]),
                    do_layer_norm_before=r.random() < 0.6, enable_bias=r.random() < 0.7, layer_norm_elementwise_affine=r.random() < 0.7,
                    activation_function=act, dropout=0.0, tie_word_embeddings=tied, pad_token_id=r.choice([1, 0]))
    if family == "bloom":
        return dict(hidden_size=hidden, n_head=heads, n_layer=layers, vocab_size=vocab, layer_norm_epsilon=eps,
                    apply_residual_connection_post_layernorm=r.random() < 0.4, tie_word_embeddings=tied)
    if family == "mpt":
        return dict(d_model=hidden, n_heads=heads, n_layers=layers, vocab_size=vocab, max_seq_len=64, layer_norm_epsilon=eps,
                    attn_config=dict(clip_qkv=r.choice([None, 0.9]), softmax_scale=r.choice([None, 0.2]), alibi_bias_max=r.choice([8, 4])),
                    tie_word_embeddings=tied)
    new = r.random() < 0.4  # falcon
    alibi = r.random() < 0.4
    c = dict(hidden_size=hidden, num_attention_heads=heads, num_hidden_layers=layers, vocab_size=vocab, alibi=alibi,
             new_decoder_architecture=new, multi_query=r.random() < 0.6, parallel_attn=new or r.random() < 0.6, bias=r.random() < 0.5,
             ffn_hidden_size=r.choice([None, 48]), layer_norm_epsilon=eps, activation=act, tie_word_embeddings=tied,
             max_position_embeddings=64)
    if new:
        c.update(num_kv_heads=r.choice([n for n in (1, 2, heads) if heads % n == 0]), num_ln_in_parallel_attn=r.choice([None, 1, 2]))
    if not alibi:
        c["rope_parameters"] = rope(r, head_dim, 64)
    return c


def layer_kinds(r, layers):
    return [r.choice(["sliding_attention", "full_attention"]) for _ in range(layers)]


KNOWN = set(OWN_HEAD + ALWAYS_OWN_HEAD + ONE_KEY_PER_HEAD + WITH_BIAS_KEY + PARTIAL) | {
    "falcon", "qwen2", "exaone4", "starcoder2"}


def base_of(family):
    """The model_type and the keys of a golden configuration."""
    infinite = lambda m: float(m["__float__"]) if "__float__" in m else m
    folders = [os.path.join(GOLDENS, name) for name in (family, f"random_{family}_0")]
    base = json.load(open(os.path.join(next(f for f in folders if os.path.isdir(f)), "config.json")), object_hook=infinite)
    return base["model_type"], base


def class_of(config):
    """Of a model that also sees or hears the class that reads text alone, too."""
    return AutoModelForImageTextToText if hasattr(config, "text_config") else AutoModelForCausalLM


def varied(base, r):
    """Another configuration of the same model; of one that also sees or hears, its language model alone is another."""
    if "text_config" not in base:
        return mutated(base, r)
    text = base["text_config"]
    given = {k: v for k, v in base.items() if k not in ("architectures", "model_type", "transformers_version", "dtype")}
    given["text_config"] = dict(mutated({k: v for k, v in text.items() if k != "vocab_size"}, r), model_type=text["model_type"],
                                vocab_size=text["vocab_size"])
    given["tie_word_embeddings"] = given["text_config"]["tie_word_embeddings"] = r.random() < 0.5
    return given


def config_of(family, r):
    if family == "gpt2":
        heads = r.choice([2, 4, 5])
        return dict(n_embd=heads * r.choice([8, 10]), n_head=heads, n_layer=r.choice([2, 3]), n_positions=64,
                    n_inner=r.choice([None, 40, 64]), vocab_size=r.choice([96, 131]),
                    activation_function=r.choice(["gelu_new", "gelu", "relu", "silu", "gelu_pytorch_tanh", "quick_gelu"]),
                    scale_attn_weights=r.random() < 0.7, scale_attn_by_inverse_layer_idx=r.random() < 0.4,
                    reorder_and_upcast_attn=r.random() < 0.3, tie_word_embeddings=r.random() < 0.7,
                    layer_norm_epsilon=r.choice([1e-5, 1e-3]), attn_pdrop=0.0, resid_pdrop=0.0, embd_pdrop=0.0)
    if family in ("gpt_neo", "gpt_bigcode", "gptj", "opt", "bloom", "mpt", "falcon"):
        return gpt_like(family, r)
    heads, kv = r.choice([(4, 2), (4, 4), (6, 2), (5, 1), (8, 2), (3, 3)])
    head_dim = r.choice([6, 8, 12, 16])
    if family in ONE_KEY_PER_HEAD:
        kv = heads
    own = family in OWN_HEAD and (family in ALWAYS_OWN_HEAD or r.random() < 0.5)
    hidden = heads * head_dim if not own or r.random() < 0.5 else heads * r.choice([6, 10])
    layers, positions = r.choice([2, 3, 4]), r.choice([16, 32, 64])
    c = dict(hidden_size=hidden, intermediate_size=r.choice([24, 48, 70]), num_hidden_layers=layers,
             num_attention_heads=heads, num_key_value_heads=kv, vocab_size=r.choice([96, 131]),
             max_position_embeddings=positions, tie_word_embeddings=r.random() < 0.4, hidden_act=r.choice(ACTIVATIONS),
             pad_token_id=r.choice([None, 0]), rope_parameters=rope(r, head_dim, positions))
    c[LAYER_NORMS.get(family, "rms_norm_eps")] = r.choice([1e-6, 1e-5, 1e-3])
    if family in ("olmo",):
        del c["rms_norm_eps"]
    if own:
        c["head_dim"] = head_dim
    if family == "helium":  # its output projection is square
        c["head_dim"] = head_dim
    if family in WITH_BIAS_KEY:
        c["attention_bias"] = r.random() < 0.4
    if family in WITH_MLP_BIAS_KEY:
        c["mlp_bias"] = r.random() < 0.4
    if family in ("gemma2", "gemma3_text", "vaultgemma"):
        c["hidden_activation"] = c.pop("hidden_act")
        c["query_pre_attn_scalar"] = r.choice([head_dim, 20, 256])
        c["final_logit_softcapping"] = r.choice([None, 5.0, 30.0])
        c["sliding_window"] = r.choice([3, 5, 8])
        if r.random() < 0.5:
            c["layer_types"] = layer_kinds(r, layers)
    if family in ("gemma2", "vaultgemma"):
        c["attn_logit_softcapping"] = r.choice([None, 5.0, 50.0])
    if family in ("gemma3_text", "olmo3"):
        theta = {"full_attention": rope(r, head_dim, positions), "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}}
        c["rope_parameters"] = theta if r.random() < 0.7 else None
    if family in PARTIAL:
        kind = {"rope_type": "default", "rope_theta": r.choice([10000.0, 500000.0])}
        c["rope_parameters"] = {**kind, "partial_rotary_factor": r.choice([0.5, 1.0] if head_dim % 4 == 0 else [1.0])}
    if family == "phi3" and r.random() < 0.5:
        c["original_max_position_embeddings"] = positions // 2
        c["rope_parameters"].update(rope_type="longrope", partial_rotary_factor=1.0,
                                    short_factor=[round(r.uniform(1, 1.5), 3) for _ in range(head_dim // 2)],
                                    long_factor=[round(r.uniform(1, 4), 3) for _ in range(head_dim // 2)])
    if family in ("mistral", "ministral", "ministral3", "starcoder2", "phi3"):
        c["sliding_window"] = r.choice([None, 3, 5, 7, 8, 13])
    if family == "ministral" and c["sliding_window"] and r.random() < 0.6:
        c["layer_types"] = layer_kinds(r, layers)
    if family == "ministral3":
        c["rope_parameters"] = {"rope_type": "yarn", "rope_theta": 1e6, "factor": 4.0, "llama_4_scaling_beta": r.choice([0.1, 0.5]),
                                "original_max_position_embeddings": r.choice([4, 8, 16])}
    if family in ("cohere2", "olmo3", "exaone4"):
        c["sliding_window"] = r.choice([3, 5, 8])
        if r.random() < 0.5:
            c["layer_types"] = layer_kinds(r, layers)
    if family == "exaone4" and "layer_types" not in c:
        c["sliding_window_pattern"] = r.choice([2, 3])
    if family == "cohere":
        c["use_qk_norm"] = r.random() < 0.5
    if family in ("cohere", "cohere2"):
        c["logit_scale"] = r.choice([0.0625, 0.5, 1.3])
    if family == "granite":
        c.update(embedding_multiplier=r.choice([1.0, 3.0]), residual_multiplier=r.choice([1.0, 0.4]), logits_scaling=r.choice([1.0, 4.0]),
                 attention_multiplier=r.choice([0.1, 0.3]))
    if family in ("olmo",):
        c["clip_qkv"] = r.choice([None, 0.7])
    if family == "smollm3":
        c.update(no_rope_layer_interval=r.choice([2, 3]), use_sliding_window=r.random() < 0.5, sliding_window=r.choice([3, 6]))
        if r.random() < 0.3:
            c["no_rope_layers"] = [r.choice([0, 1]) for _ in range(layers)]
    if family == "seed_oss":
        c.update(attention_out_bias=r.random() < 0.5, residual_dropout=0.0, attention_dropout=0.0)
    if family == "ernie4_5":
        c["use_bias"] = r.random() < 0.5
    if family == "starcoder2":
        c["use_bias"] = r.random() < 0.6
    if family in ("phi", "stablelm", "persimmon"):
        c["qk_layernorm"] = r.random() < 0.5
    if family == "stablelm":
        c.update(use_parallel_residual=r.random() < 0.5, use_qkv_bias=r.random() < 0.5,
                 partial_rotary_factor=c["rope_parameters"]["partial_rotary_factor"])
    if family == "gpt_neox":
        c["use_parallel_residual"] = r.random() < 0.6
        c["rope_parameters"]["partial_rotary_factor"] = r.choice([0.5, 1.0] if head_dim % 4 == 0 else [1.0])
    if family == "apertus" and r.random() < 0.7:
        c["hidden_act"] = "xielu"
    if family in ("qwen2", "qwen3"):
        c.update(use_sliding_window=r.random() < 0.6, sliding_window=r.choice([3, 5, 9]), max_window_layers=r.choice([0, 1, 2]))
        if r.random() < 0.4:
            c["layer_types"] = [r.choice(["sliding_attention", "full_attention"] if c["use_sliding_window"] else ["full_attention"])
                                for _ in range(layers)]
    return c


def gradient_norms(model, tensors, folder):
    """By the names of the file: transformers holds some weights otherwise than the file, so it saves the gradients."""
    kept = [(p, p.detach().clone()) for p in [*model.parameters(), *model.buffers()]]
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.zeros_like(p) if p.grad is None else p.grad)
        for b in model.buffers():
            b.zero_()
    with tempfile.TemporaryDirectory() as gradients:
        model.save_pretrained(gradients)
        saved = load_file(os.path.join(gradients, "model.safetensors"))
    with torch.no_grad():
        for p, value in kept:
            p.copy_(value)
    return {name: float(saved[name].double().norm()) for name in tensors}


def randomise(model, family):
    """Weights that tell parts from one another; norms stay near what they begin with."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            if p.dim() > 1:
                p.normal_(0, (0.07 if "gemma" in family else 0.4) if "embed" in name or "wte" in name else 0.2)
            elif "bias" in name:
                p.normal_(0, 0.1)
            elif "act_fn" in name:
                p.add_(0.1 * torch.randn_like(p))
            else:
                p.copy_((0 if "gemma" in family else 1) + 0.1 * torch.randn_like(p))
        for name, b in model.named_buffers():
            if name.endswith(("correction_bias", "expert_bias")):
                b.normal_(0, 0.1)


def one(family, r, folder, flags):
    torch.manual_seed(r.randrange(1 << 30))
    if flags or family not in KNOWN:
        family, base = base_of(family)
        given = varied(base, r)
    else:
        given = config_of(family, r)
    config = AutoConfig.for_model(family, **{"bos_token_id": 1, "eos_token_id": 2, **given}, attn_implementation="eager")
    model = class_of(config).from_config(config).eval()
    randomise(model, family)
    os.makedirs(folder)
    model.save_pretrained(folder)
    path = os.path.join(folder, "config.json")
    written = json.load(open(path))
    style = "old" if r.random() < 0.4 else "new"
    if style == "old":
        old_style(written)
    respellings = respelled(written, r, folder, class_of(config)) if flags else []
    json.dump(written, open(path, "w"), indent=2)
    # What is compared is what transformers makes of the folder.
    load = lambda: class_of(config).from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).eval()
    return record(folder, load, r, dict(config_style=style, given=given, respelled=respellings))


def record(folder, load, r, about, steps=24, ways=(True, False)):
    """Stores beside the model what transformers computes with it (`load` makes it), with greedy tokens by the `ways`: with its cache or
    without. False where another token is about as likely as the one it chose."""
    model = load()
    whole = hasattr(model.config, "text_config")
    vocab, length = model.config.get_text_config().vocab_size, 24
    first = 12 if whole else 3  # images' tokens stand before
    ids = torch.randint(first, vocab, (2, length))
    mask = torch.ones_like(ids)
    pad = r.randrange(3, 9)
    side = r.choice(["left", "right"])
    mask[1, :pad] = 0 if side == "left" else 1
    if side == "right":
        mask[1, length - pad:] = 0
    ids = ids.masked_fill(mask == 0, 0)
    labels = ids.masked_fill(mask == 0, -100)
    entered = []
    model.get_output_embeddings().register_forward_pre_hook(lambda _, inputs: entered.append(inputs[0].detach()))
    out = model(input_ids=ids, attention_mask=mask, labels=labels, use_cache=False)  # some caches are written in place
    out.loss.backward()
    tensors = load_file(os.path.join(folder, "model.safetensors"))
    norms = gradient_norms(model, tensors, folder)
    if whole:
        norms = {n: v for n, v in norms.items() if "language_model." in n or "text_model." in n or n.startswith("lm_head.")}
    total = float(torch.sqrt(sum(p.grad.double().pow(2).sum() for p in model.parameters() if p.grad is not None)))

    prompts = torch.randint(first, vocab, (2, 6))
    prompt_mask = torch.ones_like(prompts)
    prompt_mask[1, :2] = 0
    prompts = prompts.masked_fill(prompt_mask == 0, 0)
    generated, margin = {way: [] for way in ways}, 1e9
    for row, keep in zip(prompts, prompt_mask):
        for cached, found in generated.items():
            # Another model: dynamic frequencies remember the longest call.
            fresh = load()
            fresh.generation_config.eos_token_id = None
            made = fresh.generate(row[keep != 0][None], max_new_tokens=steps, do_sample=False, pad_token_id=0, use_cache=cached,
                                  return_dict_in_generate=True, output_logits=True)
            for scores in made.logits:
                top = scores[0].topk(2).values
                margin = min(margin, float((top[0] - top[1]) / scores.abs().max()))
            found.append(made.sequences[0, -steps:].tolist())
    if margin < 5e-4:
        return False
    expected = dict(input_ids=ids, attention_mask=mask, labels=labels, prompt_ids=prompts, prompt_mask=prompt_mask,
                    logits=out.logits.detach(), loss=out.loss.detach().reshape(1), last_hidden_state=entered[0],
                    generated=torch.tensor(generated[ways[0]]))
    if generated[ways[-1]] != generated[ways[0]]:  # transformers' cache of this model is another model: either will do
        expected["generated_nocache"] = torch.tensor(generated[ways[-1]])
    save_file({k: v.contiguous() for k, v in expected.items()}, os.path.join(folder, "expected.safetensors"))
    json.dump(dict(kind="causal", inputs=["input_ids", "attention_mask", "labels"], padding_side=side,
                   loss=float(out.loss.detach()), grad_norm_total=total, grad_norms=norms, **about),
              open(os.path.join(folder, "expected.json"), "w"), indent=1)
    return True


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--out", required=True)
    a.add_argument("--families", default="llama,mistral,qwen2,qwen3,gpt2")
    a.add_argument("--count", type=int, default=20)
    a.add_argument("--seed", type=int, default=0)
    a.add_argument("--flags", action="store_true")
    a = a.parse_args()
    torch.set_num_threads(1)
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()
    import shutil
    for family in a.families.split(","):
        r, made, failed = random.Random(f"{a.seed}/{family}"), 0, []
        while made < a.count and len(failed) < 10 * a.count:
            folder = os.path.join(a.out, f"{family}_{made:02d}")
            shutil.rmtree(folder, ignore_errors=True)
            try:
                made += one(family, r, folder, a.flags)
            except Exception as e:  # a draw that transformers itself cannot run
                failed.append(f"{type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}"[:150])
        shutil.rmtree(os.path.join(a.out, f"{family}_{made:02d}"), ignore_errors=True)
        for text in sorted(set(failed)):
            print("   ", failed.count(text), "x", text)
        print(family, made, flush=True)


if __name__ == "__main__":
    main()

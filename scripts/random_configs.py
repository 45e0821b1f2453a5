#!/usr/bin/env python3
"""Makes small models with random sizes and flags, and what transformers computes with them, in the form of the golden
vectors (check_goldens.py compares a program with them).

    python scripts/random_configs.py --out DIR [--families llama,gpt2] [--count 20] [--seed 0]

Needs torch, transformers, numpy and safetensors.
"""
import argparse
import json
import os
import random

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM


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


def config_of(family, r):
    if family == "gpt2":
        heads = r.choice([2, 4, 5])
        return dict(n_embd=heads * r.choice([8, 10]), n_head=heads, n_layer=r.choice([2, 3]), n_positions=64,
                    n_inner=r.choice([None, 40, 64]), vocab_size=r.choice([96, 131]),
                    activation_function=r.choice(["gelu_new", "gelu", "relu", "silu", "gelu_pytorch_tanh", "quick_gelu"]),
                    scale_attn_weights=r.random() < 0.7, scale_attn_by_inverse_layer_idx=r.random() < 0.4,
                    reorder_and_upcast_attn=r.random() < 0.3, tie_word_embeddings=r.random() < 0.7,
                    layer_norm_epsilon=r.choice([1e-5, 1e-3]), attn_pdrop=0.0, resid_pdrop=0.0, embd_pdrop=0.0)
    heads, kv = r.choice([(4, 2), (4, 4), (6, 2), (5, 1), (8, 2), (3, 3)])
    head_dim = r.choice([6, 8, 12, 16])
    own = family in ("llama", "mistral", "qwen3") and r.random() < 0.5
    hidden = heads * head_dim if not own else heads * r.choice([6, 10])
    layers, positions = r.choice([2, 3, 4]), r.choice([16, 32, 64])
    c = dict(hidden_size=hidden, intermediate_size=r.choice([24, 48, 70]), num_hidden_layers=layers,
             num_attention_heads=heads, num_key_value_heads=kv, vocab_size=r.choice([96, 131]),
             max_position_embeddings=positions, rms_norm_eps=r.choice([1e-6, 1e-5, 1e-3]),
             tie_word_embeddings=r.random() < 0.4, hidden_act=r.choice(["silu", "silu", "gelu", "gelu_pytorch_tanh", "relu"]),
             pad_token_id=r.choice([None, 0]), rope_parameters=rope(r, head_dim, positions))
    if own or family == "qwen3":
        c["head_dim"] = head_dim
    if family == "llama":
        c.update(attention_bias=r.random() < 0.4, mlp_bias=r.random() < 0.4)
    if family == "mistral":
        c["sliding_window"] = r.choice([None, 3, 5, 7, 8, 13])
    if family in ("qwen2", "qwen3"):
        c.update(use_sliding_window=r.random() < 0.6, sliding_window=r.choice([3, 5, 9]), max_window_layers=r.choice([0, 1, 2]))
        if r.random() < 0.4:
            c["layer_types"] = [r.choice(["sliding_attention", "full_attention"] if c["use_sliding_window"] else ["full_attention"])
                                for _ in range(layers)]
    if family == "qwen3":
        c["attention_bias"] = r.random() < 0.5
    return c


def old_style(config):
    """The spelling of older files."""
    p = config.pop("rope_parameters", None)
    if p:
        config["rope_theta"] = p.pop("rope_theta")
        kind = p.pop("rope_type")
        config["rope_scaling"] = None if kind == "default" else {"type": kind, **p}
    config["torch_dtype"] = config.pop("dtype", "float32")


def one(family, r, folder):
    torch.manual_seed(r.randrange(1 << 30))
    given = config_of(family, r)
    config = AutoConfig.for_model(family, **given, bos_token_id=1, eos_token_id=2, attn_implementation="eager")
    model = AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for name, p in model.named_parameters():
            if p.dim() > 1:
                p.normal_(0, 0.4 if "embed" in name or "wte" in name else 0.2)
            elif "bias" in name:
                p.normal_(0, 0.1)
            else:
                p.copy_(1 + 0.1 * torch.randn_like(p))
    os.makedirs(folder)
    model.save_pretrained(folder)
    path = os.path.join(folder, "config.json")
    written = json.load(open(path))
    style = "old" if r.random() < 0.4 else "new"
    if style == "old":
        old_style(written)
        json.dump(written, open(path, "w"), indent=2)
    # What is compared is what transformers makes of the folder.
    model = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).eval()

    vocab, length = model.config.vocab_size, 24
    ids = torch.randint(3, vocab, (2, length))
    mask = torch.ones_like(ids)
    pad = r.randrange(3, 9)
    side = r.choice(["left", "right"])
    mask[1, :pad] = 0 if side == "left" else 1
    if side == "right":
        mask[1, length - pad:] = 0
    ids = ids.masked_fill(mask == 0, 0)
    labels = ids.masked_fill(mask == 0, -100)
    out = model(input_ids=ids, attention_mask=mask, labels=labels, output_hidden_states=True)
    out.loss.backward()
    tensors = load_file(os.path.join(folder, "model.safetensors"))
    grads = {n: p.grad for n, p in model.named_parameters() if p.grad is not None}
    norms = {n: float(grads[n].double().norm()) if n in grads else 0.0 for n in tensors}
    total = float(torch.sqrt(sum(g.double().pow(2).sum() for g in grads.values())))

    prompts = torch.randint(3, vocab, (2, 6))
    prompt_mask = torch.ones_like(prompts)
    prompt_mask[1, :2] = 0
    prompts = prompts.masked_fill(prompt_mask == 0, 0)
    generated, margin = [], 1e9
    for row, keep in zip(prompts, prompt_mask):
        # Another model: dynamic frequencies remember the longest call.
        fresh = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).eval()
        ids_now, past, new = row[keep != 0][None], None, []
        with torch.no_grad():
            for _ in range(24):
                step = fresh(input_ids=ids_now, past_key_values=past, use_cache=True)
                past, scores = step.past_key_values, step.logits[0, -1]
                top = scores.topk(2).values
                margin = min(margin, float((top[0] - top[1]) / scores.abs().max()))
                new.append(int(scores.argmax()))
                ids_now = torch.tensor([[new[-1]]])
        generated.append(new)
    if margin < 5e-4:
        return False
    expected = dict(input_ids=ids, attention_mask=mask, labels=labels, prompt_ids=prompts, prompt_mask=prompt_mask,
                    logits=out.logits.detach(), loss=out.loss.detach().reshape(1), last_hidden_state=out.hidden_states[-1].detach(),
                    generated=torch.tensor(generated))
    save_file({k: v.contiguous() for k, v in expected.items()}, os.path.join(folder, "expected.safetensors"))
    json.dump(dict(kind="causal", inputs=["input_ids", "attention_mask", "labels"], padding_side=side, config_style=style,
                   loss=float(out.loss), grad_norm_total=total, grad_norms=norms, given=given),
              open(os.path.join(folder, "expected.json"), "w"), indent=1)
    return True


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--out", required=True)
    a.add_argument("--families", default="llama,mistral,qwen2,qwen3,gpt2")
    a.add_argument("--count", type=int, default=20)
    a.add_argument("--seed", type=int, default=0)
    a = a.parse_args()
    torch.set_num_threads(1)
    import shutil
    for family in a.families.split(","):
        r, made = random.Random(f"{a.seed}/{family}"), 0
        while made < a.count:
            folder = os.path.join(a.out, f"{family}_{made:02d}")
            shutil.rmtree(folder, ignore_errors=True)
            if one(family, r, folder):
                made += 1
        print(family, made, flush=True)


if __name__ == "__main__":
    main()

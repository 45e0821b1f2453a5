#!/usr/bin/env python3
"""Writes tests/data/optimizers/eight_bit.safetensors: updates by bitsandbytes' 32-bit rules of AdamW, Lion and AdEMAMix
between its own quantize_blockwise and dequantize_blockwise on a CPU, blocks of 256. Needs torch, numpy and
bitsandbytes 0.50.2.

Each update begins with recorded codes, so that one code that differs does not change the next update."""

import pathlib

import torch
from bitsandbytes.backends.default.ops import _optimizer_update_32bit as compiled
from bitsandbytes.functional import create_dynamic_map, dequantize_blockwise, quantize_blockwise
from safetensors.torch import save_file

update = getattr(compiled, "_torchdynamo_orig_callable", compiled)
maps = {"mean": create_dynamic_map(signed=True), "slow": create_dynamic_map(signed=True),
        "square": create_dynamic_map(signed=False)}
rules = {"adamw": (3, ["mean", "square"]), "lion": (4, ["mean"]), "ademamix": (5, ["mean", "slow", "square"])}
rate, decay, b1, b2, b3, alpha, eps = 1e-2, 0.1, 0.9, 0.99, 0.999, 5.0, 1e-8
steps, shape = 3, (41, 100)

torch.manual_seed(0)
out = {"value": torch.randn(shape)}
for step in range(1, steps + 1):
    # Of very different sizes, as gradients of embeddings are.
    out[f"gradient.{step}"] = torch.randn(shape) * torch.exp(2 * torch.randn(shape[0], 1))

for name, (number, states) in rules.items():
    value = out["value"].clone()
    codes = {}
    for state in states:
        codes[state] = quantize_blockwise(torch.zeros(shape), code=maps[state], blocksize=256)
    for step in range(1, steps + 1):
        plain = {state: dequantize_blockwise(codes[state][0], codes[state][1]) for state in states}
        first = torch.stack([plain["mean"], plain["slow"]]) if "slow" in plain else plain["mean"]
        update(out[f"gradient.{step}"], value, first, plain.get("square"), None, 0.0, 0.0, b1, b2, b3, alpha, eps, decay,
               step, rate, 1.0, number)
        if "slow" in plain:
            plain["mean"], plain["slow"] = first[0], first[1]
        out[f"{name}.{step}.value"] = value.clone()
        for state in states:
            codes[state] = quantize_blockwise(plain[state].contiguous(), code=maps[state], blocksize=256)
            out[f"{name}.{step}.{state}_codes"] = codes[state][0].reshape(shape)
            out[f"{name}.{step}.{state}_scales"] = codes[state][1].absmax

folder = pathlib.Path(__file__).parent.parent / "tests/data/optimizers"
folder.mkdir(exist_ok=True)
save_file({k: v.contiguous() for k, v in out.items()}, folder / "eight_bit.safetensors")

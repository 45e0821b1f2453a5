#!/usr/bin/env python3
"""Writes tests/data/codes/double_quantized.safetensors: random weights, and what bitsandbytes makes of them with double
quantization (compress_statistics), decoded to fp32. Needs torch 2.13.0 and bitsandbytes 0.50.2; one thread."""

import pathlib

import torch
from bitsandbytes import functional
from safetensors.torch import save_file

torch.set_num_threads(1)
torch.manual_seed(27)
# More scales than a block of scales has, and fewer; rows of very different sizes; a bias of the scales' mean.
weights = {"wide": torch.randn(72, 256), "short": torch.randn(3, 64) + 0.5,
           "uneven": torch.randn(80, 128) * torch.exp(2 * torch.randn(80, 1))}
out = dict(weights)
for name, weight in weights.items():
    for kind in ("nf4", "fp4"):
        codes, state = functional.quantize_4bit(weight.clone(), blocksize=64, compress_statistics=True, quant_type=kind)
        out[f"{name}.{kind}"] = functional.dequantize_4bit(codes, state)
save_file({name: tensor.contiguous() for name, tensor in out.items()},
          pathlib.Path(__file__).parent.parent / "tests/data/codes/double_quantized.safetensors")

#!/usr/bin/env python3
"""Loads what `easydel quantize` writes with transformers, bitsandbytes and compressed-tensors, and compares logits.

python scripts/quantized_folders.py build/bin/easydel MODEL

torch 2.13.0, transformers 5.23.0, bitsandbytes 0.50.2, compressed-tensors 0.20.0. Prints for each format the greatest
difference between the library's logits and ours, relative to the largest logit, both in fp32
(compressed-tensors multiplies mxfp4 in bf16 only, so its logits are those of bf16). The products of
bitsandbytes on a CPU take only some shapes, so its layers are decoded by its dequantize_4bit (flat: on a CPU it decodes
rows wrongly that are not whole blocks) and multiplied by torch.
"""
import pathlib
import subprocess
import sys
import tempfile

import bitsandbytes
import numpy
import torch
from safetensors.numpy import load_file, save_file
from transformers import AutoModelForCausalLM



def decode(model):
    for name, layer in list(model.named_modules()):
        if isinstance(layer, bitsandbytes.nn.Linear4bit):
            state, shape = layer.weight.quant_state, layer.weight.quant_state.shape
            state.shape = (shape.numel(),)
            plain = torch.nn.Linear(shape[1], shape[0], bias=layer.bias is not None)
            values = bitsandbytes.functional.dequantize_4bit(layer.weight.data, state).reshape(shape)
            plain.weight = torch.nn.Parameter(values.float())
            plain.bias = layer.bias
            model.set_submodule(name, plain)


program, model = sys.argv[1:]
with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    ids = numpy.arange(3, 35, dtype=numpy.int64).reshape(2, 16)
    save_file({"input_ids": ids}, folder / "inputs.safetensors")
    for to in ("nf4", "fp4", "int8", "w4a16", "fp8", "mxfp4"):
        out = folder / to
        subprocess.run([program, "quantize", model, "--to", to, "--out", out], check=True)
        logits = folder / f"{to}.safetensors"
        subprocess.run([program, "probe", "logits", out, "--inputs", folder / "inputs.safetensors", "--output", logits], check=True)
        ours = torch.from_numpy(load_file(logits)["logits"])
        try:
            dtype = torch.bfloat16 if to == "mxfp4" else torch.float32
            theirs = AutoModelForCausalLM.from_pretrained(out, dtype=dtype)
            decode(theirs)
            with torch.no_grad():
                expected = theirs(torch.from_numpy(ids)).logits.float()
            print(to, "difference", float((ours - expected).abs().max() / expected.abs().max()))
        except Exception as error:
            print(to, type(error).__name__, str(error)[:300])

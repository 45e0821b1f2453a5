#!/usr/bin/env python3
"""Records bitsandbytes' codes of random and hostile blocks: python scripts/bnb_blocks.py tests/data/codes/blocks.json.gz

torch 2.13.0, bitsandbytes 0.50.2, one thread. Each case has the raw bytes of its fp32 input, of its codes and scales in
base64. `kind`: nf4 and fp4 (packed, the flat tensor), dynamic and unsigned (the 8-bit map with and without a sign).
"""
import base64
import gzip
import json
import sys

import torch
from bitsandbytes import functional

torch.set_num_threads(1)
torch.manual_seed(20)


def text(tensor):
    return base64.b64encode(tensor.contiguous().numpy().tobytes()).decode()


def inputs(count):
    normal = torch.randn(count)
    yield "normal", normal
    yield "heavy", normal * torch.randn(count).mul(2).exp()
    yield "tiny", normal * 1e-36
    yield "huge", normal * 1e37
    yield "zeros", torch.zeros(count)
    yield "one_value", torch.full((count,), -0.25)
    sparse = torch.zeros(count)
    sparse[:: max(1, count // 5)] = normal[:: max(1, count // 5)]
    yield "sparse", sparse
    outlier = normal * 0.01
    outlier[count // 2] = 30.0
    yield "outlier", outlier
    # Middles between neighbors of the tables, where the next code begins.
    nf4 = functional.get_4bit_type("nf4", device="cpu").sort()[0]
    fp4 = functional.get_4bit_type("fp4", device="cpu").sort()[0]
    dynamic = functional.create_dynamic_map()
    middles = torch.cat([(t[1:] + t[:-1]) / 2 for t in (nf4, fp4, dynamic)])
    ties = middles[torch.randint(len(middles), (count,))]
    ties[0] = 1.0
    yield "ties", ties


def main(path):
    cases = []
    for count in (1, 63, 64, 65, 515, 1024):
        for name, values in inputs(count):
            for block in (64, 256, 4096):
                for kind in ("nf4", "fp4"):
                    codes, state = functional.quantize_4bit(values.clone(), blocksize=block, quant_type=kind)
                    cases.append((name, kind, block, values, codes.flatten(), state.absmax))
                for kind in ("dynamic", "unsigned"):
                    given = values.abs() if kind == "unsigned" else values
                    table = functional.create_dynamic_map(signed=kind == "dynamic")
                    codes, state = functional.quantize_blockwise(given.clone(), code=table, blocksize=block)
                    cases.append((name, kind, block, given, codes.flatten(), state.absmax))
    shared = {}
    lines = []
    for name, kind, block, values, codes, scales in cases:
        key = text(values)
        shared.setdefault(key, len(shared))
        lines.append({"name": name, "kind": kind, "block": block, "input": shared[key], "codes": text(codes), "scales": text(scales)})
    maps = {kind: text(functional.create_dynamic_map(signed=kind == "dynamic")) for kind in ("dynamic", "unsigned")}
    document = {"bitsandbytes": "0.50.2", "maps": maps, "inputs": list(shared), "cases": lines}
    with gzip.GzipFile(path, "wb", mtime=0) as out:
        out.write(json.dumps(document).encode())


main(sys.argv[1])

"""Records updates of schedule-free AdamW (package schedulefree) and AdEMAMix (bitsandbytes in 32 bits, its reference
class) in fp32, in the form of optim/step_tables: `averaged_optimizer_steps.py OUT.json.gz`."""
import gzip
import json
import sys

import torch
from bitsandbytes.optim.ademamix import _ReferenceAdEMAMix
from schedulefree import AdamWScheduleFree

torch.manual_seed(11)
torch.set_num_threads(1)
rows, columns, steps = 6, 5, 8
param0 = torch.randn(rows, columns)
gradients = torch.randn(steps, rows, columns) * (0.2 + 2 * torch.rand(steps, 1, 1))

classes = {"schedulefree.AdamWScheduleFree": AdamWScheduleFree, "bitsandbytes.AdEMAMix": _ReferenceAdEMAMix}
cases = {
    "schedule_free": ("schedulefree.AdamWScheduleFree", {"lr": 0.01, "betas": [0.9, 0.999], "weight_decay": 0.0}),
    "schedule_free_decay": ("schedulefree.AdamWScheduleFree",
                            {"lr": 0.02, "betas": [0.95, 0.98], "weight_decay": 0.1, "r": 1.0, "weight_lr_power": 1.0}),
    "ademamix": ("bitsandbytes.AdEMAMix", {"lr": 0.01, "betas": [0.9, 0.999, 0.9999], "alpha": 5.0, "weight_decay": 0.01}),
    "ademamix_rising": ("bitsandbytes.AdEMAMix",
                        {"lr": 0.005, "betas": [0.85, 0.99, 0.999], "alpha": 8.0, "weight_decay": 0.0, "t_alpha": 20,
                         "t_beta3": 20}),
}


def run(kind, arguments, start, all_gradients):
    value = torch.nn.Parameter(start.clone())
    given = {key: tuple(v) if isinstance(v, list) else v for key, v in arguments.items()}
    more = {"foreach": False} if kind.startswith("schedulefree") else {}
    optimizer = classes[kind]([value], **given, **more)
    if hasattr(optimizer, "train"):
        optimizer.train()
    out = []
    for gradient in all_gradients:
        value.grad = gradient.clone()
        optimizer.step()
        out.append(value.detach().clone())
    evaluated = None
    if hasattr(optimizer, "eval"):
        optimizer.eval()
        evaluated = value.detach().clone()
    return torch.stack(out), evaluated


table = {}
for name, (kind, arguments) in cases.items():
    values, evaluated = run(kind, arguments, param0, gradients)
    flat, _ = run(kind, arguments, param0[0], gradients[:, 0])
    table[name] = {"class": kind, "args": arguments, "params_after_step": values.tolist(),
                   "params_1d_after_step": flat.tolist()}
    if evaluated is not None:
        table[name]["params_evaluated"] = evaluated.tolist()
out = {"kind": "optim/step_tables", "param0": param0.tolist(), "grads_per_step": gradients.tolist(), "table": table,
       "note": "schedulefree 1.4.1, bitsandbytes 0.50.2, torch 2.13.0, fp32, one thread; the 1-D tables use row 0"}
with gzip.GzipFile(sys.argv[1], "wb", mtime=0) as file:
    file.write(json.dumps(out, separators=(",", ":")).encode())

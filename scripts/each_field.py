#!/usr/bin/env python3
"""Changes one field of a family's configuration at a time (the declared fields of transformers' class, and the others that it
accepts) and compares the program's results with transformers': finds out which fields matter and whether they are read.

    python scripts/each_field.py "easydel probe logits {model} --inputs {inputs} --output {output}" CHECKER [FAMILY...]

CHECKER is a Python file, not part of this repository, with a function `one(folder, args, scratch)` that
compares the command with a folder of golden vectors and returns a dict with "ok" and "note". Needs torch, transformers, numpy and safetensors.
"""
import argparse
import copy
import dataclasses
import importlib.util
import inspect
import json
import math
import os
import random
import re
import shutil
import sys
import tempfile

import torch
import transformers
from safetensors.torch import load_file
from transformers import CONFIG_MAPPING, AutoConfig
from transformers.configuration_utils import PreTrainedConfig

from random_configs import base_of, class_of, randomise, record
from random_flags import ABSENT, ACTIVATIONS, LAYER_LISTS, SIZES

# Of these nothing depends, in any family.
PLAIN = {"per_layer_config", "bos_token_id", "eos_token_id", "initializer_range", "use_cache", "pretraining_tp", "dtype", "is_encoder_decoder",
         "chunk_size_feed_forward", "num_logits_to_keep", "init_device", "time_step_init_scheme", "rescale_prenorm_residual"}
COMMON = {f.name for f in dataclasses.fields(PreTrainedConfig)} - {"chunk_size_feed_forward", "is_encoder_decoder", "dtype"}
WORDS = {"topk_method": ["greedy", "group_limited_greedy", "noaux_tc"], "scoring_func": ["softmax", "sigmoid"],
         "position_embedding_type": ["rope", "nope", "absolute", "relative_key", "relative_key_query", "alibi"], "dtype": ["bfloat16", "float16"],
         "time_step_init_scheme": ["constant"], "mamba_d_head": ["auto", 8], "time_step_rank": ["auto", 2], "mamba_dt_rank": ["auto", 3],
         "weight_mode": ["single", "fused"], "chunkwise_kernel": ["parallel--native_autograd"], "norm_type": ["layernorm", "rmsnorm"],
         "sliding_window_pattern": ["LLLG", "LG"], "use_bidirectional_attention": ["all", "vision"], "mode": ["train", "inference"],
         "hybrid_override_pattern": ["M*-E"], "partial_rotary_factor": [0.5, 1.0], "rope_theta": [777.0], "rotary_pct": [0.5], "rotary_emb_base": [777.0],
         "global_rope_theta": [777.0], "local_rope_theta": [777.0], "rope_local_base_freq": [777.0], "logit_scale": ["inv_sqrt_d_model", 0.3], "rope_type": []}
SCALED = {"default": {}, "linear": {"factor": 2.0}, "dynamic": {"factor": 2.0}, "yarn": {"factor": 4.0, "original_max_position_embeddings": 16},
          "llama3": {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 16},
          "proportional": {"partial_rotary_factor": 0.5}}


def others(name, value, annotation):
    """Other values to try, in the order of trying."""
    if name in WORDS:
        return [w for w in WORDS[name] if w != value]
    if name.endswith(("hidden_act", "hidden_activation", "activation_function", "_activation")) or name == "activation":
        return ["relu2", "gelu_pytorch_tanh"]
    if name == "rope_parameters" or name == "rope_scaling":
        kept = {k: v for k, v in (value or {}).items() if k in ("rope_theta", "partial_rotary_factor")} if isinstance(value, dict) else {}
        if isinstance(value, dict) and value and all(isinstance(v, dict) or v is None for v in value.values()):
            return [{**value, key: {**(value[key] or {}), "rope_theta": 777.0}} for key in value]
        return [{**kept, "rope_theta": 777.0, "rope_type": kind, **more} for kind, more in SCALED.items()]
    listed = [v for v in [*(SIZES.get(name) or []), *ABSENT.get(name, [])] if v != value]
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [*listed, value + 1, 2 * value, value - 1, 0]
    if isinstance(value, float):
        return [*listed, *(v for v in (1e-3, 0.5, 2 * value, value / 2, 0.1, 3.0, 0.0) if v != value)]
    if isinstance(value, list) and value and all(isinstance(v, (int, float)) for v in value):
        return [*listed, [0.5 * v if isinstance(v, float) else v for v in value], value[::-1]]
    if isinstance(value, list) and value:
        return [value[::-1], [value[-1]] * len(value), [value[0]] * len(value)]
    if value is None:
        made = list(listed)
        if "bool" in annotation:
            made += [True, False]
        if "int" in annotation:
            made += [2, 4, 8, 1]
        if "float" in annotation:
            made += [0.5, 0.1]
        return made
    return []


def fields_of(config_class):
    """name -> annotation, of what is declared and of what is taken beside it."""
    declared = {f.name: str(f.type) for f in dataclasses.fields(config_class) if f.name not in COMMON}
    source = inspect.getsource(inspect.getmodule(config_class))
    taken = re.findall(r"kwargs\.(?:pop|get|setdefault)\(\s*\"(\w+)\"", source) + re.findall(r"\"(\w+)\" in kwargs", source)
    old = ["rope_theta", "rope_scaling", "partial_rotary_factor", "per_layer_config"] if "rope_parameters" in declared else ["per_layer_config"]
    kind = lambda name: "bool" if name.startswith(("use_", "tie_")) else "int float"
    return {**{name: kind(name) for name in [*taken, *old]}, **declared}


def coded(value):
    """As config.json spells it."""
    if isinstance(value, dict):
        return {k: coded(v) for k, v in value.items()}
    if isinstance(value, list):
        return [coded(v) for v in value]
    return {"__float__": "Infinity"} if value == math.inf and isinstance(value, float) else value


def store(family, given, folder, seed):
    """A model of the configuration as it is given, and what transformers makes of it."""
    torch.manual_seed(seed)
    given = copy.deepcopy(given)  # transformers fills in what it is given
    spelled = coded(dict(copy.deepcopy(given), model_type=family))
    config = AutoConfig.for_model(family, **given, attn_implementation="eager")
    config.dtype = None
    model = class_of(config).from_config(config).eval()
    randomise(model, family)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    model.save_pretrained(folder)
    json.dump(dict(spelled, architectures=[type(model).__name__]), open(os.path.join(folder, "config.json"), "w"))
    load = lambda: class_of(config).from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).eval()
    _, info = class_of(config).from_pretrained(folder, attn_implementation="eager", output_loading_info=True)
    if any(info[k] for k in ("missing_keys", "unexpected_keys", "mismatched_keys", "error_msgs")):
        raise ValueError("transformers does not load it")
    return record(folder, load, random.Random(seed), {}, steps=8, ways=(True,))


def variants(base):
    """What is changed: the configuration as it is, and one without the lists that other fields are made into."""
    yield "as it is", base
    bare = {k: v for k, v in base.items() if k not in LAYER_LISTS}
    if bare != base:
        yield "without lists", bare


def changes(base, fields, left_out):
    """(name, value, configuration) of every change."""
    for name in left_out:
        yield name, "left out", {k: v for k, v in base.items() if k != name}
        yield name, None, {**base, name: None}
    for name, annotation in fields.items():
        if name in PLAIN or left_out:
            continue
        for value in others(name, base.get(name), annotation):
            yield name, value, {**base, name: value}
        if isinstance(base.get(name), dict) and name != "rope_parameters":
            for inner in base[name]:
                for value in others(inner, base[name][inner], ""):
                    yield f"{name}.{inner}", value, {**base, name: {**base[name], inner: value}}


def same(a, b):
    x, y = (load_file(os.path.join(folder, "expected.safetensors")) for folder in (a, b))
    return x["logits"].shape == y["logits"].shape and bool(torch.equal(x["logits"], y["logits"])) and bool(torch.equal(x["loss"], y["loss"]))


def family_report(family, checker, args, scratch, most, leave_out, only):
    model_type, base = base_of(family)
    base = {"bos_token_id": 1, "eos_token_id": 2, **{k: v for k, v in base.items() if k not in ("architectures", "model_type", "transformers_version", "dtype")}}
    fields = fields_of(CONFIG_MAPPING[model_type]) if not only else {name: "int float bool" for name in only}
    counts = {}
    for form, start in variants(base):
        reference = os.path.join(scratch, "reference")
        try:
            store(model_type, start, reference, 1)
        except Exception as error:
            print(f"{family} [{form}]: transformers: {type(error).__name__} {str(error)[:100]}", flush=True)
            continue
        taken, folder = {}, os.path.join(scratch, "changed")
        for name, value, given in changes(start, fields, sorted(start) if leave_out else []):
            if taken.get(name, 0) >= most:
                continue
            try:
                if not any(store(model_type, given, folder, seed) for seed in (1, 2, 3)):
                    continue
            except Exception:
                continue
            taken[name] = taken.get(name, 0) + 1
            row = checker.one(folder, args, scratch)
            matters = "matters" if not same(reference, folder) else "no change"
            counts[matters] = counts.get(matters, 0) + 1
            if not row["ok"]:
                counts["fail"] = counts.get("fail", 0) + 1
                print(f"FAIL {family} [{form}] {name} = {json.dumps(value, default=str)[:120]} ({matters}): "
                      f"logits {row['logits']} loss {row['loss']} tokens {row['tokens']} grads {row['grads']} {row['note']}", flush=True)
        never = sorted(set(fields) - {n.split(".")[0] for n in taken} - PLAIN)
        print(f"     {family} [{form}] without an accepted change: {' '.join(never)}", flush=True)
    print(f"DONE {family} {counts}", flush=True)


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("program")
    a.add_argument("checker")
    a.add_argument("families", nargs="+")
    a.add_argument("--most", type=int, default=2, help="number of values to compare for each field")
    a.add_argument("--leave-out", action="store_true", help="instead of other values, leave each key out and set it to null")
    a.add_argument("--fields", nargs="*", default=[], help="only these fields, declared or not")
    a = a.parse_args()
    torch.set_num_threads(1)
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()
    spec = importlib.util.spec_from_file_location("check_goldens", a.checker)
    checker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(checker)
    args = argparse.Namespace(program=a.program, timeout=300, rtol=2e-4, grads=True)
    with tempfile.TemporaryDirectory() as scratch:
        for family in a.families:
            family_report(family, checker, args, scratch, a.most, a.leave_out, a.fields)


if __name__ == "__main__":
    main()

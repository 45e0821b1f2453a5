"""Finds the first layer whose output differs from transformers'.

    easydel probe logits MODEL --inputs IN.safetensors --output OUT.safetensors --trace TRACE.safetensors
    python scripts/first_difference.py MODEL IN.safetensors TRACE.safetensors [--tolerance 2e-4]

The trace holds named tensors [rows, time, ...], or [rows, ...] for a head that reads whole rows. A name is transformers'
path of a module (model.layers.0.self_attn, model.norm, ...), or a layer's path and a checkpoint name
(model.layers.0.attn_query), which means the module that computes it. transformers runs the class that config.json names,
on the same inputs in float32, with forward hooks. Differences are relative to the largest absolute value of the tensor;
padding is ignored.
Needs: torch, transformers, safetensors.
"""
import argparse
import sys

import torch
import transformers
from safetensors.torch import load_file


# Checkpoint names, and the suffixes of the paths of the modules that compute them.
MADE_BY = {
    "attn_query": ("self_attn.q_proj", "attention.self.query"),
    "attn_key": ("self_attn.k_proj", "attention.self.key"),
    "attn_value": ("self_attn.v_proj", "attention.self.value"),
    "attn_qkv": ("attn.c_attn", "attn.Wqkv"),
    "attn_output": ("self_attn.o_proj", "attn.c_proj", "attention.output.dense", "attn.Wo"),
    "mlp_gate": ("mlp.gate_proj",),
    "mlp_up": ("mlp.up_proj", "mlp.c_fc", "intermediate.dense"),
    "mlp_down": ("mlp.down_proj", "mlp.c_proj", "output.dense", "mlp.Wo"),
    "embeddings": ("model.embed_tokens", "transformer.drop", "embeddings"),
    # Of heads, whose modules stand at the root.
    "head": ("cls.predictions.transform", "lm_head.layer_norm", "head"),
    "head_dense": ("pooler.dense", "classifier.dense", "head.dense"),
    "head_output": ("classifier.out_proj", "classifier", "score", "qa_outputs"),
}


def traced_as(module, trace):
    """The name under which the trace holds a module's output; None where it does not."""
    if module in trace:
        return module
    for name, ends in MADE_BY.items():
        for end in ends:
            if module != end and not module.endswith("." + end):
                continue
            for path in (module[: -len(end)] + name, name):
                if path in trace:
                    return path
    return None


def class_of(folder):
    """The class that config.json names; without one that of a causal language model."""
    named = transformers.AutoConfig.from_pretrained(folder).architectures
    return getattr(transformers, named[0], None) if named else transformers.AutoModelForCausalLM


def module_outputs(folder, inputs):
    """Outputs of every module in the order in which they were computed: name -> [rows, time, ...] or [rows, ...]."""
    model = class_of(folder).from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
    model.eval()
    outputs = {}

    def keep(name):
        def hook(_, __, output):
            tensor = output[0] if isinstance(output, (tuple, list)) else output
            if isinstance(tensor, torch.Tensor):
                outputs.setdefault(name, tensor.detach())
        return hook

    for name, module in model.named_modules():
        if name:
            module.register_forward_hook(keep(name))
    known = ("input_ids", "attention_mask", "token_type_ids", "position_ids")
    with torch.no_grad():
        uses_cache = getattr(model.config.get_text_config(), "is_decoder", False) or model.can_generate()
        model(**{key: inputs[key] for key in known if key in inputs}, **({"use_cache": False} if uses_cache else {}))
    return outputs


def without_padding(tensor, mask):
    """[rows, time, ...] -> [tokens, ...]; [rows, size] as it is; None where the tensor is not over rows."""
    if tensor.dim() >= 2 and tensor.shape[:2] == mask.shape:
        return tensor[mask.bool()]
    return tensor if tensor.dim() == 2 and tensor.shape[0] == mask.shape[0] else None


def compare(ours, theirs):
    """Largest difference relative to the largest value, and the token where it is; None where shapes do not fit."""
    if ours.numel() != theirs.numel() or ours.shape[0] != theirs.shape[0]:
        return None
    ours = ours.reshape(ours.shape[0], -1).double()
    theirs = theirs.reshape(theirs.shape[0], -1).double()
    difference = (ours - theirs).abs()
    difference[difference.isnan()] = float("inf")
    worst = difference.max(dim=1).values
    return (worst.max() / theirs.abs().max().clamp_min(1e-30)).item(), int(worst.argmax())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("inputs")
    parser.add_argument("trace")
    parser.add_argument("--tolerance", type=float, default=2e-4)
    parser.add_argument("--all", action="store_true", help="print every tensor, not only the first that differs")
    arguments = parser.parse_args()

    inputs, trace = load_file(arguments.inputs), load_file(arguments.trace)
    mask = inputs.get("attention_mask", torch.ones_like(inputs["input_ids"]))
    outputs = module_outputs(arguments.model, inputs)
    compared, first = 0, None
    for name, output in outputs.items():
        theirs, traced = without_padding(output, mask), traced_as(name, trace)
        if traced is None or theirs is None:
            continue
        ours = without_padding(trace[traced].float(), mask)
        if ours is not None and ours.shape[0] == mask.shape[0] < theirs.shape[0]:
            continue  # transformers scores every token and pools then
        result = None if ours is None else compare(ours, theirs)
        compared += 1
        if result is None:
            line = f"{name}: shape {list(trace[traced].shape)} here, {list(output.shape)} in transformers"
            wrong = True
        else:
            line = f"{name}: {result[0]:.1e} at token {result[1]}"
            wrong = not result[0] <= arguments.tolerance
        if arguments.all:
            print(("DIFFERS " if wrong else "equal   ") + line)
        if wrong and first is None:
            first = line
    if not compared:
        print(f"no tensor of {arguments.trace} has the name of a module; it holds: {', '.join(sorted(trace)[:8])} ...")
        return 2
    if first:
        print(f"first difference above {arguments.tolerance:.0e}: {first}")
        return 1
    print(f"{compared} tensors are equal within {arguments.tolerance:.0e}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

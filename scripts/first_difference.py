"""Names the first layer whose output differs from transformers'.

    easydel probe logits MODEL --inputs IN.safetensors --output OUT.safetensors --trace TRACE.safetensors
    python scripts/first_difference.py MODEL IN.safetensors TRACE.safetensors [--tolerance 2e-4]

The trace holds named tensors over the tokens of all rows without padding, [tokens, ...]; a name is the module path that
transformers gives (model.embed_tokens, model.layers.0.self_attn, model.norm, ...). transformers runs the same inputs in
float32 with forward hooks. Differences are relative to the largest absolute value of the tensor.
Needs: torch, transformers, safetensors.
"""
import argparse
import sys

import torch
import transformers
from safetensors.torch import load_file


def module_outputs(folder, inputs):
    """Outputs of every module in the order in which they were computed: name -> [rows, time, ...]."""
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
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
        model(**{key: inputs[key] for key in known if key in inputs}, use_cache=False)
    return outputs


def without_padding(tensor, mask):
    """[rows, time, ...] -> [tokens, ...]; None where the tensor is not over rows and time."""
    if tensor.dim() < 2 or tensor.shape[:2] != mask.shape:
        return None
    return tensor[mask.bool()]


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
        theirs = without_padding(output, mask)
        if name not in trace or theirs is None:
            continue
        result = compare(trace[name].float(), theirs)
        compared += 1
        if result is None:
            line = f"{name}: shape {list(trace[name].shape)} here, {list(theirs.shape)} in transformers"
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

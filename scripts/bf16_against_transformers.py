"""Compares the error of bf16 logits here and in transformers. For each golden: converts its folder to bf16, computes reference
logits from that folder in fp32, and prints the root mean square of both bf16 runs' differences, relative to that of the logits.

    bf16_against_transformers.py easydel GOLDENS [NAME ...]
"""
import pathlib
import subprocess
import sys
import tempfile

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM
from transformers.utils import logging

INPUTS = ("input_ids", "attention_mask", "labels", "prompt_ids", "prompt_mask")


def ours(program, folder, expected, work):
    inputs = {name: expected[name].clone() for name in INPUTS}
    inputs["max_new_tokens"] = torch.tensor([1])
    save_file(inputs, work / "inputs.safetensors")
    out = work / "out.safetensors"
    subprocess.run([program, "-q", "probe", "logits", folder, "--inputs", work / "inputs.safetensors", "--output", out, "--dtype", "bf16"],
                   check=True, capture_output=True, text=True)
    return load_file(out)["logits"].float()


def theirs(folder, expected, dtype):
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, attn_implementation="eager").eval()
    with torch.no_grad():
        return model(input_ids=expected["input_ids"], attention_mask=expected["attention_mask"], use_cache=False).logits.float()


def compare(program, golden):
    expected = load_file(golden / "expected.safetensors")
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        folder = work / "bf16"
        subprocess.run([program, "-q", "export", golden, "--format", "safetensors", "--dtype", "bf16", "-o", folder],
                       check=True, capture_output=True, text=True)
        shown = expected["attention_mask"].ne(0).unsqueeze(-1)
        truth = theirs(folder, expected, torch.float32) * shown
        norm = truth.pow(2).mean().sqrt()
        error = lambda logits: ((logits * shown - truth).pow(2).mean().sqrt() / norm).item()
        return error(ours(program, folder, expected, work)), error(theirs(folder, expected, torch.bfloat16))


def main():
    program, root = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    names = sys.argv[3:] or sorted(path.parent.name for path in root.glob("*/expected.safetensors"))
    print("| golden | easydel | transformers | ratio |\n|---|---|---|---|")
    for name in names:
        try:
            mine, other = compare(program, root / name)
        except Exception as error:  # another kind of model, or one that is not built
            text = (getattr(error, "stderr", None) or str(error)).strip().splitlines()
            print(f"{name}: not compared: {text[0][:120] if text else type(error).__name__}", file=sys.stderr)
            continue
        print(f"| {name} | {mine:.2e} | {other:.2e} | {mine / max(other, 1e-12):.2f} |", flush=True)


if __name__ == "__main__":
    main()

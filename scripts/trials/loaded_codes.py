#!/usr/bin/env python3
"""Loads weights that we saved in codes with the libraries that read such files, and compares logits with ours.

  python scripts/trials/loaded_codes.py --program build/bin/easydel [--model FOLDER] [--only nf4,a4q,...]

Needs torch 2.13.0, transformers 5.23.0, bitsandbytes 0.50.2, compressed-tensors 0.20.0, peft 0.21.2 and gguf. What is
loaded: the folders of `easydel quantize --to`, those that `easydel merge --merge-to-codes` writes in the codes of
quantization.model, and the files of `easydel export` in q8_0 and q4_0; experts of a small mixtral and gpt_oss, and embeddings and output
layers that share their weight, by `--only experts,embeddings` alone. Prints for each the greatest difference between
the library's logits and ours, relative to the largest logit, both in fp32; ends with status 1 if one is above the
tolerance or is not loaded. Without --model it draws a small llama.

compressed-tensors multiplies mxfp4 in bf16 only, so its logits are those of bf16. The products of bitsandbytes on a CPU
take only some shapes, so its layers are decoded by its dequantize_4bit (flat: on a CPU it decodes rows wrongly that are
not whole blocks) and multiplied by torch. transformers cannot load packed codes with zero points (compressed-tensors 0.20.0
gives them the shape of unpacked ones on the meta device), so a4q is decoded by compressed-tensors' own decompress.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import warnings

warnings.filterwarnings("ignore")
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TQDM_DISABLE"] = "1"
import bitsandbytes
import torch
import transformers
from peft import LoraConfig, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM, GptOssConfig, LlamaConfig, MixtralConfig

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()

QUANTIZED = ["nf4", "fp4", "int8", "w4a16", "fp8", "mxfp4"]
MERGED = ["nf4", "fp4", "8bit", "a8bit", "a8q", "a4q", "mxfp4", "mxfp8", "nvfp4", "nvfp8", "ternary", "binary"]
EXPORTED = ["q8_0", "q4_0"]
EXPERTS = [("mixtral", "w4a16", ""), ("mixtral", "int8", ""), ("mixtral", "fp8", ""), ("mixtral", "int8", "experts"), ("gpt_oss", "mxfp4", "")]
EXPERTS_MADE = [("mixtral", "8bit", "experts|proj"), ("mixtral", "a8q", "experts|proj"), ("mixtral", "ternary", "experts")]
EMBEDDINGS = [("tied", "8bit", "embed_tokens|proj"), ("untied", "8bit", "embed_tokens|proj"), ("untied", "mxfp8", "embed_tokens"), ("tied", "8bit", "lm_head|proj")]
IN_BF16 = ("mxfp4", "mxfp8", "nvfp4")


SIZES = {"vocab_size": 512, "hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64}


def make_model(folder, kind="untied"):
    torch.manual_seed(0)
    if kind == "mixtral":
        config = MixtralConfig(intermediate_size=256, num_local_experts=4, num_experts_per_tok=2, **SIZES)
    elif kind == "gpt_oss":
        config = GptOssConfig(intermediate_size=128, num_local_experts=4, num_experts_per_tok=2, head_dim=32, **SIZES)
    else:
        config = LlamaConfig(intermediate_size=256, tie_word_embeddings=kind == "tied", **SIZES)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.05)
    model.save_pretrained(folder)


def make_adapter(base, folder):
    torch.manual_seed(1)
    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    adapted = get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", r=2, target_modules=["q_proj", "o_proj"]))
    with torch.no_grad():
        for parameter in adapted.parameters():
            if parameter.requires_grad:
                parameter.add_(torch.randn_like(parameter) * 0.1)
    adapted.save_pretrained(folder)


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


def with_zero_points(folder):
    """The model of a folder in packed codes with zero points, decoded by compressed-tensors."""
    from compressed_tensors.compressors import PackedQuantizationCompressor
    from compressed_tensors.quantization import QuantizationScheme

    config = AutoConfig.from_pretrained(folder)
    section = config.quantization_config
    del config.quantization_config
    scheme = QuantizationScheme.model_validate(section["config_groups"]["group_0"])
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    held, values = load_file(folder / "model.safetensors"), {}
    for name in held:
        layer, leaf = name.rsplit(".", 1)
        if leaf == "weight_packed":
            parts = {part: held[f"{layer}.{part}"] for part in ("weight_packed", "weight_scale", "weight_shape", "weight_zero_point")}
            values[f"{layer}.weight"] = PackedQuantizationCompressor.decompress(parts, scheme)["weight"].float()
        elif leaf == "weight":
            values[name] = held[name]
    model.load_state_dict(values)
    return model.eval()


def difference(program, folder, work, ids, **how):
    """The greatest difference of logits, relative to the largest."""
    ours_of = how.pop("ours", folder)
    out = work / "logits.safetensors"
    subprocess.run([program, "-q", "probe", "logits", ours_of, "--dtype", "fp32", "--inputs", work / "inputs.safetensors",
                    "--output", out], check=True)
    ours = load_file(out)["logits"]
    theirs = with_zero_points(folder) if how.pop("zero_points") else AutoModelForCausalLM.from_pretrained(folder, **how)
    decode(theirs)
    with torch.no_grad():
        expected = theirs(ids).logits.float()
    return float((ours - expected).abs().max() / expected.abs().max())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--model")
    parser.add_argument("--only", default="", help="formats, with commas between them")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    wanted = set(filter(None, arguments.only.split(",")))
    failed = loaded = 0
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        model = arguments.model
        if not model:
            model = work / "model"
            make_model(model)
        make_adapter(model, work / "adapter")
        ids = torch.arange(3, 35).reshape(2, 16)
        save_file({"input_ids": ids}, work / "inputs.safetensors")
        cases = [("quantize", one, "", "") for one in QUANTIZED] + [("merge", one, "", "") for one in MERGED] + [("export", one, "", "") for one in EXPORTED]
        cases += [("quantize", form, kind, pattern) for kind, form, pattern in EXPERTS]
        cases += [("merge", form, kind, pattern) for kind, form, pattern in EXPERTS_MADE + EMBEDDINGS]
        for command, form, kind, pattern in cases:
            group = ("experts" if kind in ("mixtral", "gpt_oss") else "embeddings") if kind else form
            if wanted and group not in wanted:
                continue
            base, adapter = model, work / "adapter"
            if kind:
                base, adapter = work / kind, work / f"adapter {kind}"
                if not base.exists():
                    make_model(base, kind)
                    make_adapter(base, adapter)
            out = work / f"{command} {form} {kind} {pattern}"
            how = {"dtype": torch.bfloat16 if form in IN_BF16 else torch.float32, "zero_points": form == "a4q"}
            if command == "quantize":
                run = ["quantize", base, "--to", form, "--out", out] + (["--pattern", pattern] if pattern else [])
            elif command == "merge":
                run = ["merge", base, "--adapter", adapter, "--merge-to-codes", "--out", out,
                       "--set", f"quantization.model.quantization_method={form}"]
                run += ["--set", f"quantization.model.pattern={pattern}"] if pattern else []
            else:
                out.mkdir()
                run = ["export", model, "--output", out / "model.gguf", "--dtype", form]
                how.update(gguf_file="model.gguf", ours=out / "model.gguf")
            tolerance = 3e-2 if form in IN_BF16 else 1e-4
            try:
                subprocess.run([arguments.program, "-q", *run], check=True, stdout=subprocess.DEVNULL)
                far = difference(arguments.program, out, work, ids, **how)
                result = f"{far:.2g}" if far <= tolerance else f"{far:.2g} FAILED, tolerance {tolerance}"
            except Exception as error:
                far, result = 1, f"FAILED: {type(error).__name__} {str(error)[:300]}"
            loaded += 1
            failed += far > tolerance
            print(command, form, kind, pattern, result, flush=True)
    print(f"{loaded} kinds of codes, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

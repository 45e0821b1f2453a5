#!/usr/bin/env python3
"""Compares adapters with PEFT, both ways: adapters that PEFT makes with random settings and values give the same logits
here, alone and merged, and adapters that a run of ours trains give the same logits in PEFT.

Needs torch 2.13, transformers 5.23.0, peft 0.21.2 (PyPI) in the Python that runs it.
  scripts/random_adapters.py --program build/bin/easydel [--count 200] [--seed 0]
"""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import warnings

warnings.filterwarnings("ignore")
os.environ["HF_HUB_OFFLINE"] = "1"
import torch
import transformers
from peft import AutoPeftModelForCausalLM, LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()

SIZES = dict(vocab_size=512, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2)
FAMILIES = {
    "llama": (dict(SIZES), ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]),
    "qwen3": (dict(SIZES, head_dim=8), ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]),
    "gemma3_text": (dict(SIZES, head_dim=8, sliding_window=8), ["q_proj", "k_proj", "v_proj", "o_proj", "up_proj", "down_proj"]),
    "gpt2": (dict(vocab_size=512, n_embd=32, n_layer=2, n_head=4, n_positions=64, bos_token_id=1, eos_token_id=2),
             ["c_attn", "c_proj", "c_fc"]),
    "phi3": (dict(SIZES), ["qkv_proj", "o_proj", "gate_up_proj", "down_proj"]),
    "mixtral": (dict(SIZES, num_local_experts=4, num_experts_per_tok=2), ["q_proj", "k_proj", "v_proj", "o_proj"]),
}


def make_model(family, tied, folder, seed):
    torch.manual_seed(seed)
    config = AutoConfig.for_model(family, **FAMILIES[family][0], tie_word_embeddings=tied)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager", dtype=torch.float32)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.05)
    model.save_pretrained(folder)
    return model


def random_settings(family, pick):
    layers = FAMILIES[family][1]
    out = {"r": pick.choice([1, 2, 4, 7]), "lora_alpha": pick.choice([1, 4, 8, 16, 3])}
    kind = pick.randrange(5)
    if kind == 0:
        out["target_modules"] = "all-linear"
    elif kind == 1:
        out["target_modules"] = ".*\\.(" + "|".join(pick.sample(layers, pick.randint(1, len(layers)))) + ")"
    else:
        out["target_modules"] = pick.sample(layers, pick.randint(1, len(layers)))
        if pick.random() < 0.3:
            out["layers_to_transform"] = pick.choice([0, 1, [1], [0, 1]])
        if pick.random() < 0.3:
            out["rank_pattern"] = {out["target_modules"][0]: pick.choice([1, 3, 5])}
        if pick.random() < 0.3:
            out["alpha_pattern"] = {out["target_modules"][-1]: pick.choice([2, 9])}
    if pick.random() < 0.3:
        out["use_rslora"] = True
    if pick.random() < 0.25:
        out["exclude_modules"] = pick.choice([[layers[-1]], ".*\\.0\\..*"])
    other = pick.random()
    if other < 0.3:
        out["use_dora"] = True
    elif other < 0.4 and family == "gpt2":
        out["lora_bias"] = True
    elif other < 0.55 and isinstance(out["target_modules"], list) and "layers_to_transform" not in out:
        out["target_modules"] = out["target_modules"] + [pick.choice(["wte"] if family == "gpt2" else ["embed_tokens"])]
    if pick.random() < 0.2 and family != "gpt2":
        out["modules_to_save"] = [pick.choice(["norm", "lm_head", "input_layernorm"])]
    if pick.random() < 0.15:
        out["bias"] = "all"
    embedding = "wte" if family == "gpt2" else "embed_tokens"
    names = out["target_modules"]
    alone = isinstance(names, list) and not any(n in names + out.get("modules_to_save", []) for n in (embedding, "lm_head"))
    if alone and pick.random() < 0.2:
        out["trainable_token_indices"] = pick.sample(range(3, 512), pick.randint(1, 5))
    elif alone and "lora_bias" not in out and pick.random() < 0.25:
        out["init_lora_weights"] = pick.choice(["pissa", "olora"] if family != "gpt2" else ["pissa"])
    elif family == "mixtral" and not out.get("use_dora") and pick.random() < 0.5:
        experts = ["mlp.experts.gate_up_proj", "mlp.experts.down_proj", "gate.weight"]
        out["target_parameters"] = pick.sample(experts, pick.randint(1, 3))
    return out


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[-500:])


def logits_of(program, base, adapter, merged, work):
    out = os.path.join(work, "out.safetensors")
    extra = ["--merged"] if merged else []
    run(program, "probe", "logits", base, "--adapter", adapter, "--inputs", os.path.join(work, "in.safetensors"),
        "--output", out, *extra)
    return load_file(out)["logits"]


def from_peft(program, family, tied, pick, seed, work):
    base, adapter = os.path.join(work, "base"), os.path.join(work, "adapter")
    model = make_model(family, tied, base, seed)
    settings = random_settings(family, pick)
    try:
        peft = get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", **settings))
    except ValueError as error:  # settings that PEFT refuses: nothing was found, or all of it was excluded
        return f"refused by PEFT: {str(error)[:60]}", settings
    torch.manual_seed(seed + 1)
    with torch.no_grad():
        for parameter in peft.parameters():
            if parameter.requires_grad:
                parameter.add_(torch.randn_like(parameter) * 0.1)
    peft.save_pretrained(adapter)
    peft.eval()
    ids = torch.randint(3, 512, (2, 9))
    save_file({"input_ids": ids}, os.path.join(work, "in.safetensors"))
    with torch.no_grad():
        wanted = peft(ids).logits
        scale = max(1.0, wanted.abs().max().item())
        far = (logits_of(program, base, adapter, False, work) - wanted).abs().max().item() / scale
        if far > 1e-5:
            return f"FAILED: {far:.2g} from PEFT", settings
        if not settings.get("lora_bias"):
            merged = peft.merge_and_unload()(ids).logits
            far = (logits_of(program, base, adapter, True, work) - merged).abs().max().item() / scale
            if far > 2e-5:
                return f"FAILED: merged, {far:.2g} from PEFT", settings
    return "", settings


def from_us(program, family, tied, pick, seed, work):
    base = os.path.join(work, "base")
    make_model(family, tied, base, seed)
    settings = random_settings(family, pick)
    for name in ("bias", "lora_bias"):
        settings.pop(name, None)
    fits = not any(word in str(settings) for word in ("embed", "wte", "lm_head", "trainable_token_indices"))
    added = ["<new>", "</new>"] if fits and pick.random() < 0.4 else []
    if added:  # PEFT's AutoPeftModel grows the embedding to the tokenizer that lies in the adapter's folder
        settings["added_tokens"] = added
    run_file = os.path.join(work, "run.yaml")
    with open(run_file, "w") as file:
        json.dump({"model": {"name_or_path": base, "tokenizer": os.path.abspath("tests/data/models/stories260K-hf")},
                   "loader": {"dtype": "fp32", "param_dtype": "fp32"}, "lora": settings,
                   "mixture": {"informs": [{"type": "txt", "num_rows": 8,
                                            "data_files": os.path.abspath("tests/data/text/war_and_peace_held_out.txt")}]},
                   "trainer": {"max_training_steps": 3, "total_batch_size": 4, "learning_rate": 0.02, "max_length": 32,
                               "save_directory": os.path.join(work, "out"), "model_name": "m"},
                   "actions": ["train"]}, file)
    try:
        run(program, "-q", "elarge", run_file)
    except RuntimeError as error:
        return ("refused here: " if "finds no" in str(error) or "not built" in str(error) else "FAILED: ") + str(error)[-200:], settings
    adapter = os.path.join(work, "out", "m", "run-3", "adapter")
    ids = torch.randint(3, 512, (2, 9))
    model = AutoModelForCausalLM.from_pretrained(base, attn_implementation="eager", dtype=torch.float32)
    if added:
        tokenizer = AutoTokenizer.from_pretrained(adapter)
        if tokenizer.convert_tokens_to_ids(added) != [512, 513] or len(tokenizer) != 514:
            return "FAILED: the tokenizer has not grown", settings
        model.resize_token_embeddings(514)
        ids[:, 3:5] = torch.tensor([512, 513])
    save_file({"input_ids": ids}, os.path.join(work, "in.safetensors"))
    with torch.no_grad():
        plain = model(ids).logits
        peft = (AutoPeftModelForCausalLM.from_pretrained(adapter, attn_implementation="eager", dtype=torch.float32)
                if added else PeftModel.from_pretrained(model, adapter)).eval()
        wanted = peft(ids).logits
        far = (logits_of(program, base, adapter, False, work) - wanted).abs().max().item() / max(1.0, wanted.abs().max().item())
        if far > 1e-5:
            return f"FAILED: {far:.2g} from PEFT", settings
        if (wanted - plain).abs().max().item() < 1e-4:
            return "FAILED: the adapter has learned nothing", settings
    return "", settings


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--ours", type=int, default=None, help="how many of them we train; default: a quarter")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    failed = refused = 0
    ours = arguments.count // 4 if arguments.ours is None else arguments.ours
    for i in range(arguments.count):
        seed = arguments.seed * 100003 + i
        pick = random.Random(seed)
        family = pick.choice(list(FAMILIES))
        tied = pick.random() < 0.4
        with tempfile.TemporaryDirectory() as work:
            way = from_us if i < ours else from_peft
            try:
                result, settings = way(arguments.program, family, tied, pick, seed, work)
            except RuntimeError as error:
                result, settings = f"FAILED: {error}", "?"
        if result:
            print(f"{i} {family} {'tied ' if tied else ''}{way.__name__} {settings}: {result}", flush=True)
        failed += result.startswith("FAILED")
        refused += bool(result) and not result.startswith("FAILED")
    print(f"{arguments.count} adapters, {failed} failed, {refused} refused by one of the two")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

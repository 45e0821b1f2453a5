#!/usr/bin/env python3
"""Tests the usual steps with every family: random initial weights from a config.json, two steps of training, saving. Then
transformers loads the result; no tensor may be missing or left over, and logits and greedy tokens must agree. Tokens generated
with a cache must equal those of the whole text, and saving again must give the same files. For families that transformers does
not have, the checks that need it are skipped.

    python scripts/every_family.py easydel tests/data [FAMILY ...]

Needs torch, transformers, numpy and safetensors.
"""
import json
import math
import pathlib
import shutil
import subprocess
import sys
import tempfile

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES
from transformers.utils import logging

TOKENIZER = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")
ENCODERS = ("bert", "roberta", "xlm-roberta", "modernbert")
SIZES = dict(vocab_size=512, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             max_position_embeddings=128)
UPSTREAM = {
    "arctic": dict(SIZES, architectures=["ArcticForCausalLM"], num_local_experts=4, num_experts_per_tok=2, parallel_attn_mlp_res=True),
    "exaone": dict(SIZES, architectures=["ExaoneForCausalLM"], num_layers=2),
    "grok-1": dict(SIZES, architectures=["Grok1ModelForCausalLM"], num_experts=4, num_experts_per_tok=2, attn_output_multiplier=0.1,
                   embedding_multiplier_scale=2.0, output_multiplier_scale=0.6, max_attn_value=30.0),
    "internlm2": dict(SIZES, architectures=["InternLM2ForCausalLM"], bias=False),
    "openelm": dict(architectures=["OpenELMForCausalLM"], vocab_size=512, model_dim=32, head_dim=8, num_transformer_layers=2, ffn_dim_divisor=8,
                    ffn_multipliers=[1.0, 2.0], ffn_with_glu=True, num_query_heads=[2, 4], num_kv_heads=[1, 2], max_context_length=128,
                    normalize_qk_projections=True, share_input_output_layers=True, activation_fn_name="swish",
                    normalization_layer_name="rms_norm", rope_freq_constant=10000, rope_max_length=256),
    "xerxes": dict(SIZES, architectures=["XerxesForCausalLM"], head_dim=8, num_local_experts=4, num_experts_per_tok=2, xe_moe=True),
}
RUN = """
model: {{name_or_path: {model}}}
loader: {{dtype: fp32, param_dtype: fp32}}
mixture:
  informs: [{{type: txt, data_files: {text}}}]
  pack_tokens: true
  pack_seq_length: 32
trainer: {{trainer_type: sft, learning_rate: {rate}, max_training_steps: {steps}, total_batch_size: 2, save_directory: {out}, model_name: model,
          resume_if_possible: false}}
actions: [train]
"""


def configurations(goldens):
    """Of each family the plainest golden configuration, with a vocabulary for the small tokenizer."""
    found = {}
    for path in sorted(goldens.glob("*/config.json"), key=lambda p: (p.parent.name.startswith("random_"), len(p.parent.name))):
        config = json.load(open(path), object_hook=lambda m: float(m["__float__"]) if "__float__" in m else m)
        if "text_config" in config or not any(word in config["architectures"][0] for word in ("CausalLM", "LMHead", "MaskedLM")):
            continue
        config.pop("quantization_config", None)
        config["vocab_size"] = 512
        if "vocab_size_per_layer_input" in config:
            config["vocab_size_per_layer_input"] = 512
        found.setdefault(config["model_type"], config)
    return found | {name: dict(config, model_type=name) for name, config in UPSTREAM.items()}


def run(program, *arguments):
    done = subprocess.run([program, "-q", *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(" | ".join((done.stderr + done.stdout).strip().splitlines()[-2:]))


def random_start(program, data, config, work, steps=2, rate=1e-3):
    """-> the folder of the model that was saved behind so many steps from a random start."""
    start = work / "start"
    start.mkdir()
    json.dump(config, open(start / "config.json", "w"))
    for name in TOKENIZER:
        if (data / "models/stories260K-hf" / name).exists():
            shutil.copy(data / "models/stories260K-hf" / name, start)
    lines = (data / "text/war_and_peace_held_out.txt").read_text().splitlines()[:40]
    (work / "text.txt").write_text("\n".join(lines))
    (work / "run.yaml").write_text(RUN.format(model=start, text=work / "text.txt", out=work / "out", steps=steps, rate=rate))
    run(program, "elarge", work / "run.yaml")
    losses = [json.loads(line).get("loss") for path in (work / "out").rglob("metrics.jsonl") for line in open(path)]
    if not any(isinstance(loss, float) for loss in losses) or any(loss is not None and not math.isfinite(loss) for loss in losses):
        raise RuntimeError(f"losses {losses}")
    return sorted((work / "out").rglob("config.json"), key=lambda p: (len(p.parts), p))[0].parent


def probe(program, folder, work, ids, prompts=None):
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    if prompts is not None:
        inputs.update(prompt_ids=prompts, prompt_mask=torch.ones_like(prompts), max_new_tokens=torch.tensor([12]))
    save_file(inputs, work / "inputs.safetensors")
    run(program, "probe", "logits", folder, "--inputs", work / "inputs.safetensors", "--output", work / "outputs.safetensors")
    return load_file(work / "outputs.safetensors")


def near(a, b):
    return float((a - b).abs().max() / b.abs().max())


def written_again(program, saved, work):
    run(program, "export", saved, "--format", "safetensors", "-o", work / "again")
    before, after = load_file(saved / "model.safetensors"), load_file(work / "again/model.safetensors")
    if before.keys() != after.keys() or not all(torch.equal(before[name], after[name]) for name in before):
        raise RuntimeError("written once more it has other tensors")


def check(program, data, family, config, work):
    encoder = family in ENCODERS
    if encoder:  # trainers ask for a causal language model; a golden folder is saved and loaded instead
        read = ((path.parent, json.load(open(path))) for path in sorted((data / "hf_goldens").glob("*/config.json")))
        golden = next(folder for folder, found in read if found["model_type"] == family and "MaskedLM" in found["architectures"][0])
        saved = work / "saved"
        run(program, "export", golden, "--format", "safetensors", "-o", saved)
        config = json.load(open(saved / "config.json"))
    else:
        saved = random_start(program, data, config, work)
    notes = []
    torch.manual_seed(0)
    ids = torch.randint(3, config["vocab_size"], (2, 10))
    prompts = None if encoder else torch.randint(3, config["vocab_size"], (2, 6))
    ours = probe(program, saved, work, ids, prompts)
    if not encoder:
        whole = torch.cat([prompts, ours["generated"]], 1)
        said = probe(program, saved, work, whole)["logits"][:, 5:-1]
        best = said.max(-1).values
        chosen = said.gather(-1, ours["generated"].unsqueeze(-1)).squeeze(-1)
        if float((best - chosen).max()) > 1e-4 * float(said.abs().max()):
            raise RuntimeError("the cache gives other tokens than the whole text")
    written_again(program, saved, work)
    if family in CONFIG_MAPPING_NAMES:
        loader = AutoModelForMaskedLM if encoder else AutoModelForCausalLM
        model, report = loader.from_pretrained(saved, attn_implementation="eager", dtype=torch.float32, output_loading_info=True)
        wrong = {key: sorted(map(str, value))[:3] for key, value in report.items() if value}
        if wrong:
            raise RuntimeError(f"transformers: {wrong}")
        with torch.no_grad():
            distance = near(ours["logits"], model.eval()(input_ids=ids).logits)
        notes.append(f"{distance:.0e} from transformers")
        if distance > 2e-4:
            raise RuntimeError(notes[-1])
    return ", ".join(notes) or "not in transformers"


def main():
    program, data = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2]).resolve()
    torch.set_num_threads(1)
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    failed = 0
    for family, config in sorted(configurations(data / "hf_goldens").items()):
        if sys.argv[3:] and family not in sys.argv[3:]:
            continue
        with tempfile.TemporaryDirectory() as work:
            try:
                print(family, "ok:", check(program, data, family, config, pathlib.Path(work)), flush=True)
            except Exception as error:
                failed += 1
                print(family, "FAILED:", f"{type(error).__name__}: {error}"[:400].replace("\n", " "), flush=True)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())

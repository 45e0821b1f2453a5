#!/usr/bin/env python3
"""Compares the memory that training announces before its first step with the peak of the process, over 20 runs of sft and
dpo, or with --methods over 12 runs of other methods.

    scripts/memory_line.py [--methods] [--program build/bin/easydel] [--size small|medium] [--text-mb 20] [--only NAME]

small: a llama of 33 million parameters, a few seconds a run; medium: the shape of a model of 135 million. Prints a line for
each run and exits with 1 if one is off by more than 10 %.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SIZES = {
    "small": dict(hidden_size=512, intermediate_size=1376, num_hidden_layers=8, num_attention_heads=8,
                  num_key_value_heads=8, vocab_size=8192),
    "medium": dict(hidden_size=576, intermediate_size=1536, num_hidden_layers=30, num_attention_heads=9,
                   num_key_value_heads=3, vocab_size=49152),
}
CHECKPOINTS = "base_config: {values: {gradient_checkpointing: nothing_saveable}}"


def runs():
    def sft(name, dtype, batch, length, trainer="", mixture="", sections="", data="long.jsonl"):
        return dict(name=name, dtype=dtype, data=data, mixture=mixture, sections=sections,
                    trainer=f"total_batch_size: {batch}, max_length: {length}{trainer}")

    def dpo(name, dtype, batch, length, trainer="", sections=""):
        return sft(name, dtype, batch, length, ", trainer_type: dpo" + trainer, sections=sections, data="pairs.jsonl")

    return [
        sft("fp32", "fp32", 4, 256),
        sft("bf16", "bf16", 4, 256),
        sft("fp32 batch 1", "fp32", 1, 128),
        sft("bf16 batch 1", "bf16", 1, 128),
        sft("fp32 batch 8", "fp32", 8, 256),
        sft("bf16 batch 8", "bf16", 8, 256),
        sft("fp32 accumulation", "fp32", 8, 256, ", gradient_accumulation_steps: 8"),
        sft("bf16 accumulation", "bf16", 8, 256, ", gradient_accumulation_steps: 4"),
        sft("fp32 checkpointing", "fp32", 8, 256, sections=CHECKPOINTS),
        sft("bf16 checkpointing", "bf16", 8, 256, sections=CHECKPOINTS),
        sft("fp32 length 1024", "fp32", 2, 1024),
        sft("bf16 length 1024", "bf16", 2, 1024),
        sft("bf16 checkpointing and accumulation", "bf16", 8, 512, ", gradient_accumulation_steps: 2",
            sections=CHECKPOINTS),
        dpo("dpo fp32", "fp32", 2, 256),
        dpo("dpo bf16", "bf16", 2, 256),
        dpo("dpo bf16 checkpointing", "bf16", 4, 256, sections=CHECKPOINTS),
        sft("lion", "bf16", 4, 256, ", optimizer: lion"),
        sft("adafactor", "fp32", 4, 256, ", optimizer: adafactor"),
        sft("frozen embeddings", "bf16", 4, 256, ", frozen_parameters: embed_tokens"),
        sft("short rows", "fp32", 2, 64, data="short.jsonl"),
        sft("packed text", "bf16", 2, 512, mixture=", pack_tokens: true", data="text.txt"),
    ]


def method_runs():
    def run(method, dtype, batch, length, trainer="", data="pairs.jsonl", sections="", limit="max_length"):
        return dict(name=f"{method} {dtype}", dtype=dtype, data=data, mixture="", sections=sections,
                    trainer=f"trainer_type: {method}, total_batch_size: {batch}, {limit}: {length}{trainer}")

    def sampling(method, dtype, batch, trainer="", sections=""):
        return run(method, dtype, batch, 64, ", max_prompt_length: 64, rewards: [{type: repetition}]" + trainer, "prompts.jsonl",
                   sections, "max_completion_length")

    teacher = "teacher_model: {name_or_path: teacher}"
    return [
        run("orpo", "bf16", 4, 256),
        run("kto", "bf16", 8, 256),
        run("kto", "fp32", 4, 256),
        run("reward", "bf16", 4, 512),
        run("tpo", "fp32", 2, 256, data="triples.jsonl"),
        run("gkd", "bf16", 4, 256, ", lmbda: 0", "answers.jsonl", teacher),
        run("distillation", "fp32", 4, 256, "", "answers.jsonl", teacher),
        run("embedding", "bf16", 16, 128, ", query_field: prompt, positive_field: chosen"),
        sampling("grpo", "bf16", 16, ", num_return_sequences: 8, beta: 0"),
        sampling("grpo", "fp32", 16, ", num_return_sequences: 8, beta: 0.04"),
        sampling("ppo", "bf16", 8),
        sampling("online_dpo", "bf16", 4),
    ]


def prepare(folder, size, megabytes):
    model = folder / "model"
    shutil.copytree(ROOT / "tests/data/models/stories260K-hf", model)
    (model / "model.safetensors").unlink()
    config = json.loads((model / "config.json").read_text())
    config.update(SIZES[size])
    config.pop("head_dim", None)
    config["max_position_embeddings"] = 2048
    os.chmod(model / "config.json", 0o644)
    (model / "config.json").write_text(json.dumps(config))
    words = "Once upon a time there was a dog who had a red ball and a warm hat. "
    (folder / "long.jsonl").write_text("".join(json.dumps({"text": words * 120}) + "\n" for _ in range(16)))
    shutil.copytree(model, folder / "teacher")
    pair = {"prompt": words * 4, "chosen": " He was kind." * 40, "rejected": " He was mad." * 40}
    for name, row in {"triples": pair | {"reference": " He was good." * 40}, "prompts": {"prompt": words * 2},
                      "answers": {"prompt": words * 2, "completion": words * 20}}.items():
        (folder / f"{name}.jsonl").write_text((json.dumps(row) + "\n") * 64)
    (folder / "short.jsonl").write_text("".join(json.dumps({"text": words}) + "\n" for _ in range(16)))
    (folder / "pairs.jsonl").write_text("".join(
        json.dumps(pair) + "\n" for _ in range(32)))
    with open(folder / "text.txt", "w") as file:
        line = words * 12 + "\n"
        for _ in range(megabytes * 1_000_000 // len(line)):
            file.write(line)


def bytes_of(text):
    number, unit = text.split()
    return float(number) * {"GB": 1e9, "MB": 1e6}[unit]


def measure(program, folder, run):
    shutil.rmtree(folder / "out", ignore_errors=True)
    (folder / "run.yaml").write_text(f"""model: {{name_or_path: model}}
loader: {{dtype: {run['dtype']}, param_dtype: {run['dtype']}}}
mixture: {{informs: [{{data_files: {run['data']}}}]{run['mixture']}}}
trainer: {{save_directory: out, max_training_steps: 3, {run['trainer']}}}
{run['sections']}
actions: [train]
""")
    with open(folder / "stdout", "w") as out, open(folder / "stderr", "w") as err:
        child = subprocess.Popen([program, "run", "run.yaml"], cwd=folder, stdout=out, stderr=err)
        _, status, usage = os.wait4(child.pid, 0)
    child.returncode = status
    line = re.search(r"^memory .*?about ([\d.]+ [GM]B).*$", (folder / "stdout").read_text(), re.M)
    if status != 0 or not line:
        sys.exit(f"{run['name']}: status {status}\n{(folder / 'stderr').read_text()}")
    return bytes_of(line.group(1)), usage.ru_maxrss * 1024, line.group(0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default=str(ROOT / "build/bin/easydel"))
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--text-mb", type=int, default=20)
    parser.add_argument("--only")
    parser.add_argument("--methods", action="store_true", help="runs of other methods than sft and dpo")
    parser.add_argument("--lines", action="store_true", help="also print the announced lines")
    options = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        prepare(folder, options.size, options.text_mb)
        for run in method_runs() if options.methods else runs():
            if options.only and options.only not in run["name"]:
                continue
            said, peak, line = measure(os.path.abspath(options.program), folder, run)
            wrong += abs(said / peak - 1) > 0.1
            print(f"{run['name']:38} said {said / 1e6:8.0f} MB   peak {peak / 1e6:8.0f} MB   {said / peak:.3f}", flush=True)
            if options.lines:
                print("    " + line)
    print("off by more than 10 %:", wrong)
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())

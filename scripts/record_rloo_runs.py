#!/usr/bin/env python3
"""Records whole runs of TRL's RLOOTrainer for `probe replay`.

usage: record_rloo_runs.py [OUT]      OUT: tests/data/trl unless given

With trl==1.16.0 and transformers==5.23.0, fp32, one thread. The completions are fed: pieces of stories of different lengths,
not all with an end token. Rewards follow from their ids: the share of even ids, and a tenth of the length less a half.
"""
import gzip, importlib.metadata, json, os, pathlib, sys, tempfile

os.environ.update(TRL_EXPERIMENTAL_SILENCE="1", CUDA_VISIBLE_DEVICES="", HF_HUB_OFFLINE="1")
import torch, transformers, trl
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer

ROOT = pathlib.Path(__file__).resolve().parents[1]
MODEL = ROOT / "tests/data/models/stories260K-hf"
STEPS, GROUP, PROMPTS, WIDTH, END = 8, 4, 2, 24, 2
COMMON = {"per_device_train_batch_size": GROUP * PROMPTS, "max_steps": STEPS, "learning_rate": 2e-4, "lr_scheduler_type": "constant",
          "warmup_steps": 0, "weight_decay": 0.0, "gradient_accumulation_steps": 1, "optim": "adamw_torch", "max_grad_norm": 1.0,
          "num_generations": GROUP, "max_completion_length": WIDTH, "temperature": 1.0, "beta": 0.05}  # fmt: skip
CASES = {
    # Both ends are met: rewards lie between 0.3 and 2.5.
    "clip_range": {**COMMON, "reward_clip_range": [0.9, 1.8]},
    "clip_range_normalized": {**COMMON, "reward_clip_range": [0.9, 1.8], "normalize_advantages": True, "num_iterations": 2},
}


def numbers(tensor, digits=9):
    return [float(f"{value:.{digits}g}") for value in tensor.flatten().tolist()]


def reward_a(completion_ids, **_):
    return [sum(token % 2 == 0 for token in ids) / len(ids) for ids in completion_ids]


def reward_b(completion_ids, **_):
    return [0.1 * len(ids) - 0.5 for ids in completion_ids]


def load(dtype):
    # fp32's masks of eager attention make rows of NaN in fp64.
    return AutoModelForCausalLM.from_pretrained(MODEL, dtype=dtype, attn_implementation="eager" if dtype == torch.float32 else "sdpa")


def run(keys, dtype):
    tokenizer = AutoTokenizer.from_pretrained(MODEL, padding_side="left", pad_token="<unk>")
    tokens = tokenizer((ROOT / "tests/data/text/sampled_stories.txt").read_text(), add_special_tokens=False)["input_ids"]
    policy = load(dtype)
    prompts = [tokenizer.decode(tokens[100 * i : 100 * i + 4 + i % 7]) for i in range(STEPS * PROMPTS)]
    args = trl.RLOOConfig(output_dir=tempfile.mkdtemp(), report_to=[], use_cpu=True, bf16=False, logging_steps=1, save_strategy="no",
                          gradient_checkpointing=False, seed=1234, disable_tqdm=True, **keys)  # fmt: skip
    trainer = trl.RLOOTrainer(policy, [reward_a, reward_b], args=args, processing_class=tokenizer,
                              train_dataset=Dataset.from_list([{"prompt": text} for text in prompts]))  # fmt: skip
    trainer.ref_model.to(dtype)
    with torch.no_grad():
        for name, weight in trainer.ref_model.named_parameters():
            if name.endswith("mlp.down_proj.weight"):
                weight.mul_(0.9)
    lines, steps, generations, losses, norms, fed = [], [], [], [], [], [0]

    def completions(prompt_ids, *_):
        out = []
        for _ in prompt_ids:
            fed[0] += 1
            length = WIDTH if fed[0] % 5 == 0 else 6 + fed[0] * 7 % (WIDTH - 7)
            begin = 4000 + 31 * fed[0]
            out.append(tokens[begin : begin + length] if fed[0] % 5 == 0 else tokens[begin : begin + length - 1] + [END])
        return out

    trainer._generate_single_turn = completions
    score, calculate, loss_of = trainer._generate_and_score_completions, trainer._calculate_rewards, trainer._compute_loss
    rewards = []

    def calculated(*args):
        rewards.append(calculate(*args))
        return rewards[-1]

    def scored(inputs):
        out = score(inputs)
        columns = rewards.pop()
        generations.append({"step": len(steps) + 1, "prompt_ids": out["prompt_ids"].tolist(), "completion_ids": out["completion_ids"].tolist(),
                            "rewards": {name: numbers(columns[:, i]) for i, name in enumerate(("reward_a", "reward_b"))},
                            "advantages": numbers(out["advantages"])})  # fmt: skip
        return out

    def recorded_loss(model, inputs):
        line = {"step": len(steps) + 1, "micro": 0}
        line |= {key: inputs[key].tolist() for key in ("prompt_ids", "prompt_mask", "completion_ids", "completion_mask")}
        lines.append(line | {key: numbers(inputs[key]) for key in ("old_logps", "advantages")})
        loss = loss_of(model, inputs)
        losses.append(loss.item())
        return loss

    trainer._calculate_rewards, trainer._generate_and_score_completions, trainer._compute_loss = calculated, scored, recorded_loss
    clip, optimizer = trainer.accelerator.clip_grad_norm_, trainer.create_optimizer()

    def recorded_clip(*args, **more):
        norms.append(torch.linalg.vector_norm(torch.stack([p.grad.norm() for p in policy.parameters() if p.grad is not None])).item())
        return clip(*args, **more)

    def recorded_step(*_):
        steps.append({"step": len(steps) + 1, "loss": losses[-1], "grad_norm": norms.pop(), "lr_used": optimizer.param_groups[0]["lr"],
                      "micro_losses": [losses[-1]], "metrics": {}})  # fmt: skip

    trainer.accelerator.clip_grad_norm_ = recorded_clip
    optimizer.register_step_pre_hook(recorded_step)
    log = trainer.log

    def recorded_log(logs, *args, **more):
        if "train_runtime" not in logs:
            drop = ("loss", "grad_norm", "learning_rate", "epoch", "step_time")
            steps[-1]["metrics"] = {name: value for name, value in logs.items() if name not in drop}
        return log(logs, *args, **more)

    trainer.log = recorded_log
    trainer.remove_callback(transformers.PrinterCallback)
    trainer.train()
    final = {name: {"shape": list(p.shape), "sum": p.double().sum().item(), "abs_sum": p.double().abs().sum().item(),
                    "l2": p.double().norm().item()} for name, p in policy.named_parameters()}  # fmt: skip
    return lines, steps, generations, final


def record(case, out):
    keys = CASES[case]
    torch.set_num_threads(1)
    lines, steps, generations, final = run(keys, torch.float32)
    _, precise, _, _ = run(keys, torch.float64)
    distance = {key: [abs(a[key] - b[key]) / max(abs(b[key]), 1e-12) for a, b in zip(steps, precise)] for key in ("loss", "grad_norm")}
    versions = ", ".join(f"{package} {importlib.metadata.version(package)}" for package in ("trl", "transformers", "torch"))
    document = {
        "case": case, "group": "rloo", "model": "models/stories260K-hf", "trainer": "RLOOTrainer",
        "source": f"scripts/record_rloo_runs.py: {versions}; fp32, one thread",
        "reference_model": "start weights with model.layers.{i}.mlp.down_proj.weight multiplied by 0.9 (all i)",
        "config": keys, "batches": f"batches/{case}.jsonl.gz", "steps": steps, "generations": generations, "params_final": final,
        "fp64_rerun": {key: [step[key] for step in precise] for key in ("loss", "grad_norm")}
        | {f"rel_{key}": [float(f"{value:.3g}") for value in values] for key, values in distance.items()},
    }  # fmt: skip
    (out / "rloo/batches").mkdir(parents=True, exist_ok=True)
    (out / f"rloo/{case}.json").write_text(json.dumps(document) + "\n")
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    (out / f"rloo/batches/{case}.jsonl.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    clipped = [sum(a + b for a, b in zip(*g["rewards"].values())) / 8 for g in generations]
    print(case, [f"{step['loss']:.5f}" for step in steps], [f"{x:.1e}" for x in distance["grad_norm"]], [f"{x:.2f}" for x in clipped])


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "tests/data/trl")
    for name in CASES:
        record(name, folder)

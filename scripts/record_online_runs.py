#!/usr/bin/env python3
"""Records whole runs of TRL's PPOTrainer, XPOTrainer and NashMDTrainer for `probe replay`.

usage: record_online_runs.py [OUT]      OUT: tests/data/trl unless given

With trl==0.24.0 and transformers==4.57.1, whose successors have none of these trainers. fp32, one thread. The completions are
fed: pieces of stories of different lengths, not all with an end token. So are rewards, as numbers that follow from the
ids. The value model of ppo is a head on the policy's own layers, as ours is (its weight: score_head_weight), and the
rows of a minibatch keep their order.
"""
import gzip, importlib.metadata, json, os, pathlib, sys, tempfile

os.environ.update(TRL_EXPERIMENTAL_SILENCE="1", CUDA_VISIBLE_DEVICES="", HF_HUB_OFFLINE="1")
import numpy, torch, transformers, trl
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, AutoTokenizer
from trl.trainer import nash_md_trainer, ppo_trainer, utils, xpo_trainer

ROOT = pathlib.Path(__file__).resolve().parents[1]
MODEL = ROOT / "tests/data/models/stories260K-hf"
STEPS, WIDTH, PAD, END = 8, 20, 0, 2
COMMON = {"per_device_train_batch_size": 4, "learning_rate": 2e-4, "lr_scheduler_type": "constant", "warmup_steps": 0,
          "weight_decay": 0.0, "gradient_accumulation_steps": 1, "optim": "adamw_torch"}
ONLINE = {**COMMON, "max_steps": STEPS, "max_new_tokens": WIDTH, "max_length": 160, "temperature": 0.9, "disable_dropout": True,
          "max_grad_norm": 1.0}
# One micro-batch a step: XPOTrainer and NashMDTrainer add the gradients of several instead of averaging them.
# PPOTrainer does not clip gradients, whatever max_grad_norm says.
PPO = {**COMMON, "max_grad_norm": 0.0, "response_length": WIDTH, "num_mini_batches": 1}
CASES = {
    "xpo/sigmoid": (trl.XPOTrainer, {**ONLINE, "beta": 0.1, "alpha": 1e-3, "loss_type": "sigmoid"}),
    "xpo/ipo_penalty": (trl.XPOTrainer, {**ONLINE, "beta": 0.2, "alpha": 0.001, "loss_type": "ipo", "missing_eos_penalty": 1.0}),
    "nash_md/nash_md": (trl.NashMDTrainer, {**ONLINE, "beta": 0.1, "mixture_coef": 0.5}),
    "nash_md/penalty": (trl.NashMDTrainer, {**ONLINE, "beta": 0.3, "mixture_coef": 0.25, "missing_eos_penalty": 0.5}),
    "ppo/ppo": (trl.PPOTrainer, {**PPO, "num_ppo_epochs": 1, "temperature": 0.7}),
    "ppo/two_epochs": (trl.PPOTrainer, {**PPO, "num_ppo_epochs": 2, "temperature": 1.0, "kl_estimator": "k3", "gamma": 0.98, "lam": 0.9,
                                        "whiten_rewards": True, "kl_coef": 0.2, "vf_coef": 0.5, "cliprange": 0.02,
                                        "cliprange_value": 0.05, "missing_eos_penalty": 1.0, "gradient_accumulation_steps": 2}),
}  # fmt: skip


def story_tokens(tokenizer):
    text = (ROOT / "tests/data/text/sampled_stories.txt").read_text()
    return tokenizer(text, add_special_tokens=False)["input_ids"]


def rewards_of(ids, context):
    """A number of each row's completion, between -1 and 1."""
    own = ids[:, context:].to(torch.float64)
    places = torch.arange(1, own.shape[1] + 1, dtype=torch.float64)
    return ((own * places).sum(1) % 97 / 48.5 - 1).to(torch.float32)


class Feed:
    """Completions [rows, WIDTH], padded on the right; every fifth has no end token."""

    def __init__(self, tokens):
        self.tokens, self.at, self.count = tokens, 4000, 0

    def take(self, rows):
        out = torch.full((rows, WIDTH), PAD)
        for row in out:
            self.count += 1
            whole = self.count % 5 == 0
            length = WIDTH if whole else 5 + self.count * 7 % (WIDTH - 5)
            row[:length] = torch.tensor(self.tokens[self.at : self.at + length])
            if not whole:
                row[length - 1] = END
            self.at += length
        return out


def numbers(tensor, digits=9):
    return [float(f"{value:.{digits}g}") for value in tensor.flatten().tolist()]


class Recording:
    def __init__(self):
        self.lines, self.steps, self.losses = [], [], []

    def line(self, prompts, completions, rewards):
        """A micro-batch: prompts padded on the left, completions on the right."""
        mask = torch.zeros_like(completions)
        for row, ids in zip(mask, completions.tolist()):
            row[: ids.index(END) + 1 if END in ids else len(ids)] = 1
        self.lines.append({"prompt_ids": prompts.tolist(), "prompt_mask": (prompts != PAD).int().tolist(),
                           "completion_ids": completions.tolist(), "completion_mask": mask.tolist(),
                           "rewards": numbers(rewards)})  # fmt: skip


def norm_of(model):
    return torch.linalg.vector_norm(torch.stack([p.grad.norm() for p in model.parameters() if p.grad is not None])).item()


def watch(trainer, optimizer, recording, accumulation):
    """Records the norm of the gradient and the rate at each step of the optimizer, before the trainer clips."""
    backward, clip = trainer.accelerator.backward, trainer.accelerator.clip_grad_norm_
    norms = []

    def recorded_backward(loss, **more):
        recording.losses.append(loss.item())
        backward(loss, **more)

    def recorded_clip(*args, **more):
        norms.append(norm_of(trainer.model))
        return clip(*args, **more)

    def recorded_step(*_):
        losses, recording.losses = recording.losses, []
        assert len(losses) == accumulation
        norm = norms.pop() if norms else norm_of(trainer.model)
        recording.steps.append({"step": len(recording.steps) + 1, "loss": sum(losses) / accumulation, "grad_norm": norm,
                                "lr_used": optimizer.param_groups[0]["lr"], "micro_losses": losses, "metrics": {}})  # fmt: skip

    trainer.accelerator.backward, trainer.accelerator.clip_grad_norm_ = recorded_backward, recorded_clip
    optimizer.register_step_pre_hook(recorded_step)


def load(kind, dtype, **more):
    # Eager attention of fp64 has NaN for padding, whose whole row of the mask becomes -inf in fp32.
    return kind.from_pretrained(MODEL, dtype=dtype, attn_implementation="eager" if dtype == torch.float32 else "sdpa", **more)


def models(dtype):
    torch.manual_seed(0)
    policy, reference = (load(AutoModelForCausalLM, dtype) for _ in range(2))
    with torch.no_grad():
        for name, weight in reference.named_parameters():
            if name.endswith("mlp.down_proj.weight"):
                weight.mul_(0.9)
    judge = load(AutoModelForSequenceClassification, dtype, num_labels=1)
    for model in (policy, reference, judge):
        model.config.pad_token_id = PAD
    return policy, reference, judge


def run(kind, keys, dtype):
    tokenizer = AutoTokenizer.from_pretrained(MODEL, padding_side="left", pad_token="<unk>")
    tokens = story_tokens(tokenizer)
    policy, reference, judge = models(dtype)
    recording, feed = Recording(), Feed(tokens)
    accumulation, rows = keys["gradient_accumulation_steps"], keys["per_device_train_batch_size"]
    prompts = [tokenizer.decode(tokens[100 * i : 100 * i + 4 + i % 7]) for i in range(STEPS * rows * accumulation)]
    common = dict(output_dir=tempfile.mkdtemp(), report_to=[], use_cpu=True, bf16=False, logging_steps=1, save_strategy="no",
                  gradient_checkpointing=False, seed=1234, disable_tqdm=True)  # fmt: skip
    state = {}

    if kind is trl.PPOTrainer:
        judged = utils.get_reward
        value = load(AutoModelForSequenceClassification, dtype, num_labels=1)
        value.model = policy.model
        torch.manual_seed(7)
        value.score.weight.data = (torch.randn(1, 64) * 0.05).to(dtype)
        state["score_head_weight"] = numbers(value.score.weight.data)
        own = dict(keys)
        args = trl.PPOConfig(**common, **own, stop_token="eos", num_sample_generations=0,
                             total_episodes=rows * accumulation * STEPS // keys["num_ppo_epochs"],
                             local_rollout_forward_batch_size=rows * accumulation)  # fmt: skip

        def generate(model, queries, *_):
            completions = feed.take(len(queries))
            ids = torch.cat([queries, completions[:, : int((completions != PAD).sum(1).max())]], 1)
            logits = utils.forward(model, ids, PAD).logits[:, queries.shape[1] - 1 : -1]
            rewards = rewards_of(ids, queries.shape[1])
            for _ in range(keys["num_ppo_epochs"]):
                for begin in range(0, len(ids), rows):
                    part = slice(begin, begin + rows)
                    recording.line(queries[part], ids[part, queries.shape[1] :], rewards[part])
            return ids, logits / (keys["temperature"] + 1e-7)

        def reward(model, ids, pad, context):
            return (None, rewards_of(ids, context), None) if model is judge else judged(model, ids, pad, context)

        ppo_trainer.batch_generation, ppo_trainer.get_reward = generate, reward
        numpy.random.permutation = numpy.arange
        rows_of = [{"input_ids": tokenizer(text)["input_ids"]} for text in prompts]
        trainer = trl.PPOTrainer(args, tokenizer, policy, reference, judge, Dataset.from_list(rows_of), value,
                                 eval_dataset=Dataset.from_list(rows_of[:2]))  # fmt: skip
        watch(trainer, trainer.optimizer.optimizer, recording, accumulation)
    else:
        config = {trl.XPOTrainer: trl.XPOConfig, trl.NashMDTrainer: trl.NashMDConfig}[kind]
        trainer = kind(policy, reference, reward_funcs=judge, args=config(**common, **keys), processing_class=tokenizer,
                       train_dataset=Dataset.from_list([{"prompt": text} for text in prompts]))  # fmt: skip

        def completions(first, second):
            prompt = (first if isinstance(first, dict) else second)["input_ids"]
            pair = [torch.cat([prompt, feed.take(len(prompt))], 1) for _ in range(2)]
            context = prompt.shape[1]
            recording.line(torch.cat([prompt, prompt]), torch.cat([one[:, context:] for one in pair]),
                           torch.cat([rewards_of(one, context) for one in pair]))  # fmt: skip
            return pair

        trainer._generate_completions = completions
        for module in (xpo_trainer, nash_md_trainer):
            module.get_reward = lambda model, ids, pad, context: (None, rewards_of(ids, context), None)
        watch(trainer, trainer.create_optimizer(), recording, accumulation)

    log = trainer.log

    def recorded_log(logs, *args, **more):
        if "train_runtime" not in logs:
            state.setdefault("logs", []).append((len(recording.steps), dict(logs)))
        return log(logs, *args, **more)

    trainer.log = recorded_log
    trainer.remove_callback(transformers.PrinterCallback)
    trainer.train()
    for at, logs in state.pop("logs"):
        # PPOTrainer logs once for all updates from a set of completions.
        if kind is not trl.PPOTrainer or keys["num_ppo_epochs"] == 1:
            drop = ("loss", "grad_norm", "learning_rate", "epoch", "eps", "lr", "episode")
            recording.steps[at - 1]["metrics"] = {name: value for name, value in logs.items() if name not in drop}
    recording.final = {name: {"shape": list(p.shape), "sum": p.double().sum().item(), "abs_sum": p.double().abs().sum().item(),
                              "l2": p.double().norm().item()} for name, p in policy.named_parameters()}  # fmt: skip
    return recording, state


def record(name, out):
    kind, keys = CASES[name]
    torch.set_num_threads(1)
    permutation = numpy.random.permutation
    recording, state = run(kind, keys, torch.float32)
    precise, _ = run(kind, keys, torch.float64)
    numpy.random.permutation = permutation
    group, case = name.split("/")
    accumulation = keys["gradient_accumulation_steps"]
    for at, line in enumerate(recording.lines):
        line.update(step=at // accumulation + 1, micro=at % accumulation)
    distance = {key: [abs(a[key] / b[key] - 1) for a, b in zip(recording.steps, precise.steps)] for key in ("loss", "grad_norm")}
    versions = ", ".join(f"{package} {importlib.metadata.version(package)}" for package in ("trl", "transformers", "torch"))
    document = {
        "case": case, "group": group, "model": "models/stories260K-hf", "trainer": kind.__name__,
        "source": f"scripts/record_online_runs.py: {versions}; fp32, one thread",
        "reference_model": "start weights with model.layers.{i}.mlp.down_proj.weight multiplied by 0.9 (all i)",
        "config": keys, "batches": f"batches/{case}.jsonl.gz", **state, "steps": recording.steps, "params_final": recording.final,
        "fp64_rerun": {f"rel_{key}": [float(f"{value:.3g}") for value in values] for key, values in distance.items()},
    }  # fmt: skip
    (out / group / "batches").mkdir(parents=True, exist_ok=True)
    (out / group / f"{case}.json").write_text(json.dumps(document, indent=1) + "\n")
    lines = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in recording.lines)
    (out / document["batches"].replace("batches", f"{group}/batches")).write_bytes(gzip.compress(lines.encode(), mtime=0))
    print(name, [round(step["loss"], 5) for step in recording.steps], [f"{x:.1e}" for x in distance["loss"]])


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "tests/data/trl")
    for name in CASES:
        record(name, folder)

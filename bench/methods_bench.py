"""Speed and memory of the training methods on SmolLM2-135M's shape: this program beside TRL and sentence-transformers.

  python bench/methods_bench.py [--only dpo-fp32,grpo] [--steps 4] [--warmup 1] [--rounds 3] [--threads 2]

The peers run with the Python of EASYDEL_PEER_PYTHON (trl 1.16, sentence-transformers, datasets); without it the program
prints its own figures and says that the peer is missing. Both sides read the same weights and rows and run in turns, each in
a process of its own; a ratio is that of a round, and the middle one is printed with the smallest and the largest. A step
is what passes from the end of one to the end of the next, on the clock and in seconds of CPU time, which other work on
the machine moves less. Memory is the most that the process held. The rows:

  dpo-fp32, dpo-bf16, orpo, reward   4 pairs of a prompt of 64 tokens and answers, 192 to 512 tokens together
  kto       8 of these answers, half of them marked good
  gkd       2 rows of 512 tokens, teacher of the same shape
  grpo      4 prompts of 64 tokens, 8 completions of 128 tokens each; also the seconds of sampling
  embedding 64 pairs of texts of 128 tokens, in-batch negatives
  reports   what records in metrics.jsonl and TensorBoard's file, and the curves at the end, add to the CPU time of a
            step: of 2,000 steps of the story model

All rows but dpo-fp32 are bf16: TRL has weights and state in bf16, ours are masters and state in fp32.
"""

import argparse
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = os.environ.get("EASYDEL_PROGRAM", str(ROOT / "build/bin/easydel"))
STORY = ROOT / "tests/data/models/stories260K-hf"
CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 49152, "hidden_size": 576,
    "intermediate_size": 1536, "num_hidden_layers": 30, "num_attention_heads": 9, "num_key_value_heads": 3,
    "max_position_embeddings": 8192, "rms_norm_eps": 1e-5, "rope_theta": 100000.0, "hidden_act": "silu",
    "tie_word_embeddings": True, "initializer_range": 0.02, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
TEMPLATE = "{% for m in messages %}{{ m.content }}{% endfor %}"

# Of each row: the file of its data, examples in a step, the longest one, and keys of the trainer.
ROWS = {
    "dpo-fp32": ("pairs", 4, 512, {"trainer_type": "dpo", "beta": 0.1}),
    "dpo-bf16": ("pairs", 4, 512, {"trainer_type": "dpo", "beta": 0.1}),
    "orpo": ("pairs", 4, 512, {"trainer_type": "orpo"}),
    "kto": ("marks", 8, 512, {"trainer_type": "kto"}),
    "reward": ("pairs", 4, 512, {"trainer_type": "reward"}),
    "gkd": ("answers", 2, 512, {"trainer_type": "gkd", "lmbda": 0.0, "beta": 0.5, "temperature": 1.0}),
    "grpo": ("prompts", 32, 128, {"trainer_type": "grpo", "num_return_sequences": 8, "temperature": 1.0, "top_p": 1.0,
                                  "top_k": 0, "beta": 0.0, "rewards": [{"type": "repetition"}]}),
    "embedding": ("texts", 64, 128, {"trainer_type": "embedding", "loss_type": "infonce", "temperature": 0.05,
                                     "pooling_strategy": "mean", "query_field": "anchor", "positive_field": "positive"}),
}  # fmt: skip


class Texts:
    """Pieces of prose of a given number of tokens."""

    def __init__(self):
        self.text = (ROOT / "tests/data/text/war_and_peace_book_one.txt").read_text()[:400000].replace("\n", " ")
        line = json.dumps({"text": self.text}) + "\n"
        said = subprocess.run([PROGRAM, "probe", "tokenize", "--tokenizer", str(STORY)], input=line, stdout=subprocess.PIPE,
                              text=True, check=True).stdout  # fmt: skip
        self.ends = [end for _, end in json.loads(said)["offsets"]]
        self.at = 1

    def take(self, tokens):
        if self.at + tokens >= len(self.ends):
            self.at = 1
        begin, self.at = self.ends[self.at], self.at + tokens
        return self.text[begin : self.ends[self.at]]


def write_data(folder, steps):
    """Files of as many rows as the longest run needs, in an order that is not shuffled."""
    texts, draw = Texts(), random.Random(0)
    rows = {name: [] for name in ("pairs", "marks", "answers", "prompts", "texts")}
    for step in range(steps):
        for _ in range(4):
            prompt = texts.take(64)
            chosen, rejected = (texts.take(draw.randint(128, 444)) for _ in range(2))
            rows["pairs"].append({"prompt": prompt, "chosen": chosen, "rejected": rejected})
            rows["marks"] += [{"prompt": prompt, "completion": chosen, "label": True},
                              {"prompt": prompt, "completion": rejected, "label": False}]  # fmt: skip
            rows["prompts"].append({"prompt": texts.take(64)})
        for _ in range(2):
            turns = [("user", texts.take(32)), ("assistant", texts.take(474))]
            rows["answers"].append({"messages": [{"role": role, "content": content} for role, content in turns]})
        rows["texts"] += [{"anchor": texts.take(126), "positive": texts.take(126)} for _ in range(64)]
    for name, lines in rows.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def make_model(folder, layers, seed, python):
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG | {"num_hidden_layers": layers}))
    (folder / "tokenizer.json").write_bytes((STORY / "tokenizer.json").read_bytes())
    settings = json.loads((STORY / "tokenizer_config.json").read_text())
    settings |= {"chat_template": TEMPLATE, "model_max_length": 8192}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    if python:  # without it the program draws the weights
        subprocess.run([python, ROOT / "bench/methods_trl.py", "make", folder, str(seed)], check=True)


def teacher_of(model):
    return model.with_name("teacher")


def cpu_seconds(process):
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Run:
    """A process whose lines are read with the time and the CPU time at which they come."""

    def __init__(self, command, is_step, threads, warmup, sampling):
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "EASYDEL_LOG": "debug"}
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
        said, ends, sampled, self.losses, self.tokens = [], [], [], [], []
        before = cpu_seconds(process.pid)  # at the end of the last step, where the next one's sampling begins
        for line in process.stdout:
            said.append(line)
            if found := sampling.search(line):
                sampled.append((float(found[1]), cpu_seconds(process.pid) - before))
            if found := is_step(line):
                before = cpu_seconds(process.pid)
                ends.append((time.perf_counter(), before))
                self.losses.append(found[0])
                self.tokens.append(found[1])
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0 or len(ends) <= warmup:
            sys.exit(f"{command[0]} failed with status {process.returncode}\n{''.join(said)[-4000:]}")
        spans = [(b[0] - a[0], b[1] - a[1]) for a, b in zip(ends[warmup - 1 :], ends[warmup:])]
        self.seconds, self.cpu = (statistics.median(column) for column in zip(*spans))
        self.sampling, self.sampling_cpu = (
            (statistics.median(column) for column in zip(*sampled[warmup:])) if sampled else (None, None)
        )
        self.peak = used.ru_maxrss / 1024


def own_step(line):
    if not line.startswith('{"step"'):
        return None
    record = json.loads(line)
    own_step.seen = 0 if record["step"] == 1 else own_step.seen
    tokens, own_step.seen = record["num_tokens"] - own_step.seen, record["num_tokens"]
    return record["loss"], tokens


def peer_step(line):
    words = line.split()
    return (float(words[1]), int(words[2])) if words[:1] == ["@step"] else None


def run_ours(name, model, folder, options):
    data, rows, length, keys = ROWS[name]
    rows = options.pairs if name == "embedding" else rows
    dtype = "fp32" if name.endswith("fp32") else "bf16"
    sides = {"teacher_model": {"name_or_path": str(teacher_of(model))}} if name == "gkd" else {}
    lengths = {"max_completion_length": length, "max_prompt_length": 96} if name == "grpo" else {"max_length": length}
    document = {
        "model": {"name_or_path": str(model)}, **sides, "loader": {"dtype": dtype, "param_dtype": dtype},
        "mixture": {"informs": [{"data_files": str(folder / f"{data}.jsonl")}]},
        "trainer": {**keys, **lengths, "total_batch_size": rows, "max_training_steps": options.steps + options.warmup,
                    "learning_rate": 1e-6, "scheduler": "constant", "clip_grad": 1.0, "shuffle_train_dataset": False,
                    "log_steps": 1, "report_steps": 1, "progress_bar_type": "json", "do_last_save": False, "resume_if_possible": False,
                    "save_directory": str(folder / "out")},
        "actions": ["train"],
    }  # fmt: skip
    (folder / "run.json").write_text(json.dumps(document))
    sampling = re.compile(r"sampled .* tokens in ([0-9.e+-]+) s")
    return Run([PROGRAM, "elarge", str(folder / "run.json")], own_step, options.threads, options.warmup, sampling)


def run_peer(name, model, folder, options, python):
    data, rows, length, keys = ROWS[name]
    rows = options.pairs if name == "embedding" else rows
    spec = {"method": keys["trainer_type"], "dtype": "fp32" if name.endswith("fp32") else "bf16", "model": str(model),
            "teacher": str(teacher_of(model)), "data": str(folder / f"{data}.jsonl"), "rows": rows, "length": length,
            "group": keys.get("num_return_sequences"), "steps": options.steps + options.warmup, "threads": options.threads}  # fmt: skip
    command = [python, str(ROOT / "bench/methods_trl.py"), "run", json.dumps(spec)]
    return Run(command, peer_step, options.threads, options.warmup, re.compile(r"@sampling ([0-9.e+-]+)"))


def spread(values, digits=2):
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def measure(name, model, folder, options, python):
    ours, peer = [], []
    for _ in range(options.rounds):
        ours.append(run_ours(name, model, folder, options))
        if python:
            peer.append(run_peer(name, model, folder, options, python))
    for side, runs in (("", ours), ("  peer", peer)):
        if runs:
            print(f"{side or name:10} {described(runs)}", flush=True)
    if not peer:
        print(f"{'':10} no peer: EASYDEL_PEER_PYTHON is not set", flush=True)
        return
    ratios = {"clock": "seconds", "CPU": "cpu", "sampling": "sampling", "its CPU": "sampling_cpu"}
    said = [f"{word} {spread([getattr(b, of) / getattr(a, of) for a, b in zip(ours, peer)])}"
            for word, of in ratios.items() if getattr(ours[0], of)]  # fmt: skip
    said.append(f"memory {spread([a.peak / b.peak for a, b in zip(ours, peer)])}")
    print(f"{'  ratios':10} {', '.join(said)}", flush=True)


def described(runs):
    def middle(name):
        return statistics.median(getattr(run, name) for run in runs)

    one = runs[0]
    sampling = f", sampling {middle('sampling'):.2f} s ({middle('sampling_cpu'):.2f} s of CPU time)" if one.sampling else ""
    return (f"{middle('seconds'):.2f} s a step{sampling}, {middle('cpu'):.2f} s of CPU time, {max(run.peak for run in runs):.0f} MiB; "
            f"losses {one.losses[0]:.4f} to {one.losses[-1]:.4f}, tokens {one.tokens}")  # fmt: skip


def reports(folder, options):
    """CPU time of a step with all records and without any; the least of the rounds, which other work has disturbed least."""
    steps, taken = 2000, {True: [], False: []}
    (folder / "lines.jsonl").write_text('{"text": "One day a dog ran."}\n' * 64)
    for _ in range(options.rounds):
        for records in taken:
            document = {
                "model": {"name_or_path": str(STORY)},
                "mixture": {"informs": [{"data_files": str(folder / "lines.jsonl")}]},
                "trainer": {"trainer_type": "sft", "total_batch_size": 1, "max_training_steps": steps, "num_train_epochs": steps,
                            "report_metrics": records, "tensorboard": records, "report_steps": 1, "log_steps": steps,
                            "do_last_save": False, "resume_if_possible": False, "save_directory": str(folder / f"records_{records}")},
                "actions": ["train"],
            }  # fmt: skip
            (folder / "run.json").write_text(json.dumps(document))
            process = subprocess.Popen([PROGRAM, "elarge", str(folder / "run.json")], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"})  # fmt: skip
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode != 0:
                sys.exit(f"reports: the run failed with status {process.returncode}")
            taken[records].append((used.ru_utime + used.ru_stime) / steps * 1e6)
    print(f"{'reports':10} {min(taken[True]):.0f} microseconds of CPU time a step with records, {min(taken[False]):.0f} without")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--warmup", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pairs", type=int, default=64, help="of embedding; the peer needs 18 GiB for 64")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--layers", type=int, default=CONFIG["num_hidden_layers"], help="fewer, to try the program")
    parser.add_argument("--no-peer", action="store_true")
    options = parser.parse_args()
    python = None if options.no_peer else os.environ.get("EASYDEL_PEER_PYTHON")
    names = options.only.split(",") if options.only else [*ROWS, "reports"]
    if unknown := set(names) - {*ROWS, "reports"}:
        parser.error(f"--only: unknown {', '.join(sorted(unknown))}; known are {', '.join([*ROWS, 'reports'])}")
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        model = folder / "model"
        make_model(model, options.layers, 0, python)
        make_model(teacher_of(model), options.layers, 1, python)
        write_data(folder, options.steps + options.warmup)
        for name in names:
            if name == "reports":
                reports(folder, options)
                continue
            measure(name, model, folder, options, python)


if __name__ == "__main__":
    main()

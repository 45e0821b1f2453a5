"""What the trials share: a run of a second on the story model, and what must hold after it was disturbed."""
import argparse
import copy
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
STEPS = 12
ADAPTER = "adapter/adapter_model.safetensors"
OPTIMIZER = "optimizer/optimizer-00001-of-00001.safetensors"

CONFIG = """\
model: {{name_or_path: {model}}}
loader: {{dtype: fp32, param_dtype: fp32}}
mixture:
  informs: [{{data_files: {folder}/lines.txt}}]
  evaluation: [{{data_files: {folder}/held_out.txt}}]
trainer: {{save_directory: {folder}/out, model_name: small, learning_rate: 1e-3, total_batch_size: 4, max_length: 64,
  gradient_accumulation_steps: 2, max_training_steps: {steps}, save_steps: 2, save_total_limit: 3, scheduler: linear,
  evaluation_steps: 4, log_steps: 100, report_steps: 1}}
actions: [train]
"""


TIMED = re.compile("second|teraflops|share_of_peak|memory")  # metrics of the clock and of the machine

REWARD = """\
import json, sys
for line in sys.stdin:
    one = json.loads(line)
    print(json.dumps({"id": one["id"], "reward": one["completion"].count("e") / (1 + len(one["completion"]))}), flush=True)
"""

ANIMALS = ["dog", "cat", "bird"]


def rows_of(kind, count):
    for i in range(count):
        prompt, good, bad = f"Once there was a {ANIMALS[i % 3]} who", f" had {i} red balls.", f" sat{' down' * (i % 2)}."
        yield json.dumps({
            "prompts": {"prompt": prompt},
            "marks": {"prompt": prompt, "completion": good if i % 3 else bad, "label": i % 3 != 0},
            "pairs": {"prompt": prompt, "chosen": good, "rejected": bad},
            "answers": {"prompt": prompt, "completion": good},
            "contrast": {"query": prompt, "positive": good, "negatives": [bad]}}[kind])


# One method of each kind: its rows, keys of its trainer, other sections, and what its checkpoints have besides. {model}
# and {folder} are filled in.
METHODS = {
    "grpo": ("prompts", "trainer_type: grpo, num_return_sequences: 2, num_iterations: 2, max_completion_length: 8, beta: 0.1, "
             "temperature: 1.0, rewards: [{{type: program, command: [python3, {folder}/reward.py]}}]", "", ()),
    "bco": ("marks", "trainer_type: bco", "", ()),
    "dpo": ("pairs", "trainer_type: dpo, sync_ref_model: true, ref_model_sync_steps: 3, ref_model_mixup_alpha: 0.5, "
            "ema_decay: 0.9", "", ("ema/model.safetensors",)),
    "gkd": ("answers", "trainer_type: gkd, max_completion_length: 8, lmbda: 0.5",
            "teacher_model: {{name_or_path: {model}/../stories260K-chat}}\n", ()),
    "reward": ("pairs", "trainer_type: reward", "", ()),
    "embedding": ("contrast", "trainer_type: embedding", "", ()),
}


class Lost(Exception):
    """Something that was saved is gone, or the program said what is not so."""


class Trial:
    def __init__(self, description, extra=()):
        parser = argparse.ArgumentParser(description=description)
        parser.add_argument("--count", type=int, default=20, help="how often the run is disturbed")
        parser.add_argument("--seed", type=int, default=20261122)
        parser.add_argument("--program", default=os.environ.get("EASYDEL_PROGRAM", str(ROOT / "build/bin/easydel")))
        parser.add_argument("--method", choices=sorted(METHODS), help="a run of this method instead of sft")
        parser.add_argument("--lora", default="", help="the section lora of the run: \"{r: 4, use_dora: true}\"")
        parser.add_argument("--mixture", default="", help="more keys of the mixture, without braces; {folder} is the "
                            "run's: \"enable_caching: false, cache_min_bytes: 0, cache_dir: {folder}/cache\"")
        for names, options in extra:
            parser.add_argument(*names, **options)
        self.options = parser.parse_args()
        self.random = random.Random(self.options.seed)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="easydel-trial-"))
        self.environment = dict(os.environ, OMP_NUM_THREADS="1", OMP_WAIT_POLICY="PASSIVE", CUDA_VISIBLE_DEVICES="")
        for name in ("EASYDEL_FAULT", "EASYDEL_LOG"):
            self.environment.pop(name, None)
        self.straight = self.run_to_end(self.setup("straight"))

    def setup(self, name):
        folder = self.folder / name
        folder.mkdir()
        lines = [f"Once upon a time there was a {'dog' if i % 3 else 'cat'} who had {i} red balls." for i in range(13)]
        (folder / "lines.txt").write_text("\n".join(lines) + "\n")
        (folder / "held_out.txt").write_text("Once upon a time there was a bird who had 9 red balls.\n")
        model = ROOT / "tests/data/models/stories260K-hf"
        config = CONFIG.format(model=model, folder=folder, steps=STEPS)
        if self.options.method:
            kind, keys, sections, _ = METHODS[self.options.method]
            for name, count in (("lines", 13), ("held_out", 2)):
                (folder / f"{name}.jsonl").write_text("\n".join(rows_of(kind, count)) + "\n")
            (folder / "reward.py").write_text(REWARD)
            config = config.replace(".txt}", ".jsonl}").replace(
                "trainer: {", "trainer: {" + keys.format(folder=folder) + ", ") + sections.format(model=model)
        for key in self.options.mixture.format(folder=folder).split(", ") if self.options.mixture else ():
            config = config.replace("mixture:\n", f"mixture:\n  {key}\n")
        if self.options.lora:
            config += f"lora: {self.options.lora}\n"
        (folder / "run.yaml").write_text(config)
        return folder

    def start(self, folder, **environment):
        return subprocess.Popen([self.options.program, "elarge", str(folder / "run.yaml")], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, env=dict(self.environment, **environment))

    def run(self, folder, **environment):
        process = self.start(folder, **environment)
        out, err = process.communicate(timeout=300)
        return process.returncode, out.decode(errors="replace") + err.decode(errors="replace")

    # The files of the last checkpoint that must be those of an undisturbed run.
    def compared(self):
        more = METHODS[self.options.method][3] if self.options.method else ()
        return ("model.safetensors", OPTIMIZER, *more) + ((ADAPTER,) if self.options.lora else ())

    # Runs undisturbed and gives what the run left, to be compared.
    def run_to_end(self, folder):
        status, text = self.run(folder)
        if status != 0:
            raise Lost(f"{folder}: ended with {status}:\n{text}")
        run = folder / "out/small"
        left = {name: hashlib.sha256((run / f"run-{STEPS}" / name).read_bytes()).hexdigest()
                for name in self.compared()}
        records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        left["metrics"] = [{name: value for name, value in r.items() if not TIMED.search(name)} for r in records]
        if (run / "rollouts.jsonl").exists():
            left["rollouts"] = (run / "rollouts.jsonl").read_text()
        left["names"] = sorted(path.name for path in run.iterdir())
        return left

    # A run that was asked to stop has saved at that step, too. So its last checkpoints may be others; there may not be more.
    def check_end(self, folder, was_stopped=False):
        left, wanted = self.run_to_end(folder), copy.deepcopy(self.straight)
        if was_stopped:
            for names in (left["names"], wanted["names"]):
                names[:] = ["run-" if name.startswith("run-") else name for name in names]
        for key, value in wanted.items():
            if left[key] != value:
                raise Lost(f"{folder}: {key} is {left[key]}, not {value}")

    # The steps of all checkpoints whose files are what their manifests say, and which have all that they need.
    def good(self, folder):
        steps = []
        for run in (folder / "out/small").glob("run-*"):
            try:
                files = json.loads((run / "manifest.json").read_text())["files"]
                needed = {"state.json", OPTIMIZER}
                # Only the last checkpoint of an adapter's run has the model, too.
                needed |= {ADAPTER} if self.options.lora else {"config.json", "model.safetensors"}
                whole = all(hashlib.sha256((run / n).read_bytes()).hexdigest() == e["sha256"] for n, e in files.items())
                if whole and needed <= set(files):
                    steps.append(int(run.name[4:]))
            except (OSError, ValueError, KeyError):
                continue
        return sorted(steps)

    def finish(self, what):
        shutil.rmtree(self.folder, ignore_errors=True)
        print(f"{what}; nothing was lost")


def main(trial):
    try:
        trial()
    except Lost as lost:
        print(f"LOST: {lost}", file=sys.stderr)
        sys.exit(1)

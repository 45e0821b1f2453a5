"""What the trials share: a run of a second on the story model, and what must hold after it was disturbed."""
import argparse
import copy
import hashlib
import json
import os
import pathlib
import random
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


class Lost(Exception):
    """Something that was saved is gone, or the program said what is not so."""


class Trial:
    def __init__(self, description, extra=()):
        parser = argparse.ArgumentParser(description=description)
        parser.add_argument("--count", type=int, default=20, help="how often the run is disturbed")
        parser.add_argument("--seed", type=int, default=20261122)
        parser.add_argument("--program", default=os.environ.get("EASYDEL_PROGRAM", str(ROOT / "build/bin/easydel")))
        parser.add_argument("--lora", default="", help="the section lora of the run: \"{r: 4, use_dora: true}\"")
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
        return ("model.safetensors", OPTIMIZER) + ((ADAPTER,) if self.options.lora else ())

    # Runs undisturbed and gives what the run left, to be compared.
    def run_to_end(self, folder):
        status, text = self.run(folder)
        if status != 0:
            raise Lost(f"{folder}: ended with {status}:\n{text}")
        run = folder / "out/small"
        left = {name: hashlib.sha256((run / f"run-{STEPS}" / name).read_bytes()).hexdigest()
                for name in self.compared()}
        records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        left["losses"] = [(r["step"], r["loss"]) for r in records if "loss" in r]
        left["evaluations"] = [(r["step"], r["eval_loss"]) for r in records if "eval_loss" in r]
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

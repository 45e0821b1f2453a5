#!/usr/bin/env python3
"""scripts/send_metrics.py hands every number of a run to each service's package, under its name and step.

The packages are stand-ins that note their calls; against the real ones the script is tried by hand.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
NOTE = 'import json, os\ndef note(*call):\n    with open(os.environ["NOTES"], "a") as out: out.write(json.dumps(call) + "\\n")\n'
STAND_INS = {
    "wandb.py": NOTE + """
class Run:
    def log(self, values, step): note("log", step, values)
    def finish(self): note("finish")
def init(project, name, config):
    note("init", project, name, config)
    return Run()
""",
    "trackio.py": NOTE + """
def init(project, name, config): note("init", project, name, config)
def log(values, step): note("log", step, values)
def finish(): note("finish")
""",
    "mlflow/entities.py": "class Metric:\n    def __init__(self, *parts): self.parts = parts\nParam = Metric\n",
    "mlflow/__init__.py": NOTE + """
from contextlib import contextmanager
from types import SimpleNamespace
class MlflowClient:
    def log_batch(self, run, params=(), metrics=()):
        assert run == "7" and len(params) <= 100 and len(metrics) <= 1000
        for one in params: note("param", *one.parts)
        for one in metrics: note("log", one.parts[3], {one.parts[0]: one.parts[1]})
def set_experiment(project): note("project", project)
@contextmanager
def start_run(run_name):
    note("name", run_name)
    yield SimpleNamespace(info=SimpleNamespace(run_id="7"))
    note("finish")
""",
}
RECORDS = [{"step": 1, "loss": 2.5, "grad_norm": 0.125}, {"step": 5, "loss": float("nan"), "rewards/margins": -1e-7},
           {"step": 5, "eval_loss": 2.25, "eval/quick/acc,none": 0.5}]
SETTINGS = {"trainer": {"learning_rate": 1e-4, "benchmarks": [{"tasks": ["a"]}]}, "model": {"name_or_path": "m", "lora": {}}}
checks = {"passed": 0, "failed": 0}


def check(name, ours, expected):
    checks["passed" if repr(ours) == repr(expected) else "failed"] += 1
    if repr(ours) != repr(expected):
        print(f"{name}: {ours!r} instead of {expected!r}")


def send(folder, run, *arguments, packages=True):
    notes = folder / "notes"
    notes.unlink(missing_ok=True)
    environment = {"NOTES": str(notes), "PYTHONPATH": str(folder / "packages") if packages else ""}
    ran = subprocess.run([sys.executable, "-S", str(ROOT / "scripts/send_metrics.py"), str(run), *arguments], capture_output=True, text=True, env=environment)
    return ran, [json.loads(line) for line in notes.read_text().splitlines()] if notes.exists() else []


def main():
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        for name, text in STAND_INS.items():
            file = folder / "packages" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        run = folder / "small"
        for step, settings in ((5, SETTINGS), (10, {**SETTINGS, "seed": 3}), ("9.diverged", {})):
            (run / f"run-{step}").mkdir(parents=True)
            (run / f"run-{step}" / "state.json").write_text(json.dumps({"config": settings}))
        (run / "metrics.jsonl").write_text("".join(json.dumps(record) + "\n" for record in RECORDS))
        flat = {"trainer.learning_rate": 1e-4, "trainer.benchmarks": '[{"tasks": ["a"]}]', "model.name_or_path": "m", "model.lora": "{}", "seed": 3}
        first = {"loss": 2.5, "grad_norm": 0.125}
        last = {"loss": float("nan"), "rewards/margins": -1e-7, "eval_loss": 2.25, "eval/quick/acc,none": 0.5}
        for service in ("wandb", "trackio"):
            ran, calls = send(folder, run, "--to", service, "--project", "p")
            check(service, calls, [["init", "p", "small", flat], ["log", 1, first], ["log", 5, last], ["finish"]])
            check(service, ran.stdout, f"{run}: 6 numbers of 2 steps were sent to {service}\n")
        ran, calls = send(folder, run, "--to", "mlflow", "--name", "other")
        logged = [["log", 1, {name: value}] for name, value in first.items()] + [["log", 5, {name.replace(",", "_"): value}] for name, value in last.items()]
        check("mlflow", calls, [["project", "easydel"], ["name", "other"], *(["param", key, str(value)] for key, value in flat.items()), *logged, ["finish"]])
        check("mlflow", ran.returncode, 0)

        def refusal(run, *arguments, **more):
            ran, calls = send(folder, run, *arguments, **more)
            check("calls of a refusal", calls, [])
            return ran.returncode, ran.stderr

        check("no package", refusal(run, "--to", "wandb", packages=False), (1, "--to wandb: the package wandb is not installed\n    pip install wandb\n"))
        check("no folder", refusal(folder / "none", "--to", "wandb"), (1, f"{folder}/none: there is no such folder\n    name the folder that has metrics.jsonl\n"))
        check("no file", refusal(folder, "--to", "wandb"), (1, f"{folder}/metrics.jsonl: is missing\n    name the folder of a run that has report_metrics: true, its default\n"))
        (run / "metrics.jsonl").write_text('{"step": 1, "loss": 2}\n{"step": 2, "lo')
        check("cut", refusal(run, "--to", "wandb"), (1, f"{run}/metrics.jsonl:2: is not a record of a step\n    the line may be incomplete because the run goes on; send it when it has ended\n"))
        (run / "metrics.jsonl").write_text("")
        check("empty", refusal(run, "--to", "wandb"), (1, f"{run}/metrics.jsonl: has no record\n    wait for the first step\n"))
    print(f"{checks['passed']} passed, {checks['failed']} failed")
    return 1 if checks["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""SIGKILL of an evaluation, or of the harness' process, at random moments: evaluation_kills.py [--count 20] [--seed 0].

EASYDEL_PYTHON names a Python that has lm_eval, or what tests put in its place. After each kill no process is left, the file of results is absent or whole, and with the
same use_cache the next run ends with the results of a run that was not disturbed, without asking again for what was answered.
"""
import argparse
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("EASYDEL_PROGRAM", str(ROOT / "build" / "bin" / "easydel"))
MODEL = ROOT / "tests" / "data" / "models" / "stories260K-hf"


def start(folder):
    keys = {"include_path": "examples/tasks", "include_defaults": "false", "limit": 10, "bootstrap_iters": 0, "max_new_tokens": 16,
            "num_fewshot": 0, "use_cache": folder / "answers"}
    settings = [part for key, value in keys.items() for part in ("--set", f"eval.{key}={value}")]
    command = [PROGRAM, "eval", str(MODEL), "--tasks", "copa,wikitext,gsm8k,mmlu", "-o", str(folder / "r.json"), *settings]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "TRIAL": str(folder)}
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                            stderr=open(folder / "log", "w"))


def children_of(folder):
    """Processes of this trial, by their environment."""
    out = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if f"TRIAL={folder}\0".encode() in (entry / "environ").read_bytes() and "State:\tZ" not in (entry / "status").read_text():
                out.append(int(entry.name))
        except OSError:
            continue
    return out


def results(folder):
    return json.loads((folder / "r.json").read_text())["results"]


def check_nothing_is_left(folder):
    for _ in range(100):
        left = children_of(folder)
        if not left:
            return
        time.sleep(0.1)
    raise SystemExit(f"processes are left: {left}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    draw = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        begin = time.monotonic()
        if start(folder).wait() != 0:
            raise SystemExit((folder / "log").read_text())
        length, expected = time.monotonic() - begin, results(folder)
    resumed = 0
    for kill in range(options.count):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            process = start(folder)
            time.sleep(draw.uniform(0, length))
            harness = [pid for pid in children_of(folder) if pid != process.pid]
            victim = draw.choice([process.pid, *harness[:1]])
            if process.poll() is None:
                os.kill(victim, signal.SIGKILL)
            status = process.wait()
            check_nothing_is_left(folder)
            if status not in (0, 2, -signal.SIGKILL):
                raise SystemExit(f"kill {kill}: status {status}: {(folder / 'log').read_text()[-500:]}")
            if (folder / "r.json").exists():
                results(folder)
            if start(folder).wait() != 0:
                raise SystemExit(f"kill {kill}: {(folder / 'log').read_text()[-500:]}")
            if results(folder) != expected:
                raise SystemExit(f"kill {kill}: other results")
            resumed += bool(re.search(r"[1-9]\d* of them from", (folder / "log").read_text()))
            check_nothing_is_left(folder)
    print(f"{options.count} kills: nothing was left or lost; {resumed} runs went on from answers that were there")


if __name__ == "__main__":
    main()

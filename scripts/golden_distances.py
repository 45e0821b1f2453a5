#!/usr/bin/env python3
"""Replays the recorded training runs of a folder and writes how far each method's losses and gradient norms are from them.

usage: golden_distances.py EASYDEL GOLDENS ROOT OUT.json [GROUP ...]

GOLDENS has a folder for each group of cases, ROOT the models. OUT.json keeps the groups that are not named. A case counts for
the method that it runs: gkd's are in the group distillation, gspo's in grpo, simpo's in cpo. A test writes docs/methods.md
from tests/data/trl/distances.json.
"""
import json, subprocess, sys, tempfile
from pathlib import Path


def method_of(group, case):
    config = case["config"]
    if case["trainer"] == "GKDTrainer":
        return "gkd"
    if group == "cpo" and config.get("loss_type") == "simpo" and not config.get("cpo_alpha"):
        return "simpo"
    return "gspo" if case["case"].startswith("gspo") else group


def main():
    program, goldens, root, out, groups = sys.argv[1], Path(sys.argv[2]), sys.argv[3], Path(sys.argv[4]), sys.argv[5:]
    kept = json.loads(out.read_text()) if out.exists() else {}
    for group in groups or sorted(p.name for p in goldens.iterdir() if p.is_dir()):
        far_of = {}  # of each method: cases, largest distance of the loss, of the gradient's norm
        for case in sorted((goldens / group).glob("*.json")):
            gold = json.loads(case.read_text())
            if "steps" not in gold or "trainer" not in gold:
                continue
            with tempfile.NamedTemporaryFile(suffix=".jsonl") as lines:
                done = subprocess.run([program, "probe", "replay", str(case), "--root", root, "--output", lines.name], capture_output=True, text=True)
                if done.returncode:
                    print(f"{group}/{case.stem}: {done.stderr.strip().splitlines()[0]}", file=sys.stderr)
                    continue
                ours = [json.loads(line) for line in open(lines.name)]
            cases, loss, norm = far_of.get(method_of(group, gold), (0, 0.0, 0.0))
            for theirs, step in zip(gold["steps"], ours):
                far = lambda key: abs(step[key] - theirs[key]) / abs(theirs[key]) if abs(theirs[key]) > 1e-4 else 0.0
                loss, norm = max(loss, far("loss")), max(norm, far("grad_norm"))
            far_of[method_of(group, gold)] = (cases + 1, loss, norm)
        for method, (cases, loss, norm) in far_of.items():
            kept[method] = {"cases": cases, "loss": float(f"{loss:.2g}"), "grad_norm": float(f"{norm:.2g}")}
            print(method, kept[method], file=sys.stderr)
    out.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Replays the recorded training runs of a folder and writes how far each method's losses and gradient norms are from them.

usage: golden_distances.py EASYDEL GOLDENS ROOT OUT.json [GROUP ...]

GOLDENS has a folder for each group of cases, ROOT the models. OUT.json keeps the groups that are not named. A test writes
docs/methods.md from tests/data/trl/distances.json.
"""
import json, subprocess, sys, tempfile
from pathlib import Path


def main():
    program, goldens, root, out, groups = sys.argv[1], Path(sys.argv[2]), sys.argv[3], Path(sys.argv[4]), sys.argv[5:]
    kept = json.loads(out.read_text()) if out.exists() else {}
    for group in groups or sorted(p.name for p in goldens.iterdir() if p.is_dir()):
        cases, loss, norm = 0, 0.0, 0.0
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
            cases += 1
            for theirs, step in zip(gold["steps"], ours):
                far = lambda key: abs(step[key] - theirs[key]) / abs(theirs[key]) if abs(theirs[key]) > 1e-4 else 0.0
                loss, norm = max(loss, far("loss")), max(norm, far("grad_norm"))
        if cases:
            kept[group] = {"cases": cases, "loss": float(f"{loss:.2g}"), "grad_norm": float(f"{norm:.2g}")}
            print(group, kept[group], file=sys.stderr)
    out.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()

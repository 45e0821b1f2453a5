"""Time and memory of evaluations with lm-evaluation-harness: this program beside the harness' own back end.

  python bench/evaluate.py MODEL [--tasks hellaswag] [--dtype bf16] [--limit 100] [--num-fewshot N] [--batch 16] [--threads 2]

Runs in the folder of the repository with a Python that has lm_eval 0.4.13 and transformers; the tasks are those of
examples/tasks. Each side is a process of its own, alone on `threads` threads. The harness' own work (building requests,
metrics) is measured on both sides and left out of "model"; "all" has it.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
DTYPES = {"fp32": "float32", "bf16": "bfloat16"}


def timed(model, kinds):
    """Adds up the seconds of a model's calls."""
    total = [0.0]
    for kind in kinds:
        call = getattr(model, kind)

        def wrapped(requests, *args, call=call, **kwargs):
            begin = time.perf_counter()
            try:
                return call(requests, *args, **kwargs)
            finally:
                total[0] += time.perf_counter() - begin

        setattr(model, kind, wrapped)
    return total


def measure(side, options):
    from lm_eval import evaluator, simple_evaluate
    from lm_eval.tasks import TaskManager

    evaluator.add_env_info = lambda results: None
    begin = time.perf_counter()
    if side == "hf":
        import torch
        from lm_eval.models.huggingface import HFLM

        torch.set_num_threads(options.threads)
        model = HFLM(pretrained=options.model, dtype=DTYPES[options.dtype], device="cpu", batch_size=options.batch)
        kinds = ("loglikelihood", "loglikelihood_rolling", "generate_until")
    else:
        sys.path.insert(0, str(ROOT / "python"))
        from easydel_harness.model import EasyDeL

        model = EasyDeL.create_from_arg_obj({"pretrained": options.model, "dtype": options.dtype})
        kinds = ("loglikelihood", "loglikelihood_rolling", "generate_until")
    loaded = time.perf_counter() - begin
    inside = timed(model, kinds)
    manager = TaskManager(include_path=str(ROOT / "examples" / "tasks"), include_defaults=False)
    begin = time.perf_counter()
    results = simple_evaluate(
        model=model,
        tasks=options.tasks.split(","),
        task_manager=manager,
        limit=options.limit,
        num_fewshot=options.num_fewshot,
        bootstrap_iters=0,
        gen_kwargs={"max_gen_toks": options.new_tokens},
    )
    everything = time.perf_counter() - begin
    if side != "hf":
        model._channel.close()
    peak = resource.getrusage(resource.RUSAGE_CHILDREN if side != "hf" else resource.RUSAGE_SELF).ru_maxrss / 1024
    metrics = {
        task: {name: value for name, value in own.items() if "," in name and "stderr" not in name}
        for task, own in results["results"].items()
    }
    print("@" + json.dumps({"load": loaded, "model": inside[0], "all": everything, "mb": peak, "metrics": metrics}))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--tasks", default="hellaswag")
    parser.add_argument("--dtype", default="bf16", choices=sorted(DTYPES))
    parser.add_argument("--limit", type=int, default=100)
    parser.add_argument("--num-fewshot", type=int)
    parser.add_argument("--new-tokens", type=int, default=64)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--side", choices=["easydel", "hf"])
    options = parser.parse_args()
    if options.side:
        return measure(options.side, options)
    found = {}
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": str(options.threads),
        "HF_HUB_OFFLINE": "1",
        "TQDM_DISABLE": "1",
        "EASYDEL_PROGRAM": os.environ.get("EASYDEL_PROGRAM", str(ROOT / "build/bin/easydel")),
    }
    for side in ("easydel", "hf"):
        ran = subprocess.run(
            [sys.executable, __file__, *sys.argv[1:], "--side", side], env=environment, stdout=subprocess.PIPE, text=True
        )
        line = next((line for line in ran.stdout.splitlines() if line.startswith("@")), None)
        if line is None:
            sys.exit(f"{side} failed with status {ran.returncode}")
        found[side] = json.loads(line[1:])
    ours, peer = found["easydel"], found["hf"]
    print(f"{options.tasks}, {options.dtype}, {options.limit} documents, {options.threads} threads")
    for key, unit in (("load", "s"), ("model", "s"), ("all", "s"), ("mb", "MB")):
        print(f"  {key:6} {ours[key]:9.2f} {unit}  hf {peer[key]:9.2f} {unit}  ratio {peer[key] / ours[key]:.2f}")
    print(f"  harness' own share of ours: {100 * (1 - ours['model'] / ours['all']):.0f} %")
    for task, own in ours["metrics"].items():
        for name, value in own.items():
            other = peer["metrics"][task][name]
            print(f"  {task} {name}: {value} hf {other}{'' if value == other else '  differs'}")


if __name__ == "__main__":
    main()

"""Time and memory of evaluations with lm-evaluation-harness: this program and the harness' own back end in turns.

  python bench/evaluate.py MODEL [--tasks hellaswag] [--dtype bf16] [--limit 100] [--num-fewshot N] [--batch 16] [--threads 2]
                           [--pairs 3] [--engine] [--server] [--peer FOLDER]

Runs in the folder of the repository with a Python that has lm_eval 0.4.13 and transformers; the tasks are those of
examples/tasks. Each side is a process of its own, alone on `threads` threads; a pair is one run of each. --peer: the model
for the harness' back end, if it needs another folder. With --server the harness asks `easydel serve` through its own
local-completions. Rows:

  import   lm_eval's own import and the building of the tasks
  load     from there until the model can answer: our adapter, the start of `easydel score`, weights
  model    the model's answers, on the clock
  cpu      the same in seconds of CPU time, which other work on the machine moves less
  all      the whole evaluation: requests, answers, metrics
  mb       most memory of the processes that hold the model; with the harness' Python in which both keep their requests: all mb
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).parent.parent
DTYPES = {"fp32": "float32", "bf16": "bfloat16"}
ROWS = {"import": "s", "load": "s", "model": "s", "cpu": "s", "all": "s", "mb": "MB", "all mb": "MB"}


def cpu_seconds(process):
    """CPU time of a process so far, user and system."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_mb(process):
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024


def timed(model, process):
    """Adds up the seconds of a model's calls, and those of CPU time that `process` spends in them."""
    total = {"model": 0.0, "cpu": 0.0}
    for kind in ("loglikelihood", "loglikelihood_rolling", "generate_until"):
        call = getattr(model, kind)

        def wrapped(requests, *args, call=call, **kwargs):
            begin, cpu = time.perf_counter(), cpu_seconds(process)
            try:
                return call(requests, *args, **kwargs)
            finally:
                total["model"] += time.perf_counter() - begin
                total["cpu"] += cpu_seconds(process) - cpu

        setattr(model, kind, wrapped)
    return total


def served_model(options):
    """lm_eval's own client of a server, and the server's process."""
    from lm_eval.models.openai_completions import LocalCompletionsAPI

    command = [os.environ["EASYDEL_PROGRAM"], "serve", options.model, "--port", "0", "--dtype", options.dtype, "--max-waiting-requests", "1000"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    url = server.stdout.readline().split()[-1]
    while True:
        try:
            urllib.request.urlopen(url + "/health")
            break
        except urllib.error.HTTPError:  # it loads the model
            time.sleep(0.02)
    name = json.load(urllib.request.urlopen(url + "/v1/models"))["data"][0]
    model = LocalCompletionsAPI(
        base_url=url + "/v1/completions",
        model=name["id"],
        tokenizer=options.model,
        tokenizer_backend="huggingface",
        add_bos_token=False,
        num_concurrent=32,
        max_length=name["max_model_len"],
    )
    return model, server


def measure(side, options):
    begin = time.perf_counter()
    from lm_eval import evaluator, simple_evaluate
    from lm_eval.tasks import TaskManager

    evaluator.add_env_info = lambda results: None
    manager = TaskManager(include_path=str(ROOT / "examples" / "tasks"), include_defaults=False)
    manager.load(options.tasks.split(","))
    imported = time.perf_counter() - begin
    begin = time.perf_counter()
    if side == "hf":
        import torch
        from lm_eval.models.huggingface import HFLM

        torch.set_num_threads(options.threads)
        folder = options.peer or options.model
        model = HFLM(pretrained=folder, dtype=DTYPES[options.dtype], device="cpu", batch_size=options.batch)
        process = os.getpid()
    elif options.server:
        model, server = served_model(options)
        process = server.pid
    else:
        sys.path.insert(0, str(ROOT / "python"))
        from easydel_harness.model import EasyDeL

        arguments = {"pretrained": options.model, "dtype": options.dtype}
        model = EasyDeL.create_from_arg_obj({**arguments, **({"engine": True} if options.engine else {})})
        process = model._channel._process.pid
    loaded = time.perf_counter() - begin
    inside = timed(model, process)
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
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    peak = own if side == "hf" else peak_mb(process)
    if side != "hf" and options.server:
        server.terminate()
        server.wait()
    elif side != "hf":
        model._channel.close()
    metrics = {
        task: {name: value for name, value in own.items() if "," in name and "stderr" not in name}
        for task, own in results["results"].items()
    }
    figures = {"import": imported, "load": loaded, **inside, "all": everything, "mb": peak}
    figures["all mb"] = peak if side == "hf" else peak + own
    print("@" + json.dumps({**figures, "metrics": metrics}))


def run(side, environment):
    command = [sys.executable, __file__, *sys.argv[1:], "--side", side]
    ran = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True)
    line = next((line for line in ran.stdout.splitlines() if line.startswith("@")), None)
    if line is None:
        sys.exit(f"{side} failed with status {ran.returncode}")
    return json.loads(line[1:])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--peer")
    parser.add_argument("--tasks", default="hellaswag")
    parser.add_argument("--dtype", default="bf16", choices=sorted(DTYPES))
    parser.add_argument("--limit", type=int, default=100)
    parser.add_argument("--num-fewshot", type=int)
    parser.add_argument("--new-tokens", type=int, default=64)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--pairs", type=int, default=1)
    parser.add_argument("--engine", action="store_true", help="answers are generated by the engine")
    parser.add_argument("--server", action="store_true", help="the harness asks a server")
    parser.add_argument("--side", choices=["easydel", "hf"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        return measure(options.side, options)
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": str(options.threads),
        "HF_HUB_OFFLINE": "1",
        "TQDM_DISABLE": "1",
        "EASYDEL_PROGRAM": os.environ.get("EASYDEL_PROGRAM", str(ROOT / "build/bin/easydel")),
    }
    pairs = [(run("easydel", environment), run("hf", environment)) for _ in range(options.pairs)]
    print(f"{options.tasks}, {options.dtype}, {options.limit} documents, {options.threads} threads, medians of {options.pairs}")
    for row, unit in ROWS.items():
        ours, peer = (statistics.median(pair[side][row] for pair in pairs) for side in (0, 1))
        ratios = sorted(pair[1][row] / pair[0][row] for pair in pairs)
        print(
            f"  {row:6} {ours:9.2f} {unit:2}  hf {peer:9.2f} {unit:2}  ratio {statistics.median(ratios):.2f}"
            f" ({ratios[0]:.2f} to {ratios[-1]:.2f})"
        )
    share = statistics.median(1 - ours["model"] / ours["all"] for ours, _ in pairs)
    print(f"  the harness' own share of ours: {100 * share:.0f} %")
    ours, peer = pairs[-1]
    for task, own in ours["metrics"].items():
        for name, value in own.items():
            other = peer["metrics"][task][name]
            print(f"  {task} {name}: {value} hf {other}{'' if value == other else '  differs'}")


if __name__ == "__main__":
    main()

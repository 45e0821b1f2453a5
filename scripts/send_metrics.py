#!/usr/bin/env python3
"""Sends the figures of a run to Weights & Biases, MLflow or Trackio, by their own packages.

usage: send_metrics.py RUN --to wandb|mlflow|trackio [--project NAME] [--name NAME]

RUN is the folder of a run's checkpoints. Every number of its metrics.jsonl is sent under its own name and step, with the
settings that the newest checkpoint keeps. Where the service is, and as whom, is what the package's own variables say
(WANDB_API_KEY, MLFLOW_TRACKING_URI, ...). The package must be installed; nothing else is needed.
"""
import argparse
import json
import re
import sys
from pathlib import Path


def fail(where, problem, remedy):
    sys.exit(f"{where}: {problem}\n    {remedy}")


def steps_of(run):
    """(step, {name: number}) in the order of the steps; what several lines say of a step is one."""
    file = run / "metrics.jsonl"
    if not file.is_file():
        fail(file, "is missing", "name the folder of a run that has report_metrics: true, its default")
    steps = {}
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        try:
            record = json.loads(line)
            step = record.pop("step")
        except (ValueError, KeyError, AttributeError):
            fail(f"{file}:{number}", "is not a record of a step", "the line may be incomplete because the run goes on; send it when it has ended")
        values = {name: value for name, value in record.items() if isinstance(value, (int, float)) and not isinstance(value, bool)}
        steps.setdefault(step, {}).update(values)
    if not steps:
        fail(file, "has no record", "wait for the first step")
    return sorted(steps.items())


def settings_of(run):
    """The configuration of the newest checkpoint, as {"trainer.learning_rate": 1e-4}; empty: there is no checkpoint."""
    checkpoints = [(int(p.name[4:]), p) for p in run.glob("run-*") if re.fullmatch(r"run-\d+", p.name) and (p / "state.json").is_file()]
    if not checkpoints:
        return {}
    out = {}

    def flatten(value, name):
        if isinstance(value, dict) and value:
            for key, inner in value.items():
                flatten(inner, f"{name}.{key}" if name else key)
        else:
            out[name] = json.dumps(value) if isinstance(value, (list, dict)) else value

    flatten(json.loads((max(checkpoints)[1] / "state.json").read_text(encoding="utf-8")).get("config", {}), "")
    return out


def to_wandb(project, name, settings, steps):
    import wandb
    run = wandb.init(project=project, name=name, config=settings)
    for step, values in steps:
        run.log(values, step=step)
    run.finish()


def to_mlflow(project, name, settings, steps):
    import mlflow
    from mlflow.entities import Metric, Param
    mlflow.set_experiment(project)
    client = mlflow.MlflowClient()
    with mlflow.start_run(run_name=name) as run:
        params = [Param(plain(key), str(value)[:6000]) for key, value in settings.items()]
        metrics = [Metric(plain(key), value, int(1000 * values.get("seconds", 0)), step) for step, values in steps for key, value in values.items()]
        for begin in range(0, len(params), 100):  # at most as many at once
            client.log_batch(run.info.run_id, params=params[begin:begin + 100])
        for begin in range(0, len(metrics), 1000):
            client.log_batch(run.info.run_id, metrics=metrics[begin:begin + 1000])


def plain(name):
    """MLflow refuses other characters, such as the comma of "acc,none"."""
    return re.sub(r"[^\w\-. /:]", "_", name)


def to_trackio(project, name, settings, steps):
    import trackio
    trackio.init(project=project, name=name, config=settings)
    for step, values in steps:
        trackio.log(values, step=step)
    trackio.finish()


SERVICES = {"wandb": to_wandb, "mlflow": to_mlflow, "trackio": to_trackio}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path, help="the folder of a run's checkpoints")
    parser.add_argument("--to", required=True, choices=SERVICES)
    parser.add_argument("--project", default="easydel", help="of the service, or MLflow's experiment")
    parser.add_argument("--name", help="of the run there; its folder's name")
    given = parser.parse_args()
    if not given.run.is_dir():
        fail(given.run, "there is no such folder", "name the folder that has metrics.jsonl")
    steps, settings = steps_of(given.run), settings_of(given.run)
    try:
        SERVICES[given.to](given.project, given.name or given.run.resolve().name, settings, steps)
    except ModuleNotFoundError as error:
        fail(f"--to {given.to}", f"the package {error.name} is not installed", f"pip install {given.to}")
    print(f"{given.run}: {sum(len(values) for _, values in steps)} numbers of {len(steps)} steps were sent to {given.to}")


if __name__ == "__main__":
    main()

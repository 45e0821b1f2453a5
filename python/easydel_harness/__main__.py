"""The process that easydel starts: builds tasks, asks easydel for answers, and gives the results back.

Messages are lines of JSON on the socket whose descriptor is the only argument:
  to this process    {"prepare": SETTINGS, "evaluation": N}  {"run": SETTINGS, "evaluation": N}  {"line": N, "answer": {...}}  {"failed": TEXT}
  from this process  {"version": TEXT}  {"ready": {...}}  {"lines": [...]}  {"task": {...}}  {"results": {...}}
                     {"refused": {"problem": TEXT, "remedy": TEXT}}
"""

import json
import logging
import os
import sys
import threading
import time
import warnings
from dataclasses import asdict

from .channel import ModelError, SocketChannel
from .limits import limit_code


environment = None


def main():
    channel = SocketChannel(int(sys.argv[1]))
    begin = time.perf_counter()
    import lm_eval

    logging.basicConfig(format="%(name)s: %(message)s")
    warnings.filterwarnings("ignore")
    channel.send({"version": getattr(lm_eval, "__version__", "")})
    runs = {}
    while (message := channel.receive()) is not None:
        try:
            if "prepare" in message:
                run = runs[message["evaluation"]] = Run(message["prepare"], begin)
                channel.send({"ready": run.described()})
            elif "run" in message:
                channel.send({"results": runs[message["evaluation"]].evaluate(channel, message["run"])})
        except ModelError as error:
            channel.send({"refused": {"problem": str(error), "remedy": ""}})
        except Exception as error:  # noqa: BLE001: whatever it is, the other process says it
            problem = getattr(error, "problem", None) or f"{type(error).__name__}: {error}"
            if not hasattr(error, "problem"):
                logging.getLogger(__name__).exception("the harness failed")
            channel.send({"refused": {"problem": problem, "remedy": getattr(error, "remedy", "")}})


class Environment:
    """The harness' description of this machine, which takes it seconds: made once, while other things are done."""

    def __init__(self):
        from lm_eval import evaluator

        self._described = {}
        self._thread = threading.Thread(target=evaluator.add_env_info, args=(self._described,), daemon=True)
        self._thread.start()
        evaluator.add_env_info = lambda results: None

    def add_to(self, document):
        self._thread.join()
        document.update(self._described)


class Run:
    def __init__(self, settings, begin):
        from .tasks import Tasks

        global environment
        environment = environment or Environment()

        level = settings.get("verbosity") or ("INFO" if settings["evaluate"].get("write_out") else "WARNING")
        logging.getLogger("lm_eval").setLevel(str(level).upper())
        self.settings = settings
        self.imported = time.perf_counter() - begin
        self.runs_code = bool(settings["evaluate"].get("confirm_run_unsafe_code"))
        if self.runs_code:  # before tasks are built: their metrics try then whether they may
            os.environ["HF_ALLOW_CODE_EVAL"] = "1"
            _set_code_eval(settings.get("code_eval") or {})
        self.tasks = Tasks(
            settings["tasks"],
            settings.get("include_path"),
            settings.get("include_defaults", True),
            settings.get("metadata"),
            self.runs_code,
        )
        self.tasks.check(settings["evaluate"].get("num_fewshot"), settings["evaluate"].get("samples"))
        if settings["evaluate"].pop("check_integrity", False):
            self.tasks.check_integrity()
        self.built = time.perf_counter() - begin - self.imported

    def described(self):
        return {
            "names": self.tasks.names,
            "tasks": [task.config.task for task in self.tasks.all()],
            "import_seconds": self.imported,
            "build_seconds": self.built,
        }

    def evaluate(self, channel, changes):
        """The harness' document of all tasks. What a task gave is told as soon as it is there."""
        from lm_eval import simple_evaluate
        from lm_eval.loggers.evaluation_tracker import GeneralConfigTracker
        from lm_eval.utils import handle_non_serializable, hash_string, make_table

        from .model import EasyDeL

        if self.runs_code:
            _code_eval.update(self.settings.get("code_eval") or {})
            limit_code(_code_eval.get("timeout"))
        arguments = {**self.settings["evaluate"], **changes}
        model = EasyDeL(channel, {**self.settings["model"], "batch_size": self.settings.get("batch_size")})
        tracker = GeneralConfigTracker()
        document, seconds, documents = {}, {}, {}
        for name in self.tasks.names:
            began = time.perf_counter()
            part = simple_evaluate(
                model=model,
                model_args={"pretrained": model.about["model"]},
                tasks=self.tasks.built[name],
                task_manager=self.tasks.manager,
                batch_size=self.settings.get("batch_size"),
                **arguments,
            )
            part = json.loads(json.dumps(part, default=handle_non_serializable))
            seconds[name] = time.perf_counter() - began
            documents[name] = sum(one["effective"] for one in part.get("n-samples", {}).values())
            channel.send({"task": {"name": name, "seconds": seconds[name], "results": part}})
            for key, value in part.items():
                if isinstance(value, dict) and key != "config":
                    document.setdefault(key, {}).update(value)
                else:
                    document.setdefault(key, value)
        hashes = {}
        for task, samples in (document.get("samples") or {}).items():
            hashes[task] = hash_string("".join(one["doc_hash"] + one["prompt_hash"] + one["target_hash"] for one in samples))
        template = model.about["chat_template"] if arguments.get("apply_chat_template") else None
        tracker.log_experiment_args(
            "easydel",
            {"pretrained": self.settings.get("model_name") or model.about["model"]},
            arguments.get("system_instruction"),
            template,
            arguments.get("fewshot_as_multiturn"),
        )
        tracker.log_end_time()
        document.update(task_hashes=hashes, **asdict(tracker))
        document["config"]["model"] = "easydel"
        environment.add_to(document)
        return {
            "document": document,
            "table": make_table(document),
            "groups": make_table(document, "groups") if document.get("groups") else "",
            "seconds": seconds,
            "items": documents,
        }


_code_eval = {}  # of the evaluation that runs: "num_workers" and "timeout" of the metric


def _set_code_eval(settings):
    """Passes workers and timeout on to the metric code_eval, whoever loads it."""
    import evaluate

    _code_eval.update(settings)
    load = getattr(evaluate.load, "plain", evaluate.load)

    def loaded(*names, **kwargs):
        metric = load(*names, **kwargs)
        if "code_eval" not in str(names[:1]):
            return metric
        compute = metric.compute

        def with_settings(*values, **options):
            return compute(*values, **{**options, **{key: value for key, value in _code_eval.items() if value is not None}})

        metric.compute = with_settings
        return metric

    loaded.plain = load
    evaluate.load = loaded


if __name__ == "__main__":
    main()

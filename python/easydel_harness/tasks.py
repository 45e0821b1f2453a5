"""Tasks by name: found, built with their data, and checked before a model is loaded."""

import difflib
import glob
import os
from pathlib import Path

from lm_eval.tasks import TaskManager


class Refused(Exception):
    """What the user can change: a problem and what would work."""

    def __init__(self, problem, remedy=""):
        super().__init__(problem)
        self.problem, self.remedy = problem, remedy


class Tasks:
    """The tasks and groups that were asked for, by the names that the user gave."""

    def __init__(self, names, include_path=None, include_defaults=True, metadata=None, unsafe_code=False):
        self._unsafe_code = unsafe_code  # the user lets tasks run code that the model writes
        paths = [include_path] if isinstance(include_path, str) else list(include_path or [])
        for path in paths:
            _check_files(path)
        _find_data_files(paths)
        self.manager = TaskManager(include_path=paths, include_defaults=include_defaults, metadata=metadata)
        self.names = self._found(names)
        self.built = self._build()

    def _found(self, names):
        found = []
        for name in names:
            matches = self.manager.match_tasks([name])
            if not matches and (not name.endswith((".yaml", ".yml")) or not os.path.exists(name)):
                near = difflib.get_close_matches(name, self.manager.all_tasks, n=1)
                remedy = f"did you mean '{near[0]}'?" if near else "give the folder of its YAML in eval.include_path"
                raise Refused(f"there is no task '{name}'", remedy)
            found += [match for match in (matches or [name]) if match not in found]
        return found

    def _build(self):
        built, missing, empty = {}, {}, []
        for name in self.names:
            try:
                loaded = self.manager.load([name])
            except Exception as error:  # noqa: BLE001: data sets fail in many ways
                missing.update(self._missing(name, error))
                continue
            if not loaded["tasks"]:
                empty.append(name)
            groups = loaded.get("groups") or {}
            built[name] = [groups[name]] if name in groups else list(loaded["tasks"].values())
        if missing:
            sources = {}
            for task, (source, _) in sorted(missing.items()):
                sources.setdefault(source, []).append(task)
            lines = [f"{source} (for {', '.join(tasks)})" for source, tasks in sources.items()]
            reason = next(iter(missing.values()))[1]
            cache = os.environ.get("HF_DATASETS_CACHE") or os.path.join(
                os.environ.get("HF_HOME", "~/.cache/huggingface"), "datasets"
            )
            raise Refused(
                f"data that tasks need cannot be loaded: {'; '.join(lines)}: {reason}",
                f"looked in {cache} and on the Hugging Face Hub; load them once with a network, or give tasks whose"
                " data_files are on the disk, as in examples/tasks",
            )
        if empty:
            raise Refused(f"the group '{empty[0]}' has no tasks")
        return built

    def _missing(self, name, error):
        """The data sets that the tasks below a name lack; raises again what is no missing data set."""
        entry = self.manager.task_index.get(name)
        children = (entry.cfg or {}).get("task") if entry else None
        if isinstance(children, list):
            out = {}
            for child in children:
                try:
                    self.manager.load([child])
                except Exception as below:  # noqa: BLE001
                    out.update(self._missing(child if isinstance(child, str) else child.get("task", name), below))
            return out or {name: (name, _data_of(error))}
        self._check_consent(name, entry is not None and (entry.cfg or {}).get("unsafe_code"))
        if not _is_of_data(error):
            place = f"{entry.yaml_path}: " if entry is not None and entry.yaml_path else ""
            raise Refused(f"{place}task '{name}' cannot be built: {type(error).__name__}: {error}") from error
        config = (entry.cfg if entry else None) or {}
        source = (config.get("dataset_kwargs") or {}).get("data_files") or config.get("dataset_name") or ""
        return {name: (f"{config.get('dataset_path', '?')} {source}".strip(), _data_of(error))}

    def all(self):
        return [task for items in self.built.values() for item in items for task in _leaves(item)]

    def _check_consent(self, name, runs_code):
        if runs_code and not self._unsafe_code:
            raise Refused(
                f"task '{name}' runs code that the model writes",
                "set eval.confirm_run_unsafe_code: true if it may do so on this machine",
            )

    def check(self, num_fewshot, samples):
        for task in self.all():
            config = task.config
            self._check_consent(config.task, getattr(task, "UNSAFE_CODE", False))
            shots = config.num_fewshot if num_fewshot is None or config.num_fewshot == 0 else num_fewshot
            if not shots:
                continue
            documents = task.fewshot_docs()
            own = config.fewshot_split in (None, config.test_split or config.validation_split)
            there = len(list(documents)) - (1 if own else 0)
            if shots > there:
                raise Refused(
                    f"task '{config.task}' has {there} documents to show as examples, and num_fewshot is {shots}",
                    "lower num_fewshot",
                )
        for name in samples or {}:
            if name not in {task.config.task for task in self.all()}:
                raise Refused(f"samples names '{name}', which is not among the tasks")


    def check_integrity(self):
        """Every document of every task gives a question and an answer that can be scored."""
        for task in self.all():
            for index, document in enumerate(task.eval_docs):
                try:
                    problem = _problem_of(task, document)
                except Exception as error:  # noqa: BLE001: templates and functions of tasks fail in many ways
                    problem = f"{type(error).__name__}: {error}"
                if problem:
                    raise Refused(f"task '{task.config.task}', document {index}: {problem}", "correct the task or its data")


def _problem_of(task, document):
    """What keeps a document from being asked; None: nothing."""
    task.doc_to_text(document)
    target = task.doc_to_target(document)
    if target is None or target == "":
        return "it has no target"
    if task.OUTPUT_TYPE != "multiple_choice":
        return None
    choices = task.doc_to_choice(document)
    if not choices:
        return "it has no choices"
    if isinstance(target, int) and not 0 <= target < len(choices):
        return f"its target is choice {target} of {len(choices)}"
    return None


def _find_data_files(paths):
    """A relative name in a task's data_files is that of a file below the working folder, as the harness has it, or below
    a folder with tasks or one above it."""
    import datasets

    bases = [base for path in paths for base in (Path(path).absolute(), *Path(path).absolute().parents)]
    load = getattr(datasets.load_dataset, "plain", datasets.load_dataset)

    def found(name):
        if "://" in name or os.path.isabs(name) or glob.glob(name):
            return name
        return next((str(base / name) for base in bases if glob.glob(str(base / name))), name)

    def resolved(files):
        if isinstance(files, str):
            return found(files)
        if isinstance(files, dict):
            return {split: resolved(names) for split, names in files.items()}
        return [resolved(name) for name in files] if isinstance(files, (list, tuple)) else files

    def load_dataset(*args, data_files=None, **kwargs):
        return load(*args, data_files=resolved(data_files), **kwargs)

    load_dataset.plain = load
    datasets.load_dataset = load_dataset


def _leaves(item):
    return item.get_all_tasks() if hasattr(item, "get_all_tasks") else [item]


def _is_of_data(error):
    modules = {type(one).__module__.split(".")[0] for one in _chain(error)}
    return bool(modules & {"datasets", "huggingface_hub", "fsspec", "requests", "httpx"}) or isinstance(
        error, (ConnectionError, FileNotFoundError)
    )


def _chain(error):
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _data_of(error):
    return " ".join(str(error).split())[:200]


def _check_files(path):
    """Every YAML of a folder with tasks can be read; the harness itself leaves out what it cannot read."""
    import yaml
    from lm_eval.tasks._yaml_loader import load_yaml

    if not os.path.isdir(path):
        raise Refused(f"include_path: there is no folder '{path}'", "give the folder with the tasks' YAML files")
    for file in sorted(glob.glob(os.path.join(path, "**", "*.yaml"), recursive=True)):
        try:
            load_yaml(file, resolve_func=False, recursive=True)
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            line = f":{mark.line + 1}" if mark else ""
            raise Refused(f"{file}{line}: {getattr(error, 'problem', None) or error}") from error

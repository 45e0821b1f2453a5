#!/usr/bin/env python3
"""Makes each of some 400 mistakes and compares the whole message with the one that is stored.

A mistake is a row of one of the tables mistakes_*.py: its name, how the files are changed, the command. What the program
says is stored in tests/data/mistakes/, to be read as a user would read it. --write stores what it says now."""
import argparse
import concurrent.futures
import difflib
import importlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLES = ["yaml", "keys", "models", "tokenizers", "data", "commands"]
STORED = ROOT / "tests/data/mistakes"
MODEL = ROOT / "tests/data/models/stories260K-hf"

RUN = """\
model: {name_or_path: model}
loader: {dtype: fp32, param_dtype: fp32}
mixture:
  informs:
    - data_files: data.jsonl
trainer:
  save_directory: out
  model_name: small
  max_training_steps: 2
  total_batch_size: 2
  max_length: 32
  learning_rate: 1e-3
actions: [train]
"""
ROWS = "".join('{"text": "Once upon a time there was a dog who had %d red balls."}\n' % n for n in range(4))


class Mistake:
    """change: {file: bytes, text, None (removed), or a function of the folder}; the run's files are there before."""

    def __init__(self, name, change=None, command="validate run.yaml", stdin="", may_pass=False, **environment):
        self.name, self.change, self.stdin, self.environment = name, change or {}, stdin, environment
        self.command = command.split() if isinstance(command, str) else list(command)
        self.may_pass = may_pass  # no error: what the program prints is what matters

    def prepare(self, folder):
        (folder / "model").mkdir()
        for path in MODEL.iterdir():
            if path.name != "LICENSE":
                (folder / "model" / path.name).symlink_to(path)
        (folder / "run.yaml").write_text(RUN)
        (folder / "data.jsonl").write_text(ROWS)
        for name, content in self.change.items():
            path = folder / name
            if callable(content):
                content(folder)
                continue
            if path.is_symlink() or content is None:
                path.unlink()
            if content is None:
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())

    def make(self, program):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="easydel-mistake-"))
        try:
            self.prepare(folder)
            before = set(folder.rglob("*"))
            environment = dict(OMP_NUM_THREADS="1", OMP_WAIT_POLICY="PASSIVE", CUDA_VISIBLE_DEVICES="", HOME=str(folder),
                               HF_HOME=str(folder / "hub"), HF_HUB_OFFLINE="1", PATH=os.environ["PATH"], LC_ALL="C",
                               COLUMNS="100")
            environment.update(self.environment)
            environment = {key: value for key, value in environment.items() if value is not None}
            try:
                ran = subprocess.run([program] + self.command, cwd=folder, env=environment, capture_output=True,
                                     input=self.stdin if isinstance(self.stdin, bytes) else self.stdin.encode(), timeout=120)
                status, said = ran.returncode, ran.stdout + ran.stderr
            except subprocess.TimeoutExpired as late:
                status, said = "none after 120 s", (late.stdout or b"") + (late.stderr or b"")
            made = sorted(str(path.relative_to(folder)) for path in set(folder.rglob("*")) - before if path.is_file())
            text = said.decode(errors="backslashreplace").replace(str(folder), "F").replace(str(ROOT), "S")
            text = re.sub(r"/tmp/easydel-[a-z]+-\w+", "T", text)
            # What a training run says of its memory and speed is not about a mistake.
            text = "".join(line + "\n" for line in text.splitlines() if not re.match(r"(memory|step) ", line))
            return f"status {status}\n" + (f"left behind: {', '.join(made)}\n" if made else "") + text
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def shown(mistake, said):
    words = " ".join(word if re.fullmatch(r"[-\w./=,:@]+", word) else repr(word) for word in mistake.command)
    for key, value in mistake.environment.items():
        words = f"{key}={value} {words}"
    return f"## {mistake.name}\n$ easydel {words}\n{said}".rstrip("\n") + "\n\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default=os.environ.get("EASYDEL_PROGRAM", str(ROOT / "build/bin/easydel")))
    parser.add_argument("--write", action="store_true", help="store what the program says now")
    parser.add_argument("--only", default="", help="mistakes whose name contains this")
    parser.add_argument("--every", type=int, default=1, help="each mistake of this number")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    program, count, different, names = str(pathlib.Path(options.program).resolve()), 0, [], set()
    for table in TABLES:
        mistakes = importlib.import_module("mistakes_" + table).MISTAKES
        mistakes = [one for one in mistakes if options.only in one.name][::options.every]
        if not mistakes:
            continue
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            told = list(pool.map(lambda one: one.make(program), mistakes))
        for one, said in zip(mistakes, told):
            if one.name in names:
                raise SystemExit(f"two mistakes are named {one.name}")
            names.add(one.name)
            status = said.split("\n")[0]
            if status == "status 2" and "\nleft behind: " in said:
                different.append(f"{one.name}: what is refused leaves nothing behind:\n{said}")
            if not (status == "status 2" or (one.may_pass and status == "status 0")):
                different.append(f"{one.name}: a mistake of the user ends with status 2, not with:\n{said}")
        now = "".join(shown(one, said) for one, said in zip(mistakes, told))
        count += len(mistakes)
        path = STORED / f"{table}.txt"
        if options.write:
            if options.only or options.every > 1:
                sys.exit("--write stores whole tables: leave --only and --every out")
            STORED.mkdir(exist_ok=True)
            path.write_text(now)
            continue
        before = path.read_text() if path.exists() else ""
        parts = {part.split("\n")[0]: "## " + part for part in ("\n" + before).split("\n## ")[1:]}
        before = "".join(parts[one.name].rstrip("\n") + "\n\n" for one in mistakes if one.name in parts)
        if len(mistakes) == len(importlib.import_module("mistakes_" + table).MISTAKES) and len(parts) > len(mistakes):
            different.append(f"{path} has messages of mistakes that are not in the table")
        if now != before:
            different.append("".join(difflib.unified_diff(before.splitlines(True), now.splitlines(True), str(path), "now")))
    for text in different:
        print(text, file=sys.stderr)
    print(f"{count} mistakes; " + (f"{len(different)} differences" if different else "each has its message"))
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).parent))
    sys.modules["mistakes"] = sys.modules["__main__"]
    main()

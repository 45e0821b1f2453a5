#!/usr/bin/env python3
"""Kills builds of a token store at random moments and compares what they leave with an unbroken build's, byte by byte.

EASYDEL_PROGRAM=build/bin/easydel python3 scripts/trials/killed_store_builds.py [--kills 100] [--mb 60] [--seed 1]
"""
import argparse
import hashlib
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

root = pathlib.Path(__file__).resolve().parents[2]
program = os.environ.get("EASYDEL_PROGRAM", str(root / "build/bin/easydel"))


def write_rows(path, megabytes, draw):
    words = (root / "tests/data/text/sampled_stories.txt").read_text().split()
    with open(path, "w") as out:
        while out.tell() < megabytes * 1_000_000:
            at = draw.randrange(len(words))
            out.write(json.dumps({"text": " ".join(words[at:at + draw.randrange(20, 400)])}) + "\n")


def contents(cache):
    """Digest of every file of the stores; what only remembers times of use and change is left out."""
    out = {}
    for file in sorted(cache.rglob("*")):
        if file.is_file() and (file.suffix == ".safetensors" or file.name == "store.json"):
            out[str(file.relative_to(cache))] = hashlib.sha256(file.read_bytes()).hexdigest()
    return out


def start(folder, cache):
    command = [program, "-q", "data", "prepare", "run.yaml", "--set", f"mixture.cache_dir={cache}"]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--mb", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    draw = random.Random(arguments.seed)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="killed_store_builds"))
    write_rows(folder / "rows.jsonl", arguments.mb, draw)
    model = root / "tests/data/models/stories260K-hf"
    (folder / "run.yaml").write_text(
        f"model: {{name_or_path: {model}}}\nmixture: {{informs: [{{data_files: rows.jsonl}}]}}\n"
        "trainer: {save_directory: out, total_batch_size: 2, max_length: 512}\n")
    began = time.monotonic()
    unbroken = start(folder, "unbroken")
    if unbroken.wait() != 0:
        sys.exit(unbroken.stderr.read().decode())
    whole_seconds = time.monotonic() - began
    expected = contents(folder / "unbroken")
    print(f"unbroken: {len(expected)} files, {whole_seconds:.1f} s", flush=True)
    kills = builds = 0
    while kills < arguments.kills:
        shutil.rmtree(folder / "killed", ignore_errors=True)
        builds += 1
        while True:
            build = start(folder, "killed")
            try:
                status = build.wait(draw.uniform(0, whole_seconds))
            except subprocess.TimeoutExpired:
                build.kill()
                build.wait()
                kills += 1
                if kills < arguments.kills:
                    continue
                build = start(folder, "killed")
                status = build.wait()
            if status != 0:
                sys.exit(f"after {kills} kills: status {status}: {build.stderr.read().decode()}")
            break
        found = contents(folder / "killed")
        if found != expected:
            sys.exit(f"after {kills} kills the store differs in {sorted(set(found.items()) ^ set(expected.items()))[:4]}")
        print(f"{kills} kills, {builds} builds, all equal", flush=True)
    shutil.rmtree(folder)


main()

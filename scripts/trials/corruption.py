#!/usr/bin/env python3
"""Damages a checkpoint and starts the run again: it goes on from the one before, says so, and ends with the same bytes."""
import json
import os
import shutil

import trial


def damage(one, run):
    files = sorted(p for p in run.rglob("*") if p.is_file())
    path = one.random.choice(files)
    how = one.random.choice(["flip", "cut", "grow", "empty", "remove", "folder", "loop", "unlisted", "swap"])
    data = bytearray(path.read_bytes())
    if how == "flip":
        data[one.random.randrange(len(data))] ^= 1 << one.random.randrange(8)
        path.write_bytes(data)
    elif how == "cut":
        path.write_bytes(data[:one.random.randrange(len(data))])
    elif how == "grow":
        path.write_bytes(data + b"x")
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "remove":
        path.unlink()
    elif how == "folder":
        path.unlink()
        path.mkdir()
    elif how == "loop":
        path.unlink()
        path.symlink_to(path.name)
    elif how == "unlisted":  # the manifest that a second program left, which had removed a file
        manifest = json.loads((run / "manifest.json").read_text())
        name = one.random.choice(["model.safetensors", "config.json", "state.json", trial.OPTIMIZER])
        del manifest["files"][name]
        (run / "manifest.json").write_text(json.dumps(manifest))
        return f"{name} is not listed"
    elif how == "swap":
        shutil.rmtree(run)
        os.symlink(run.name, run)
        return f"{run.name} links to itself"
    return f"{how} {path.relative_to(run)}"


def corruption():
    one = trial.Trial(__doc__)
    pattern = one.setup("pattern")
    one.run_to_end(pattern)
    for n in range(one.options.count):
        folder = one.setup(f"damaged-{n}")
        shutil.copytree(pattern / "out", folder / "out")
        state = json.loads((folder / f"out/small/run-{trial.STEPS}/state.json").read_text())
        assert state["step"] == trial.STEPS
        # The paths in the configuration are the pattern's: the same model and data.
        what = damage(one, folder / f"out/small/run-{trial.STEPS}")
        whole = one.good(folder)
        if trial.STEPS in whole:  # a flipped bit of white space in manifest.json changes nothing
            continue
        status, text = one.run(folder)
        if status != 0 or f"skipping checkpoint {folder}/out/small/run-{trial.STEPS}" not in text:
            raise trial.Lost(f"{folder}: {what}: ended with {status}:\n{text}")
        if f"going on from {folder}/out/small/run-{whole[-1]}" not in text:
            raise trial.Lost(f"{folder}: {what}: did not go on from run-{whole[-1]}:\n{text}")
        one.check_end(folder)
        shutil.rmtree(folder)
    one.finish(f"{one.options.count} damaged checkpoints")


trial.main(corruption)

#!/usr/bin/env python3
"""Makes the disk fail at one operation of a run: the program says so and ends, or goes on; what was saved stays, and the
next run ends with the same bytes."""
import shutil

import trial


def disk_faults():
    one = trial.Trial(__doc__)
    saw = {0: 0, 2: 0}
    half = one.setup("half")
    # A run that was stopped in the middle.
    one.run(half, EASYDEL_FAULT="fsync:20:kill")
    for n in range(one.options.count):
        folder = one.setup(f"fault-{n}")
        shutil.copytree(half / "out", folder / "out")
        operation = one.random.choice(["open", "write", "fsync", "rename", "remove", "mkdir", "list", "look"])
        error = one.random.choice(["EIO", "ENOSPC", "EACCES", "EMFILE", "EROFS", "ELOOP"])
        at = one.random.randint(1, {"look": 400, "list": 12, "mkdir": 10, "remove": 10}.get(operation, 60))
        fault = f"{operation}:{at}:{error}"
        before = one.good(folder)
        status, text = one.run(folder, EASYDEL_FAULT=fault)
        if status not in saw:
            raise trial.Lost(f"{folder}: {fault}: ended with {status}:\n{text}")
        saw[status] += 1
        good = one.good(folder)
        if before and (not good or good[-1] < before[-1]):
            raise trial.Lost(f"{folder}: {fault}: there were checkpoints {before}, now {good}:\n{text}")
        one.check_end(folder) if "metrics.jsonl" not in text else one.run_to_end(folder)
        shutil.rmtree(folder)
    one.finish(f"{one.options.count} faults: {saw[2]} runs ended with an error, {saw[0]} went on")


trial.main(disk_faults)

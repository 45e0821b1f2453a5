#!/usr/bin/env python3
"""Kills a training run, at random moments and at each call of a save that changes the disk, and starts it again.

A checkpoint that was whole before a kill is whole after it, and the run ends with the bytes, the metrics and the files
of one that nobody disturbed."""
import os
import signal
import subprocess
import time

import trial


def kills():
    one = trial.Trial(__doc__, [(("--every-call",), {"action": "store_true", "help": "each call once, in order"})])
    library = one.folder / "kill_at_call.so"
    subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-O1", "-w", "-o", library,
                    trial.ROOT / "scripts/trials/kill_at_call.c", "-ldl"], check=True)
    # How many calls there are.
    folder = one.setup("counted")
    preload = {"LD_PRELOAD": str(library)}
    one.run(folder, **preload, TRIAL_KILL_BELOW=str(folder / "out"), TRIAL_COUNT_TO=str(one.folder / "count"))
    calls = int.from_bytes((one.folder / "count").read_bytes(), "little")
    begin = time.monotonic()
    one.run(one.setup("timed"))
    seconds = time.monotonic() - begin

    folder, killed, runs, restarts = one.setup("killed"), 0, 0, 0
    before, stopped = [], False  # of this folder: its good checkpoints, and whether a run in it was asked to stop
    for n in range(1, 1000000):
        if killed == (calls if one.options.every_call else one.options.count):
            break
        how = "call" if one.options.every_call else one.random.choice(["call", "moment", "term", "hangup"])
        if one.options.every_call:
            folder, before, stopped = one.setup(f"killed-{n}"), [], False
        stopped |= how in ("term", "hangup")
        if how == "call":
            at = n if one.options.every_call else one.random.randint(1, calls)
            status, text = one.run(folder, **preload, TRIAL_KILL_BELOW=str(folder / "out"), TRIAL_KILL_AT=str(at))
        else:
            process = one.start(folder)
            time.sleep(one.random.uniform(0, seconds))
            process.send_signal({"moment": signal.SIGKILL, "term": signal.SIGTERM, "hangup": signal.SIGHUP}[how])
            text = b"".join(process.communicate(timeout=300)).decode(errors="replace")
            status = process.returncode
        runs += 1
        if status not in (0, -signal.SIGKILL, -signal.SIGTERM, -signal.SIGHUP, 128 + signal.SIGTERM,
                          128 + signal.SIGHUP):
            raise trial.Lost(f"{folder}: ended with {status} after {how}:\n{text}")
        good = one.good(folder)
        if before and (not good or good[-1] < before[-1]):
            raise trial.Lost(f"{folder}: there were checkpoints {before}, now {good}, after {how}:\n{text}")
        before = good
        killed += status != 0
        if status == 0 or one.options.every_call:
            restarts += 1
            one.check_end(folder, stopped)
            if status == 0:
                folder, before, stopped = one.setup(f"killed-{n}"), [], False
    one.check_end(folder, stopped)
    one.finish(f"{killed} kills in {runs} runs ({calls} calls of a run change the disk), {restarts + 1} runs ended")


trial.main(kills)

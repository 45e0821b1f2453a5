#!/usr/bin/env python3
"""Starts the same run twice, a moment apart: one of them trains, the other one names it and changes nothing."""
import shutil
import time

import trial


def two_runs():
    one = trial.Trial(__doc__)
    refused = 0
    for n in range(one.options.count):
        folder = one.setup(f"pair-{n}")
        processes = [one.start(folder)]
        time.sleep(one.random.uniform(0, 0.5))
        processes.append(one.start(folder))
        texts = [b"".join(p.communicate(timeout=300)).decode(errors="replace") for p in processes]
        ends = [p.returncode for p in processes]
        for process, text in zip(processes, texts):
            if process.returncode == 2 and "is in use by process" in text:
                refused += 1
            elif process.returncode != 0:  # 0: the other one had ended before
                raise trial.Lost(f"{folder}: ended with {ends}:\n" + "\n".join(texts))
        if 0 not in ends:
            raise trial.Lost(f"{folder}: both refused:\n" + "\n".join(texts))
        one.check_end(folder)
        shutil.rmtree(folder)
    one.finish(f"{one.options.count} pairs, {refused} runs refused")


trial.main(two_runs)

#!/usr/bin/env python3
"""What ranks cost and gain the engine: tokens per second of `easydel generate --engine esurge` on one rank with all
threads and on two ranks with half of them each, by tensor (tp) and by data (dp), interleaved.

    bench/engine_on_ranks.py MODEL [--program build/bin/easydel] [--rounds 5] [--prompts 32] [--tokens 64]

Prints the median of each layout, its range, and its ratio to one rank."""
import argparse
import os
import re
import statistics
import subprocess
import tempfile

LAYOUTS = {"one rank": [], "tp 2": ["[1, 1, 1, 2, 1]"], "dp 2": ["[2, 1, 1, 1, 1]"]}


def tokens_per_second(options, dims, prompts):
    threads = max(1, (os.cpu_count() or 2) // (2 if dims else 1))
    command = [options.program] + (["--nproc", "2"] if dims else [])
    command += ["generate", options.model, "--engine", "esurge", "--prompts-file", prompts, "-n", str(options.tokens), "-t", "0"]
    command += ["--stats", "--jsonl"] + (["--set", f"esurge.sharding_axis_dims={dims[0]}"] if dims else [])
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads))
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(re.search(r"([0-9.]+) new tokens/s", ran.stderr).group(1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--program", default="build/bin/easydel")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--prompts", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=64)
    options = parser.parse_args()
    rates = {name: [] for name in LAYOUTS}
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as prompts:
        for number in range(options.prompts):
            prompts.write(f"The story number {number} begins with a king who had {number + 2} sons and no\n")
        prompts.flush()
        for _ in range(options.rounds):
            for name, dims in LAYOUTS.items():
                rates[name].append(tokens_per_second(options, dims, prompts.name))
    one = statistics.median(rates["one rank"])
    for name, all_of in rates.items():
        middle = statistics.median(all_of)
        print(f"{name}: {middle:.1f} tokens/s ({min(all_of):.1f} to {max(all_of):.1f}, {options.rounds} rounds), "
              f"{middle / one:.2f} of one rank")


if __name__ == "__main__":
    main()

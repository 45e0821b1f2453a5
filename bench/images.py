#!/usr/bin/env python3
"""Decodes images with build/bin/image_bench and with Pillow, one thread each, in turns; prints the ratios.

python3 bench/images.py [--rounds 3] FILE...   (needs pillow)
"""
import argparse
import io
import pathlib
import statistics
import subprocess
import time

from PIL import Image

ROUNDS, SECONDS = 7, 0.15


def pillow_milliseconds(path):
    data = pathlib.Path(path).read_bytes()
    best = float("inf")
    for _ in range(ROUNDS):
        begin, images = time.perf_counter(), 0
        while time.perf_counter() - begin < SECONDS:
            Image.open(io.BytesIO(data)).convert("RGB")
            images += 1
        best = min(best, (time.perf_counter() - begin) / images)
    return best * 1e3


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("files", nargs="+")
    arguments = parser.parse_args()
    program = pathlib.Path(__file__).resolve().parents[1] / "build/bin/image_bench"
    ratios = {file: [] for file in arguments.files}
    for _ in range(arguments.rounds):
        ours = subprocess.run([program, *arguments.files], check=True, capture_output=True, text=True).stdout
        for line in ours.splitlines():
            file, milliseconds = line.split("\t")
            ratios[file].append(pillow_milliseconds(file) / float(milliseconds))
    for file, all_rounds in ratios.items():
        print(f"{file}: {statistics.median(all_rounds):.2f} ({min(all_rounds):.2f} to {max(all_rounds):.2f}) times Pillow")


main()

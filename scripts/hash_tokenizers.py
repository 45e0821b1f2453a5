#!/usr/bin/env python3
"""Hashes the ids that the package for a tokenizer file gives for ten thousand texts; tests/text/tokenizer_hashes_test.cpp makes the same texts.

hash_tokenizers.py [--count 10000] NAME=FILE... > tests/data/tokenizers/hashes.json    FILE: any file that reference_tokenizers.py reads
In hashes_shared.json NAME is the file's path in the folder of shared data. Only tokenizer.json finds special tokens in texts.
"""
import argparse
import json
import pathlib
import struct

from reference_tokenizers import open_reference

MASK = (1 << 64) - 1
FRAGMENTS = json.loads((pathlib.Path(__file__).resolve().parents[1] / "tests/data/tokenizers/fragments.json").read_text())


class Texts:
    """Texts from a linear congruential generator, reproducible in any programming language."""

    def __init__(self):
        self.state = 1

    def below(self, n):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) & MASK
        return (self.state >> 33) % n

    def character(self):
        low, high = FRAGMENTS["ranges"][self.below(len(FRAGMENTS["ranges"]))]
        return chr(low + self.below(high - low))

    def next(self):
        out = ""
        for _ in range(1 + self.below(16)):
            kind = self.below(8)
            if kind < 5:
                of = FRAGMENTS["words" if kind < 3 else "blanks"]
                out += of[self.below(len(of))]
            elif kind < 7:
                for _ in range(1 + self.below(6)):
                    out += self.character()
            else:
                one = self.character()
                out += one * (1 + self.below(60))
        return out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=10000)
    parser.add_argument("files", nargs="+")
    a, hashes = parser.parse_args(), {}
    for argument in a.files:
        name, _, path = argument.partition("=")
        reference = open_reference(path)
        texts, value = Texts(), 0xCBF29CE484222325
        for _ in range(a.count):
            ids = reference.encode([texts.next()], add=False, parse=reference.whole)[0]["ids"]
            for byte in struct.pack("<%di" % (len(ids) + 1), *ids, -1):
                value = (value ^ byte) * 0x100000001B3 & MASK
        hashes[name] = f"{value:016x}"
    print(json.dumps(hashes, indent=1))


main()

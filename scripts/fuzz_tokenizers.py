#!/usr/bin/env python3
"""Compares `probe tokenize` with the package for the same file on random and adversarial strings, and prints every difference.

fuzz_tokenizers.py --probe "build/bin/easydel probe tokenize --tokenizer" --count 2000 [--seed 1] [--clusters] FILE...
FILE: any file that reference_tokenizers.py reads. --clusters: use only characters that join in grapheme clusters.
--write OUT.json stores a small set of cases with the package's answers.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import re
import shlex
import subprocess
import sys

from reference_tokenizers import open_reference

WORDS = ("the The THE cat's don't I'LL we've 'S 's 't 're 'RE 'ſ don’t naïve café Ünïcödé hello world 2024 3.14 1,000,000 0x1F http://a.b/c?d=e "
         "def f(x): return x+1 <b>bold</b> {'a': 1} 你好世界 こんにちは 안녕하세요 مرحبا שלום Привет नमस्ते ไทย 🙂 👩‍👩‍👧 🇩🇪 e\u0301 \u1112\u1161\u11ab ﬁ ℌ ① ² ½ ٣ "
         "İ ı ß ẞ Σ ς <0x0A> <0xFF> ▁ ▁▁ Ġ Ċ ĠĠ [CLS] [MASK] </w> ##ing").split(" ")
ROUND = 4000  # texts per round
BLANKS = [" ", "  ", "   ", "\n", "\n\n", "\r\n", "\t", " \n", "\n ", "\u00a0", "\u3000", "\u2028", "\x85", "\u200b", "\u200d", "\ufeff", "\x0b", "\x00", "\x1c", "\u180e", " " * 9]


def random_character(rng):
    kind = rng.random()
    if kind < 0.35:
        return chr(rng.randrange(32, 127))
    if kind < 0.5:
        return chr(rng.randrange(0xa0, 0x250))
    if kind < 0.6:
        return chr(rng.randrange(0x300, 0x370))
    while True:
        c = rng.randrange(0x250, 0x3000) if kind < 0.75 else rng.randrange(0x3000, 0xfffe) if kind < 0.9 else rng.randrange(0x10000, 0x20000)
        if not 0xd800 <= c < 0xe000:
            return chr(c)


def kinds_of_graphemes():
    """Code points by how they join, out of the table of unicode_graphemes.cpp."""
    table = pathlib.Path(__file__).resolve().parents[1] / "src/easydel/text/unicode_graphemes.cpp"
    rows = [(int(row, 16) >> 8, int(row, 16) & 255) for row in re.findall(r"0x[0-9a-f]+", table.read_text())] + [(0x20000, 0)]
    kinds = {}
    for (begin, kind), (end, _) in zip(rows, rows[1:]):
        kinds.setdefault(kind, []).extend(c for c in range(max(begin, 1), min(end, 0x20000)) if not 0xD800 <= c < 0xE000)
    return list(kinds.values())


def clusters(rng, kinds, often=(*map(ord, "\u200d\u200c\r\n©가각ᄀ\u1161\u11a8कष\u094d\u0301\u0302\ufe0fab"), 0x1F1E6, 0x1F469)):
    return "".join(chr(rng.choice(often) if rng.random() < 0.55 else rng.choice(rng.choice(kinds))) for _ in range(rng.randrange(2, 12)))


def pieces(rng, special, count):
    """Parts of texts. Drawing each anew would be most of the time."""
    out = []
    for _ in range(count):
        kind = rng.random()
        if kind < 0.35:
            out.append(rng.choice(WORDS))
        elif kind < 0.6:
            out.append(rng.choice(BLANKS))
        elif kind < 0.85:
            out.append("".join(random_character(rng) for _ in range(rng.randrange(1, 6))))
        elif kind < 0.93:
            out.append(rng.choice([random_character(rng), "a", " ", "\u0301", "1", "'", "\n"]) * rng.randrange(1, 70))
        elif special:
            token = rng.choice(special)
            out.append(token if rng.random() < 0.8 else token[: rng.randrange(len(token)) + 1])
    return out


def round_of(rng, reference, kinds, count):
    """`count` texts and as many lists of ids: the probe's lines, and what the package answers."""
    parts = pieces(rng, reference.special, 4 * count)
    text = lambda: clusters(rng, kinds) if kinds else "".join(rng.choices(parts, k=rng.choice((1, 2, 3, 5, 8, 13, 30) if rng.random() < 0.5 else (1, 2, 3, 4))))
    cases, answers = [], []
    for add, parse in ((True, True), (True, False), (False, True), (False, False)):
        share = {(True, True): 0.56, (True, False): 0.14, (False, True): 0.24}.get((add, parse), 0.06) if reference.whole else float(not add and not parse)
        texts = [(text(), text()) if reference.whole and rng.random() < 0.1 else text() for _ in range(round(share * count))]
        for each in texts:
            case = {"text": each, "masks": True} if isinstance(each, str) else {"text": each[0], "pair": each[1], "masks": True}
            cases.append(case | {"add_special_tokens": add, "parse_special": parse})
        answers += reference.encode(texts, add=add, parse=parse) if texts else []
    lists = [answer["ids"] if rng.random() < 0.5 or not reference.whole else rng.choices(range(reference.size), k=rng.randrange(1, 12)) for answer in answers]
    for skip in (False, True):
        half = lists[skip::2]
        cases += [{"ids": ids, "skip_special_tokens": skip} for ids in half]
        answers += [{"text": decoded} for decoded in reference.decode(half, skip)]
    return cases, answers


def rounds_of(a, reference):
    rng = random.Random(a.seed)
    kinds = kinds_of_graphemes() if a.clusters else None
    for begin in range(0, a.count, ROUND):
        yield round_of(rng, reference, kinds, min(ROUND, a.count - begin))


class Probe:
    """A running probe: it works on a round's lines while the next round is made."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pool = concurrent.futures.ThreadPoolExecutor(2)

    def ask(self, cases):
        lines = "".join(map("{}\n".format, map(json.dumps, cases))).encode()
        self.pool.submit(self.write, lines)
        return self.pool.submit(lambda: [self.process.stdout.readline() for _ in cases])

    def write(self, lines):
        self.process.stdin.write(lines)
        self.process.stdin.flush()


def show(case, want, got):
    print("  case", json.dumps(case)[:600])
    for key in want:
        if want[key] != got.get(key):
            w, g = want[key], got.get(key)
            if isinstance(w, list) and isinstance(g, list):
                i = next((i for i in range(min(len(w), len(g))) if w[i] != g[i]), min(len(w), len(g)))
                w, g = w[max(0, i - 2):i + 4], g[max(0, i - 2):i + 4]
            print(f"    {key}: want {str(w)[:300]}\n    {' ' * len(key)}  got  {str(g if g is not None else got)[:300]}")


def compare(waiting):
    """How many of a round differ; the first of them are shown."""
    cases, answers, lines = waiting
    different = 0
    for case, want, line in zip(cases, answers, lines.result()):
        got = json.loads(line) if line else {"error": "the probe has ended"}
        if any(got.get(key) != want[key] for key in want):
            different += 1
            if different <= 5:
                show(case, want, got)
    return different


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="+")
    parser.add_argument("--probe", default="build/bin/easydel probe tokenize --tokenizer")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--clusters", action="store_true")
    parser.add_argument("--write")
    a = parser.parse_args()
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    failed = 0
    for path in a.files:
        reference = open_reference(path)
        if a.write:
            with open(a.write, "w") as out:
                for cases, answers in rounds_of(a, reference):
                    out.writelines(json.dumps({"case": case, "answer": answer}) + "\n" for case, answer in zip(cases, answers))
            continue
        probe = Probe(shlex.split(a.probe) + [path])
        waiting, different, texts = None, 0, 0
        for cases, answers in rounds_of(a, reference):
            texts += sum("text" in case for case in cases)
            asked = cases, answers, probe.ask(cases)
            different += compare(waiting) if waiting else 0
            waiting = asked
        different += compare(waiting)
        probe.process.stdin.close()
        print(f"{path}: seed {a.seed}, {texts} texts, each decoded, {different} differ", flush=True)
        failed += bool(different)
    sys.exit(1 if failed else 0)


main()

#!/usr/bin/env python3
"""Random and adversarial strings through `probe tokenize` and through the package that reads the same file: every difference is shown.

fuzz_tokenizers.py --probe "build/bin/easydel probe tokenize --tokenizer" --count 2000 [--seed 1] [--clusters] FILE...
FILE: whatever reference_tokenizers.py reads. --clusters: strings of nothing but what joins in grapheme clusters.
--write OUT.json stores a small set with the package's answers.
"""
import argparse
import json
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


def random_text(rng, special):
    out = []
    for _ in range(rng.choice([1, 2, 3, 5, 8, 13, 30])):
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
    return "".join(out)


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


def cases_of(a, reference):
    """Lines for the probe with what the package answers."""
    rng = random.Random(a.seed)
    kinds = kinds_of_graphemes() if a.clusters else None
    for _ in range(a.count):
        text = clusters(rng, kinds) if kinds else random_text(rng, reference.special)
        pair = random_text(rng, reference.special) if rng.random() < 0.1 and reference.whole else None
        add, parse = (rng.random() < 0.7, rng.random() < 0.8) if reference.whole else (False, False)
        answer = reference.encode(text, pair=pair, add=add, parse=parse)
        case = {"text": text, "add_special_tokens": add, "parse_special": parse}
        if pair is not None:
            case["pair"] = pair
        yield case, answer if reference.whole else {"ids": answer["ids"]}
        ids = answer["ids"] if rng.random() < 0.5 or not reference.whole else [rng.randrange(reference.size) for _ in range(rng.randrange(1, 12))]
        skip = rng.random() < 0.5
        yield {"ids": ids, "skip_special_tokens": skip}, {"text": reference.decode(ids, skip)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="+")
    parser.add_argument("--probe", default="build/bin/easydel probe tokenize --tokenizer")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--clusters", action="store_true")
    parser.add_argument("--write")
    a = parser.parse_args()
    failed = 0
    for path in a.files:
        cases = list(cases_of(a, open_reference(path)))
        if a.write:
            with open(a.write, "w") as out:
                for case, answer in cases:
                    out.write(json.dumps({"case": case, "answer": answer}) + "\n")
            continue
        lines = "".join(json.dumps(case) + "\n" for case, _ in cases)
        run = subprocess.run(shlex.split(a.probe) + [path], input=lines, capture_output=True, text=True)
        answers = [json.loads(line) for line in run.stdout.split("\n") if line]
        different = [(case, want, got) for (case, want), got in zip(cases, answers) if any(got.get(key) != want[key] for key in want)]
        different += [("missing answers", len(cases), run.stderr)] if len(answers) != len(cases) else []
        print(f"{path}: {len(cases)} cases, {len(different)} differ")
        for case, want, got in different[:5]:
            print("  case", json.dumps(case)[:600])
            for key in (want if isinstance(want, dict) else {}):
                if want[key] != got.get(key):
                    w, g = want[key], got.get(key)
                    if isinstance(w, list) and isinstance(g, list):
                        i = next((i for i in range(min(len(w), len(g))) if w[i] != g[i]), min(len(w), len(g)))
                        w, g = w[max(0, i - 2):i + 4], g[max(0, i - 2):i + 4]
                    print(f"    {key}: want {str(w)[:300]}\n    {' ' * len(key)}  got  {str(g if g is not None else got)[:300]}")
        failed += bool(different)
    sys.exit(1 if failed else 0)


main()

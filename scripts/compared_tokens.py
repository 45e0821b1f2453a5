"""Shared by fuzz_classes.py and fuzz_vocabularies.py: compares `probe tokenize` with a reference on random texts."""
import argparse
import json
import subprocess


def arguments(count):
    """Parses the command line; `count`: default number of texts per folder."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--text", required=True)
    parser.add_argument("--count", type=int, default=count)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--program", default="build/bin/easydel")
    parser.add_argument("--only", default="")
    return parser.parse_args()


def drawn(rng, kinds, weights, lengths):
    """A random text of pieces, each from one of the lists `kinds`."""
    return "".join(rng.choice(rng.choices(kinds, weights)[0]) for _ in range(rng.choice(lengths)))


def cases_of(rng, reference, count, text_of):
    """Yields requests for the probe and the answers of the reference; "error" if it refuses."""
    for _ in range(count):
        text, pair, add = text_of(rng), text_of(rng) if rng.random() < 0.2 else None, rng.random() < 0.7
        asked = {"text": text, "add_special_tokens": add} | ({} if pair is None else {"pair": pair})
        try:
            e = reference.encode(text, pair, add_special_tokens=add)
        except Exception:  # an unknown token that the vocabulary lacks
            yield asked, "error"
            continue
        yield asked, {"ids": e.ids, "tokens": e.tokens, "offsets": [list(o) for o in e.offsets]}
        skip = rng.random() < 0.5
        yield {"ids": e.ids, "skip_special_tokens": skip}, {"text": reference.decode(e.ids, skip_special_tokens=skip)}


def differ(program, folder, title, cases):
    """Whether the program answers otherwise to a list of cases_of; the first difference is printed."""
    asked = "".join(json.dumps(case) + "\n" for case, _ in cases)
    run = subprocess.run([program, "probe", "tokenize", "--tokenizer", folder], input=asked, capture_output=True, text=True)
    got = [json.loads(line) for line in run.stdout.split("\n") if line]
    wrong = lambda want, answer: "error" not in answer if want == "error" else want != answer
    bad = [(case, want, answer) for (case, want), answer in zip(cases, got) if wrong(want, answer)]
    if not bad and len(got) == len(cases):
        return False
    print(f"{title}: {len(bad)} of {len(cases)} differ {run.stderr[:300]}", flush=True)
    for case, want, answer in bad[:1]:
        print(f"   {json.dumps(case, ensure_ascii=False)[:300]}\n   want {str(want)[:500]}\n   got  {str(answer)[:500]}", flush=True)
    return True

"""xgrammar's masks, for constraint_bench: constraint_peer.py TOKENIZER_FOLDER

Each line of standard input is a file: {"schema": text, "tokens": ids}. Answers seconds: to compile the schema, then of the
mask before each token of two equal texts. The vocabulary is that of the folder's tokenizer.json (also .gz), of byte-level BPE.
"""

import gzip
import json
import sys
import time
from pathlib import Path

import xgrammar


def vocabulary(folder):
    path = Path(folder) / "tokenizer.json"
    opened = open(path, encoding="utf-8") if path.exists() else gzip.open(str(path) + ".gz", "rt", encoding="utf-8")
    with opened:
        document = json.load(opened)
    ids = {**document["model"]["vocab"], **{token["content"]: token["id"] for token in document["added_tokens"]}}
    words = [""] * (max(ids.values()) + 1)
    for word, number in ids.items():
        words[number] = word
    return words


def main():
    words = vocabulary(sys.argv[1])
    info = xgrammar.TokenizerInfo(words, xgrammar.VocabType.BYTE_LEVEL, stop_token_ids=[len(words) - 1])
    for line in sys.stdin:
        request = json.loads(Path(line.strip()).read_text())
        compiler = xgrammar.GrammarCompiler(info, max_threads=2, cache_enabled=False)
        begin = time.perf_counter()
        compiled = compiler.compile_json_schema(request["schema"])
        seconds = [time.perf_counter() - begin]
        mask = xgrammar.allocate_token_bitmask(1, len(words))
        for _ in range(2):
            matcher = xgrammar.GrammarMatcher(compiled)
            for token in request["tokens"]:
                begin = time.perf_counter()
                matcher.fill_next_token_bitmask(mask)
                seconds.append(time.perf_counter() - begin)
                if not matcher.accept_token(token):
                    break
        print(*seconds, flush=True)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Compares `probe tokenize` with the `tokenizers` package on random tokenizer.json files and random strings.

random_tokenizers.py --count 100 [--texts 60] [--seed 1] [--keep FOLDER] [--program build/bin/easydel]
Prints every difference with its file (saved to FOLDER with --keep). Files that the package reads differently at each start
(it picks randomly among added tokens that normalize to the same text) are counted, not compared.
"""
import argparse
import base64
import json
import os
import random
import struct
import subprocess
import tempfile

from tokenizers import Tokenizer

LETTERS = list("abcdeghilnorstABC019 .,'-!?") + ["é", "ü", "ß", "水", "火", "あ", "ア", "я", "é", "\u0301", "▁", "\n", "\t", "🙂", "ﬁ", "½", "İ", "ª", "Ａ"]
BYTES = [chr(b) for b in list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))]
BYTES += [chr(256 + i) for i in range(68)]


def pick(r, *choices):
    return r.choice(choices)


def pattern(r):
    if r.random() < 0.4:
        return {"String": pick(r, " ", "a", "▁", "ab", "é", "  ", ".", "", "水")}
    return {"Regex": pick(r, r"\s+", r"\w+|[^\w\s]+", r"[A-Z]", r"\d{1,3}", r" ?\p{L}+", r"a|b", r"\s", r"[^a]+", r"(?=a)", r"\p{M}", r" {2,}", r"b*",
                          r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")}


def charsmap(r):
    """A SentencePiece character map of some replacements: a double array without any sharing."""
    keys = {"ª": "a", "ﬁ": "fi", "½": "1/2", "Ａ": "A", "e\u0301": "é", "\t": " ", "ß": "ss", "\u0301": "", "水火": "x", "🙂": ":)"}
    keys = {k.encode(): v for k, v in keys.items() if r.random() < 0.7} or {b"a": "b"}
    strings, offsets = b"", {}
    for key, value in keys.items():
        offsets[key] = len(strings)
        strings += value.encode() + b"\0"
    units = [0] * 256
    used = [False] * 256

    def place(index, prefix):
        labels = sorted({k[len(prefix)] for k in keys if k.startswith(prefix) and len(k) > len(prefix)})
        leaf = prefix in keys
        if not labels and not leaf:
            return
        base = len(units)  # a fresh block: offsets are multiples of 256, so XOR adds
        units.extend([0] * 256)
        distance = base ^ index
        # The offset is coded in 22 bits, or shifted by eight where bit 9 is set.
        units[index] |= (distance >> 8) << 10 | 1 << 9 if distance % 256 == 0 else distance << 10
        if distance % 256:
            raise ValueError
        if leaf:
            units[index] |= 1 << 8
            units[base] = offsets[prefix] | 1 << 31
        for label in labels:
            units[base ^ label] |= label
        for label in labels:
            where = base ^ label
            # Children want blocks whose distance from here is a multiple of 256 again: their own low byte is kept.
            place_child(where, prefix + bytes([label]))

    def place_child(index, prefix):
        labels = sorted({k[len(prefix)] for k in keys if k.startswith(prefix) and len(k) > len(prefix)})
        leaf = prefix in keys
        base = (len(units) | 0) + (index & 255)
        block = len(units)
        units.extend([0] * 256)
        distance = base ^ index
        assert distance % 256 == 0, (base, index)
        units[index] |= (distance >> 8) << 10 | 1 << 9
        if leaf:
            units[index] |= 1 << 8
            units[base] = offsets[prefix] | 1 << 31
        for label in labels:
            assert units[base ^ label] == 0 and block <= base ^ label < block + 256
            units[base ^ label] |= label
        for label in labels:
            place_child(base ^ label, prefix + bytes([label]))

    place_child(0, b"")
    blob = struct.pack("<%dI" % len(units), *[u & 0xffffffff for u in units])
    return base64.b64encode(struct.pack("<I", len(blob)) + blob + strings).decode()


def normalizer(r, depth=0):
    kind = r.choice(["NFC", "NFD", "NFKC", "NFKD", "Lowercase", "Strip", "StripAccents", "Replace", "Prepend", "Nmt", "BertNormalizer", "Precompiled",
                     "ByteLevel", "Sequence", "Sequence"])
    if kind == "Sequence":
        if depth > 1:
            return {"type": "NFC"}
        return {"type": "Sequence", "normalizers": [normalizer(r, depth + 1) for _ in range(r.randrange(0, 4))]}
    node = {"type": kind}
    if kind == "Strip":
        node.update(strip_left=r.random() < 0.5, strip_right=r.random() < 0.5)
    if kind == "Replace":
        node.update(pattern=pattern(r), content=pick(r, "▁", "", " ", "xy", "é"))
    if kind == "Prepend":
        node.update(prepend=pick(r, "▁", "ab", " "))
    if kind == "BertNormalizer":
        node.update(clean_text=r.random() < 0.5, handle_chinese_chars=r.random() < 0.5, strip_accents=pick(r, None, True, False), lowercase=r.random() < 0.5)
    if kind == "Precompiled":
        node.update(precompiled_charsmap=charsmap(r))
    return node


def behavior(r):
    return pick(r, "Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous")


def pre_tokenizer(r, depth=0):
    kind = r.choice(["ByteLevel", "Whitespace", "WhitespaceSplit", "Metaspace", "Split", "Split", "Punctuation", "Digits", "UnicodeScripts", "BertPreTokenizer",
                     "CharDelimiterSplit", "FixedLength", "Sequence", "Sequence"])
    if kind == "Sequence":
        if depth > 1:
            return {"type": "WhitespaceSplit"}
        return {"type": "Sequence", "pretokenizers": [pre_tokenizer(r, depth + 1) for _ in range(r.randrange(0, 4))]}
    node = {"type": kind}
    if kind == "ByteLevel":
        node.update(add_prefix_space=r.random() < 0.5, trim_offsets=r.random() < 0.5, use_regex=r.random() < 0.6)
    if kind == "Metaspace":
        node.update(replacement=pick(r, "▁", "▁", "_"), prepend_scheme=pick(r, "always", "never", "first"), split=r.random() < 0.6)
    if kind == "Split":
        node.update(pattern=pattern(r), behavior=behavior(r), invert=r.random() < 0.3)
    if kind == "Punctuation":
        node.update(behavior=behavior(r))
    if kind == "Digits":
        node.update(individual_digits=r.random() < 0.5)
    if kind == "CharDelimiterSplit":
        node.update(delimiter=pick(r, " ", "a", "水"))
    if kind == "FixedLength":
        node.update(length=r.randrange(1, 6))
    return node


def decoder(r, depth=0):
    kind = r.choice(["BPEDecoder", "ByteLevel", "WordPiece", "Metaspace", "CTC", "Replace", "Fuse", "Strip", "ByteFallback", "Sequence", "Sequence"])
    if kind == "Sequence":
        if depth > 1:
            return {"type": "Fuse"}
        return {"type": "Sequence", "decoders": [decoder(r, depth + 1) for _ in range(r.randrange(0, 4))]}
    node = {"type": kind}
    if kind == "BPEDecoder":
        node.update(suffix=pick(r, "</w>", "a"))
    if kind == "ByteLevel":
        node.update(add_prefix_space=True, trim_offsets=True, use_regex=True)
    if kind == "WordPiece":
        node.update(prefix=pick(r, "##", "a"), cleanup=r.random() < 0.5)
    if kind == "Metaspace":
        node.update(replacement="▁", prepend_scheme=pick(r, "always", "never", "first"), split=True)
    if kind == "CTC":
        node.update(pad_token=pick(r, "<pad>", "a"), word_delimiter_token=pick(r, "|", "b"), cleanup=r.random() < 0.5)
    if kind == "Replace":
        node.update(pattern=pattern(r), content=pick(r, " ", "", "x"))
    if kind == "Strip":
        node.update(content=pick(r, " ", "a"), start=r.randrange(3), stop=r.randrange(3))
    return node


def post_processor(r, special, depth=0):
    kind = r.choice(["TemplateProcessing", "BertProcessing", "RobertaProcessing", "ByteLevel", "Sequence"])
    a, b = r.choice(special), r.choice(special)
    if kind == "Sequence":
        if depth > 0:
            return {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
        return {"type": "Sequence", "processors": [post_processor(r, special, 1) for _ in range(r.randrange(0, 3))]}
    if kind == "ByteLevel":
        return {"type": kind, "add_prefix_space": r.random() < 0.5, "trim_offsets": r.random() < 0.5, "use_regex": True}
    if kind in ("BertProcessing", "RobertaProcessing"):
        node = {"type": kind, "sep": [a[0], a[1]], "cls": [b[0], b[1]]}
        if kind == "RobertaProcessing":
            node.update(trim_offsets=r.random() < 0.5, add_prefix_space=r.random() < 0.5)
        return node
    token = lambda t: {"SpecialToken": {"id": t[0], "type_id": r.randrange(3)}}
    text = lambda name: {"Sequence": {"id": name, "type_id": r.randrange(3)}}
    single = [token(a)] * r.randrange(2) + [text("A")] + [token(b)] * r.randrange(2)
    pair = [token(a)] * r.randrange(2) + [text("A"), token(b), text("B")] + [token(a)] * r.randrange(2)
    return {"type": kind, "single": single, "pair": pair, "special_tokens": {t[0]: {"id": t[0], "ids": [t[1]], "tokens": [t[0]]} for t in (a, b)}}


def model(r):
    kind = r.choice(["BPE", "BPE", "BPE", "Unigram", "Unigram", "WordPiece", "WordLevel"])
    alphabet = r.sample(LETTERS, r.randrange(8, len(LETTERS))) if r.random() < 0.6 else list(BYTES)
    prefix = pick(r, None, None, None, "##") if kind == "BPE" else "##"
    words = [c for c in alphabet]
    merges = []
    if kind == "BPE":
        suffix = pick(r, None, None, None, "</w>")
        if prefix:
            words += [prefix + c for c in alphabet]
        if suffix:
            words += [c + suffix for c in alphabet] + ([prefix + c + suffix for c in alphabet] if prefix else [])
        if r.random() < 0.5:
            words += ["<0x%02X>" % b for b in range(256) if r.random() < 0.98 or b > 127]
        known = set(words)
        for _ in range(r.randrange(0, 60)):
            left, right = r.choice(words[-80:] if r.random() < 0.5 else words), r.choice(words)
            if suffix and left.endswith(suffix) or prefix and not right.startswith(prefix) or left.startswith("<0x") or right.startswith("<0x"):
                continue
            whole = left + (right[len(prefix):] if prefix else right)
            if whole not in known:
                known.add(whole)
                words.append(whole)
            if [left, right] not in merges:
                merges.append([left, right])
        words = ["<unk>"] + words
        node = {"type": "BPE", "dropout": None, "unk_token": pick(r, None, "<unk>"), "continuing_subword_prefix": prefix, "end_of_word_suffix": suffix,
                "fuse_unk": r.random() < 0.5, "byte_fallback": not prefix and not suffix and r.random() < 0.5, "ignore_merges": r.random() < 0.3,
                "vocab": {w: i for i, w in enumerate(words)}, "merges": merges if r.random() < 0.5 else [" ".join(m) for m in merges if " " not in "".join(m)]}
        return node, words
    for _ in range(r.randrange(10, 120)):
        words.append("".join(r.choice(words) for _ in range(r.randrange(1, 4))))
    if kind == "WordPiece":
        words += ["##" + w for w in words if r.random() < 0.7]
    words = ["<unk>"] + list(dict.fromkeys(words))
    if kind == "Unigram":
        if r.random() < 0.5:
            words += ["<0x%02X>" % b for b in range(256)]
        scores = [pick(r, -r.random() * 10, -1.5, -float(len(w)), float("%.17g" % (-r.random() * 10))) for w in words]
        return {"type": "Unigram", "unk_id": 0, "vocab": [[w, s] for w, s in zip(words, scores)], "byte_fallback": r.random() < 0.5}, words
    vocab = {w: i for i, w in enumerate(words)}
    if kind == "WordPiece":
        return {"type": "WordPiece", "unk_token": "<unk>", "continuing_subword_prefix": "##", "max_input_chars_per_word": pick(r, 100, 5), "vocab": vocab}, words
    return {"type": "WordLevel", "vocab": vocab, "unk_token": "<unk>"}, words


def make(r):
    inner, words = model(r)
    added, next_id = [], len(words)
    for content in r.sample(["<s>", "</s>", "[X]", "ab", "Ab", " x ", "éa", "word", "a b", "<unk>", "\n\n", "水"], r.randrange(2, 7)):
        known = words.index(content) if content in words else None
        special = r.random() < 0.5
        added.append({"id": next_id if known is None else known, "content": content, "single_word": r.random() < 0.2, "lstrip": r.random() < 0.2,
                      "rstrip": r.random() < 0.2, "normalized": r.random() < 0.4, "special": special})
        next_id += known is None
    special = [(t["content"], t["id"]) for t in added]
    file = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": normalizer(r) if r.random() < 0.7 else None,
            "pre_tokenizer": pre_tokenizer(r) if r.random() < 0.8 else None, "post_processor": post_processor(r, special) if r.random() < 0.6 else None,
            "decoder": decoder(r) if r.random() < 0.8 else None, "model": inner}
    if r.random() < 0.4:
        file["truncation"] = {"direction": pick(r, "Left", "Right"), "max_length": r.randrange(4, 30), "strategy": pick(r, "LongestFirst", "OnlyFirst", "OnlySecond"),
                              "stride": pick(r, 0, 0, 1)}
    if r.random() < 0.3:
        file["padding"] = {"strategy": pick(r, "BatchLongest", {"Fixed": r.randrange(1, 40)}), "direction": pick(r, "Left", "Right"),
                           "pad_to_multiple_of": pick(r, None, 4, 8), "pad_id": 3, "pad_type_id": 1, "pad_token": "[PAD]"}
    return file, [t["content"] for t in added], len(words)


def random_text(r, words):
    out = []
    for _ in range(r.choice([0, 1, 2, 4, 8, 16])):
        kind = r.random()
        if kind < 0.4:
            out.append(r.choice(LETTERS) * r.choice([1, 1, 1, 2, 3]))
        elif kind < 0.6:
            out.append(r.choice(words))
        elif kind < 0.8:
            out.append("".join(r.choice(LETTERS) for _ in range(r.randrange(1, 12))))
        elif kind < 0.9:
            out.append(r.choice([" ", "  ", "\n", "hello world", "It's 2024.", "naïve", "水火あア", "\u200d", "e\u0301", "ａｂ", "\u1112\u1161\u11ab"]))
        else:
            out.append(r.choice(LETTERS) * r.randrange(1, 80))
    return "".join(out)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--count", type=int, default=100)
    p.add_argument("--texts", type=int, default=60)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--keep")
    p.add_argument("--program", default="build/bin/easydel")
    a = p.parse_args()
    failed = skipped = by_lot = 0
    folder = a.keep or tempfile.mkdtemp()
    os.makedirs(folder, exist_ok=True)
    for index in range(a.count):
        r = random.Random(f"{a.seed}/{index}")
        file, words, size = make(r)
        text = json.dumps(file, ensure_ascii=False)
        try:
            reference = Tokenizer.from_str(text)
        except BaseException:
            skipped += 1
            continue
        spellings = [reference.normalizer.normalize_str(t["content"]) if file["normalizer"] and t["normalized"] else t["content"] for t in file["added_tokens"]]
        if len({(s, t["normalized"]) for s, t in zip(spellings, file["added_tokens"])}) < len(spellings):
            by_lot += 1
            continue
        path = os.path.join(folder, f"{a.seed}_{index}.json")
        open(path, "w").write(text)
        lines, wanted = [], []
        for _ in range(a.texts):
            one, two = random_text(r, words), random_text(r, words) if r.random() < 0.2 else None
            add, parse = r.random() < 0.7, r.random() < 0.8
            reference.encode_special_tokens = not parse
            try:
                e = reference.encode(one, two, add_special_tokens=add)
                written = lambda e: {"ids": e.ids, "tokens": e.tokens, "offsets": [list(o) for o in e.offsets]}
                answer = dict(written(e), overflowing=[written(o) for o in e.overflowing])
                ids = e.ids
            except Exception:
                answer, ids = "error", []
            except BaseException:  # it panics: no answer to compare with
                continue
            case = {"text": one, "add_special_tokens": add, "parse_special": parse, "file_limits": True, "overflowing": True}
            if two is not None:
                case["pair"] = two
            lines.append(case)
            wanted.append(answer)
            if r.random() < 0.5:
                ids = [r.randrange(size + len(words) + 2) for _ in range(r.randrange(0, 10))]
            skip = r.random() < 0.5
            try:
                answer = {"text": reference.decode(ids, skip_special_tokens=skip)}
            except Exception:
                answer = "error"
            except BaseException:
                continue
            lines.append({"ids": ids, "skip_special_tokens": skip})
            wanted.append(answer)
        run = subprocess.run([a.program, "probe", "tokenize", "--tokenizer", path], input="\n".join(map(json.dumps, lines)) + "\n", capture_output=True, text=True)
        got = [json.loads(line) for line in run.stdout.split("\n") if line]
        bad = [(c, w, g) for c, w, g in zip(lines, wanted, got) if (w != g if w != "error" else "error" not in g)]
        if len(got) != len(lines) or bad:
            failed += 1
            print(f"{path}: {len(bad)} of {len(lines)} differ {run.stderr[:300]}")
            print("  ", json.dumps({k: v for k, v in file.items() if k not in ("model", "version")}, ensure_ascii=False)[:900])
            print("  ", json.dumps({k: v for k, v in file["model"].items() if k not in ("vocab", "merges")}, ensure_ascii=False))
            for c, w, g in bad[:2]:
                print("     case", json.dumps(c, ensure_ascii=False)[:300])
                for key in w if isinstance(w, dict) else ["error"]:
                    one, other = (w[key] if isinstance(w, dict) else w), g.get(key, g)
                    if one == other:
                        continue
                    at = next((i for i, (x, y) in enumerate(zip(one, other)) if x != y), 0) if isinstance(one, (str, list)) and isinstance(other, (str, list)) else 0
                    print(f"       {key} from {max(0, at - 3)}: want {str(one[max(0, at - 3):])[:150]}\n       {' ' * len(key)}          got  {str(other[max(0, at - 3):] if isinstance(other, (str, list)) else other)[:150]}")
        elif not a.keep:
            os.remove(path)
    print(f"{a.count} files, {skipped} that the package refuses, {by_lot} that it reads by lot, {failed} with differences")
    raise SystemExit(1 if failed else 0)


main()

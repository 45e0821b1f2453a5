#!/usr/bin/env python3
"""Compares the masks of constrained output with those of xgrammar and of llguidance, token by token, on texts that both
sides accept:

    python scripts/compared_masks.py --tokenizer FOLDER_OF_GPT2 [--peer xgrammar|llguidance]

Runs in the folder of the repository, with a Python that has the packages; one that is missing is said and left out. Before
each character of each text the tokens that one side allows and the other does not are sorted by the reasons below. A token
without a reason is printed, and the status is 1. The tokenizer's tokens have to be bytes of BPE.

Reasons of xgrammar:
  escape   a string whose length is bounded has no escapes in xgrammar; where it has some, xgrammar takes the second half of
           a pair of \\u alone, and ours wants both halves
  control  a string whose length is bounded may have bytes below 0x20 in xgrammar, which RFC 8259 wants escaped
  zero     ours writes -0 as a whole number, xgrammar does not
  date     ours has only days that exist, and no year 0000
  listed   of a const or an enum xgrammar takes no white space between the parts of a value

Reasons of llguidance:
  forced   where only one text can follow, llguidance allows its longest token alone, ours the shorter ones too
  escape   llguidance writes no \\/, and of \\u only control characters
  delete   llguidance writes the character 7f as an escape alone; RFC 8259 allows it
  date     ours has no year 0000
"""

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

try:
    import numpy
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(0)

ROOT = Path(__file__).parent.parent
PROGRAM = os.environ.get("EASYDEL_PROGRAM", str(ROOT / "build/bin/easydel"))
CASES = [
    ({"type": "string"}, ["abc", "", "a \"b\" \\ c", "é€"]),
    ({"type": "string", "minLength": 2, "maxLength": 5}, ["ab", "abcde"]),
    ({"type": "string", "pattern": "^[a-c]{1,3}-[0-9]+$"}, ["abc-123", "a-0"]),
    ({"type": "integer"}, [0, -17, 120034]),
    ({"type": "integer", "minimum": -17, "maximum": 230}, [-17, 0, 229, 55]),
    ({"type": "number"}, [0.5, -12.25, 3]),
    ({"type": ["boolean", "null"]}, [True, False, None]),
    ({"enum": ["red", "green", "blue", 3]}, ["red", "green", 3]),
    ({"const": {"a": [True]}}, [{"a": [True]}]),
    ({"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 4}, [[1], [1, 22, 333, 4]]),
    ({"type": "array", "prefixItems": [{"type": "boolean"}, {"type": "null"}], "items": False}, [[True, None]]),
    (
        {
            "type": "object",
            "properties": {"b": {"type": "integer"}, "a": {"type": "string"}},
            "required": ["a"],
            "additionalProperties": False,
        },
        [{"b": 1, "a": "x"}, {"a": "yy"}],
    ),
    (
        {
            "type": "object",
            "properties": {
                "o": {
                    "type": "object",
                    "properties": {"p": {"type": "array", "items": {"type": "boolean"}}},
                    "required": ["p"],
                    "additionalProperties": False,
                }
            },
            "required": ["o"],
            "additionalProperties": False,
        },
        [{"o": {"p": [True, False]}}, {"o": {"p": []}}],
    ),
    ({"anyOf": [{"type": "integer", "minimum": 3}, {"type": "string", "maxLength": 2}]}, [4, "ab"]),
    ({"type": "string", "format": "date"}, ["2026-11-23"]),
    (
        {
            "$ref": "#/$defs/node",
            "$defs": {
                "node": {
                    "type": "object",
                    "properties": {
                        "v": {"type": "integer"},
                        "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
                    },
                    "required": ["v", "next"],
                    "additionalProperties": False,
                }
            },
        },
        [{"v": 1, "next": {"v": 2, "next": None}}],
    ),
]


def read_tokenizer(folder):
    path = Path(folder) / "tokenizer.json"
    opened = open(path, encoding="utf-8") if path.exists() else gzip.open(str(path) + ".gz", "rt", encoding="utf-8")
    with opened:
        return json.load(opened)


def vocabulary(folder):
    document = read_tokenizer(folder)
    added = {token["content"]: token["id"] for token in document["added_tokens"]}
    ids = {**document["model"]["vocab"], **added}
    words = [""] * (max(ids.values()) + 1)
    for word, number in ids.items():
        words[number] = word
    return words, set(added.values())


def our_masks(tokenizer, schema, texts):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(schema, file)
        file.flush()
        lines = "".join(json.dumps({"text": text, "mask": True}) + "\n" for text in texts)
        command = [PROGRAM, "probe", "constrain", "--tokenizer", str(tokenizer), "--schema", file.name]
        ran = subprocess.run(command, input=lines, stdout=subprocess.PIPE, text=True, check=True)
    answers = [json.loads(line) for line in ran.stdout.splitlines()]
    bits = [numpy.frombuffer(bytes.fromhex(one.get("mask", "")), dtype=numpy.uint8) for one in answers]
    return answers, [numpy.unpackbits(each, bitorder="little").astype(bool) for each in bits]


class Xgrammar:
    def __init__(self, path, words, special):
        import xgrammar

        self.xgrammar, self.words = xgrammar, words
        info = xgrammar.TokenizerInfo(words, xgrammar.VocabType.BYTE_LEVEL, stop_token_ids=sorted(special)[:1])
        self.tokens = info.decoded_vocab
        self.compiler = xgrammar.GrammarCompiler(info)

    def compile(self, schema):
        return self.compiler.compile_json_schema(json.dumps(schema), any_whitespace=True)

    def mask(self, compiled, prefix):
        """The tokens that may follow; None: the prefix is not accepted."""
        matcher = self.xgrammar.GrammarMatcher(compiled)
        if prefix and not matcher.accept_string(prefix):
            return None
        bitmask = self.xgrammar.allocate_token_bitmask(1, len(self.words))
        matcher.fill_next_token_bitmask(bitmask)
        return unpacked(bitmask.numpy().view(numpy.uint8), len(self.words))

    def reason(self, text, token, schema, ours):
        if ("const" in schema or "enum" in schema) and token[:1] in (b" ", b"\t", b"\n", b"\r"):
            return "listed"
        if any(byte < 0x20 for byte in token):
            return "control"
        if b"\\" in token or "\\" in text[-5:]:
            return "escape"
        if text.endswith("-") and token[:1] == b"0" and schema.get("type") == "integer":
            return "zero"
        if schema.get("format") == "date":
            return "date"
        return None


class Llguidance:
    def __init__(self, path, words, special):
        import llguidance

        self.llguidance, self.words = llguidance, words
        with tempfile.TemporaryDirectory() as folder:
            plain = Path(folder) / "tokenizer.json"
            plain.write_text(json.dumps(read_tokenizer(path)), encoding="utf-8")
            self.tokenizer = llguidance.LLTokenizer(str(plain), eos_token=sorted(special)[0])
        self.tokens = [self.tokenizer.decode_bytes([number]) if word else b"" for number, word in enumerate(words)]

    def compile(self, schema):
        return self.llguidance.LLMatcher.grammar_from_json_schema(json.dumps(schema))

    def mask(self, compiled, prefix):
        matcher = self.llguidance.LLMatcher(self.tokenizer, compiled)
        if matcher.is_error():
            raise SystemExit(matcher.get_error())
        if prefix and not matcher.consume_tokens(self.tokenizer.greedy_tokenize(prefix)):
            return None
        mask = unpacked(numpy.frombuffer(matcher.compute_bitmask(), dtype=numpy.uint8), len(self.words))
        self.forced = matcher.compute_ff_bytes()
        return mask

    def reason(self, text, token, schema, ours):
        if ours and len(token) < len(self.forced) and self.forced.startswith(token):
            return "forced"
        if schema.get("format") == "date":
            return "date"
        if ours and b"\x7f" in token:
            return "delete"
        if ours and (b"\\" in token or "\\" in text[-5:]):
            return "escape"
        return None


def unpacked(mask, size):
    return numpy.unpackbits(mask, bitorder="little")[:size].astype(bool)


def compare(peer, options, words, special):
    """The number of tokens without a reason."""
    name = type(peer).__name__.lower()
    positions, same, reasons, unexplained = 0, 0, Counter(), []
    for schema, values in CASES:
        compiled = peer.compile(schema)
        for value in values:
            text = json.dumps(value, ensure_ascii=False)
            prefixes = [text[:end] for end in range(len(text) + 1)]
            answers, masks = our_masks(options.tokenizer, schema, prefixes)
            for prefix, answer, own in zip(prefixes, answers, masks):
                theirs = peer.mask(compiled, prefix)
                if not answer["prefix"] or theirs is None:
                    if answer["prefix"] and ("const" in schema or "enum" in schema):
                        reasons["listed, texts that ours accepts"] += 1
                    elif answer["prefix"] != (theirs is not None):
                        unexplained.append((json.dumps(schema), prefix, "as a text", answer["prefix"]))
                    continue
                differ = [int(i) for i in numpy.nonzero(own[: len(words)] != theirs)[0] if int(i) not in special]
                positions += 1
                same += not differ
                for token in differ:
                    why = peer.reason(prefix, peer.tokens[token], schema, bool(own[token]))
                    side = "ours" if own[token] else name
                    if why:
                        reasons[f"{why}, allowed by {side}"] += 1
                    else:
                        unexplained.append((json.dumps(schema), prefix, peer.tokens[token], side))
    print(f"{name}: {positions} masks of {len(words)} tokens, {same} equal")
    for why, count in reasons.most_common():
        print(f"  {count:8} {why}")
    print(f"  {len(unexplained):8} without a reason")
    for one in unexplained[: options.show]:
        print("   ", *one)
    return len(unexplained)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--peer", choices=["xgrammar", "llguidance"], help="default: both")
    parser.add_argument("--show", type=int, default=10)
    options = parser.parse_args()
    words, special = vocabulary(options.tokenizer)
    unexplained = 0
    for peer in (Xgrammar, Llguidance):
        if options.peer not in (None, peer.__name__.lower()):
            continue
        try:
            made = peer(options.tokenizer, words, special)
        except ImportError as missing:
            print(f"skipped: {missing}")
            continue
        unexplained += compare(made, options, words, special)
    sys.exit(1 if unexplained else 0)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Compares what AutoTokenizer of transformers makes of saved model folders with this program's own ids and texts.

    scripts/check_saved_tokenizers.py --folder DATA/tokenizers [--program build/bin/easydel]

Each tokenizer file of the folder (SOURCES) is saved with a small model as `easydel export --format safetensors` does. Then
transformers loads the folder, without the files that the tokenizer came from, and both encode and decode the same
texts. Needs transformers, tokenizers and sentencepiece; not torch."""
import argparse
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
MODEL = ROOT / "tests/data/models/stories260K-hf"
SOURCES = [
    "bert-base-uncased/ggml-vocab-bert-bge.gguf", "bert-base-uncased/vocab.txt", "deepseek-coder/ggml-vocab-deepseek-coder.gguf",
    "falcon/ggml-vocab-falcon.gguf", "gpt-neox/ggml-vocab-gpt-neox.gguf", "gpt2/ggml-vocab-gpt-2.gguf", "gpt2/vocab.json",
    "qwen2/vocab.json", "qwen2/tokenizer.json.gz", "llama2/ggml-vocab-llama-spm.gguf", "llama2/tokenizer.model",
    "llama3/tokenizer.model", "mistral/tokenizer.model.v1", "mistral/tokenizer.model.v3", "sentencepiece-small/unigram_1000.model",
    "t5-small/spiece.model", "tiktoken/cl100k_base.tiktoken", "tiktoken/o200k_base.tiktoken", "tiktoken/gpt2.tiktoken",
    "whisper/multilingual.tiktoken"]


def texts(folder, count):
    fragments = json.loads((ROOT / "tests/data/tokenizers/fragments.json").read_text())
    chance, out = random.Random(1), []
    for _ in range(count):
        parts = []
        for _ in range(chance.randint(1, 16)):
            kind = chance.randrange(8)
            if kind < 5:
                parts.append(chance.choice(fragments["words" if kind < 3 else "blanks"]))
            else:
                low, high = chance.choice(fragments["ranges"])
                one = chr(chance.randrange(low, high))
                parts.append(one * chance.randint(1, 40) if kind == 7 else one)
        out.append("".join(parts))
    for path in sorted(folder.glob("*/vectors_*.json")) + sorted(folder.glob("*/golden_*.json")):
        found = json.loads(path.read_text())
        out += [v["text"] for v in found.get("vectors", []) if isinstance(v.get("text"), str)]
    return [text for text in dict.fromkeys(out) if "\ud800" > text or all(not 0xd800 <= ord(c) < 0xe000 for c in text)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=pathlib.Path, required=True, help="the tokenizers, with their vectors")
    parser.add_argument("--program", default=str(ROOT / "build/bin/easydel"))
    parser.add_argument("--count", type=int, default=2000, help="texts made of fragments; the vectors' texts are added")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    from transformers import AutoTokenizer
    lines, bad = texts(options.folder, options.count), 0
    for source in SOURCES:
        if options.only not in source:
            continue
        work = pathlib.Path(tempfile.mkdtemp(prefix="easydel-saved-"))
        given, saved = work / "given", work / "saved"
        given.mkdir()
        file = options.folder / source
        shutil.copy(file, given / ("tokenizer.model" if ".model.v" in file.name else file.name))
        for beside in ("merges.txt", "tokenizer_config.json"):
            if file.suffix != ".gguf" and file.name != "tokenizer.model" and (file.parent / beside).exists():
                shutil.copy(file.parent / beside, given)
        said = subprocess.run([options.program, "export", str(MODEL), "--format", "safetensors", "-o", str(saved), "--tokenizer",
                               str(given)], capture_output=True, text=True)
        if said.returncode or not (saved / "tokenizer.json").exists():
            print(f"{source}: {said.stdout}{said.stderr}".rstrip())
            bad += 1
            continue
        for path in saved.iterdir():
            if path.name not in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "config.json"):
                path.unlink()
        request = "".join(json.dumps({"text": text}) + "\n" for text in lines)
        told = subprocess.run([options.program, "probe", "tokenize", "--tokenizer", str(given), "--jsonl", "-"], input=request,
                              capture_output=True, text=True, check=True)
        tokenizer = AutoTokenizer.from_pretrained(saved)
        ids, decoded = 0, 0
        first = None
        asked = []
        for text, line in zip(lines, told.stdout.splitlines()):
            ours, theirs = json.loads(line)["ids"], tokenizer.encode(text)
            asked.append(ours)
            if ours != theirs:
                ids += 1
                first = first or f"{text!r}: {ours} here, {theirs} there"
        request = "".join(json.dumps({"ids": one, "skip_special_tokens": True}) + "\n" for one in asked)
        told = subprocess.run([options.program, "probe", "tokenize", "--tokenizer", str(given), "--jsonl", "-"], input=request,
                              capture_output=True, text=True, check=True)
        for one, line in zip(asked, told.stdout.splitlines()):
            theirs = tokenizer.decode(one, skip_special_tokens=True)
            if json.loads(line)["text"] != theirs:
                decoded += 1
                first = first or f"{one}: {json.loads(line)['text']!r} here, {theirs!r} there"
        bad += ids + decoded > 0
        print(f"{source}: {type(tokenizer).__name__}, {len(lines)} texts, {ids} with other ids, {decoded} with another text"
              + (f"; first {first}" if first else ""), flush=True)
        shutil.rmtree(work)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()

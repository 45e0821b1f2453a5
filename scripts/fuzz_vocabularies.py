#!/usr/bin/env python3
"""Compares `probe tokenize` with AutoTokenizer on plain-text vocabularies in the folders of transformers' classes.

fuzz_vocabularies.py --text FILE [--count 60] [--seed 1] [--program build/bin/easydel] [--only CLASS]
Trains small vocabularies on FILE: byte pairs for vocab.json and merges.txt, words for vocab.txt.
"""
import json
import os
import pathlib
import random
import tempfile
import warnings

os.environ |= {"TRANSFORMERS_VERBOSITY": "error", "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"}
warnings.filterwarnings("ignore")

from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import AutoTokenizer

from compared_tokens import arguments, cases_of, differ, drawn

PAIRS = "GPT2 Roberta Bart LED Mvp Longformer LayoutLMv3 Luke Blenderbot Deberta GPTNeoX Cohere Qwen2 CLIP Nougat Whisper OpenAIGPT Herbert".split()
WORDS = "Bert MPNet Funnel Splinter LayoutLMv2 DistilBert Electra MobileBert".split()
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", "<|endoftext|>", "<|startoftext|>"]
SPECIAL_WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "<s>", "</s>", "<unk>", "<pad>", "<mask>", "<cls>", "<sep>", "[QUESTION]"]
CONFIGS = [{}, {"add_prefix_space": True}, {"add_prefix_space": False}, {"do_lower_case": True}, {"do_lower_case": False}, {"strip_accents": True}, {"tokenize_chinese_chars": False},
           {"add_bos_token": True}, {"add_bos_token": True, "add_eos_token": True}, {"unk_token": "[UNK]", "pad_token": "<pad>"}, {"trim_offsets": False}, {"cls_token": "<c>", "sep_token": "<s2>"},
           {"mask_token": "[M]"}, {"bos_token": "<b>", "eos_token": "<e>"}]
ODD = ["naïve", "ＡＢ", "ﬁ", "e\u0301", "你好", "🙂", "½", "İ", "12,3", "it's", "(x)", "ß", "…", "A", "THE", "2024"]


def random_text(rng, words):
    return drawn(rng, [words, [" ", "  ", "\n", "\t ", " \n", "\u00a0"], ODD, SPECIAL + SPECIAL_WORDS + ["<c>", "[M]", "<b>"]], (5, 2, 2, 1), [1, 2, 4, 8])


def train(path):
    text = pathlib.Path(path).read_text(encoding="utf-8")[:200000]
    pairs = Tokenizer(models.BPE())
    pairs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    pairs.train_from_iterator([text], trainers.BpeTrainer(vocab_size=700, special_tokens=SPECIAL, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    words = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    words.train_from_iterator([text, text.lower()], trainers.WordPieceTrainer(vocab_size=700, special_tokens=SPECIAL_WORDS, show_progress=False))
    return json.loads(pairs.to_str())["model"], words.get_vocab(), text[:20000].split(" ")


def write_folder(where, kind, config, pairs, words):
    os.makedirs(where)
    write = lambda name, text: pathlib.Path(where, name).write_text(text, encoding="utf-8")
    if kind in WORDS:
        write("vocab.txt", "".join(word + "\n" for word in sorted(words, key=words.get)))
    else:
        write("vocab.json", json.dumps(pairs["vocab"], ensure_ascii=False))
        write("merges.txt", "#version: 0.2\n" + "".join(" ".join(merge) + "\n" for merge in pairs["merges"]))
    write("tokenizer_config.json", json.dumps(config | {"tokenizer_class": kind + "Tokenizer"}))


def main():
    a = arguments(60)
    rng = random.Random(a.seed)
    pairs, words, texts = train(a.text)
    compared = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for kind in PAIRS + WORDS:
            for index, config in enumerate(CONFIGS if a.only in ("", kind) else []):
                where = f"{folder}/{kind}{index}"
                write_folder(where, kind, config, pairs, words)
                reference = AutoTokenizer.from_pretrained(where).backend_tokenizer
                reference.no_padding()
                reference.no_truncation()
                cases = list(cases_of(rng, reference, a.count, lambda rng: random_text(rng, texts)))
                compared += len(cases)
                failed += differ(a.program, where, f"{kind} {config}", cases)
    print(f"{compared} cases compared, {failed} folders with differences")
    raise SystemExit(1 if failed else 0)


main()

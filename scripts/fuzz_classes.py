#!/usr/bin/env python3
"""Compares `probe tokenize` with AutoTokenizer on SentencePiece models in the folders of transformers' classes.

fuzz_classes.py --text FILE [--count 200] [--seed 1] [--program build/bin/easydel] [--only CLASS]
Needs transformers, sentencepiece and protobuf. Trains small models on FILE, with the control pieces that the classes expect.
"""
import json
import os
import random
import shutil
import tempfile
import warnings

import sentencepiece
from transformers import AutoTokenizer
from transformers.models.auto.tokenization_auto import tokenizer_class_from_name

from compared_tokens import arguments, cases_of, differ, drawn

warnings.filterwarnings("ignore")
os.environ["TRANSFORMERS_VERBOSITY"] = "error"
CLASSES = "Albert Barthez BigBird Camembert DebertaV2 MBart MBart50 Nllb Pegasus Reformer RemBert SeamlessM4T T5 Udop XGLM XLMRoberta XLNet".split()
MODELS = {
    "fairseq": dict(model_type="unigram", vocab_size=600),
    "no_map": dict(model_type="unigram", vocab_size=500, normalization_rule_name="identity"),
    "bert": dict(model_type="unigram", vocab_size=600, pad_id=0, unk_id=1, bos_id=-1, eos_id=-1, control_symbols="[CLS],[SEP]", user_defined_symbols="[MASK],(x)"),
    "deberta": dict(model_type="unigram", vocab_size=600, pad_id=0, bos_id=1, eos_id=2, unk_id=3, pad_piece="[PAD]", bos_piece="[CLS]", eos_piece="[SEP]", unk_piece="[UNK]"),
    "t5": dict(model_type="unigram", vocab_size=600, pad_id=0, eos_id=1, unk_id=2, bos_id=-1),
    "pairs": dict(model_type="bpe", vocab_size=600),
    "barthez": dict(model_type="unigram", vocab_size=600, bos_id=0, pad_id=1, eos_id=2, unk_id=3),
}
CONFIGS = [{}, {}, {"add_prefix_space": False}, {"do_lower_case": True}, {"do_lower_case": False, "keep_accents": True}, {"keep_accents": False}, {"split_by_punct": True},
           {"mask_token": "[M]"}, {"mask_token": {"__type": "AddedToken", "content": "<mask>", "lstrip": True, "rstrip": False, "normalized": False, "single_word": False}},
           {"src_lang": "de_DE", "tgt_lang": "deu"}, {"extra_ids": 3, "offset": 5}, {"legacy_behaviour": True, "src_lang": "the"}, {"add_bos_token": True, "add_eos_token": True},
           {"additional_special_tokens": ["<a>", "en_XX"]}, {"pad_token": "[PAD]", "unk_token": "<unk>", "cls_token": "<c>"}, {"mask_token_sent": "<sent>"}]


SPACES = [" ", "  ", "\n", "\t ", " \n", "\u00a0", "▁", " ▁ ", ""]
ODD = ["naïve", "ＡＢ", "ﬁ", "''q''", "``", "e\u0301", "你好", "🙂", "½", "İ", "12,3", "it's", "(x)", "ß", "\u200d", "…", "A", "THE"]
SPECIAL = ["<mask>", "[MASK]", "<s>", "</s>", "<pad>", "<unk>", "[CLS]", "<extra_id_3>", "en_XX", "<unk_7>", "<mask_1>", "<mask_2>", "<a>", "<madeupword1>", "[M]", "<sep>", "NOTUSED",
           "<s>NOTUSED"]


def random_text(rng, words):
    return drawn(rng, [words, SPACES, ODD, SPECIAL], (10, 5, 3, 2), [1, 2, 4, 8, 16])


def main():
    a = arguments(200)
    rng = random.Random(a.seed)
    folder = tempfile.mkdtemp()
    for name, options in MODELS.items():
        sentencepiece.SentencePieceTrainer.train(input=a.text, model_prefix=f"{folder}/{name}", minloglevel=9, character_coverage=0.995, hard_vocab_limit=False, **options)
    words = open(a.text, encoding="utf-8").read()[:20000].split(" ")
    compared = failed = refused = 0
    for kind in CLASSES:
        if a.only not in kind:
            continue
        for model in MODELS:
            if kind == "SeamlessM4T" and model in ("bert", "deberta", "t5"):
                continue  # two pieces have one id: transformers draws by lot which it writes
            for index, config in enumerate(CONFIGS):
                config = dict(config, tokenizer_class=kind + "Tokenizer")
                where = f"{folder}/{kind}_{model}_{index}"
                os.makedirs(where)
                name = tokenizer_class_from_name(kind + "Tokenizer").vocab_files_names.get("vocab_file", "tokenizer.model")
                shutil.copy(f"{folder}/{model}.model", f"{where}/{name if name.endswith('.model') else 'tokenizer.model'}")
                json.dump(config, open(f"{where}/tokenizer_config.json", "w"))
                try:
                    reference = AutoTokenizer.from_pretrained(where).backend_tokenizer
                except Exception:
                    refused += 1
                    continue
                cases = list(cases_of(rng, reference, a.count, lambda rng: random_text(rng, words)))
                compared += len(cases)
                failed += differ(a.program, where, f"{kind} {model} {config}", cases)
                shutil.rmtree(where)
    print(f"{compared} cases compared, {refused} folders that transformers refuses, {failed} folders with differences")
    shutil.rmtree(folder)
    raise SystemExit(1 if failed else 0)


main()

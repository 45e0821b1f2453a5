#!/usr/bin/env python3
"""SentencePiece models in the folders of transformers' classes, through `probe tokenize` and through AutoTokenizer.

fuzz_classes.py --text FILE [--count 200] [--seed 1] [--program build/bin/easydel] [--only CLASS]
Needs transformers, sentencepiece and protobuf. Small models are trained on FILE, with the control pieces that the classes expect.
"""
import argparse
import json
import os
import random
import shutil
import subprocess
import tempfile
import warnings

import sentencepiece
from transformers import AutoTokenizer
from transformers.models.auto.tokenization_auto import tokenizer_class_from_name

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


def random_text(rng, words):
    out = []
    for _ in range(rng.choice([1, 2, 4, 8, 16])):
        kind = rng.random()
        if kind < 0.5:
            out.append(rng.choice(words))
        elif kind < 0.75:
            out.append(rng.choice([" ", "  ", "\n", "\t ", " \n", "\u00a0", "▁", " ▁ ", ""]))
        elif kind < 0.9:
            out.append(rng.choice(["naïve", "ＡＢ", "ﬁ", "''q''", "``", "e\u0301", "你好", "🙂", "½", "İ", "12,3", "it's", "(x)", "ß", "\u200d", "…", "A", "THE"]))
        else:
            out.append(rng.choice(["<mask>", "[MASK]", "<s>", "</s>", "<pad>", "<unk>", "[CLS]", "<extra_id_3>", "en_XX", "<unk_7>", "<mask_1>", "<mask_2>", "<a>", "<madeupword1>", "[M]", "<sep>", "NOTUSED", "<s>NOTUSED"]))
    return "".join(out)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--text", required=True)
    p.add_argument("--count", type=int, default=200)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--program", default="build/bin/easydel")
    p.add_argument("--only", default="")
    a = p.parse_args()
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
                cases, wanted = [], []
                for _ in range(a.count):
                    text, pair, add = random_text(rng, words), random_text(rng, words) if rng.random() < 0.2 else None, rng.random() < 0.7
                    cases.append({"text": text, "pair": pair, "add_special_tokens": add} if pair is not None else {"text": text, "add_special_tokens": add})
                    try:
                        e = reference.encode(text, pair, add_special_tokens=add)
                    except Exception:
                        wanted.append("error")
                        continue
                    wanted.append({"ids": e.ids, "tokens": e.tokens, "offsets": [list(o) for o in e.offsets]})
                    skip = rng.random() < 0.5
                    cases.append({"ids": e.ids, "skip_special_tokens": skip})
                    wanted.append({"text": reference.decode(e.ids, skip_special_tokens=skip)})
                run = subprocess.run([a.program, "probe", "tokenize", "--tokenizer", where], input="\n".join(map(json.dumps, cases)) + "\n", capture_output=True, text=True)
                got = [json.loads(line) for line in run.stdout.split("\n") if line]
                bad = [(c, w, g) for c, w, g in zip(cases, wanted, got) if (w != g if w != "error" else "error" not in g)]
                compared += len(cases)
                if bad or len(got) != len(cases):
                    failed += 1
                    print(f"{kind} {model} {config}: {len(bad)} of {len(cases)} differ {run.stderr[:300]}")
                    for c, w, g in bad[:1]:
                        print(f"   {json.dumps(c, ensure_ascii=False)[:300]}\n   want {str(w)[:500]}\n   got  {str(g)[:500]}")
                shutil.rmtree(where)
    print(f"{compared} cases compared, {refused} folders that transformers refuses, {failed} folders with differences")
    shutil.rmtree(folder)
    raise SystemExit(1 if failed else 0)


main()

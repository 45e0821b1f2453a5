#!/usr/bin/env python3
"""Records what TRL's trainers make of rows: token ids, what is learned of them, and marks.

usage: record_prepared_rows.py TOKENIZER_MODEL_FOLDER OUT.json [--methods kto,tpo,orpo,cpo,reward,bco,prm]

With trl==1.16.0 and transformers==5.23.0: kto, tpo, orpo, cpo, reward. With trl==0.24.0 and transformers==4.57.1: bco, prm.
An existing OUT.json keeps its other cases. Each case has the trainer's keys, the chat template (null: the tokenizer's),
the rows, and for each example the sequences with a 1 for each learned token.
"""
import argparse, json, os, sys, tempfile

os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
from datasets import Dataset
from transformers import AutoTokenizer, AutoModelForCausalLM, AutoModelForSequenceClassification

QUESTIONS = ["What is a cat?", "Who had a red ball? Tell me, please.", "Once upon a time, there was a little girl", "Why?",
             "Add 1 and 2.", "Lily saw a big dog in the park. What did the dog do next, and why did it do so?"]
GOOD = [" A cat is a small animal.", " Tom had it.", " named Lily. She liked to play.", " Because.", " 3", " It ran away. It saw a bird."]
BAD = [" A cat is a ball.", " Nobody, nobody, nobody.", " The end.", " No", " 12", " It sat."]
GOLD = [" It is an animal with soft fur.", " It was Tom.", " who loved stories.", " Why not?", " The sum is 3.", " It ran after a bird."]
STEPS = [[("It has fur.", True), ("So it is an animal.", True)], [("Tom ran.", True), ("The ball is blue.", False), ("It is Tom's.", False)],
         [("She was small.", True)], [("Because I say so.", False), ("Yes.", True)], [("1 and 2 is 3.", True), ("So 3.", True)],
         [("The dog was big.", True), ("It barked.", True), ("It sat down.", False)]]
TEMPLATES = {
    "own": None,
    "chatml": "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
    "inst": "{{ bos_token }}{% for m in messages %}{% if m['role'] == 'user' %}[INST] {{ m['content'] }} [/INST]{% else %} {{ m['content'] }}{{ eos_token }}{% endif %}{% endfor %}",
    "thinking": "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}\n{% endfor %}{% if add_generation_prompt %}<assistant><think>\n{% endif %}",
    "trimmed": "{{ bos_token }}{% for m in messages %}### {{ m['role'] | title }}:\n{{ m['content'] | trim }}\n\n{% endfor %}{% if add_generation_prompt %}### Assistant:\n{% endif %}",
}


def turn(role, text):
    return [{"role": role, "content": text.strip()}]


def rows_of(kind, conversational):
    say = (lambda text: turn("assistant", text)) if conversational else (lambda text: text)
    ask = (lambda text: turn("user", text)) if conversational else (lambda text: text)
    out = []
    for i, question in enumerate(QUESTIONS):
        row = {"prompt": ask(question)}
        if kind == "pairs":
            row |= {"chosen": say(GOOD[i]), "rejected": say(BAD[i])}
        elif kind == "margins":
            row |= {"chosen": say(GOOD[i]), "rejected": say(BAD[i]), "margin": 0.25 * i}
        elif kind == "triples":
            row |= {"chosen": say(GOOD[i]), "rejected": say(BAD[i]), "reference": say(GOLD[i])}
        elif kind == "marks":
            row |= {"completion": say(GOOD[i] if i % 2 else BAD[i]), "label": bool(i % 2)}
        elif kind == "steps":
            row |= {"completions": [text for text, _ in STEPS[i]], "labels": [good for _, good in STEPS[i]]}
        elif kind == "implicit":
            row = {"chosen": ask(question) + say(GOOD[i]), "rejected": ask(question) + say(BAD[i])}
        out.append(row)
    return out


def learned(labels):
    return [int(label != -100) for label in labels]


def sequences(collated, mask):
    """The rows of a collated batch without padding."""
    out = []
    for ids, attended, learn in zip(collated["input_ids"].tolist(), collated["attention_mask"].tolist(), collated[mask].tolist()):
        kept = [k for k, one in enumerate(attended) if one]
        out.append({"ids": [ids[k] for k in kept], "learned": [learn[k] for k in kept]})
    return out


def keys(method, more):
    return {"trainer_type": method, "shuffle_train_dataset": False, "truncation_mode": "keep_start"} | more


def record(method, tokenizer, folder, rows, more):
    work = tempfile.mkdtemp()
    common = dict(output_dir=work, report_to="none", max_length=more.get("max_length"), use_cpu=True, per_device_train_batch_size=3)
    data = Dataset.from_list(rows)
    model = lambda: AutoModelForCausalLM.from_pretrained(folder)
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.unk_token
    if method == "kto":
        from trl import KTOConfig, KTOTrainer
        t = KTOTrainer(model(), args=KTOConfig(**common), train_dataset=data, processing_class=tokenizer)
        out = []
        for example in t.train_dataset:
            got = t.data_collator([example])
            out.append({"sequences": sequences(got, "completion_mask"), "good": int(got["label"][0]),
                        "mismatched": sequences({k[3:]: v for k, v in got.items() if k.startswith("KL_")}, "completion_mask")[0]})
        return out
    if method == "tpo":
        from trl.experimental.tpo import TPOConfig, TPOTrainer
        t = TPOTrainer(model(), args=TPOConfig(**common), train_dataset=data, processing_class=tokenizer)
        return [{"sequences": sequences(t.data_collator([example]), "completion_mask")} for example in t.train_dataset]
    if method == "reward":
        from trl import RewardConfig, RewardTrainer
        head = AutoModelForSequenceClassification.from_pretrained(folder, num_labels=1)
        t = RewardTrainer(head, args=RewardConfig(**common), train_dataset=data, processing_class=tokenizer)
        out = []
        for example in t.train_dataset:
            one = {"sequences": [{"ids": example[k], "learned": [0] * len(example[k])} for k in ("chosen_ids", "rejected_ids")]}
            out.append(one | ({"margin": example["margin"]} if "margin" in example else {}))
        return out
    if method in ("orpo", "cpo"):
        if method == "orpo":
            from trl.experimental.orpo import ORPOConfig as Config, ORPOTrainer as Trainer
        else:
            from trl.experimental.cpo import CPOConfig as Config, CPOTrainer as Trainer
        t = Trainer(model(), args=Config(**common), train_dataset=data, processing_class=tokenizer)
        return [{"sequences": [{"ids": e[f"{a}_input_ids"], "learned": learned(e[f"{a}_labels"])} for a in ("chosen", "rejected")]}
                for e in t.train_dataset]
    if method == "bco":
        from trl import BCOConfig, BCOTrainer
        args = BCOConfig(**common, max_prompt_length=more["max_prompt_length"], truncation_mode=more["truncation_mode"])
        t = BCOTrainer(model(), ref_model=model(), args=args, train_dataset=data, processing_class=tokenizer)
        return [{"sequences": [{"ids": e["completion_input_ids"], "learned": learned(e["completion_labels"])}], "good": int(e["label"])}
                for e in t.train_dataset]
    if method == "prm":
        from trl import PRMTrainer
        out = []
        for row in rows:
            e = PRMTrainer.tokenize_row(row, tokenizer, more.get("step_separator", "\n"), more.get("max_length"), more.get("max_prompt_length"),
                                        more.get("max_completion_length"), more.get("train_on_last_step_only", False), False)
            out.append({"sequences": [{"ids": e["input_ids"], "labels": e["labels"]}]})
        return out
    raise SystemExit(f"unknown method {method}")


CASES = {
    "kto": [("marks", {"max_length": 256}), ("marks", {"max_length": 24}), ("pairs", {"max_length": 256})],
    "tpo": [("triples", {"max_length": 256}), ("triples", {"max_length": 24})],
    "orpo": [("pairs", {"max_length": 256}), ("pairs", {"max_length": 24})],
    "cpo": [("pairs", {"max_length": 256}), ("implicit", {"max_length": 256})],
    "reward": [("margins", {"max_length": 256}), ("implicit", {"max_length": 256}), ("pairs", {"max_length": 40})],
    "bco": [("marks", {"max_length": 256, "max_prompt_length": 128, "truncation_mode": "keep_end"}),
            ("marks", {"max_length": 30, "max_prompt_length": 16, "truncation_mode": "keep_end"}),
            ("marks", {"max_length": 30, "max_prompt_length": 16, "truncation_mode": "keep_start"})],
    "prm": [("steps", {"max_length": 256, "max_prompt_length": 512}),
            ("steps", {"max_length": 40, "max_prompt_length": 12, "max_completion_length": 24, "step_separator": "\n\n"}),
            ("steps", {"max_length": 256, "max_prompt_length": 512, "train_on_last_step_only": True})],
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder"), parser.add_argument("out"), parser.add_argument("--chat", help="a folder with a tokenizer and its chat template")
    parser.add_argument("--methods", default="kto,tpo,orpo,cpo,reward")
    args = parser.parse_args()
    cases = json.load(open(args.out)) if os.path.exists(args.out) else {}
    for method in args.methods.split(","):
        for number, (kind, more) in enumerate(CASES[method]):
            for conversational in (False, True):
                if conversational and method == "prm":
                    continue
                for name, template in TEMPLATES.items() if conversational else [("plain", None)]:
                    tokenizer = AutoTokenizer.from_pretrained(args.chat or args.folder)
                    if template:
                        tokenizer.chat_template = template
                    rows = rows_of(kind, conversational)
                    case = {"trainer": keys(method, more), "chat_template": template, "rows": rows,
                            "expected": record(method, tokenizer, args.folder, json.loads(json.dumps(rows)), more)}
                    cases[f"{method}_{kind}_{number}_{name}"] = case
                    print(f"{method}_{kind}_{number}_{name}: {len(case['expected'])} examples", file=sys.stderr)
    json.dump(cases, open(args.out, "w"), separators=(",", ":"))


if __name__ == "__main__":
    main()

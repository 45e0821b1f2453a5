#!/usr/bin/env python3
"""Records tests/data/encoders/own_tasks.json.gz: training runs of heads of classes and of answers by
transformers' losses.

The stack is that of tests/data/encoders/sentences, without dropout; the output layer starts at zero. Needs transformers
5.23.0 and torch 2.13. Usage: own_task_goldens.py [OUT]
"""
import gzip
import json
import pathlib
import sys

import torch
from transformers import AutoModelForQuestionAnswering, AutoModelForSequenceClassification, AutoModelForTokenClassification, AutoTokenizer

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDER = ROOT / "tests/data/encoders/sentences"
STEPS, BATCH, LENGTH, RATE = 8, 4, 14, 5e-3
PLACES, THINGS = ["the sea", "her garden", "a big ship", "his small garden"], ["dog", "cat", "king", "queen", "ship"]


def texts(pair):
    for i in range(2 * BATCH):
        row = {"text": f"the {THINGS[i % 5]} went to {PLACES[i % 4]}" + " and was very happy" * (i % 3)}
        if pair:
            row["text_pair"] = f"who saw {PLACES[(i + 1) % 4]} {'and ' * (5 * (i % 2))}?"
        yield i, row


def cases():
    yield "one_class", {"num_labels": 3}, [{**row, "label": i % 3} for i, row in texts(True)]
    names = ["calm", "happy", "sad"]
    yield "names", {"num_labels": 3, "id2label": dict(enumerate(names))}, [{**row, "label": names[i * i % 3]} for i, row in texts(False)]
    yield "several", {"num_labels": 3, "problem_type": "multi_label_classification"}, [{**row, "label": [i % 2, i // 2 % 2, i // 4]} for i, row in texts(False)]
    yield "number", {"num_labels": 1}, [{**row, "label": i / 4 - 1} for i, row in texts(True)]
    words = [{"tokens": row["text"].split() + (["garden's"] if i % 2 else []), "ner_tags": []} for i, row in texts(False)]
    # No class has a quarter of the words: its gradient would first be rounding alone, which AdamW makes a whole step.
    for i, row in enumerate(words):
        row["ner_tags"] = [min((k + i) % 6, 3) if k % 3 else -100 for k in range(len(row["tokens"]))]
    yield "words", {"num_labels": 4}, words


def record(name, settings, rows):
    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(FOLDER)
    kind = AutoModelForTokenClassification if name == "words" else AutoModelForSequenceClassification
    model = kind.from_pretrained(FOLDER, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, **settings)
    if name == "words":
        stack = AutoModelForSequenceClassification.from_pretrained(FOLDER).bert
        model.bert.load_state_dict({k: v for k, v in stack.state_dict().items() if not k.startswith("pooler")}, strict=False)
    torch.nn.init.zeros_(model.classifier.weight), torch.nn.init.zeros_(model.classifier.bias)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.0)
    steps = []
    for step in range(STEPS):
        part = rows[step % 2 * BATCH:][:BATCH]
        if name == "words":
            batch = tokenizer([r["tokens"] for r in part], is_split_into_words=True, truncation=True, max_length=LENGTH, padding=True, return_tensors="pt")
            labels = torch.full(batch["input_ids"].shape, -100)
            for i, row in enumerate(part):
                before = None
                for k, word in enumerate(batch.word_ids(i)):
                    if word is not None and word != before:
                        labels[i, k] = row["ner_tags"][word]
                    before = word
        else:
            pairs = [r["text_pair"] for r in part] if "text_pair" in part[0] else None
            batch = tokenizer([r["text"] for r in part], pairs, truncation=True, max_length=LENGTH, padding=True, return_tensors="pt")
            ids = {v: k for k, v in settings.get("id2label", {}).items()}
            labels = torch.tensor([ids.get(r["label"], r["label"]) if isinstance(r["label"], str) else r["label"] for r in part],
                                  dtype=torch.float32 if name in ("several", "number") else torch.long)
        loss = model(**batch, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        norm = torch.linalg.vector_norm(torch.stack([p.grad.norm() for p in model.parameters() if p.grad is not None]))
        steps.append({"loss": loss.item(), "grad_norm": norm.item()})
        optimizer.step()
    return {"config": settings, "words": name == "words", "keys": {"max_length": LENGTH, "learning_rate": RATE, "total_batch_size": BATCH},
            "rows": rows, "steps": steps}


def question_rows():
    for i in range(2 * BATCH):
        long = " and then the old man saw the sea" * (i % 2)
        place = PLACES[i % 4]
        context = f"the {THINGS[i % 5]} went{long} to {place} and was happy"
        answers = {"text": [place], "answer_start": [context.index(place)]} if i != 5 else {"text": [], "answer_start": []}
        yield {"id": str(i), "question": f"where did the {THINGS[i % 5]} go", "context": context, "answers": answers}


def features(tokenizer, rows, length, stride):
    """Windows of each row, by transformers' run_qa.py (prepare_train_features), without padding."""
    for row in rows:
        made = tokenizer(row["question"], row["context"], truncation="only_second", max_length=length, stride=stride,
                         return_overflowing_tokens=True, return_offsets_mapping=True)
        windows = []
        for k, ids in enumerate(made["input_ids"]):
            offsets, owners, cls = made["offset_mapping"][k], made.sequence_ids(k), ids.index(tokenizer.cls_token_id)
            first, last = cls, cls
            if row["answers"]["answer_start"]:
                begin = row["answers"]["answer_start"][0]
                end = begin + len(row["answers"]["text"][0])
                low, high = owners.index(1), len(ids) - 1
                while owners[high] != 1:
                    high -= 1
                if offsets[low][0] <= begin and offsets[high][1] >= end:
                    while low < len(offsets) and offsets[low][0] <= begin:
                        low += 1
                    while offsets[high][1] >= end:
                        high -= 1
                    first, last = low - 1, high + 1
            windows.append({"input_ids": ids, "token_type_ids": made["token_type_ids"][k], "start": first, "end": last})
        yield windows


def record_answers():
    torch.manual_seed(0)
    length, stride, rows = 22, 4, list(question_rows())
    tokenizer = AutoTokenizer.from_pretrained(FOLDER)
    stack = AutoModelForSequenceClassification.from_pretrained(FOLDER).bert
    model = AutoModelForQuestionAnswering.from_pretrained(FOLDER, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    model.bert.load_state_dict({k: v for k, v in stack.state_dict().items() if not k.startswith("pooler")}, strict=False)
    torch.nn.init.zeros_(model.qa_outputs.weight), torch.nn.init.zeros_(model.qa_outputs.bias)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.0)
    # Ours puts the further windows of rows after the first ones.
    windows = list(features(tokenizer, rows, length, stride))
    examples = [w[0] for w in windows] + [x for w in windows for x in w[1:]]
    assert len(examples) % BATCH == 0 and len(examples) > len(rows), len(examples)
    steps = []
    for step in range(STEPS):
        at = step * BATCH % len(examples)
        losses = []
        for one in examples[at:at + BATCH]:  # one by one: padding would take part in the softmax
            losses.append(model(input_ids=torch.tensor([one["input_ids"]]), token_type_ids=torch.tensor([one["token_type_ids"]]),
                                start_positions=torch.tensor([one["start"]]), end_positions=torch.tensor([one["end"]])).loss)
        loss = torch.stack(losses).mean()
        optimizer.zero_grad()
        loss.backward()
        norm = torch.linalg.vector_norm(torch.stack([p.grad.norm() for p in model.parameters() if p.grad is not None]))
        steps.append({"loss": loss.item(), "grad_norm": norm.item()})
        optimizer.step()
    keys = {"max_length": length, "doc_stride": stride, "learning_rate": RATE, "total_batch_size": BATCH}
    return {"config": {}, "words": False, "keys": keys, "rows": rows, "examples": examples, "steps": steps}


def main():
    out = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "tests/data/encoders/own_tasks.json.gz")
    torch.set_num_threads(1)
    recorded = {name: record(name, settings, rows) for name, settings, rows in cases()}
    recorded["answers"] = record_answers()
    for name, case in recorded.items():
        print(name, [round(s["loss"], 4) for s in case["steps"]], file=sys.stderr)
    out.write_bytes(gzip.compress(json.dumps(recorded).encode(), mtime=0))


if __name__ == "__main__":
    main()

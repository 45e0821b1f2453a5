#!/usr/bin/env python3
"""Records tests/data/encoders/training.json.gz: training runs of tiny models by the losses of sentence-transformers.

Needs sentence-transformers 6.2.0 with transformers 5.23.0 and torch 2.13. Models are those of tests/data/encoders, without
dropout. Usage: embedding_goldens.py [OUT]
"""
import gzip
import json
import pathlib
import sys

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.models import Pooling
from sentence_transformers.losses import MatryoshkaLoss, MultipleNegativesRankingLoss, TripletLoss
from sentence_transformers.util import dot_score

ROOT = pathlib.Path(__file__).resolve().parents[1]
STEPS, BATCH, LENGTH, RATE = 8, 8, 12, 2e-3
PLACES, THINGS = ["the sea", "her garden", "a big ship", "his small garden"], ["dog", "cat", "king", "queen", "ship"]


def rows(negatives):
    out = []
    for i in range(2 * BATCH):
        thing, place = THINGS[i % 5], PLACES[i % 4]
        row = {"query": f"who was in {place} {'and ' * (i % 3)}?", "positive": f"the {thing} went to {place}" + " and was very happy" * (i % 4)}
        for k in range(negatives):
            row.setdefault("negatives", []).append(f"the {THINGS[(i + k + 1) % 5]} saw {PLACES[(i + k + 1) % 4]}")
        out.append(row)
    return out


def squared(x, y):
    return (x - y).square().sum(1)


def loss_of(model, keys):
    """Our keys as a loss; sentence-transformers adds the sizes' losses, we take their mean."""
    if keys["loss_type"] == "triplet":
        loss = TripletLoss(model, distance_metric=squared, triplet_margin=keys["margin"])
    else:
        more = {} if keys.get("normalize_embeddings", True) else {"similarity_fct": dot_score}
        loss = MultipleNegativesRankingLoss(model, scale=1 / keys["temperature"], **more)
    sizes = keys.get("matryoshka_dims")
    return MatryoshkaLoss(model, loss, sizes, [1 / len(sizes)] * len(sizes)) if sizes else loss


def record(folder, negatives, keys):
    torch.manual_seed(0)
    model = SentenceTransformer(str(ROOT / "tests/data/encoders" / folder), device="cpu")
    model.max_seq_length = LENGTH
    model.eval()  # without dropout
    kept = [m for m in model if type(m).__name__ != "Normalize" or keys.get("normalize_embeddings", True)]
    if mode := {"weighted_mean": "weightedmean", "max": "max"}.get(keys.get("pooling_strategy")):
        kept = [Pooling(kept[0].get_embedding_dimension(), mode) if type(m).__name__ == "Pooling" else m for m in kept]
    model = SentenceTransformer(modules=kept, device="cpu").eval()
    loss = loss_of(model, keys)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.0)
    data, steps = rows(negatives), []
    for step in range(STEPS):
        part = data[step % 2 * BATCH:][:BATCH]
        columns = [[r["query"] for r in part], [r["positive"] for r in part]] + [[r["negatives"][k] for r in part] for k in range(negatives)]
        value = loss([model.preprocess(texts) if hasattr(model, "preprocess") else model.tokenize(texts) for texts in columns], torch.zeros(len(part)))
        optimizer.zero_grad()
        value.backward()
        norm = torch.linalg.vector_norm(torch.stack([p.grad.norm() for p in model.parameters() if p.grad is not None]))
        steps.append({"loss": value.item(), "grad_norm": norm.item()})
        optimizer.step()
    texts = [data[0]["query"], data[3]["positive"]]
    with torch.no_grad():
        vectors = model.encode(texts, prompt="")
    return {"model": folder, "keys": {**keys, "max_length": LENGTH, "learning_rate": RATE}, "rows": data, "steps": steps,
            "texts": texts, "embeddings": vectors.tolist()}


def main():
    out = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "tests/data/encoders/training.json.gz")
    torch.set_num_threads(1)
    cases = {
        "mnrl": record("sentences", 0, {"loss_type": "mnrl", "temperature": 0.05}),
        "infonce_two_negatives": record("decoder", 2, {"loss_type": "infonce", "temperature": 0.1}),
        "dot": record("sentences", 1, {"loss_type": "infonce", "temperature": 2.0, "normalize_embeddings": False}),
        "triplet": record("decoder", 1, {"loss_type": "triplet", "margin": 0.5}),
        "matryoshka": record("sentences", 1, {"loss_type": "infonce", "temperature": 0.05, "matryoshka_dims": [8, 16, 24]}),
        # With the whole size: numbers of a vector that no loss reaches move by what AdamW makes of rounding.
        "matryoshka_triplet": record("decoder", 1, {"loss_type": "triplet", "margin": 0.3, "matryoshka_dims": [4, 12, 24]}),
        "weighted_mean": record("sentences", 1, {"loss_type": "infonce", "temperature": 0.05, "pooling_strategy": "weighted_mean"}),
        "max": record("decoder", 0, {"loss_type": "mnrl", "temperature": 0.1, "pooling_strategy": "max"}),
    }
    for name, case in cases.items():
        print(name, [round(s["loss"], 4) for s in case["steps"]], file=sys.stderr)
    out.write_bytes(gzip.compress(json.dumps(cases).encode(), mtime=0))


if __name__ == "__main__":
    main()

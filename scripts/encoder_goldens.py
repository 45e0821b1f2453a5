#!/usr/bin/env python3
"""Records tests/data/encoders: tiny random models in the folders of sentence-transformers, and what that package computes.

Needs sentence-transformers 6.2.0 with transformers 5.23.0 and torch 2.13. Usage: encoder_goldens.py [FOLDER]
"""
import json
import pathlib
import shutil
import sys

import torch
import transformers
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.models import Normalize, Pooling, Transformer
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

ROOT = pathlib.Path(__file__).resolve().parents[1]
WORDS = "the a old young king queen went to sea and saw big small ship in his her garden with dog cat he she was happy sad very".split()
TEXTS = ["The old king went to sea.", "a", "She saw the big dog, and the big dog saw her!", "",
         "the young queen was very happy in her garden with the cat and the dog", "Ünknown wørds ship 42"]
PAIRS = [("who went to sea?", text) for text in TEXTS] + [("the king " * 12, "the queen " * 30)]
LIMIT = 20


def tokenizer():
    letters = [chr(c) for c in range(33, 127)]
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    vocabulary += [piece for letter in letters for piece in (letter, "##" + letter) if piece not in WORDS]
    ids = {token: id for id, token in enumerate(vocabulary)}
    out = Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    out.normalizer = normalizers.BertNormalizer(lowercase=True)
    out.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    out.decoder = decoders.WordPiece()
    out.post_processor = processors.TemplateProcessing(single="[CLS]:0 $A:0 [SEP]:0", pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
                                                       special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return transformers.BertTokenizerFast(tokenizer_object=out, model_max_length=64)


def bert(**more):
    return transformers.BertConfig(vocab_size=len(tokenizer()), hidden_size=24, num_hidden_layers=2, num_attention_heads=4,
                                   intermediate_size=36, max_position_embeddings=64, initializer_range=0.3, **more)


def plain(values):
    return torch.as_tensor(values, dtype=torch.float32).tolist()


def save_stack(folder, model, words):
    model.eval().save_pretrained(folder)
    words.save_pretrained(folder)


def sentences(folder):
    """Mean pooling, normalized, a length of its own, and a prompt before every text."""
    save_stack(folder / "stack", transformers.BertModel(bert()), tokenizer())
    stack = Transformer(str(folder / "stack"), max_seq_length=40)
    size = stack.get_embedding_dimension()
    model = SentenceTransformer(modules=[stack, Pooling(size, "mean"), Normalize()], prompts={"query": "the sea: "},
                                default_prompt_name="query", device="cpu")
    shutil.rmtree(folder / "stack")
    model.save(str(folder), create_model_card=False)
    config = json.loads((folder / "config.json").read_text())
    config["matryoshka_dimensions"] = [8, 16]
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    pooling, without_prompt = folder / "1_Pooling" / "config.json", {}
    settings = pooling.read_text()
    for mode in ("mean", "cls", "lasttoken"):
        pooling.write_text(json.dumps({**json.loads(settings), "pooling_mode": mode, "include_prompt": False}))
        without_prompt[mode] = plain(SentenceTransformer(str(folder), device="cpu").encode(TEXTS))
    pooling.write_text(settings)
    return {"texts": TEXTS, "embeddings": plain(model.encode(TEXTS)), "without_prompt": without_prompt,
            "cut": plain(model.encode(TEXTS, truncate_dim=8, normalize_embeddings=True)),
            "tokens": [len(model.tokenizer("the sea: " + text)["input_ids"]) for text in TEXTS]}


def decoder(folder):
    """The last token's state of a causal model that has its language head, as Qwen3-Embedding."""
    story = ROOT / "tests/data/models/stories260K-hf"
    words = transformers.PreTrainedTokenizerFast(tokenizer_file=str(story / "tokenizer.json"), eos_token="</s>", pad_token="</s>")
    config = transformers.Qwen3Config(vocab_size=512, hidden_size=24, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                                      head_dim=8, intermediate_size=36, max_position_embeddings=64, initializer_range=0.3,
                                      tie_word_embeddings=True)
    save_stack(folder / "stack", transformers.Qwen3ForCausalLM(config), words)
    stack = Transformer(str(folder / "stack"))
    model = SentenceTransformer(modules=[stack, Pooling(24, "lasttoken"), Normalize()], device="cpu")
    model.save(str(folder), create_model_card=False)
    for name in ("config.json", "model.safetensors"):  # with its head, as such models are published
        shutil.copy(folder / "stack" / name, folder / name)
    shutil.rmtree(folder / "stack")
    texts = [text for text in TEXTS if text]
    return {"texts": texts, "embeddings": plain(model.encode(texts, batch_size=1))}


def reranker(folder, activation):
    """A classifier with one label on pairs."""
    save_stack(folder, transformers.BertForSequenceClassification(bert(num_labels=1)), tokenizer())
    model = CrossEncoder(str(folder), device="cpu", activation_fn=activation)
    model.save(str(folder), create_model_card=False) if activation else None
    out = {"pairs": PAIRS, "scores": plain(model.predict(PAIRS))}
    out["cut"] = plain(CrossEncoder(str(folder), device="cpu", max_length=LIMIT).predict(PAIRS))
    return out


def classes(folder, kind):
    words = tokenizer()
    config = bert(num_labels=3, problem_type=kind)
    config.id2label = {0: "calm", 1: "sad", 2: "happy"}
    model = transformers.BertForSequenceClassification(config)
    save_stack(folder, model, words)
    pipe = transformers.pipeline("text-classification", model=model, tokenizer=words, top_k=None, device="cpu")
    rows = []
    for text in TEXTS:
        got = {one["label"]: one["score"] for one in pipe([text])[0]}
        rows.append([got[config.id2label[i]] for i in range(3)])
    return {"texts": TEXTS, "probabilities": rows}


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "tests/data/encoders")
    makers = {"sentences": sentences, "decoder": decoder, "reranker": lambda at: reranker(at, None),
              "reranker_raw": lambda at: reranker(at, torch.nn.Identity()), "classes": lambda at: classes(at, "single_label_classification"),
              "classes_apart": lambda at: classes(at, "multi_label_classification")}
    for seed, (name, make) in enumerate(makers.items()):
        torch.manual_seed(seed)
        shutil.rmtree(folder / name, ignore_errors=True)
        (folder / name).mkdir(parents=True)
        expected = make(folder / name)
        (folder / name / "expected.json").write_text(json.dumps(expected) + "\n")


if __name__ == "__main__":
    main()

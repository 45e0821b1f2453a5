#!/usr/bin/env python3
"""random_configs.py for encoders and classification heads: makes small models with random sizes and flags, and records what
transformers computes with them, in the format of tests/data/hf_goldens.

    python scripts/random_heads.py --out DIR [--families bert,llama] [--heads seqcls,tokcls,qa,base,mlm] [--count 20] [--seed 0]

Skips families without such a head in transformers. Needs torch, transformers, numpy and safetensors.
"""
import argparse
import json
import os
import random
import shutil

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig
from transformers.models.auto import modeling_auto

import random_configs

HEADS = {"seqcls": (modeling_auto.AutoModelForSequenceClassification, modeling_auto.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES),
         "tokcls": (modeling_auto.AutoModelForTokenClassification, modeling_auto.MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING_NAMES),
         "qa": (modeling_auto.AutoModelForQuestionAnswering, modeling_auto.MODEL_FOR_QUESTION_ANSWERING_MAPPING_NAMES),
         "mlm": (modeling_auto.AutoModelForMaskedLM, modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES),
         "base": (modeling_auto.AutoModel, modeling_auto.MODEL_MAPPING_NAMES)}
ENCODERS = ("bert", "roberta", "xlm-roberta", "camembert", "modernbert")


def encoder_config(family, r):
    heads, layers = r.choice([2, 3, 4]), r.choice([2, 3, 4])
    c = dict(hidden_size=heads * r.choice([6, 8, 12]), intermediate_size=r.choice([24, 40, 48]), num_hidden_layers=layers,
             num_attention_heads=heads, vocab_size=r.choice([96, 131]), max_position_embeddings=r.choice([40, 64]),
             pad_token_id=r.choice([0, 1, 2, 5]), tie_word_embeddings=r.random() < 0.6)
    act = r.choice(["gelu", "gelu", "relu", "silu", "gelu_new", "gelu_pytorch_tanh", "tanh"])
    if family == "modernbert":
        c.update(hidden_activation=act, norm_eps=r.choice([1e-5, 1e-3]), norm_bias=r.random() < 0.5, attention_bias=r.random() < 0.5,
                 local_attention=r.choice([1, 2, 4, 7, 8, 128]), mlp_bias=r.random() < 0.5, decoder_bias=r.random() < 0.6,
                 classifier_pooling=r.choice(["cls", "mean"]), classifier_bias=r.random() < 0.5,
                 classifier_activation=r.choice(["gelu", "relu", "silu"]), sparse_prediction=r.random() < 0.3,
                 sparse_pred_ignore_index=r.choice([-100, -100, 7]), cls_token_id=1, sep_token_id=2)
        if r.random() < 0.4:
            c["layer_types"] = random_configs.layer_kinds(r, layers)
        else:
            c["global_attn_every_n_layers"] = r.choice([1, 2, 3])
        if r.random() < 0.7:
            c["rope_parameters"] = {"full_attention": random_configs.rope(r, c["hidden_size"] // heads, c["max_position_embeddings"]),
                                    "sliding_attention": {"rope_type": "default", "rope_theta": r.choice([1e4, 5e4])}}
        return c
    c.update(hidden_act=act, hidden_dropout_prob=r.choice([0.0, 0.1]), attention_probs_dropout_prob=r.choice([0.0, 0.1]),
             type_vocab_size=r.choice([1, 2, 3]), layer_norm_eps=r.choice([1e-12, 1e-5, 1e-3]), is_decoder=r.random() < 0.15,
             classifier_dropout=r.choice([None, 0.2]))
    return c


def labels_of(head, r, config, ids, mask):
    """Inputs beside ids and mask that make a loss, and the configuration's problem_type."""
    rows, length = ids.shape
    if head == "mlm":
        labels = torch.where(torch.rand(ids.shape) < 0.4, torch.randint(3, config.vocab_size, ids.shape), -100)
        labels[0, 0] = 7
        return {"labels": labels.masked_fill(mask == 0, -100)}, None
    if head == "tokcls":
        labels = torch.randint(0, config.num_labels, ids.shape)
        return {"labels": labels.masked_fill((mask == 0) | (torch.rand(ids.shape) < 0.2), -100)}, None
    if head == "qa":
        place = lambda: torch.tensor([r.randrange(length), r.choice([r.randrange(length), length + 3])])
        return {"start_positions": place(), "end_positions": place()}, None
    if head == "base":
        return {}, None
    kinds = ["regression"] if config.num_labels == 1 else [None, "single_label_classification", "multi_label_classification", "regression"]
    kind = r.choice(kinds + ([None] if config.num_labels == 1 else []))
    n = config.num_labels
    if kind == "multi_label_classification" or (kind is None and n > 1 and r.random() < 0.3):
        return {"labels": torch.randint(0, 2, (rows, n)).float()}, kind
    if kind == "regression" or n == 1:
        return {"labels": torch.randn(rows, n) if n > 1 else torch.randn(rows)}, kind
    return {"labels": torch.randint(0, n, (rows,))}, kind


def one(family, head, r, folder):
    torch.manual_seed(r.randrange(1 << 30))
    merged = family not in ENCODERS and family not in random_configs.KNOWN  # files hold experts one by one, modules do not
    if merged:
        family, base = random_configs.base_of(family)
        given = {k: v for k, v in random_configs.mutated(base, r).items() if k not in ("id2label", "label2id")}
    else:
        given = encoder_config(family, r) if family in ENCODERS else random_configs.config_of(family, r)
    if head != "base":
        given["num_labels"] = 2 if head == "qa" else r.choice([1, 2, 3, 5]) if head == "seqcls" else r.choice([2, 3, 5])
    if family not in ENCODERS:
        given["pad_token_id"] = r.choice([0, 1, 2])
    if family not in ENCODERS and head == "tokcls" and r.random() < 0.3:
        given["token_classification_bias"] = False
    loader = HEADS[head][0]
    config = AutoConfig.for_model(family, **{"bos_token_id": 1, "eos_token_id": 2, **given}, attn_implementation="eager")
    pad = config.pad_token_id
    length = 24
    ids = torch.randint(3, config.vocab_size, (2, length)).masked_fill_(torch.rand(2, length) < 0.05, 3)
    ids[ids == pad] = 4 if pad != 4 else 6
    mask = torch.ones_like(ids)
    cut = r.randrange(3, 9)
    side = r.choice(["left", "right"])
    mask[1, :cut] = 0 if side == "left" else 1
    if side == "right":
        mask[1, length - cut:] = 0
    ids = ids.masked_fill(mask == 0, pad)
    if r.random() < 0.2:
        ids[0, -1] = pad  # padding that the mask shows
    inputs, problem = labels_of(head, r, config, ids, mask)
    if problem:
        config.problem_type = problem
    if family in ENCODERS and family != "modernbert" and r.random() < 0.6:
        inputs["token_type_ids"] = torch.randint(0, config.type_vocab_size, ids.shape)
    model = loader.from_config(config).eval()
    random_configs.randomise(model, family)
    os.makedirs(folder)
    model.save_pretrained(folder)
    path = os.path.join(folder, "config.json")
    written = json.load(open(path))
    style = "old" if r.random() < 0.4 and family != "modernbert" else "new"
    if style == "old":
        random_configs.old_style(written)
        json.dump(written, open(path, "w"), indent=2)
    model = loader.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).eval()
    if not torch.isfinite(next(model.parameters())).all():
        return False
    entering = []
    if head == "mlm" and not getattr(config, "sparse_prediction", False):
        model.get_output_embeddings().register_forward_pre_hook(lambda module, args: entering.append(args[0].detach()))
    out = model(input_ids=ids, attention_mask=mask, output_hidden_states=True, **inputs)
    expected = dict(input_ids=ids, attention_mask=mask, **inputs)
    info = dict(kind=head, inputs=list(expected), padding_side=side, config_style=style, given=given)
    if head == "base":
        expected["last_hidden_state"] = out.last_hidden_state.detach()
        if getattr(out, "pooler_output", None) is not None:
            expected["pooler_output"] = out.pooler_output.detach()
    else:
        expected["logits"] = (torch.stack([out.start_logits, out.end_logits], -1) if head == "qa" else out.logits).detach()
        if entering:  # what enters the output layer
            expected["last_hidden_state"] = entering[0]
        elif family != "modernbert":
            expected["last_hidden_state"] = out.hidden_states[-1].detach()
        expected["loss"] = out.loss.detach().reshape(1)
        out.loss.backward()
        tensors = load_file(os.path.join(folder, "model.safetensors"))
        info.update(loss=float(out.loss), grad_norms=random_configs.gradient_norms(model, tensors, folder),
                    grad_norm_total=float(torch.sqrt(sum(p.grad.double().pow(2).sum() for p in model.parameters() if p.grad is not None))))
    save_file({k: v.contiguous() for k, v in expected.items()}, os.path.join(folder, "expected.safetensors"))
    json.dump(info, open(os.path.join(folder, "expected.json"), "w"), indent=1)
    return True


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--out", required=True)
    a.add_argument("--families", default="bert,roberta,xlm-roberta,modernbert,llama,mistral,qwen2,qwen3,gpt2")
    a.add_argument("--heads", default="seqcls,tokcls,qa,base,mlm")
    a.add_argument("--count", type=int, default=20)
    a.add_argument("--seed", type=int, default=0)
    a = a.parse_args()
    torch.set_num_threads(1)
    for family in a.families.split(","):
        for head in a.heads.split(","):
            if family not in HEADS[head][1]:
                continue
            r, made = random.Random(f"{a.seed}/{family}/{head}"), 0
            while made < a.count:
                folder = os.path.join(a.out, f"{family}_{head}_{made:02d}")
                shutil.rmtree(folder, ignore_errors=True)
                try:
                    made += one(family, head, r, folder)
                except (RuntimeError, TypeError, ValueError) as error:  # sizes that transformers itself cannot compute with
                    print(family, head, "left out:", str(error).splitlines()[0], flush=True)
            print(family, head, made, flush=True)


if __name__ == "__main__":
    main()

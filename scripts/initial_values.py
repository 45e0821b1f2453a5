#!/usr/bin/env python3
"""Records mean, standard deviation and largest magnitude of transformers' initial values for each kind of parameter, for small
models of the most common families and of those with rules of their own: tests/data/initial_values.json.

    python scripts/initial_values.py tests/data/initial_values.json

Needs torch, transformers and safetensors.
"""
import collections
import json
import os
import re
import sys
import tempfile

import torch
import transformers
from safetensors.torch import load_file

LLAMA = dict(hidden_size=256, intermediate_size=384, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2, vocab_size=1024)
ENCODER = dict(hidden_size=256, intermediate_size=384, num_hidden_layers=4, num_attention_heads=4, vocab_size=1024)
MODELS = {
    "llama": ("LlamaForCausalLM", dict(LLAMA, attention_bias=True, mlp_bias=True)),
    "qwen3": ("Qwen3ForCausalLM", dict(LLAMA, head_dim=64, initializer_range=0.05)),
    "qwen2": ("Qwen2ForCausalLM", dict(LLAMA, tie_word_embeddings=False)),
    "gemma3_text": ("Gemma3ForCausalLM", dict(LLAMA, head_dim=64)),
    "gpt2": ("GPT2LMHeadModel", dict(n_embd=256, n_layer=4, n_head=4, vocab_size=1024, n_positions=128)),
    "mixtral": ("MixtralForCausalLM", dict(LLAMA, num_local_experts=4)),
    "gpt_oss": ("GptOssForCausalLM", dict(LLAMA, intermediate_size=256, head_dim=64, num_local_experts=4)),
    "bert": ("BertForMaskedLM", dict(ENCODER, max_position_embeddings=128)),
    "modernbert": ("ModernBertForSequenceClassification", dict(ENCODER, pad_token_id=0, bos_token_id=1, eos_token_id=2, cls_token_id=1,
                                                               sep_token_id=2, num_labels=8)),
}

# As their goldens: what remembers has rules of its own.
GOLDENS = os.path.join(os.path.dirname(__file__), "..", "tests", "data", "hf_goldens")
AS_GOLDENS = ("bamba", "falcon_mamba", "jamba", "kimi_linear", "lfm2", "mamba", "mamba2", "qwen2_moe", "qwen3_next", "rwkv", "xlstm", "zamba2")


def golden(family):
    config = json.load(open(os.path.join(GOLDENS, family, "config.json")), object_hook=lambda m: float(m["__float__"]) if "__float__" in m else m)
    return config["architectures"][0], {k: v for k, v in config.items() if k not in ("architectures", "model_type", "transformers_version")}


def kinds_of(family, architecture, sizes):
    model = getattr(transformers, architecture)(transformers.AutoConfig.for_model(family, **sizes))
    kinds = collections.defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        config = json.load(open(os.path.join(folder, "config.json")))
        for name, value in load_file(os.path.join(folder, "model.safetensors")).items():
            kinds[re.sub(r"(^|\.)\d+\.", r"\1N.", name)].append(value.double().flatten())
    whole = {kind: torch.cat(values) for kind, values in sorted(kinds.items())}
    return {"config": config, "kinds": {k: [v.mean().item(), v.std(unbiased=False).item(), v.abs().max().item()] for k, v in whole.items()}}


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    found = {family: kinds_of(family, *model) for family, model in (MODELS | {name: golden(name) for name in AS_GOLDENS}).items()}
    json.dump(found, open(sys.argv[1], "w"), indent=1)


if __name__ == "__main__":
    main()

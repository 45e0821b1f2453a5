#!/usr/bin/env python3
"""Makes tests/data/adapters: adapters that PEFT saved, with the logits that it computes with them, alone and merged.

Needs torch 2.13.0, transformers 5.23.0, peft 0.21.2, bitsandbytes 0.50.2 (PyPI):
  scripts/adapter_goldens.py tests/data/hf_goldens tests/data/adapters

Their models are the tiny ones of tests/data/hf_goldens. LoftQ asks for a GPU: here its tensors stay on the CPU.
"""
import json
import os
import sys
import warnings

warnings.filterwarnings("ignore")
os.environ["HF_HUB_OFFLINE"] = "1"
import bitsandbytes
import torch
import transformers
from peft import LoftQConfig, LoraConfig, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()
torch.set_num_threads(1)

QV = ["q_proj", "v_proj"]
ALL = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
# name: model, settings
CASES = {
    "pissa": ("llama", dict(init_lora_weights="pissa", r=2, lora_alpha=3, target_modules=ALL)),
    "pissa_dora": ("llama", dict(init_lora_weights="pissa", r=2, lora_alpha=4, use_dora=True, target_modules=QV)),
    "pissa_conv1d": ("gpt2", dict(init_lora_weights="pissa", r=2, lora_alpha=2, fan_in_fan_out=True, target_modules=["c_attn", "c_fc"])),
    "pissa_lm_head": ("llama", dict(init_lora_weights="pissa", r=2, lora_alpha=4, target_modules=["q_proj", "lm_head"])),
    "olora": ("llama", dict(init_lora_weights="olora", r=3, lora_alpha=2, use_rslora=True, target_modules=["q_proj", "v_proj", "down_proj"])),
    "loftq_4": ("llama", dict(init_lora_weights="loftq", loftq_config=LoftQConfig(loftq_bits=4, loftq_iter=2), r=2, lora_alpha=2, target_modules=QV)),
    "loftq_8": ("llama", dict(init_lora_weights="loftq", loftq_config=LoftQConfig(loftq_bits=8), r=2, lora_alpha=4, target_modules=QV)),
    "tokens": ("llama", dict(r=2, lora_alpha=4, target_modules=QV, trainable_token_indices=[3, 8, 64])),
    "tokens_tied": ("gemma2", dict(r=2, lora_alpha=4, target_modules=QV, trainable_token_indices=[1, 70])),
    "tokens_both": ("llama", dict(r=2, lora_alpha=4, target_modules=QV,
                                  trainable_token_indices={"embed_tokens": [3, 8], "lm_head": [8, 100]})),
    "new_tokens": ("llama", dict(r=2, lora_alpha=4, target_modules=QV, trainable_token_indices=[128, 129])),
    "new_tokens_tied": ("gemma2", dict(r=2, lora_alpha=4, target_modules=QV, trainable_token_indices=[128, 129])),
    "new_tokens_both": ("llama", dict(r=2, lora_alpha=4, target_modules=QV,
                                      trainable_token_indices={"embed_tokens": [128, 129], "lm_head": [128, 129]})),
    "new_tokens_whole": ("llama", dict(r=2, lora_alpha=4, target_modules=QV)),
    "experts": ("mixtral", dict(r=2, lora_alpha=4, target_modules=["q_proj"],
                                target_parameters=["mlp.experts.gate_up_proj", "mlp.experts.down_proj"])),
    "experts_alone": ("qwen3_moe", dict(r=2, lora_alpha=4, use_rslora=True, target_modules=[],
                                        rank_pattern={"experts.down_proj": 1}, target_parameters=["experts.down_proj"])),
    "experts_transposed": ("gpt_oss", dict(r=2, lora_alpha=4, target_modules=["q_proj"],
                                           target_parameters=["mlp.experts.gate_up_proj", "mlp.experts.down_proj"])),
    "router": ("mixtral", dict(r=2, lora_alpha=4, target_modules="all-linear")),
    "router_bias": ("gpt_oss", dict(r=2, lora_alpha=4, target_modules=["q_proj"], target_parameters=["router.weight"])),
    "parameters": ("llama", dict(r=2, lora_alpha=4, use_rslora=True, target_modules=["v_proj"], rank_pattern={"down_proj.weight": 3},
                                 target_parameters=["q_proj.weight", "mlp.down_proj.weight", "lm_head.weight"])),
    "dora_embedding": ("llama", dict(r=2, lora_alpha=4, use_dora=True, target_modules=["q_proj", "embed_tokens"])),
    "dora_lm_head": ("llama", dict(r=2, lora_alpha=4, use_dora=True, target_modules=["v_proj", "lm_head"])),
}


def without_gpu():
    """LoftQ moves tensors to "cuda"; they stay where they are."""
    for kind in (torch.Tensor, bitsandbytes.nn.Params4bit):
        def to(tensor, *args, plain=kind.to, **kwargs):
            args = tuple("cpu" if a == "cuda" else a for a in args)
            if kwargs.get("device") == "cuda":
                kwargs["device"] = "cpu"
            return plain(tensor, *args, **kwargs)

        kind.to = to
    whole = bitsandbytes.functional.dequantize_4bit

    def flat(codes, state):
        """Its CPU kernel decodes tensors whose rows blocks do not divide wrongly, but not flat ones."""
        shape, state.shape = state.shape, torch.Size([state.shape.numel()])
        return whole(codes, state).view(shape)

    bitsandbytes.functional.dequantize_4bit = flat


def logits(model, ids):
    with torch.no_grad():
        return model(input_ids=ids).logits[0].float().contiguous()


def main():
    models, out = sys.argv[1:3]
    chosen = sys.argv[3:] or list(CASES)
    without_gpu()
    os.makedirs(out, exist_ok=True)
    expected = os.path.join(out, "logits.safetensors")
    tensors = load_file(expected) if os.path.exists(expected) else {}
    for name in chosen:
        family, settings = CASES[name]
        folder = os.path.join(models, family)
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
        ids = (torch.arange(6) * 35 + 3).remainder(128).view(1, 6)
        plain = logits(model, ids)
        torch.manual_seed(11)
        if name.startswith("new_tokens"):
            model.resize_token_embeddings(130)
            ids[0, 4:] = torch.tensor([128, 129])
            plain = logits(model, ids)
        adapted = get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", **settings)).eval()
        if settings.get("init_lora_weights"):  # the start: the model as it was, but what loftq_config rounds
            tensors[name + ".start"] = logits(adapted, ids)
        with torch.no_grad():
            for parameter in adapted.parameters():
                if parameter.requires_grad:
                    parameter.add_(torch.randn_like(parameter) * 0.05)
        adapted.save_pretrained(os.path.join(out, name))
        readme = os.path.join(out, name, "README.md")
        if os.path.exists(readme):
            os.remove(readme)
        config = json.load(open(os.path.join(out, name, "adapter_config.json")))
        config["base_model_name_or_path"] = None
        json.dump(config, open(os.path.join(out, name, "adapter_config.json"), "w"), indent=1, sort_keys=True)
        tensors[name] = logits(adapted, ids)
        try:
            tensors[name + ".merged"] = logits(adapted.merge_and_unload(), ids)
        except Exception as error:
            print(name, "cannot be merged by PEFT:", error)
        print(name, family, sorted(load_file(os.path.join(out, name, "adapter_model.safetensors")).items(), key=lambda x: x[0])[0][0],
              "moved", (tensors[name] - plain).abs().max().item(), "merged",
              (tensors.get(name + ".merged", tensors[name]) - tensors[name]).abs().max().item())
    save_file(tensors, expected)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Compares the error of an adapted model's bf16 logits here and in PEFT: the root mean square of the differences to the fp32 result,
relative to that of the logits. A llama of random weights with LoRA on all linear layers, for several ranks.

Needs torch 2.13, transformers 5.23.0, peft 0.21.2 (PyPI):
  scripts/bf16_adapters.py build/bin/easydel
"""
import os
import subprocess
import sys
import tempfile
import warnings

warnings.filterwarnings("ignore")
os.environ["HF_HUB_OFFLINE"] = "1"
import torch
import transformers
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, LlamaConfig

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()


def logits(base, adapter, ids, dtype):
    model = AutoModelForCausalLM.from_pretrained(base, dtype=dtype, attn_implementation="eager")
    with torch.no_grad():
        return PeftModel.from_pretrained(model, adapter).eval()(input_ids=ids).logits.float()


def main():
    program = os.path.abspath(sys.argv[1])
    torch.set_num_threads(1)
    print("| r | easydel | PEFT | ratio |\n|---|---|---|---|")
    for rank in (2, 8, 16, 32, 64):
        with tempfile.TemporaryDirectory() as work:
            base, adapter, out = (os.path.join(work, name) for name in ("base", "adapter", "out.safetensors"))
            torch.manual_seed(rank)
            config = LlamaConfig(vocab_size=512, hidden_size=256, intermediate_size=512, num_hidden_layers=4, num_attention_heads=8,
                                 num_key_value_heads=4, max_position_embeddings=128, initializer_range=0.06)
            model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).to(torch.bfloat16)
            model.save_pretrained(base)
            peft = get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", r=rank, lora_alpha=2 * rank, target_modules="all-linear"))
            with torch.no_grad():
                for name, parameter in peft.named_parameters():
                    if "lora_B" in name:
                        parameter.normal_(std=0.02)
            peft.save_pretrained(adapter)
            ids = torch.randint(3, 512, (4, 32))
            save_file({"input_ids": ids, "attention_mask": torch.ones_like(ids)}, os.path.join(work, "in.safetensors"))
            subprocess.run([program, "-q", "probe", "logits", base, "--adapter", adapter, "--inputs", os.path.join(work, "in.safetensors"),
                            "--output", out, "--dtype", "bf16"], check=True, capture_output=True, text=True)
            truth = logits(base, adapter, ids, torch.float32)
            norm = truth.pow(2).mean().sqrt()
            far = [((one - truth).pow(2).mean().sqrt() / norm).item()
                   for one in (load_file(out)["logits"].float(), logits(base, adapter, ids, torch.bfloat16))]
            print(f"| {rank} | {far[0]:.5f} | {far[1]:.5f} | {far[0] / far[1]:.2f} |", flush=True)


if __name__ == "__main__":
    main()

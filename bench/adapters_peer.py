"""The peer of bench/adapters_bench.py: TRL's trainer with a LoRA adapter of PEFT, over weights in bf16 or in bitsandbytes' nf4.

  adapters_peer.py SPEC   SPEC: JSON with model, data, rows, length, nf4, steps, threads

It prints "@step LOSS TOKENS" at the end of each step.
"""

import json
import sys
import tempfile

from methods_trl import Steps, arguments, counted  # first: it sets the environment

import datasets
import peft
import torch
import transformers
import trl


def main(spec):
    torch.set_num_threads(spec["threads"])
    transformers.set_seed(0)
    tokenizer = transformers.AutoTokenizer.from_pretrained(spec["model"])
    tokenizer.pad_token = tokenizer.unk_token
    more = {}
    if spec["nf4"]:
        more["quantization_config"] = transformers.BitsAndBytesConfig(
            load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.bfloat16
        )
    model = transformers.AutoModelForCausalLM.from_pretrained(spec["model"], dtype=torch.bfloat16, **more)
    rows = datasets.load_dataset("json", data_files=spec["data"], split="train", cache_dir=tempfile.mkdtemp())
    settings = trl.SFTConfig(max_length=spec["length"], **arguments(spec, learning_rate=1e-4, num_train_epochs=100))
    adapter = peft.LoraConfig(task_type="CAUSAL_LM", r=16, lora_alpha=32, target_modules="all-linear")
    steps = Steps()
    trainer = trl.SFTTrainer(
        model, args=settings, peft_config=adapter, processing_class=tokenizer, train_dataset=rows, callbacks=[steps]
    )
    counted(trainer, steps)
    trainer.train()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))

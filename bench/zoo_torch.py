"""The other side of zoo_bench: `zoo_torch.py THREADS` reads lines "training|prefill DTYPE ROWS LENGTH TIMES FOLDER" and
answers each with the seconds of TIMES steps of transformers' model of that config.json. DTYPE is fp32, bf16 (weights and
the optimizer's state too), or autocast (computation in bf16, weights in fp32)."""

import os
import sys
import time

os.environ["HF_HUB_OFFLINE"] = "1"
import torch
import transformers

transformers.logging.set_verbosity_error()


def made(folder, dtype):
    torch.manual_seed(0)
    config = transformers.AutoConfig.from_pretrained(folder)
    number = torch.bfloat16 if dtype == "bf16" else torch.float32
    return transformers.AutoModelForCausalLM.from_config(config, dtype=number)


def step_of(kind, folder, dtype, rows, length):
    model = made(folder, dtype)
    ids = torch.randint(3, 512, (rows, length))
    if kind == "prefill":
        model.eval()

        def read():
            with torch.no_grad():
                model(input_ids=ids, use_cache=True, logits_to_keep=1)

        return read
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def train():
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype == "autocast"):
            loss = model(input_ids=ids, labels=ids, use_cache=False).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    return train


def main():
    torch.set_num_threads(int(sys.argv[1]))
    steps, what = {}, None
    for line in sys.stdin:
        kind, dtype, rows, length, times, folder = line.rstrip("\n").split(" ", 5)
        if what != (kind, folder):
            steps.clear()
            what = kind, folder
        if line not in steps:
            steps[line] = step_of(kind, folder, dtype, int(rows), int(length))
        step = steps[line]
        step()
        seconds = []
        for _ in range(int(times)):
            begin = time.perf_counter()
            step()
            seconds.append(time.perf_counter() - begin)
        print(*seconds, flush=True)


if __name__ == "__main__":
    main()

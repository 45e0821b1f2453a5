"""Measures transformers for zoo_bench: `zoo_torch.py THREADS` reads lines "training|prefill DTYPE ROWS LENGTH TIMES FOLDER" and
answers each with the seconds of TIMES steps of transformers' model of that config.json. DTYPE is fp32, bf16 (weights and
the optimizer's state too), masters (weights in bf16, copies of them and the optimizer's state in fp32), or autocast
(computation in bf16, weights in fp32)."""

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
    number = torch.bfloat16 if dtype in ("bf16", "masters") else torch.float32
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
    weights = list(model.parameters())
    learned = [w.detach().float() for w in weights] if dtype == "masters" else weights
    optimizer = torch.optim.AdamW(learned, lr=1e-4, fused=True)

    def train():
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype == "autocast"):
            loss = model(input_ids=ids, labels=ids, use_cache=False).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        if dtype == "masters":
            for master, weight in zip(learned, weights):
                master.grad, weight.grad = weight.grad.float(), None
        optimizer.step()
        optimizer.zero_grad()
        if dtype == "masters":
            torch._foreach_copy_([w.detach() for w in weights], learned)

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

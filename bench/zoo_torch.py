"""The other side of zoo_bench: `zoo_torch.py THREADS` reads lines "training|prefill DTYPE ROWS LENGTH TIMES FOLDER" and
answers each with the seconds of TIMES steps of transformers' model of that config.json."""

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
    return transformers.AutoModelForCausalLM.from_config(config, dtype=dtype)


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
        model(input_ids=ids, labels=ids, use_cache=False).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    return train


def main():
    torch.set_num_threads(int(sys.argv[1]))
    known, step = None, None
    for line in sys.stdin:
        kind, dtype, rows, length, times, folder = line.rstrip("\n").split(" ", 5)
        if known != line:
            step = None  # one model at a time
            step = step_of(kind, folder, torch.bfloat16 if dtype == "bf16" else torch.float32, int(rows), int(length))
            known = line
        step()
        seconds = []
        for _ in range(int(times)):
            begin = time.perf_counter()
            step()
            seconds.append(time.perf_counter() - begin)
        print(*seconds, flush=True)


if __name__ == "__main__":
    main()

"""Another engine with continuous batching, for serve_engine_bench: serve_engine_peer.py openvino FILE.gguf | generate_batch FOLDER

Answers each line of standard input with the seconds that it took:
  load N P F   N prompts of P tokens at once, F new tokens each
  first P      one prompt of P tokens to its first token
openvino needs openvino-genai, generate_batch needs torch and transformers. Threads: OMP_NUM_THREADS, else 2.
"""

import os
import random
import sys
import time

THREADS = int(os.environ.get("OMP_NUM_THREADS", "2"))


def openvino(model):
    import numpy
    import openvino
    import openvino_genai

    scheduler = openvino_genai.SchedulerConfig()
    scheduler.max_num_seqs, scheduler.cache_size, scheduler.max_num_batched_tokens = 64, 2, 2048
    pipeline = openvino_genai.ContinuousBatchingPipeline(model, scheduler, "CPU", {"INFERENCE_NUM_THREADS": THREADS})

    def answer(prompts, fresh):
        config = openvino_genai.GenerationConfig()
        config.max_new_tokens = config.min_new_tokens = fresh
        config.ignore_eos, config.do_sample = True, False
        tensors = [openvino.Tensor(numpy.array([prompt], dtype=numpy.int64)) for prompt in prompts]
        out = pipeline.generate(tensors, [config] * len(prompts))
        assert all(len(one.m_generation_ids[0]) == fresh for one in out)

    return answer


def generate_batch(model):
    import torch
    from transformers import AutoModelForCausalLM, ContinuousBatchingConfig, GenerationConfig

    torch.set_num_threads(THREADS)
    loaded = AutoModelForCausalLM.from_pretrained(model, dtype=torch.bfloat16, attn_implementation="sdpa").eval()
    # Without a size the cache takes the machine's memory, and clearing it most of a minute of every call.
    cache = ContinuousBatchingConfig(page_size=128, num_blocks=256, max_batch_tokens=2048)

    def answer(prompts, fresh):
        # No token ends an answer.
        config = GenerationConfig(max_new_tokens=fresh, eos_token_id=-1, pad_token_id=0, do_sample=False)
        out = loaded.generate_batch(
            inputs=prompts, generation_config=config, continuous_batching_config=cache, progress_bar=False, warmup=False
        )
        assert len(out) == len(prompts) and all(len(one.generated_tokens) == fresh for one in out.values())

    return answer


def main():
    answer = {"openvino": openvino, "generate_batch": generate_batch}[sys.argv[1]](sys.argv[2])
    lines, sys.stdout = sys.stdout, sys.stderr  # what libraries print is no answer
    draw = random.Random(0)
    for line in sys.stdin:
        kind, *numbers = line.split()
        count, length, fresh = map(int, numbers if kind == "load" else [1, *numbers, 1])
        prompts = [[draw.randrange(500, 30000) for _ in range(length)] for _ in range(count)]
        begin = time.perf_counter()
        answer(prompts, fresh)
        print(time.perf_counter() - begin, file=lines, flush=True)


if __name__ == "__main__":
    main()

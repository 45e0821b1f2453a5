"""Records what lm-evaluation-harness' own back end answers about token ids of small models of several families:
python record_models.py TOKENIZER OUTPUT.jsonl

Needs lm_eval 0.4.13 with transformers. Each line is {"model": a folder of tests/data/hf_goldens, "line": ..., "answer": ...}, as
record.py has them. The tokenizer is only there because the back end wants one.
"""

import json
import pathlib
import random
import sys

from lm_eval.models.huggingface import HFLM

MODELS = ["llama", "qwen3", "gemma3_text", "gpt2", "mixtral", "mamba2", "cohere2", "deepseek_v3", "gpt_oss", "jamba", "qwen3_next", "rwkv"]
FOLDER = pathlib.Path(__file__).parents[1] / "hf_goldens"


def requests(vocabulary):
    """Questions with their choices, of which some begin alike, and one that is longer than the model's context."""
    draw = random.Random(0)

    def ids(count):
        return [draw.randrange(3, vocabulary) for _ in range(count)]

    examples = ids(18)
    for _ in range(3):
        question = examples + ids(9)
        for length in (1, 2, 5, 9):
            yield question, ids(length)
    yield ids(1), ids(12)
    yield ids(30), ids(30)
    yield ids(100), ids(7)


def main():
    tokenizer, output = sys.argv[1:]
    with open(output, "w", encoding="utf-8") as file:
        for name in MODELS:
            vocabulary = json.loads((FOLDER / name / "config.json").read_text())["vocab_size"]
            model = HFLM(pretrained=str(FOLDER / name), tokenizer=tokenizer, dtype="float32", device="cpu", batch_size=1,
                         max_length=64, logits_cache=False)
            asked = list(requests(vocabulary))
            answers = model._loglikelihood_tokens([(("", ""), *one) for one in asked], disable_tqdm=True)
            for (context, continuation), (logprob, greedy) in zip(asked, answers):
                line = {"context_ids": context, "continuation_ids": continuation}
                record = {"model": name, "line": line, "answer": {"logprob": logprob, "is_greedy": bool(greedy)}}
                file.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()

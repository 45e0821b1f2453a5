"""Records what lm-evaluation-harness' own back end answers: python record.py MODEL OUTPUT.jsonl

Needs lm_eval 0.4.13 with transformers. Each line of the output is {"line": ..., "answer": ...}: a line as `easydel score`
reads it, and what the back end `hf` in fp32 on a CPU answers to the same request. With max_length=64 and prefix_token_id=2
a line says so itself.
"""

import json
import sys

from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM

STORIES = [
    "Once upon a time, there was a little girl named Lily. She loved to play outside in the park.",
    "Tom and Sam were friends. One day they found a big red ball under a tree.",
    "The dog was sad. He wanted to go home, but it was dark\nand cold",
    "Mia said: \"I'm 7 years old\"; caf\u00e9 \u2603 \U0001f600.",
]


def pairs():
    for story in STORIES:
        words = story.split(" ")
        for cut in range(0, len(words), 3):
            context, rest = " ".join(words[:cut]), " ".join(words[cut : cut + 4])
            yield context, (" " if context else "") + rest
            yield context + " ", rest  # the blank moves to the continuation
            yield context + " \n\u2003", "x" + rest
            yield "<s>" + context, " and"  # BOS is not added twice
        yield story, " Yes"
        yield story, " No"
        yield "", "<s>" + story
    yield STORIES[0] * 12, STORIES[1]  # longer than 64 and than 512 tokens
    yield STORIES[0] * 40, " The end."


def texts():
    yield from STORIES
    yield ""
    yield " "
    yield "".join(STORIES) * 4
    yield STORIES[0] * 30


def prompts():
    for story in STORIES:
        for until, limit in (([], 20), (["."], 30), (["\n", "end", " the"], 24), ("a", 9)):
            yield story[: len(story) // 2], {"until": until, "max_gen_toks": limit}
    yield STORIES[0] * 30, {"until": ["."], "max_gen_toks": 40}


def instance(kind, arguments):
    return Instance(request_type=kind, doc={}, arguments=arguments, idx=0)


def record(model, extra):
    lines = []
    asked = list(pairs())
    for (context, continuation), (logprob, greedy) in zip(
        asked, model.loglikelihood([instance("loglikelihood", one) for one in asked], disable_tqdm=True)
    ):
        line = {"context": context, "continuation": continuation}
        lines.append({"line": line, **extra, "answer": {"logprob": logprob, "is_greedy": greedy}})
    asked = [(text,) for text in texts()]
    for (text,), logprob in zip(
        asked, model.loglikelihood_rolling([instance("loglikelihood_rolling", one) for one in asked], disable_tqdm=True)
    ):
        lines.append({"line": {"text": text}, **extra, "answer": {"logprob": logprob}})
    asked = list(prompts())
    for (context, options), text in zip(
        asked, model.generate_until([instance("generate_until", one) for one in asked], disable_tqdm=True)
    ):
        lines.append({"line": {"context": context, **options}, **extra, "answer": {"text": text}})
    return lines


def main():
    folder, output = sys.argv[1:]
    # Its cache of logits mixes up requests whose tokens are equal and whose contexts are not.
    settings = {"pretrained": folder, "dtype": "float32", "device": "cpu", "batch_size": 1, "logits_cache": False}
    lines = record(HFLM(**settings), {})
    lines += record(HFLM(**settings, max_length=64, prefix_token_id=2), {"max_length": 64, "prefix_token_id": 2})
    with open(output, "w", encoding="utf-8") as file:
        for line in lines:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()

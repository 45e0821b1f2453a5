#!/usr/bin/env python3
"""Sends random requests to a running server (easydel serve): each alone, streamed, and beside others from many clients.

Text, log-probabilities, finish reasons and usage have to be equal in all three; ids, times and counts of cached and speculated tokens
are left out."""
import argparse
import concurrent.futures
import json
import random
import sys
import urllib.error
import urllib.request

WORDS = 'Once upon a time there was a little girl named Lily big red ball said "hello" café 🐶'.split()
VOLATILE = ("tokens_per_second", "processing_time", "prompt_tokens_details")


def post(url, path, body):
    data = json.dumps(body).encode()
    request = urllib.request.Request(url + path, data, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=300) as answer:
            return answer.read().decode()
    except urllib.error.HTTPError as error:
        raise SystemExit(f"{error.code} for {path} {json.dumps(body)}: {error.read().decode()}") from error


def lists_of(logprobs):
    return {name: value for name, value in (logprobs or {}).items() if isinstance(value, list) and value} or None


def without_volatile(usage):
    out = {name: value for name, value in usage.items() if name not in VOLATILE}
    if "completion_tokens_details" in out:  # how many tokens are speculated depends on what else runs
        out["completion_tokens_details"] = {"reasoning_tokens": out["completion_tokens_details"]["reasoning_tokens"]}
    return out


def whole(url, path, body):
    answer = json.loads(post(url, path, body))
    choices = []
    for choice in answer["choices"]:
        message = choice.get("message", {})
        text = choice["text"] if "text" in choice else message["content"] or ""
        reasoning = message.get("reasoning_content") or ""
        choices.append((choice["index"], text, reasoning, lists_of(choice["logprobs"]), choice["finish_reason"]))
    return choices, without_volatile(answer["usage"])


def streamed(url, path, body):
    text = post(url, path, dict(body, stream=True, stream_options={"include_usage": True}))
    events = [event for event in text.split("\n\n") if event.startswith("data: ")]
    if events[-1] != "data: [DONE]":
        raise SystemExit(f"a stream does not end with [DONE]: {path} {json.dumps(body)}")
    sums, usage = {}, None
    for event in map(lambda event: json.loads(event[6:]), events[:-1]):
        usage = event.get("usage") or usage
        for choice in event["choices"]:
            into = sums.setdefault(choice["index"], {"text": "", "reasoning": "", "logprobs": {}, "reason": None})
            delta = choice.get("delta", {})
            into["text"] += choice.get("text") or delta.get("content") or ""
            into["reasoning"] += delta.get("reasoning_content") or ""
            for name, value in (choice["logprobs"] or {}).items():
                if isinstance(value, list):
                    into["logprobs"].setdefault(name, []).extend(value)
            into["reason"] = choice["finish_reason"] or into["reason"]
    choices = [
        (index, one["text"], one["reasoning"], lists_of(one["logprobs"]), one["reason"])
        for index, one in sorted(sums.items())
    ]
    return choices, without_volatile(usage)


def random_request(draw):
    body = {"seed": draw.randint(0, 999), "temperature": draw.choice([0, 0.5, 1, 1.5])}
    maybe = {
        "max_tokens": (0.8, lambda: draw.randint(1, 60)),
        "stop": (0.4, lambda: draw.sample([".", " the", "a b", "ily", "\n", "was", ' "'], draw.randint(1, 3))),
        "include_stop_str_in_output": (0.2, lambda: True),
        "frequency_penalty": (0.2, lambda: draw.uniform(-1, 2)),
        "top_p": (0.2, lambda: draw.uniform(0.1, 1)),
        "top_k": (0.2, lambda: draw.randint(1, 50)),
        "skip_special_tokens": (0.2, lambda: False),
        "guided_regex": (0.1, lambda: "[a-z ]{1,20}"),
        "ignore_eos": (0.1, lambda: True),
        "logit_bias": (0.1, lambda: {str(draw.randint(3, 500)): draw.uniform(-50, 50) for _ in range(3)}),
    }
    if body["temperature"] > 0:
        maybe["n"] = (0.4, lambda: draw.randint(1, 4))
    for name, (chance, value) in maybe.items():
        if draw.random() < chance:
            body[name] = value()
    prompt = " ".join(draw.choices(WORDS, k=draw.randint(1, 30)))
    if draw.random() < 0.5:
        body["messages"] = [{"role": "user", "content": prompt}]
        if draw.random() < 0.5:
            body.update(logprobs=True, top_logprobs=draw.randint(0, 5))
        return "/v1/chat/completions", body
    ids = [draw.randint(3, 500) for _ in range(draw.randint(1, 40))]
    body["prompt"] = draw.choice([prompt, [prompt, "The end"], ids])
    if draw.random() < 0.5:
        body["logprobs"] = draw.randint(0, 5)
    body["echo"] = draw.random() < 0.5
    return "/v1/completions", body


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url", help="http://127.0.0.1:11556")
    parser.add_argument("--requests", type=int, default=300)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    draw = random.Random(options.seed)
    requests = [random_request(draw) for _ in range(options.requests)]
    alone = [whole(options.url, *request) for request in requests]
    with concurrent.futures.ThreadPoolExecutor(options.clients) as pool:
        beside = list(pool.map(lambda request: whole(options.url, *request), requests))
        streams = list(pool.map(lambda request: streamed(options.url, *request), requests))
    different = [i for i in range(len(requests)) if not alone[i] == beside[i] == streams[i]]
    for i in different[:3]:
        print(*requests[i], "alone", alone[i], "beside", beside[i], "streamed", streams[i], sep="\n  ")
    print(f"{len(requests)} requests, {len(different)} different")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())

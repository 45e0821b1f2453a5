#!/usr/bin/env python3
"""Asks a running server (easydel serve) for calls of the tools in files of the Berkeley Function-Calling Leaderboard.

Each conversation is sent with tool_choice required, whole and streamed, with one seed. Both answers have to be the same calls; each
call has to name a tool of the request, with arguments that its schema allows. Needs the package jsonschema."""
import argparse
import concurrent.futures
import json
import sys
import urllib.error
import urllib.request
from pathlib import Path

import jsonschema

TYPES = {"dict": "object", "float": "number", "tuple": "array", "String": "string", "int": "integer"}


def as_schema(value):
    """The leaderboard's words for types as JSON Schema has them."""
    if isinstance(value, list):
        return [as_schema(item) for item in value]
    if not isinstance(value, dict):
        return value
    out = {name: as_schema(item) for name, item in value.items()}
    if isinstance(out.get("type"), str):
        if out["type"] == "any":
            del out["type"]
        else:
            out["type"] = TYPES.get(out["type"], out["type"])
    # The server takes part in nothing that these words describe.
    return {name: item for name, item in out.items() if name not in ("optional", "default", "example")}


def schema_of(function):
    parameters = function["parameters"]
    # A property may be called like a keyword of schemas.
    properties = {name: as_schema(item) for name, item in parameters.get("properties", {}).items()}
    return {
        "type": "object",
        "properties": properties,
        "required": parameters.get("required", []),
        "additionalProperties": False,  # a small model would invent members without end
    }


def bias_of(url, bias):
    """A small model would go on within its first text or between two values: what ends them is made likelier."""
    out = {}
    for text, sign in (('"', 1), ("}", 1), ("]", 1), (",", 0.5), ("<", 1), ("\n", -1), ("\t", -1), ("  ", -1)):
        request = urllib.request.Request(
            url + "/tokenize", json.dumps({"prompt": "a" + text}).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            out[str(json.loads(answer.read())["tokens"][-1])] = sign * bias
    return out


def request_of(row, seed, options, bias):
    tools = [
        {"type": "function", "function": {"name": f["name"], "description": f["description"], "parameters": schema_of(f)}}
        for f in row["function"]
    ]
    return {
        "messages": row["question"][0],
        "tools": tools,
        "tool_choice": "required",
        "seed": seed,
        "temperature": options.temperature,
        "max_tokens": options.max_tokens,
        "parallel_tool_calls": bool(seed % 4 == 0),  # a small model hardly ends a list of calls
        "logit_bias": bias,
    }


def post(url, body):
    request = urllib.request.Request(
        url + "/v1/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=600) as answer:
        return answer.read().decode()


def whole(url, body):
    choice = json.loads(post(url, body))["choices"][0]
    calls = choice["message"].get("tool_calls") or []
    return [(call["function"]["name"], call["function"]["arguments"]) for call in calls], choice["finish_reason"]


def streamed(url, body):
    calls, reason = [], None
    for event in post(url, dict(body, stream=True)).split("\n\n"):
        if not event.startswith("data: {"):
            continue
        for choice in json.loads(event[6:])["choices"]:
            reason = choice["finish_reason"] or reason
            for delta in choice["delta"].get("tool_calls") or []:
                if delta["index"] == len(calls):
                    calls.append([delta["function"]["name"], ""])
                calls[delta["index"]][1] += delta["function"].get("arguments") or ""
    return [tuple(call) for call in calls], reason


def problem_of(body, calls, reason):
    """What is wrong with an answer; an empty text: nothing. A cut answer may end within its last call."""
    schemas = {tool["function"]["name"]: tool["function"]["parameters"] for tool in body["tools"]}
    if reason == "tool_calls" and not calls:
        return "no call"
    if reason not in ("tool_calls", "length"):
        return f"finish_reason {reason}"
    for place, (name, arguments) in enumerate(calls):
        if reason == "length" and place == len(calls) - 1:
            continue
        if name not in schemas:
            return f"calls {name}, which is no tool"
        try:
            jsonschema.validate(json.loads(arguments), schemas[name])
        except (ValueError, jsonschema.ValidationError) as error:
            return f"arguments of {name}: {str(error).splitlines()[0]}: {arguments}"
    return ""


def ask(url, body):
    try:
        answer = whole(url, body)
        problem = problem_of(body, *answer)
        if not problem and streamed(url, body) != answer:
            problem = "the streamed answer is another one"
        return answer[1], problem
    except urllib.error.HTTPError as error:
        return "refused", error.read().decode()[:300]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", help="http://127.0.0.1:11556")
    parser.add_argument("files", nargs="+", type=Path, help="BFCL_v4_*.json")
    parser.add_argument("--every", type=int, default=1, help="take one of so many conversations")
    parser.add_argument("--first", type=int, default=0, help="how many conversations to leave out before that")
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--temperature", type=float, default=1.0)
    parser.add_argument("--max-tokens", type=int, default=600)
    parser.add_argument("--closing-bias", type=float, default=10)
    options = parser.parse_args()
    rows = [json.loads(line) for file in options.files for line in file.read_text().splitlines() if line.strip()]
    rows = rows[options.first :: options.every]
    bias = bias_of(options.url, options.closing_bias)
    bodies = [request_of(row, seed, options, bias) for seed, row in enumerate(rows)]
    ends, wrong = {}, 0
    with concurrent.futures.ThreadPoolExecutor(options.clients) as pool:
        for row, (end, problem) in zip(rows, pool.map(lambda body: ask(options.url, body), bodies)):
            ends[end] = ends.get(end, 0) + 1
            if problem:
                wrong += 1
                print(f"{row['id']}: {problem}", flush=True)
    print(f"{len(rows)} conversations, each whole and streamed: {ends}; {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

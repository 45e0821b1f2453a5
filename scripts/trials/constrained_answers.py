#!/usr/bin/env python3
"""Asks an engine (easydel probe engine) for answers that follow JSON schemas, with a temperature at which the model writes nonsense.

Each answer that was not cut by its length has to be JSON that the schema accepts. The engine guesses tokens and has few pages, so that
answers are preempted; both have to happen. Needs the package jsonschema."""
import argparse
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile

import jsonschema

ROOT = pathlib.Path(__file__).resolve().parents[2]


def schema_of(random, depth=2):
    kinds = ["integer", "number", "string", "enum", "null or boolean", "pattern"] + ["array", "object"] * (depth > 0)
    kind = random.choice(kinds)
    if kind == "integer":
        return {"type": "integer", "minimum": random.randint(-99, 0), "maximum": random.randint(1, 9999)}
    if kind == "number":
        return {"type": "number", "exclusiveMinimum": -10, "maximum": 1000}
    if kind == "string":
        return {"type": "string", "minLength": random.randint(0, 2), "maxLength": random.randint(2, 12)}
    if kind == "enum":
        return {"enum": ["a", "two words", 3, None, {"k": [1]}]}
    if kind == "null or boolean":
        return {"type": ["null", "boolean"]}
    if kind == "pattern":
        return {"type": "string", "pattern": "^[A-Z][a-z]{1,8}$"}
    if kind == "array":
        return {"type": "array", "items": schema_of(random, depth - 1), "minItems": 1, "maxItems": 3}
    names = random.sample(["name", "age", "x y", "list", "é"], random.randint(1, 4))
    return {"type": "object", "properties": {name: schema_of(random, depth - 1) for name in names},
            "required": names[:random.randint(0, len(names))], "additionalProperties": False}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "build" / "bin" / "easydel"))
    parser.add_argument("--model", default=str(ROOT / "tests" / "data" / "models" / "stories260K-hf"))
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--temperature", type=float, default=1.5)
    asked = parser.parse_args()
    chance = random.Random(asked.seed)
    schemas = [schema_of(chance) for _ in range(max(1, asked.count // 20))]
    lines = [{"prompt": "As JSON: ", "arrive": number // 4, "sampling": {
        "temperature": asked.temperature, "seed": number, "max_tokens": 250,
        "guided_decoding": {"json": schemas[number % len(schemas)]}}} for number in range(asked.count)]
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
        file.flush()
        ran = subprocess.run([asked.program, "probe", "engine", asked.model, "--jsonl", file.name, "--pages", "40",
                              "--set", "esurge.page_size=16", "--set", "esurge.num_speculative_tokens=4", "--set", "esurge.silent_mode=true"],
                             capture_output=True, text=True)
    if ran.returncode != 0:
        sys.exit(ran.stderr)
    answers = [json.loads(line) for line in ran.stdout.splitlines()]
    assert len(answers) == len(lines)
    valid = cut = 0
    for line, answer in zip(lines, answers):
        schema = line["sampling"]["guided_decoding"]["json"]
        if "error" in answer:
            sys.exit(f"{schema}: {answer['error']}")
        output = answer["outputs"][0]
        if output["finish_reason"] == "length":
            cut += 1
            continue
        try:
            jsonschema.validate(json.loads(output["text"]), schema)
            valid += 1
        except (ValueError, jsonschema.ValidationError) as error:
            sys.exit(f"WRONG: {schema}\n{output['text']}\n{error}")
    counted = {name: int(found[1]) if (found := re.search(rf'"esurge_{name}_total": (\d+)', ran.stderr)) else 0
               for name in ("preemptions", "draft_tokens", "accepted_draft_tokens")}
    print(f"{valid} answers are valid, {cut} were cut, none is wrong; {counted}")
    if valid < asked.count * 0.9 or not all(counted.values()):
        sys.exit("that is no trial")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Records values that hypothesis-jsonschema draws for schemas, for tests/text/constrain_instances_test.cpp:

    python -m venv V; V/bin/pip install jsonschema hypothesis==6.112.0 hypothesis-jsonschema
    V/bin/python scripts/record_constrained_instances.py tests/data/constrain/instances.jsonl.gz

Each line is {"schema": text, "valid": [text, ...], "invalid": [text, ...]}: values as JSON with the properties in the
schema's order, judged by the package jsonschema. Left out are values of which only some readers say that they are whole
numbers (1.0). The draws are derandomized, so a second run gives the same file for the
same versions of the packages.
"""
import gzip
import json
import sys
import warnings

from hypothesis import HealthCheck, Phase, given, settings, strategies
from hypothesis_jsonschema import from_schema
from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.validators import extend

SCHEMAS = [
    {"type": "string"},
    {"type": "string", "minLength": 2, "maxLength": 5},
    {"type": "string", "pattern": "^[a-c]{1,3}-[0-9]+$"},
    {"type": "string", "pattern": "[xyz]"},
    {"type": "string", "format": "date"},
    {"type": "string", "format": "ipv4"},
    {"type": "string", "format": "ipv6"},
    {"type": "string", "format": "email"},
    {"type": "integer"},
    {"type": "integer", "minimum": -17, "exclusiveMaximum": 230},
    {"type": "integer", "multipleOf": 7, "minimum": 0, "maximum": 100000},
    {"type": "number"},
    {"type": "number", "minimum": -0.5, "maximum": 1.75},
    {"type": "number", "exclusiveMinimum": 0},
    {"type": "number", "maximum": -1e-3},
    {"type": ["boolean", "null", "integer"]},
    {"enum": [1, "a", None, {"k": [1, 2]}, "\u00e9\"\\", -2.5]},
    {"const": {"a": [True, {"b": "\u20ac"}]}},
    {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 4},
    {"type": "array", "items": {"type": ["string", "null"]}},
    {"type": "array", "items": [{"const": 1}, {"type": "string"}], "additionalItems": {"type": "boolean"}},
    {"type": "object"},
    {"type": "object", "properties": {"b": {"type": "integer"}, "a": {"type": "string"}, "\u00fc": True}, "required": ["a"]},
    {"type": "object", "properties": {"z": {"type": "null"}, "y": {"enum": [1, 2]}}, "additionalProperties": False},
    {"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": {"type": "string"}, "maxProperties": 3},
    {"type": "object", "patternProperties": {"^x": {"type": "integer"}}, "additionalProperties": {"type": "boolean"}},
    {"type": "object", "propertyNames": {"pattern": "^[a-f]{1,4}$"}, "minProperties": 1},
    {"anyOf": [{"type": "integer", "minimum": 3}, {"type": "string", "maxLength": 2}, {"type": "array", "maxItems": 1}]},
    {"oneOf": [{"type": "string"}, {"type": "integer"}]},
    {"allOf": [{"type": "integer", "minimum": 3}, {"maximum": 9}]},
    {"type": "object", "properties": {"o": {"type": "object", "properties": {"p": {"type": "array", "items": {"type": "number"}}},
                                            "required": ["p"]}}, "required": ["o"], "additionalProperties": False},
    {},
]
RECURSIVE = {"$ref": "#/definitions/node", "definitions": {"node": {
    "type": "object", "properties": {"v": {"type": "integer"}, "next": {"anyOf": [{"$ref": "#/definitions/node"}, {"type": "null"}]}},
    "required": ["v"], "additionalProperties": False}}}


def ordered(schema, value):
    """The value with the properties that the schema names first, in its order."""
    if isinstance(schema, dict) and isinstance(value, dict):
        named = schema.get("properties", {})
        keys = [key for key in named if key in value] + [key for key in value if key not in named]
        return {key: ordered(named.get(key, schema.get("additionalProperties", {})), value[key]) for key in keys}
    if isinstance(schema, dict) and isinstance(value, list) and isinstance(schema.get("items"), dict):
        return [ordered(schema["items"], item) for item in value]
    return value


def drawn(strategy, count):
    out = []

    @settings(max_examples=count, database=None, derandomize=True, deadline=None, phases=[Phase.generate],
              suppress_health_check=list(HealthCheck))
    @given(strategy)
    def draw(value):
        out.append(value)

    draw()
    return out


def writable(value):
    """Whether JSON has the value within the limits of constrained output: no NaN, at most 64 digits."""
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return False
    if isinstance(value, (int, float)) and len(repr(value)) > 60:
        return False
    children = value if isinstance(value, list) else list(value.values()) if isinstance(value, dict) else []
    return all(writable(child) for child in children)


def main():
    warnings.simplefilter("ignore")
    anything = strategies.recursive(
        strategies.none() | strategies.booleans() | strategies.integers(-300, 300) | strategies.floats(-9, 9) | strategies.text(max_size=4),
        lambda inner: strategies.lists(inner, max_size=3) | strategies.dictionaries(strategies.sampled_from(list("abnvyz") + ["next", "x1"]), inner, max_size=3),
        max_leaves=6)
    lines = []
    for schema in SCHEMAS + [RECURSIVE]:
        tuple_items = isinstance(schema.get("items"), list)
        judged = schema if not tuple_items else {"type": "array", "prefixItems": schema["items"], "items": schema["additionalItems"]}
        validator = Draft202012Validator(judged, format_checker=FormatChecker())
        strict = extend(Draft202012Validator, type_checker=Draft202012Validator.TYPE_CHECKER.redefine(
            "integer", lambda checker, value: isinstance(value, int) and not isinstance(value, bool)))(judged, format_checker=FormatChecker())
        values = drawn(from_schema(schema), 40) if schema is not RECURSIVE else \
            [{"v": 1}, {"v": 2, "next": None}, {"v": 3, "next": {"v": 4, "next": {"v": 5}}}]
        record = {"schema": json.dumps(schema), "valid": [], "invalid": []}
        for i, value in enumerate(values + drawn(anything, 60)):
            if not writable(value) or validator.is_valid(value) != strict.is_valid(value):
                continue
            text = json.dumps(ordered(schema, value), ensure_ascii=i % 2 == 0, indent=1 if i % 5 == 0 else None)
            record["valid" if validator.is_valid(value) else "invalid"].append(text)
        for kind in ("valid", "invalid"):
            record[kind] = sorted(set(record[kind]))
        lines.append(json.dumps(record))
    with open(sys.argv[1], "wb") as file, gzip.GzipFile(fileobj=file, mode="wb", mtime=0) as packed:
        packed.write(("\n".join(lines) + "\n").encode())


if __name__ == "__main__":
    main()

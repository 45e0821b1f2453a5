#!/usr/bin/env python3
"""Compares `probe render` with Jinja2, configured as in transformers, on random templates, and prints every difference.

fuzz_templates.py --probe "build/bin/easydel probe render" --count 5000 [--seed 1] [--mutate FILE.json[.gz]]
Templates come from a grammar; with --mutate also from real ones (a map of names to sources), by deleting, duplicating and
swapping parts. --write OUT.jsonl.gz stores cases with Jinja2's answers: {"template", "context", "output"} or {"error"}.
If Jinja2 raises, an error is expected; its text is not compared.
"""
import argparse
import copy
import gzip
import json
import random
import shlex
import subprocess
import sys
import warnings

from transformers.utils.chat_template_utils import _compile_jinja_template

CONTEXT = {
    "s": "Hello, <b>World</b> & 'co'", "t": "  two words\n", "e": "", "n": 7, "z": 0, "neg": -3, "f": 2.5, "big": 12345678901, "yes": True, "no": False, "none": None,
    "l": [3, 1, 2], "w": ["pear", "Apple", "fig", "apple"], "x": [], "d": {"b": 1, "a": "x", "C": None}, "g": {},
    "ll": [[1, 2], [3, 4]], "ld": [{"k": "a", "v": 2}, {"k": "B", "v": 1}, {"k": "a", "v": 3}],
    "messages": [{"role": "system", "content": "Be é."}, {"role": "user", "content": "Hi\n there "}, {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f", "arguments": {"x": 1.5, "y": ["ü", True]}}}]}],
    "tools": [{"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object", "properties": {"x": {"type": "number"}}}}}],
    "u8": "naïve Straße 你好 🙂 ǅ İ", "bos_token": "<s>", "add_generation_prompt": True,
}
NAMES = list(CONTEXT)
STRINGS = ["''", "'a'", "'ab c'", "\"it's\"", "'x,y,,z'", "' pad '", "'\\n'", "'A<b>&\"'", "'%s-%d'", "'{} {x}'", "'é🙂'", "'1'", "'-12'", "'1.5e3'", "'0x1f'", "'True'", "'line1\\nline2\\n\\nline4'", "'aXbXc'", "'https://a.b/c?d=e&f www.x.org me@x.org'", "'ﬁ Straße'"]
NUMBERS = ["0", "1", "2", "-1", "3", "10", "1.0", "0.1", "1e3", "2.5", "1_000", "0x1F", "0b11", "1e308", "255", "-0.0", "1.005", "7"]
METHODS = {
    "str": ["upper()", "lower()", "strip()", "lstrip()", "rstrip('o ')", "split()", "split(',')", "split('o', 1)", "rsplit(' ', 1)", "splitlines()", "startswith('H')", "startswith(('a', 'H'))", "endswith('o')", "replace('o', '0')", "replace('l', 'L', 1)",
            "find('o')", "rfind('o')", "index('o')", "count('l')", "title()", "capitalize()", "isdigit()", "isalpha()", "isupper()", "islower()", "isspace()", "isalnum()", "isnumeric()", "istitle()", "isidentifier()", "isdecimal()", "isprintable()", "isascii()", "swapcase()", "zfill(9)", "center(9, '*')", "ljust(9)", "rjust(9, '.')", "partition(' ')", "rpartition('o')",
            "removeprefix('He')", "removesuffix('o')", "join(['a', 'b'])", "casefold()", "expandtabs(3)", "format(1, x=2)", "format()", "join(w)", "__class__", "nope()", "strip(1)", "split('')", "count('')", "find('o', 3)", "index('q')", "lstrip('He').upper()", "splitlines(true)", "format_map(d)"],
    "dict": ["items()", "keys()", "values()", "get('a')", "get('q', 1)", "get('q')", "items()|list", "copy()", "pop('a')", "update({'q': 1})", "a", "b", "q", "keys()|list|sort", "values()|list", "setdefault('z', 1)", "__len__()", "items", "get(0)", "clear()"],
    "list": ["append(1)", "index(1)", "count(1)", "pop()", "copy()", "reverse()", "sort()", "insert(0, 1)", "extend([1])", "remove(1)", "0", "nope", "index(99)"],
}
FILTERS = ["upper", "lower", "trim", "title", "capitalize", "length", "count", "first", "last", "join", "join(', ')", "join('-', attribute='k')", "list", "sort", "sort(reverse=true)", "sort(attribute='v')", "sort(attribute='k,v')", "sort(case_sensitive=true)", "unique|list", "reverse", "reverse|list", "string", "int", "int(5)", "int(base=16)", "int(0, 2)", "float", "float(1.5)", "abs", "round", "round(1)", "round(1, 'floor')", "round(0, 'ceil')", "round(-1)",
           "default('D')", "default('D', true)", "d('x')", "replace('o', '0')", "replace('l', 'L', 1)", "tojson", "tojson(indent=2)", "tojson(separators=(',', ':'))", "tojson(sort_keys=true)", "tojson(ensure_ascii=true)", "tojson(indent=0)", "escape", "e", "safe", "forceescape", "striptags", "wordcount", "truncate(9)", "truncate(5, true)", "truncate(5, true, '', 0)", "truncate(9, leeway=2)", "indent", "indent(2, true)", "indent(width='>> ')", "indent(3, blank=true)",
           "center(20)", "batch(2)|list", "batch(2, 'x')|list", "slice(2)|list", "slice(3, 'z')|list", "map('upper')|list", "map(attribute='k')|list", "map(attribute='q', default=0)|list", "map('default', 1)|list", "select|list", "select('odd')|list", "select('string')|list", "reject('none')|list", "reject|list", "selectattr('k')|list", "selectattr('v', 'gt', 1)|list", "selectattr('k', 'equalto', 'a')|list", "rejectattr('v', '==', 1)|list", "rejectattr('q')|list", "selectattr('q', 'defined')|list",
           "groupby('k')|list", "groupby('k', case_sensitive=true)|list", "dictsort", "dictsort(false, 'value')", "dictsort(reverse=true)", "items|list", "min", "max", "min(attribute='v')", "max(case_sensitive=true)", "sum", "sum(attribute='v')", "sum(start=10)", "urlencode", "urlize", "urlize(10)", "urlize(nofollow=true)", "urlize(target='_blank', rel='x')", "xmlattr", "xmlattr(false)", "wordwrap(8)", "wordwrap(5, false)", "wordwrap(7, true, '|')", "wordwrap(6, break_on_hyphens=false)", "filesizeformat", "filesizeformat(true)"  , "attr('k')", "format(1)", "format('a', 2)", "nope", "items", "select('in', [1])|list", "map('int')|list", "map('nope')|list"]
TESTS = ["defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "mapping", "iterable", "sequence", "callable", "odd", "even", "true", "false", "lower", "upper", "escaped", "filter", "test", "divisibleby(3)", "divisibleby 2", "eq 1", "equalto('a')", "sameas(none)", "sameas true", "in [1, 2]", "in 'abc'", "gt 1", "lt(5)", "ge 2", "le 3", "ne 0", "greaterthan 1", "==(7)", "nope"]
BINARY = ["+", "-", "*", "/", "//", "%", "**", "~"]
COMPARE = ["==", "!=", "<", ">", "<=", ">=", "in", "not in"]


class Maker:
    def __init__(self, rng):
        self.rng, self.locals, self.macros, self.depth = rng, [], [], 0

    def pick(self, items):
        return self.rng.choice(items)

    def name(self):
        if self.locals and self.rng.random() < 0.4:
            return self.pick(self.locals)
        return self.pick(NAMES) if self.rng.random() < 0.95 else "missing"

    def atom(self):
        r = self.rng.random()
        if r < 0.5:
            return self.name()
        if r < 0.65:
            return self.pick(STRINGS)
        if r < 0.8:
            return self.pick(NUMBERS)
        return self.pick(["true", "none", "[]", "[1, 'a']", "{}", "{'a': 1, 'b': [2]}", "(1, 2)", "range(3)", "range(5, 0, -2)", "dict(a=1)", "namespace(a=1)", "()", "(1,)", "[l, d]", "range(2)|list", "True", "loop", "cycler('a', 'b')", "joiner()", "lipsum", "messages[0]", "messages[-1].content", "dict(d, q=2)", "d.items()", "{n: s, 'k': l}", "none", "'a' 'b'"])

    def expression(self, depth=0):
        r = self.rng.random()
        if depth > 3 or r < 0.22:
            return self.atom()
        go = lambda: self.expression(depth + 1)
        if r < 0.30:
            return self.fitting()
        if r < 0.40:
            return f"{self.wrapped(depth)}|{self.pick(FILTERS)}"
        if r < 0.50:
            return f"{go()} {self.pick(BINARY)} {go()}"
        if r < 0.57:
            return f"{go()} {self.pick(COMPARE)} {go()}"
        if r < 0.65:
            return f"{self.wrapped(depth)} is {self.pick(['', 'not '])}{self.pick(TESTS)}"
        if r < 0.75:
            kind = self.pick(list(METHODS))
            on = {"str": ["s", "t", "e", "u8", "'Hello'", "bos_token"], "dict": ["d", "g", "ld[0]", "messages[0]", "{'a': 1}"], "list": ["l", "w", "x", "ll[0]", "[1, 2]"]}[kind]
            return f"{self.pick(on) if self.rng.random() < 0.8 else self.wrapped(depth)}.{self.pick(METHODS[kind])}"
        if r < 0.82:
            index = self.pick(["0", "-1", "1", "5", "'a'", "'k'", ":1", "1:", "::-1", "-2:", ":-1", "::2", "1:1", "n", "none", "'nope'", "true", "1.0", ":n", "::0", "'content'", "5:1:-1"])
            return f"{self.wrapped(depth)}[{index}]"
        if r < 0.87:
            return f"{go()} if {go()}" + (f" else {go()}" if self.rng.random() < 0.7 else "")
        if r < 0.91:
            return f"{self.pick(['not ', '-', '+'])}{self.wrapped(depth)}"
        if r < 0.95:
            return f"{go()} {self.pick(['and', 'or'])} {go()}"
        if r < 0.97 and self.macros:
            return f"{self.pick(self.macros)}({', '.join(self.pick([go(), 'p=' + self.atom(), 'q=1']) for _ in range(self.rng.randrange(4)))})"
        return f"{self.wrapped(depth)}.{self.pick(['a', 'k', 'content', 'role', 'b', 'function', 'x', 'length', 'real', '__class__', '0'])}"

    def fitting(self):
        """A filter on what it is meant for."""
        text = ["s", "t", "u8", "messages[1].content", "'ab c'", "'line1\\nline2 word-with-hyphens and--dashes\\n\\nline4'", "'https://a.b/c?d=e&f (www.x.org/a_(b)), me@x.org.'"]
        kinds = [(text, ["upper", "lower", "trim", "title", "capitalize", "length", "replace('o', '0')", "tojson", "e", "striptags", "wordcount", "truncate(9)", "truncate(5, true)", "truncate(9, false, '!', 2)", "indent", "indent(2, true)", "indent(3, blank=true)", "center(20)", "urlencode", "urlize", "urlize(5, true)", "wordwrap(8)", "wordwrap(5, false)", "wordwrap(3)", "wordwrap(7, true, '|')", "list", "first", "last", "reverse", "string", "format(1)", "forceescape", "batch(3)|list", "unique|join", "sort|join", "select('in', 'aeiou')|join", "map('upper')|join", "pprint", "safe", "trim('He')", "default('q')", "int(3)", "join('-')"]),
                 (["n", "z", "neg", "f", "big", "3.14159", "2.675", "1e20", "0.5", "1.5", "-2.5", "'12'", "'3.7'", "yes"], ["abs", "int", "float", "round", "round(1)", "round(2, 'floor')", "round(1, 'ceil')", "round(-1)", "string", "filesizeformat", "filesizeformat(true)", "tojson", "default(1)", "pprint"]),
                 (["l", "w", "range(7)", "[3.5, 1, 2]", "d", "w + ['fig']", "(1, 2, 3)", "d.values()|select|list"], ["join", "join(', ')", "list", "sort", "sort(reverse=true)", "sort(case_sensitive=true)", "unique|list", "reverse|list", "first", "last", "length", "batch(2)|list", "batch(2, 0)|list", "slice(2)|list", "slice(3, 'z')|list", "tojson", "map('string')|list", "select|list", "reject('odd')|list", "min", "max", "sum", "sum(start=5)", "string", "tojson(indent=1)", "pprint"]),
                 (["ld", "ld[:2]", "messages", "tools"], ["map(attribute='k')|list", "map(attribute='k', default='D')|join(',')", "sort(attribute='k')", "sort(attribute='v,k')", "groupby('k')|list", "selectattr('v', 'gt', 1)|list", "rejectattr('k', 'equalto', 'a')|map(attribute='v')|list", "sum(attribute='v')", "unique(attribute='k')|list", "tojson", "tojson(indent=2)", "min(attribute='v')", "max(attribute='v').k", "join('|', attribute='k')", "map(attribute='role')|join", "selectattr('tool_calls', 'defined')|list|length", "last", "map('items')|map('list')|list"]),
                 (["d", "g", "messages[0]", "tools[0].function", "{'b': 2, 'A': 1}"], ["dictsort", "dictsort(true)", "dictsort(false, 'key', true)", "items|list", "tojson", "tojson(sort_keys=true)", "tojson(separators=(',', ':'), indent=1)", "list", "length", "urlencode", "xmlattr", "xmlattr(false)", "join(',')", "first", "string"])]
        on, filters = self.pick(kinds)
        return f"{self.pick(on)}|{self.pick(filters)}"

    def wrapped(self, depth):
        inner = self.expression(depth + 1)
        return inner if inner.isidentifier() or self.rng.random() < 0.3 else f"({inner})"

    def tag(self, text):
        left, right = self.pick(["", "", "", "-", "+"]), self.pick(["", "", "", "-", "+"])
        return "{%" + left + " " + text + " " + right + "%}"

    def text(self):
        return self.pick(["a", " ", "\n", "  \n", "\n\n", "text", " x ", "\n  ", "{ ", "é", "<p>", "", "-", "\t", "\r\n", "}}"])

    def body(self, n=3):
        return "".join(self.statement() for _ in range(self.rng.randrange(1, n + 1)))

    def statement(self):
        self.depth += 1
        try:
            return self.text() + self.inner_statement() + self.text()
        finally:
            self.depth -= 1

    def inner_statement(self):
        r = self.rng.random()
        if self.depth > 4 or r < 0.42:
            return "{{" + self.pick(["", "-"]) + " " + self.expression() + " " + self.pick(["", "-"]) + "}}"
        if r < 0.52:
            out = self.tag("if " + self.expression()) + self.body()
            for _ in range(self.pick([0, 0, 1, 2])):
                out += self.tag("elif " + self.expression()) + self.body(2)
            return out + (self.tag("else") + self.body(2) if self.rng.random() < 0.5 else "") + self.tag("endif")
        if r < 0.68:
            target = self.pick(["i", "i", "i", "k, v", "(k, v)", "a, b, c"])
            head = f"for {target} in {self.pick(['l', 'w', 'ld', 'd', 'd.items()', 'range(3)', 'll', 'messages', 'x', 's', self.expression()])}"
            recursive = self.rng.random() < 0.1
            if self.rng.random() < 0.2:
                head += " if " + self.pick([self.expression(), "i", "loop.first", "i is odd"])
            old = len(self.locals)
            self.locals += ["i", "loop.index", "loop.first", "loop.last", "loop.index0", "loop.revindex", "loop.length", "loop.previtem", "loop.nextitem", "loop.cycle('a', 'b')", "loop.changed(i)", "loop.depth", "loop.revindex0", "loop.depth0", "k", "v"]
            body = self.body()
            if self.rng.random() < 0.15:
                body += self.tag("if " + self.expression()) + self.tag(self.pick(["break", "continue"])) + self.tag("endif") + self.text()
            if recursive and self.rng.random() < 0.8:
                body += "{{ loop(i.x) if i.x is defined and loop.depth < 3 }}" if self.rng.random() < 0.5 else "{{ loop(" + self.expression() + ") if loop.depth < 3 }}"
            del self.locals[old:]
            return self.tag(head + (" recursive" if recursive else "")) + body + (self.tag("else") + self.body(1) if self.rng.random() < 0.2 else "") + self.tag("endfor")
        if r < 0.78:
            name = self.pick(["v1", "v2", "n", "ns.a", "v3, v4", "s"])
            if self.rng.random() < 0.7:
                out = self.tag(f"set {name} = {self.expression()}")
            else:
                out = self.tag(f"set {name}" + self.pick(["", " | upper", " | trim | replace('a', 'b')"])) + self.body(2) + self.tag("endset")
            if name[0] == "v" and "," not in name:
                self.locals.append(name)
            return out
        if r < 0.80:
            return self.tag("autoescape " + self.pick(["true", "true", "false", "yes", self.atom()])) + self.body(2) + self.tag("endautoescape")
        if r < 0.815:
            self.blocks = getattr(self, "blocks", 0) + 1
            old, self.locals = self.locals, []
            body = self.body(2)
            self.locals = old
            return self.tag(f"block b{self.blocks}" + self.pick(["", "", " scoped"])) + body + self.tag("endblock" + self.pick(["", f" b{self.blocks}"])) + self.pick(["", "{{ self.b1() }}" if self.blocks > 1 and self.depth < 3 else ""])
        if r < 0.85:
            name = self.pick(["m1", "m2"])
            parameters = self.pick(["", "p", "p, q=2", "p='x', q=p", "p, q"])
            old = len(self.locals)
            self.locals += ["p", "q", "varargs", "kwargs", "caller()", f"{name}.name", f"{name}.arguments"]
            body = self.body(2)
            if self.rng.random() < 0.3:
                body += self.pick(["{{ caller() }}", "{{ caller(1) }}", "{{ varargs }}", "{{ kwargs }}", "{{ caller is defined }}"])
            del self.locals[old:]
            self.macros.append(name)
            return self.tag(f"macro {name}({parameters})") + body + self.tag("endmacro")
        if r < 0.88 and self.macros:
            return self.tag(f"call{self.pick(['', '(y)', '(y=1)'])} {self.pick(self.macros)}({self.pick(['', '1', 'p=s'])})") + self.body(2) + self.tag("endcall")
        if r < 0.91:
            return self.tag("filter " + self.pick(["upper", "trim", "replace('a', 'b')|title", "indent(2)", "escape", "wordwrap(6)"])) + self.body(2) + self.tag("endfilter")
        if r < 0.94:
            return self.tag("with " + self.pick(["", "v5 = " + self.expression(), "v5 = 1, v6 = n"])) + self.body(2) + self.tag("endwith")
        if r < 0.95:
            return self.pick(["{% raw %}{{ x }} {% if %}{% endraw %}", "{# a comment #}", "{#- c -#}\n", "{%- raw -%} a {%- endraw -%}\n", "{% generation %}g{% endgeneration %}\n"])
        if r < 0.96:
            return self.tag("generation") + self.body(2) + self.tag("endgeneration")
        if r < 0.98:
            return self.tag("set ns = namespace(a=1, b=s)") + self.tag(f"set ns.{self.pick(['a', 'b', 'c'])} = {self.expression()}") + "{{ ns.a }}{{ ns.c }}"
        if r < 0.985:
            return self.pick(["{% block x %}b{{ n }}{% endblock %}", "{% block y scoped %}{{ s }}{% endblock y %}{{ self.y() }}", "{% autoescape true %}{{ s }}{{ '<' ~ s|safe }}{% endautoescape %}", "{% autoescape false %}{{ s }}{% endautoescape %}", "{% include 'x' %}", "{% import 'x' as y %}", "{% do l.append(1) %}", "{% set %}", "{% endif %}", "{{ }}", "{% if %}", "{{ 1 + }}", "{% from 'a' import b %}", "{% extends 'q' %}", "{% debug %}"])
        return "{{" + self.expression() + "|" + self.pick(FILTERS) + "}}"


def mutated(rng, sources):
    """A real template with some of its tags cut, doubled or swapped."""
    import re
    parts = re.split(r"({[{%#].*?[}%#]})", rng.choice(sources), flags=re.S)
    if len(parts) > 60 and rng.random() < 0.7:
        begin = rng.randrange(len(parts) - 40)
        parts = parts[begin:begin + rng.randrange(5, 40)]
    for _ in range(rng.randrange(1, 4)):
        i, j = rng.randrange(len(parts)), rng.randrange(len(parts))
        kind = rng.random()
        if kind < 0.3:
            parts[i] = ""
        elif kind < 0.5:
            parts[i], parts[j] = parts[j], parts[i]
        elif kind < 0.65:
            parts[i] += parts[i]
        elif kind < 0.8:
            parts[i] = parts[i].replace("-%}", "%}") if rng.random() < 0.5 else parts[i].replace("%}", "-%}")
        else:
            words = re.split(r"(\W)", parts[i])
            words[rng.randrange(len(words))] = rng.choice(["none", "''", "0", "messages", "x", "1", "true", "[]", "is", "not", "|", "(", "d"])
            parts[i] = "".join(words)
    return "".join(parts)


def expected(template):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return {"output": _compile_jinja_template(template).render(**copy.deepcopy(CONTEXT))}
    except Exception as error:  # whatever Python raises
        return {"error": f"{type(error).__name__}: {error}"}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--probe", default="build/bin/easydel probe render")
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mutate")
    parser.add_argument("--write")
    parser.add_argument("--show", type=int, default=30)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    sources = []
    if args.mutate:
        opener = gzip.open if args.mutate.endswith(".gz") else open
        sources = list(json.load(opener(args.mutate)).values())
    templates = []
    for i in range(args.count):
        templates.append(mutated(rng, sources) if sources and i % 2 else Maker(rng).body(rng.choice([1, 1, 2, 3, 5])))
    lines = "".join(json.dumps({"template": t, "context": CONTEXT}) + "\n" for t in templates)
    answers = subprocess.run(shlex.split(args.probe), input=lines, capture_output=True, text=True)
    if answers.returncode:
        sys.exit(f"the probe failed with {answers.returncode}: {answers.stderr[-500:]}")
    different = errors = 0
    stored = []
    for template, line in zip(templates, answers.stdout.splitlines(), strict=True):
        got, want = json.loads(line), expected(template)
        # Addresses of Python's objects, and what differs from run to run.
        if " at 0x" in want.get("output", "") or "lipsum" in template:
            continue
        # What is refused on purpose, also where it is never reached.
        if any(f"{word} " in template for word in ("include", "import", "extends", "autoescape", "block")):
            continue
        errors += "error" in want
        same = ("error" in got) == ("error" in want) and got.get("output") == want.get("output")
        if same:
            stored.append({"template": template} | ({"error": ""} if "error" in want else want))
            continue
        different += 1
        if different <= args.show:
            print("TEMPLATE", json.dumps(template, ensure_ascii=False)[:600])
            print("  jinja2 ", json.dumps(want, ensure_ascii=False)[:300])
            print("  easydel", json.dumps({k: got[k] for k in ("output", "error") if k in got}, ensure_ascii=False)[:300])
    print(f"{len(stored) + different} templates, {errors} of them errors, {different} different")
    if args.write:
        with gzip.GzipFile(args.write, "wb", mtime=0) as out:
            out.write((json.dumps({"context": CONTEXT}) + "\n").encode())
            out.write("".join(json.dumps(s, ensure_ascii=False) + "\n" for s in stored).encode())
    sys.exit(different > 0)


if __name__ == "__main__":
    main()

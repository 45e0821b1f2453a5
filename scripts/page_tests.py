"""Generates a test from the C++ of a page: python3 scripts/page_tests.py PAGE.md OUT.cpp

All ```cpp blocks under one heading become one function, so that later blocks can use earlier names; compile errors refer to
lines of the page. Lines with #include move to the top of the file.
"""
import re
import sys


def frames(text):
    """Yields (heading, first line, C++) of each frame."""
    heading, begin, kind, lines = "", 0, None, []
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            if kind == "cpp":
                yield heading, begin, lines
            kind, begin, lines = (line[3:].strip() or "text", number + 1, []) if kind is None else (None, 0, [])
        elif kind is None and line.startswith("## "):
            heading = line[3:]
        elif kind is not None:
            lines.append(line)


def main():
    page, output = sys.argv[1:]
    with open(page) as file:
        text = file.read()
    includes, bodies = [], {}
    for heading, begin, lines in frames(text):
        body = bodies.setdefault(heading, [])
        body.append(f'#line {begin} "{page}"')
        for line in lines:
            is_include = line.startswith("#include")
            includes += [line] if is_include else []
            body.append("" if is_include else line)
    out = ["// Generated from the page by scripts/page_tests.py.", '#include "docs/page.h"', *sorted(set(includes)), "", "namespace easydel {", "namespace {"]
    for heading, body in bodies.items():
        name = "".join(word.capitalize() for word in re.findall(r"[A-Za-z0-9]+", heading))
        out += ["", f"TEST_F(Page, {name}) {{", *body, "}"]
    out += ["", "}  // namespace", "}  // namespace easydel", ""]
    with open(output, "w") as file:
        file.write("\n".join(out))


main()

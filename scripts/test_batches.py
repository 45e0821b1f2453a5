"""Groups test files that may be compiled together: test_batches.py FOLDER SIZE ROOT FILE...

Writes FOLDER_1.cpp, FOLDER_2.cpp, ..., each of which includes up to SIZE files by paths relative to ROOT, and prints
them, one a line. Two files are in one batch only if they declare no common name in a namespace, so that the helpers of
tests keep their short names. A file that shares a name with a neighbour after an edit does not compile; configure again,
and it is in another batch.
"""

import re
import sys
from pathlib import Path

TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/|R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'"""
    r"""|^[ \t]*\#(?:\\\n|[^\n])*|[A-Za-z_]\w*|\d[\w.']*|::|[^\s\w]""",
    re.DOTALL | re.MULTILINE)
MAX_LINES = 1000  # in a batch, so that no compile is much longer than the others


def declares(statement, token):
    """Whether `statement`, before `token`, ends with a name that it declares."""
    if not statement or not re.match(r"[A-Za-z_]", statement[-1]) or statement[:2] == ["using", "namespace"]:
        return False
    if statement[0] == "namespace" or statement[0].isupper():  # an alias; TEST and other macros
        return False
    if ":" in statement:  # bases of a class
        return False
    return "=" not in statement or token == "="


def names(text):
    """The names that a file declares in namespaces, each with its namespace; and its macros."""
    found, spaces, statement = set(), [], []
    depth = 0  # of brackets in which nothing is declared in a namespace
    for match in TOKEN.finditer(text):
        token = match[0]
        if token.startswith(("//", "/*")):
            continue
        if token.lstrip().startswith("#"):
            macro = re.match(r"\s*#\s*define\s+(\w+)", token)
            if macro:
                found.add(macro[1])
            continue
        if depth:
            depth += (token in "({[") - (token in ")}]")
            if depth == 0 and token == "}":
                statement = []
            continue
        if token == "{" and statement[:1] == ["namespace"]:
            spaces.append("".join(statement[1:]))
            statement = []
            continue
        if token == "}":
            spaces.pop()
            continue
        if token in ("(", "{", "[", "=", ";", ":") and declares(statement, token):
            name = next(word for word in reversed(statement) if word != "final")
            found.add("::".join([*filter(None, spaces), name]))
        if token in ("(", "{", "["):
            depth = 1
        elif token == ";":
            statement = []
        else:
            statement.append(token)
    return found


def batches(files, size):
    groups = []
    for file in files:
        text = file.read_text()
        declared, lines = names(text), text.count("\n")
        for group in groups:
            if len(group["files"]) < size and group["lines"] + lines <= MAX_LINES and not group["names"] & declared:
                break
        else:
            group = {"files": [], "names": set(), "lines": 0}
            groups.append(group)
        group["files"].append(file)
        group["names"] |= declared
        group["lines"] += lines
    return [group["files"] for group in groups]


def main():
    folder, size, root, files = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:]
    for number, group in enumerate(batches([Path(file) for file in files], size), 1):
        if len(group) == 1:
            print(group[0])
            continue
        path = Path(f"{folder}_{number}.cpp")
        text = "".join(f'#include "{file.relative_to(root)}"\n' for file in group)
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
        print(path)


if __name__ == "__main__":
    main()

"""Writes the data of examples/tasks from a folder with mc, math and text: python scripts/make_tasks.py DATASETS

Each file has the first documents of a public data set; examples/tasks/SOURCES.md names the sources and licences.
"""

import csv
import json
import re
import sys
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "examples" / "tasks" / "data"
SUBJECTS = ["astronomy", "high_school_geography", "marketing"]


def lines_of(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write(name, rows):
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (FOLDER / f"{name}.jsonl").write_text(text, encoding="utf-8")


def subject_rows(path):
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            choices = [row[f"choice{i}"] for i in range(4)]
            yield {"question": row["question"], "choices": choices, "answer": int(row["answer"])}


def articles(path):
    """Articles begin with a line of one level of "=": " = Title = "."""
    parts, lines = [], []
    for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
        if re.fullmatch(r" = [^=].*[^=] = \n", line) and lines:
            parts.append("".join(lines))
            lines = []
        lines.append(line)
    return [{"page": part} for part in parts + ["".join(lines)] if part.strip()]


def main():
    root = Path(sys.argv[1])
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, file, count in (
        ("hellaswag", "hellaswag_val_first4000", 100),
        ("arc_easy", "arc_easy", 100),
        ("piqa", "piqa", 60),
        ("copa", "copa", 100),
        ("openbookqa", "openbook_qa", 100),
        ("winograd", "winograd_wsc", 100),
        ("lambada", "lambada_openai", 60),
    ):
        write(name, lines_of(root / "mc" / f"{file}.jsonl")[:count])
    for subject in SUBJECTS:
        write(f"mmlu_{subject}_dev", subject_rows(root / "mc" / "mmlu" / f"{subject}_dev.csv"))
        write(f"mmlu_{subject}_test", list(subject_rows(root / "mc" / "mmlu" / f"{subject}_test.csv"))[:40])
    write("gsm8k_train", lines_of(root / "math" / "gsm8k_train.jsonl")[:12])
    write("gsm8k_test", lines_of(root / "math" / "gsm8k_test.jsonl")[:40])
    write("wikitext", articles(root / "text" / "wikitext2_valid.txt")[:4])


if __name__ == "__main__":
    main()

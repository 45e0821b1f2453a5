"""Files of data: missing, of another format, and rows that cannot be used."""
import gzip
import json

from mistakes import MODEL, ROWS, RUN, Mistake

CHAT = (MODEL.parent / "stories260K-chat/tokenizer_config.json").read_bytes()


def rows(name, content, file="data.jsonl", inform="", command="-q run run.yaml", trainer="", drop="", **more):
    text = RUN.replace("data_files: data.jsonl", f"data_files: {file}{inform}")
    if trainer:
        text = text.replace("trainer:\n", "trainer:\n" + "".join(f"  {line}\n" for line in trainer.split("\n")))
    text = "".join(line for line in text.splitlines(True) if not drop or not line.startswith(f"  {drop}:"))
    files = content if isinstance(content, dict) else {file: content}
    return Mistake("data: " + name, {"run.yaml": text, "data.jsonl": ROWS, **files}, command, **more)


def row(name, *values, **more):
    return rows(name, "".join((value if isinstance(value, str) else json.dumps(value)) + "\n" for value in values), **more)


def dpo(name, *values, **more):
    return row("dpo: " + name, *values, trainer="trainer_type: dpo", **more)


def messages(name, *conversations, chat=True, **more):
    files = {"data.jsonl": "".join(json.dumps({"messages": one}) + "\n" for one in conversations)}
    if chat:
        files["model/tokenizer_config.json"] = CHAT
    return rows("messages: " + name, files, **more)


GOOD = {"text": "Once upon a time there was a dog."}
USER, ANSWER = {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}

MISTAKES = [
    rows("missing", {"data.jsonl": None}),
    rows("no file of this pattern", {}, file="'*.csv'"),
    rows("a folder without data", {"texts/readme.md": "x"}, file="texts"),
    rows("a folder", {}, file="model"),
    rows("an unknown ending", "x", file="data.xyz"),
    rows("an ending of documents", "x", file="data.docx"),
    rows("empty", ""),
    rows("only blank lines", "\n\n\n"),
    rows("a page of HTML", "<!DOCTYPE html>\n<html></html>\n"),
    rows("a pointer of Git LFS", "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12327\n"),
    rows("not UTF-8", b'{"text": "caf\xe9"}\n'),
    rows("UTF-16", ROWS.encode("utf-16")),
    rows("zero bytes", ROWS.encode() + b"\0\0\0\0\n"),
    rows("gzip by name only", ROWS, file="data.jsonl.gz"),
    rows("gzip that is cut off", gzip.compress(ROWS.encode(), mtime=0)[:60], file="data.jsonl.gz"),
    rows("a list of rows named .jsonl", json.dumps([GOOD, GOOD])),
    rows("a list of rows over many lines named .jsonl", json.dumps([GOOD, GOOD], indent=1)),
    rows("one row over many lines named .jsonl", json.dumps(GOOD, indent=1)),
    rows("the last line is cut off", ROWS + '{"text": "Once'),
    rows("single quotes", "{'text': 'a'}\n"),
    rows("a comma at the end of each line", '{"text": "a"},\n{"text": "b"}\n'),
    rows("json: not JSON", "{", file="data.json"),
    rows("json: a map of lists", json.dumps({"text": ["a", "b"]}), file="data.json"),
    rows("json: a list of texts", json.dumps(["a", "b"]), file="data.json"),
    rows("json: rows below a key", json.dumps({"data": [GOOD]}), file="data.json"),
    rows("csv: no header", "Once upon a time\nThere was a dog\n", file="data.csv"),
    rows("csv: a row with too many fields", "text,b\na,b\na,b,c\n", file="data.csv"),
    rows("csv: a row with too few fields", "text,b\na,b\na\n", file="data.csv", may_pass=True),
    rows("csv: a quote is not closed", 'text\n"Once upon\na time\n', file="data.csv"),
    rows("csv: separated by semicolons", "text;b\na;b\n", file="data.csv"),
    rows("csv: a column twice", "text,text\na,b\n", file="data.csv"),
    rows("csv: only the header", "text\n", file="data.csv"),
    rows("tsv: blanks instead of tabs", "text  b\na  b\n", file="data.tsv"),
    rows("txt: empty", "", file="data.txt"),
    rows("parquet: another file", ROWS, file="data.parquet"),
    rows("parquet: empty", b"", file="data.parquet"),
    rows("parquet: cut off", b"PAR1" + bytes(100), file="data.parquet"),
    rows("arrow: another file", ROWS, file="data.arrow"),
    rows("the wrong type", {}, inform="\n      type: csv"),
    rows("jsonl as parquet", {}, inform="\n      type: parquet"),
    row("a row that is a text", GOOD, '"hello"'),
    row("a row that is a list", GOOD, "[1]"),
    row("a row that is null", GOOD, "null"),
    row("a key twice in a row", '{"text": "a", "text": "b"}'),
    row("no text", {"story": "a"}),
    row("no text in the third row", GOOD, GOOD, {"story": "a"}),
    row("text is null", {"text": None}),
    row("text is a number", {"text": 3}, may_pass=True),
    row("text is a list", {"text": ["a", "b"]}),
    row("text is a map", {"text": {"a": "b"}}),
    row("text is empty", {"text": ""}, {"text": ""}, may_pass=True),
    row("one row of one letter", {"text": "a"}, may_pass=True),
    row("Text with a capital", {"Text": "a"}),
    row("images", {"text": "What is this?", "images": ["a.png"]}),
    row("an image", {"text": "What is this?", "image": {"bytes": "iVBOR", "path": None}}),
    row("a prompt without its completion", {"prompt": "a"}),
    row("a completion without its prompt", {"completion": "a"}),
    row("a prompt that is a text, a completion of messages", {"prompt": "Hi", "completion": [ANSWER]}),
    row("a pair for sft", {"prompt": "a", "chosen": "b", "rejected": "c"}),
    row("content_field is missing", GOOD, inform="\n      content_field: story"),
    row("additional_fields are missing", GOOD, inform="\n      additional_fields: [author]"),
    row("format_fields of a missing field", GOOD, inform="\n      format_fields: {story: text}"),
    messages("a text", "Hi"),
    messages("empty", []),
    messages("a list of texts", ["Hi", "Hello"]),
    messages("without a role", [{"content": "Hi"}]),
    messages("without content", [{"role": "user"}, ANSWER]),
    messages("a role that is unknown", [{"role": "robot", "content": "Hi"}, ANSWER], may_pass=True),
    messages("a role that is a number", [{"role": 3, "content": "Hi"}], may_pass=True),
    messages("content that is a number", [{"role": "user", "content": 3}, ANSWER]),
    messages("no template", [USER, ANSWER], chat=False),
    messages("an image", [{"role": "user", "content": [{"type": "image", "image": "a.png"}]}, ANSWER]),
    messages("nothing of the assistant", [USER], trainer="assistant_only_loss: true"),
    row("ShareGPT without value", {"conversations": [{"from": "human"}]}),
    row("ShareGPT from an unknown", {"conversations": [{"from": "robot", "value": "Hi"}]}),
    row("tools are not JSON", {"messages": [USER, ANSWER], "tools": "{"}),
    dpo("texts", GOOD),
    dpo("no rejected", {"prompt": "a", "chosen": "b"}),
    dpo("no chosen", {"prompt": "a", "rejected": "b"}),
    dpo("chosen is null", {"prompt": "a", "chosen": None, "rejected": "b"}),
    dpo("chosen is a number", {"prompt": "a", "chosen": 3, "rejected": "b"}, may_pass=True),
    dpo("nothing in common and no prompt", {"chosen": "b", "rejected": "c"}, may_pass=True),
    dpo("equal answers", {"prompt": "a", "chosen": "b", "rejected": "b"}, may_pass=True),
    dpo("a text and messages", {"prompt": "a", "chosen": [ANSWER], "rejected": "b"}),
    rows("assistant_only_loss without conversations", {}, trainer="assistant_only_loss: true", may_pass=True),
    rows("packing without a length", {}, trainer="packing: true", drop="max_length", may_pass=True),
    rows("fewer rows than a batch", {"data.jsonl": json.dumps(GOOD) + "\n"}, may_pass=True),
    rows("frozen_parameters that find nothing", {}, trainer="frozen_parameters: nothing_here"),
    rows("frozen_parameters that is no pattern", {}, trainer="frozen_parameters: '('"),
    rows("save_directory is a file", {"out": "x"}),
    rows("the checkpoint folder is a file", {"out/small": "x"}),
]

"""Files of tokenizers and chat templates."""
import json

from mistakes import MODEL, Mistake

TOKENIZER = json.loads((MODEL / "tokenizer.json").read_text())
SETTINGS = json.loads((MODEL / "tokenizer_config.json").read_text())
PAGE = "<!DOCTYPE html>\n<html></html>\n"
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12327\n"
HELLO = '[{"role": "user", "content": "Hi"}]'


# plain: without the class, whose steps replace those of the file.
def tokenizer(name, content, command=("tokenize", "model", "Once upon"), plain=False, **more):
    if isinstance(content, dict) and not any("/" in key for key in content):
        content = json.dumps({**TOKENIZER, **content})
    files = content if isinstance(content, dict) else {"model/tokenizer.json": content}
    return Mistake("tokenizer: " + name, {**files, "model/tokenizer_config.json": None} if plain else files, command, **more)


def instead(name, content, beside=None):
    files = {"model/tokenizer.json": None, f"model/{name}": content}
    return {**files, **(beside or {})}


def model(**fields):
    return {"model": {**TOKENIZER["model"], **fields}}


def template(name, source, command="render t.jinja m.json", messages=HELLO, **more):
    return Mistake("template: " + name, {"t.jinja": source, "m.json": messages}, command, **more)


MISTAKES = [
    tokenizer("missing", None),
    tokenizer("empty", ""),
    tokenizer("not JSON", "{"),
    tokenizer("a list", "[]"),
    tokenizer("a page of HTML", PAGE),
    tokenizer("a pointer of Git LFS", POINTER),
    tokenizer("cut off", (MODEL / "tokenizer.json").read_text()[:5000]),
    tokenizer("no model", {"model": None}),
    tokenizer("a model of an unknown kind", model(type="Magic")),
    tokenizer("a model without a vocabulary", {"model": {"type": "BPE", "merges": []}}),
    tokenizer("a model without merges", {"model": {"type": "BPE", "vocab": {"a": 0}}}),
    tokenizer("a vocabulary of a wrong kind", model(vocab=3)),
    tokenizer("an id that is a text", model(vocab={**TOKENIZER["model"]["vocab"], "zz": "1"})),
    tokenizer("an id that is negative", model(vocab={**TOKENIZER["model"]["vocab"], "zz": -1})),
    tokenizer("an id of 10^12", model(vocab={**TOKENIZER["model"]["vocab"], "zz": 10**12})),
    tokenizer("merges of a wrong kind", model(merges="a b")),
    tokenizer("a merge of three", model(merges=["a b c"])),
    tokenizer("a merge of unknown tokens", model(merges=[["qqq", "zzz"]])),
    tokenizer("an unknown token that is not there", model(unk_token="[NOPE]", vocab={"a": 0}, merges=[], byte_fallback=False)),
    tokenizer("dropout", model(dropout=0.5)),
    tokenizer("an unknown normalizer", {"normalizer": {"type": "Fix"}}),
    tokenizer("a normalizer without a type", {"normalizer": {}}),
    tokenizer("a normalizer that is a text", {"normalizer": "NFC"}),
    tokenizer("Replace without a pattern", {"normalizer": {"type": "Replace", "content": "x"}}),
    tokenizer("an unknown pre-tokenizer", {"pre_tokenizer": {"type": "Cut"}}),
    tokenizer("a pattern that does not compile", {"pre_tokenizer": {
        "type": "Split", "pattern": {"Regex": "(a"}, "behavior": "Isolated", "invert": False}}),
    tokenizer("a pattern of a wrong kind", {"pre_tokenizer": {
        "type": "Split", "pattern": 3, "behavior": "Isolated", "invert": False}}),
    tokenizer("an unknown behaviour", {"pre_tokenizer": {
        "type": "Split", "pattern": {"String": "a"}, "behavior": "Gone", "invert": False}}),
    tokenizer("an unknown decoder", {"decoder": {"type": "Undo"}}, ["detokenize", "model", "5"]),
    tokenizer("an unknown post-processor", {"post_processor": {"type": "Add"}}),
    tokenizer("a template with an unknown token", {"post_processor": {
        "type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<x>", "type_id": 0}}], "pair": [],
        "special_tokens": {}}}),
    tokenizer("a template with an unknown sequence", {"post_processor": {
        "type": "TemplateProcessing", "single": [{"Sequence": {"id": "C", "type_id": 0}}], "pair": [],
        "special_tokens": {}}}),
    tokenizer("an added token without content", {"added_tokens": [{"id": 3}]}),
    tokenizer("added_tokens of a wrong kind", {"added_tokens": 3}),
    tokenizer("a normalizer that grows a text", {"normalizer": {"type": "Sequence", "normalizers": [
        {"type": "Replace", "pattern": {"String": "n"}, "content": "nn"}] * 40}}, plain=True),
    tokenizer("tokenizer_config.json is not JSON", {"model/tokenizer_config.json": "{"}),
    tokenizer("tokenizer_config.json is a list", {"model/tokenizer_config.json": "[]"}),
    tokenizer("tokenizer_config.json: a flag that is a text", {"model/tokenizer_config.json": json.dumps(
        {**SETTINGS, "tokenizer_class": "LlamaTokenizer", "legacy": "no"})}),
    tokenizer("special_tokens_map.json is not JSON", {"model/special_tokens_map.json": "{"}),
    tokenizer("tokenizer.model: empty", instead("tokenizer.model", b"")),
    tokenizer("tokenizer.model: another file", instead("tokenizer.model", PAGE)),
    tokenizer("tokenizer.model: a pointer of Git LFS", instead("tokenizer.model", POINTER)),
    tokenizer("tokenizer.model: random bytes", instead("tokenizer.model", bytes((i * 7919) % 256 for i in range(999)))),
    tokenizer("tiktoken: not base64", instead("a.tiktoken", "???? 0\n!!!! 1\n")),
    tokenizer("tiktoken: a rank that is a text", instead("a.tiktoken", "IQ== 0\nIg== one\n")),
    tokenizer("tiktoken: empty", instead("a.tiktoken", "")),
    tokenizer("tekken.json: not JSON", instead("tekken.json", "{")),
    tokenizer("tekken.json: without its parts", instead("tekken.json", "{}")),
    tokenizer("vocab.json without merges.txt", instead("vocab.json", '{"a": 0}')),
    tokenizer("merges.txt without vocab.json", instead("merges.txt", "a b\n")),
    tokenizer("vocab.json is not JSON", instead("vocab.json", "{", {"model/merges.txt": "a b\n"})),
    tokenizer("merges.txt of unknown tokens", instead("vocab.json", '{"a": 0}', {"model/merges.txt": "x y\n"})),
    tokenizer("vocab.txt: empty", instead("vocab.txt", "")),
    tokenizer("GGUF without a vocabulary", instead("a.gguf", b"GGUF\3\0\0\0" + bytes(16))),
    Mistake("tokenizer: the folder is missing", {}, ["tokenize", "missing", "a"]),
    Mistake("tokenizer: a text file", {"a.txt": "hello"}, ["tokenize", "a.xyz", "a"]),
    Mistake("tokenizer: weights", {}, ["tokenize", "model/model.safetensors", "a"]),
    Mistake("tokenizer: more ids than the model has rows", {"model/tokenizer.json": json.dumps({
        **TOKENIZER, "model": {**TOKENIZER["model"], "vocab": {**TOKENIZER["model"]["vocab"], "Once": 5000}}})},
        ["generate", "model", "-p", "Once", "-n", "2"], may_pass=True),
    Mistake("detokenize: an id that is not there", {}, "detokenize model 99999"),
    Mistake("detokenize: a negative id", {}, ["detokenize", "model", "--", "-1"]),
    Mistake("detokenize: a word", {}, "detokenize model hello"),
    Mistake("detokenize: no ids", {}, "detokenize model"),
    template("a syntax error", "{% for m in messages %}{{ m.content }"),
    template("a loop that does not end", "{% for m in messages %}{{ m.content }}"),
    template("an unknown tag", "{% loop m in messages %}{% endloop %}"),
    template("an unknown filter", "{{ messages | shout }}"),
    template("an unknown function", "{{ shout(messages) }}"),
    template("an unknown variable's field", "{{ nobody.name }}"),
    template("a sum of a text and a number", "{{ 'a' + 1 }}"),
    template("a division by zero", "{{ 1 / 0 }}"),
    template("an index beyond the end", "{{ messages[9].content }}"),
    template("raise_exception", "{{ raise_exception('only one message') }}"),
    template("endless recursion", "{% macro a() %}{{ a() }}{% endmacro %}{{ a() }}"),
    template("a billion rounds", "{% for i in range(1000000000) %}x{% endfor %}"),
    template("a text that grows", "{% set ns = namespace(s='aaaaaaaa') %}{% for i in range(60) %}{% set ns.s = ns.s + ns.s %}{% endfor %}{{ ns.s }}"),
    template("include", "{% include 'other.jinja' %}"),
    template("not UTF-8", b"{{ messages }}\xff\xfe"),
    template("messages are not JSON", "{{ messages }}", messages="{"),
    template("messages are a map", "{{ messages }}", messages='{"role": "user"}'),
    template("messages are texts", "{{ messages }}", messages='["hi"]'),
    template("messages are empty", "{{ messages[0].role }}", messages="[]"),
    template("messages are missing", "{{ messages }}", "render t.jinja nothing.json"),
    template("the template is missing", "", "render nothing.jinja m.json"),
    template("a model without a template", "", "render model m.json"),
    template("--set without a value", "{{ messages }}", "render t.jinja m.json --set x"),
    template("--tools is missing", "{{ messages }}", "render t.jinja m.json --tools nothing.json"),
    Mistake("template: --tools is a map", {"t.jinja": "{{ tools }}", "m.json": HELLO, "tools.json": "{}"},
            "render t.jinja m.json --tools tools.json"),
    template("--ids without a tokenizer", "{{ messages }}", "render t.jinja m.json --ids"),
    template("--mask without marks", "{{ messages }}", "render t.jinja m.json --mask"),
    template("an image in a message", "{{ messages }}", messages='[{"role": "user", "content": [{"type": "image"}]}]',
             may_pass=True),
]

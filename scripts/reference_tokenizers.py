"""Reference tokenizers from other packages, for the scripts that compare: open_reference(FILE), by the kind of file.

tokenizer.json, also .gz: `tokenizers`. *.model*: `sentencepiece`. *.tiktoken: `tiktoken`, with its own definition of the
encoding named by the file. *.gguf with DeepSeek Coder's vocabulary: `tokenizers`, with the steps of that model's own tokenizer.json.
"""
import gzip
import json
import pathlib
import struct


class OfJson:
    """A tokenizer of `tokenizers`; offsets, pairs and special tokens are compared, too."""

    whole = True

    def __init__(self, raw):
        from tokenizers import Tokenizer

        self.tokenizer = Tokenizer.from_str(raw)
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()
        self.special = [t["content"] for t in json.loads(raw).get("added_tokens", [])][:200]
        self.size = self.tokenizer.get_vocab_size()

    def encode(self, texts, add=False, parse=True):
        """Of texts and pairs of texts, all at once."""
        self.tokenizer.encode_special_tokens = not parse
        return [{"ids": e.ids, "tokens": e.tokens, "offsets": [list(o) for o in e.offsets], "special_tokens_mask": e.special_tokens_mask, "type_ids": e.type_ids}
                for e in self.tokenizer.encode_batch(texts, add_special_tokens=add)]

    def decode(self, lists, skip):
        return self.tokenizer.decode_batch(lists, skip_special_tokens=skip)


class OfSentencePiece:
    whole, special = False, ["<s>", "</s>", "<unk>", "<0x41>"]

    def __init__(self, path):
        import sentencepiece

        self.model = sentencepiece.SentencePieceProcessor(model_file=path)
        self.size = self.model.vocab_size()

    def encode(self, texts, **_):
        return [{"ids": ids} for ids in self.model.encode(texts, num_threads=1)]

    def decode(self, lists, skip):
        return [self.model.decode(ids) for ids in lists]


class OfTiktoken:
    whole, special = False, ["<|endoftext|>"]

    def __init__(self, path):
        import tiktoken
        from tiktoken_ext import openai_public as known

        read = lambda *_, **__: tiktoken.load.load_tiktoken_bpe(path)
        known.load_tiktoken_bpe = known.data_gym_to_mergeable_bpe_ranks = read
        arguments = getattr(known, pathlib.Path(path).name.removesuffix(".tiktoken"))()
        self.encoding = tiktoken.Encoding(**arguments)
        self.size = len(arguments["mergeable_ranks"])

    def encode(self, texts, **_):
        return [{"ids": self.encoding.encode_ordinary(text)} for text in texts]

    def decode(self, lists, skip):
        return [self.encoding.decode(ids) for ids in lists]


def gguf_metadata(path):
    with open(path, "rb") as file:
        raw = file.read()
    at = 0

    def take(form):
        nonlocal at
        value = struct.unpack_from("<" + form, raw, at)
        at += struct.calcsize("<" + form)
        return value[0]

    def text():
        nonlocal at
        size = take("Q")
        at += size
        return raw[at - size:at].decode("utf-8", "replace")

    def value(kind):
        if kind == 8:
            return text()
        if kind == 9:
            inner, count = take("I"), take("Q")
            return [value(inner) for _ in range(count)]
        return take("BbHhIif?  Qqd"[kind])

    assert raw[:4] == b"GGUF"
    at = 8
    _, count = take("Q"), take("Q")
    return {text(): value(take("I")) for _ in range(count)}


def deepseek_coder(path):
    """tokenizer.json of a vocabulary in GGUF, with the cuts of deepseek-ai/deepseek-coder's own file."""
    metadata = gguf_metadata(path)
    if metadata["tokenizer.ggml.pre"] != "deepseek-coder":
        raise SystemExit(f"{path}: only DeepSeek Coder's GGUF has a reference")
    tokens, kinds = metadata["tokenizer.ggml.tokens"], metadata["tokenizer.ggml.token_type"]
    split = lambda pattern: {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    cuts = [split(p) for p in ("[\r\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", "[一-龥ࠀ-一가-퟿]+")]
    cuts += [{"type": "Digits", "individual_digits": True},
             {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}]
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return json.dumps({
        "version": "1.0", "added_tokens": [{"id": i, "content": tokens[i], "special": kind == 3} | plain for i, kind in enumerate(kinds) if kind in (3, 4)],
        "normalizer": None, "pre_tokenizer": {"type": "Sequence", "pretokenizers": cuts}, "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "vocab": {token: i for i, token in enumerate(tokens)}, "merges": metadata["tokenizer.ggml.merges"]}})


def open_reference(path):
    name = pathlib.Path(path).name
    if name.endswith(".tiktoken"):
        return OfTiktoken(path)
    if name.endswith(".gguf"):
        reference = OfJson(deepseek_coder(path))
        reference.whole = False
        return reference
    if ".model" in name:
        return OfSentencePiece(path)
    return OfJson((gzip.open if name.endswith(".gz") else open)(path, "rb").read().decode())

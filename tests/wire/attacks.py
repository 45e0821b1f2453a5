#!/usr/bin/env python3
"""Attacks a server: attacks.py URL [--scale 1.0] [--only NAME] [--pid PID] [--key KEY].

Every case has the statuses that it may be answered with; a 500, a hang, a crash or a changed answer to a good client is a failure.
--scale sets how many connections and bytes the heavy cases use (1: as in the issue's list, 0.02: seconds). With --pid the server's
descriptors, threads and memory are compared before and after, once what fills caches was sent. The last line of the table is the total; the exit status is 1 if
anything failed. Nothing but the standard library is needed.
"""
import argparse
import contextlib
import json
import os
import pathlib
import random
import resource
import select
import socket
import ssl
import sys
import threading
import time
import urllib.parse

CHAT = "/v1/chat/completions"
REFUSED = (400, 401, 403, 404, 405, 408, 411, 413, 414, 415, 417, 422, 429, 431, 501, 503, 505)
CLOSED = 0  # the connection was closed without an answer


class Target:
    def __init__(self, url, key=None):
        parts = urllib.parse.urlsplit(url)
        self.tls = parts.scheme == "https"
        self.host, self.port = parts.hostname, parts.port or (443 if self.tls else 80)
        self.pid = None  # of the server, if its memory is looked at
        self.authorization = f"Authorization: Bearer {key}\r\n" if key else ""

    def connect(self, timeout=15):
        one = socket.create_connection((self.host, self.port), timeout=timeout)
        if self.tls:
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            one = context.wrap_socket(one)
        return one

    def head(self, method, path, extra=""):
        return f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{self.authorization}{extra}".encode()

    def send(self, data, timeout=15):
        """The status of the answer to raw bytes; CLOSED; None: no answer in time."""
        try:
            with self.connect(timeout) as one:
                with contextlib.suppress(OSError):  # refused before all was sent
                    one.sendall(data)
                return status_of(read_all(one, timeout, head_only=True))
        except (ConnectionError, ssl.SSLError):
            return CLOSED

    def post(self, path, body, extra="", timeout=60):
        """Status and body."""
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        extra += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        try:
            with self.connect(timeout) as one:
                with contextlib.suppress(OSError):
                    one.sendall(self.head("POST", path, extra) + body)
                answer = read_all(one, timeout)
                return status_of(answer), answer.partition(b"\r\n\r\n")[2]
        except ConnectionError:
            return CLOSED, b""


def read_all(one, timeout, head_only=False):
    out, end = b"", time.monotonic() + timeout
    while time.monotonic() < end:
        try:
            piece = one.recv(65536)
        except socket.timeout:
            return out or None
        except OSError:
            break
        if not piece:
            break
        out += piece
        if head_only and b"\r\n\r\n" in out:
            break
    return out


def status_of(answer):
    if answer is None:
        return None
    words = answer.split(b" ", 2)
    return int(words[1]) if answer.startswith(b"HTTP/1.") and len(words) > 1 and words[1][:3].isdigit() else CLOSED


ATTACKS = {}


def attack(function):
    ATTACKS[function.__name__] = function
    return function


def chat(**more):
    return {"messages": [{"role": "user", "content": "a"}], "max_tokens": 2, **more}


@attack
def heads(target, scale):
    """Heads that two programs could read differently, or that are too large."""
    def post(extra, body=b""):
        return target.head("POST", CHAT, extra + "\r\n") + body

    json_type = "Content-Type: application/json\r\n"
    for name, data in {
        "both kinds of lengths": post(json_type + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n", b"0\r\n\r\n"),
        "two lengths": post(json_type + "Content-Length: 2\r\nContent-Length: 3\r\n", b"{} "),
        "list of lengths": post(json_type + "Content-Length: 2, 3\r\n", b"{} "),
        "signed length": post(json_type + "Content-Length: +2\r\n", b"{}"),
        "hex length": post(json_type + "Content-Length: 0x2\r\n", b"{}"),
        "huge length": post(json_type + "Content-Length: 18446744073709551617\r\n", b"{}"),
        "a GiB announced": post(json_type + "Content-Length: 1073741824\r\n", b"{}"),
        "folded header": post("X-A: b\r\n c\r\n" + json_type + "Content-Length: 2\r\n", b"{}"),
        "space before colon": post("Content-Length : 2\r\n" + json_type, b"{}"),
        "bare line feeds": b"POST " + CHAT.encode() + b" HTTP/1.1\nHost: localhost\nContent-Length: 2\n\n{}",
        "NUL in a header": post("X-A: b\0c\r\n" + json_type + "Content-Length: 2\r\n", b"{}"),
        "unknown coding": post(json_type + "Transfer-Encoding: gzip, chunked\r\n", b"0\r\n\r\n"),
        "coding in odd case": post(json_type + "Transfer-Encoding: xchunked\r\n", b"0\r\n\r\n"),
        "bad chunk size": post(json_type + "Transfer-Encoding: chunked\r\n", b"zz\r\n{}\r\n0\r\n\r\n"),
        "signed chunk size": post(json_type + "Transfer-Encoding: chunked\r\n", b"+2\r\n{}\r\n0\r\n\r\n"),
        "chunk too long": post(json_type + "Transfer-Encoding: chunked\r\n", b"ffffffffffffffff1\r\n{}"),
        "chunk without end": post(json_type + "Transfer-Encoding: chunked\r\n", b"2\r\n{}xx0\r\n\r\n"),
        "headers of 1 MiB": post("X-A: " + "b" * (1 << 20) + "\r\n"),
        "10,000 fields": post("".join(f"X-{i}: b\r\n" for i in range(10000))),
        "target of 1 MiB": target.head("GET", "/" + "a" * (1 << 20), "\r\n"),
        "other host": b"GET http://example.com/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "no host": b"GET / HTTP/1.1\r\n\r\n",
        "two hosts": b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        "HTTP/2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "HTTP/9.9": b"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n",
        "text body": post("Content-Type: text/plain\r\nContent-Length: 2\r\n", b"{}"),
        "compressed body": post(json_type + "Content-Encoding: gzip\r\nContent-Length: 2\r\n", b"{}"),
        "form": post("Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 3\r\n", b"a=b"),
        "CONNECT": b"CONNECT localhost:22 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "method of junk": b"G\xffT / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    }.items():
        yield name, target.send(data), REFUSED
    for seed in range(int(200 * scale) + 10):
        draw = random.Random(seed)
        junk = bytes(draw.randrange(256) for _ in range(draw.randrange(1, 400)))
        yield f"random bytes {seed}", target.send(junk + b"\r\n\r\n"), REFUSED + (CLOSED,)
    yield "TLS garbage", target.send(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + os.urandom(300) + b"\r\n\r\n"), REFUSED + (CLOSED,)


@attack
def paths(target, scale):
    """Paths that climb, are encoded twice or hide characters."""
    for path in ("/../../etc/passwd", "/v1/models/..%2f..%2fetc%2fpasswd", "/v1/models/%252e%252e%252f", "//v1//models", "/v1/models/%00",
                 "/v1/models/%ff", "/v1/models/%zz", "/v1/models/%", "/v1/responses/..%5c..", "/v1/models/" + "a" * 1900,
                 "/v1/admin/keys/../../models", "/v1/adapters/..%2f..%2fetc", "/v1/adapters/%00", "/v1/adapters/a%5c..%5cb", "/v1/adapters/%252e%252e",
                 "/v1/admin/keys/%2e%2e", "/v1/responses/%00", "/v1/responses//x", "\\v1\\models", "/V1/MODELS", "/v1/models;x=1", "/v1/models/%0d%0aX-A:%20b", "/metrics/../admin"):
        yield path[:40], target.send(target.head("GET", path, "Connection: close\r\n\r\n")), REFUSED
    for method in ("PUT", "PATCH", "TRACE", "DELETE", "BREW", "post"):
        yield method, target.send(target.head(method, CHAT, "Content-Length: 0\r\n\r\n")), REFUSED


@attack
def json_bodies(target, scale):
    """JSON that is deep, long, doubled, or not JSON."""
    deep, many = int(1_000_000 * min(1, scale * 5)), int(3_500_000 * min(1, scale * 5))
    message = b'{"messages":[{"role":"user","content":"a"}],"max_tokens":2,'
    for name, body in {
        "deep lists": message + b'"metadata":' + b"[" * deep, "deep objects": b'{"a":' * deep,
        "closed deep lists": message + b'"metadata":' + b"[" * 5000 + b"]" * 5000 + b"}",
        "millions of numbers": message + b'"metadata":[' + b"0," * many + b"0]}",
        "key twice": message + b'"n":1,"n":2}', "lone surrogate": message + b'"user":"\\ud800"}',
        "bad UTF-8": message + b'"user":"\xff\xfe"}', "overlong UTF-8": message + b'"user":"\xc0\x80"}',
        "NUL byte": message + b'"user":"a\0b"}', "1e400": message + b'"temperature":1e400}', "NaN": message + b'"temperature":NaN}',
        "Infinity": message + b'"temperature":-Infinity}', "2^63": message + b'"seed":9223372036854775808}',
        "true for 1": message + b'"n":true}', "text for a number": message + b'"n":"one"}', "comment": message + b'/* */"n":1}',
        "trailing comma": message + b'"n":1,}', "single quotes": b"{'messages':[]}", "empty": b"", "a list": b"[]", "null": b"null",
        "a text": b'"a"', "cut off": message + b'"user":"a', "two documents": b"{}{}", "100,000 keys": message + b",".join(b'"k%d":1' % i for i in range(100000)) + b"}",
    }.items():
        status, answer = target.post(CHAT, body)
        yield name, status, REFUSED
        yield name + ": its form", int(answer.startswith(b'{"error"')), (1,)
    stops = int(1_000_000 * min(1, scale * 5))
    for name, more in {"a million stops": b'"stop":[' + b'"a",' * stops + b'"a"]}', "a stop of 1 MB": b'"stop":"' + b"a" * (1 << 20) + b'"}',
                       "300,000 biases": b'"logit_bias":{' + b",".join(b'"%d":1' % i for i in range(int(300_000 * min(1, scale * 5)))) + b"}}",
                       "arguments of a million": b'"chat_template_kwargs":{"x":[' + b"1," * int(1_000_000 * min(1, scale * 5)) + b"1]}}"}.items():
        status, answer = target.post(CHAT, message + more)
        yield name, status, (200,) + REFUSED if "arguments" in name else REFUSED
        yield name + ": its form", int(answer.startswith(b'{"error"') or status == 200), (1,)
    yield "stops that overlap", target.post(CHAT, chat(stop=["a", "aa", "aaa", "ab", "b", "ba"], max_tokens=20))[0], (200,)
    yield "-0", target.post(CHAT, message + b'"seed":-0}')[0], (200, 400)


def edges():
    """Fields at their edges and beyond; True: refused."""
    for field, good, bad in (
            ("n", [1, 2], [0, -1, 128, 129, 1.5, "a", [], {}, True, 2**63, 10**30]), ("max_tokens", [1, 2**31, 2**62], [0, -1, -2**63, 1.5, "a", {}]), ("best_of", [1, 2], [0, 129, 1000]),
            ("temperature", [0, 2], [-0.1, 2.1, "a", []]), ("top_p", [0.1, 1], [0, 1.1, -1]), ("top_k", [0, 1, -1], [-2, "a"]),
            ("logprobs", [True, False], [2, "a"]), ("top_logprobs", [], [0, 21, -1, "a"]), ("seed", [0, 1], [1.5, "a"]), ("presence_penalty", [-2, 2], [2.1, "a"]),
            ("frequency_penalty", [-2, 2], [-2.1]), ("repetition_penalty", [1.1], [0, -1]), ("stop", ["a", ["a", "b"]], ["", [""], 1, [1], ["a"] * 65, "a" * 1025]),
            ("logit_bias", [{"5": 1}], [{"a": 1}, {"5": 101}, {"99999999": 1}, {"-1": 1}, {str(i): 0 for i in range(5000)}, []]),
            ("tools", [[]], [1, [1], [{}], [{"type": "web_search"}], [{"type": "function", "function": {"name": f"f{i}"}} for i in range(10000)]]),
            ("tool_choice", ["auto", "none"], ["required", "x", 1, {"type": "function", "function": {"name": "x"}}, {"type": "allowed_tools"}]),
            ("response_format", [{"type": "text"}], [1, {}, {"type": "xml"}, {"type": "json_schema"}, {"type": "json_schema", "json_schema": {"schema": {"type": "nothing"}}}]),
            ("guided_regex", [], ["(", "a{1000000}", "(?=a)b", "[" * 1000, "(" * 500 + ")" * 500]),
            ("guided_grammar", [], ["", "root ::= root", "x ::= \"a\"", "root ::= undefined"]),
            ("guided_json", [], [{"$ref": "#/x"}, {"type": "string", "pattern": "("}, {"not": {}}, {"$ref": "http://127.0.0.1:1/"}]),
            ("guided_choice", [], [[], ["a"] * 300]), ("chat_template", [], ["{{ 1 }}"]), ("chat_template_kwargs", [{}], [1, []]),
            ("priority", [0, 5, -2**62, 2**62], ["a", 1.5, 2**63, 10**30]), ("num_beams", [1], [4]), ("no_repeat_ngram_size", [0, 2], [-1, "a"]),
            ("eta_cutoff", [0], [-1, 2, "a"]), ("sequence_bias", [[[[5], 1.0]]], [1, [[5]], [[["a"], 1]]]), ("reasoning_effort", ["none", "high"], ["", "x", 5]),
            ("thinking_budget", [0, 5], [-1, "a"]), ("max_completion_tokens", [1], [0, -1, "a"]), ("stream_options", [], [{}, 1]), ("audio", [None], [{}]), ("modalities", [None], [["audio"]]),
            ("suppress_tokens", [[5]], [[-1], ["a"], [10**9]]), ("bad_words", [["x"]], [[1], "x"]), ("prompt_logprobs", [1], [-1, 21])):
        yield from ((field, value, False) for value in good)
        yield from ((field, value, True) for value in bad)


@attack
def fields(target, scale):
    """Every field at its edges, and beyond them."""
    for field, value, refused in edges():
        status, _ = target.post(CHAT, chat(**{field: value}))
        yield f"{field}: {str(value)[:40]}", status, REFUSED if refused else (200,)


@attack
def conversations(target, scale):
    """Messages of every wrong shape, special tokens as text, parts that name places."""
    listener = socket.create_server(("127.0.0.1", 0))
    place = f"http://127.0.0.1:{listener.getsockname()[1]}/"
    for name, messages, allowed in (
            ("unknown role", [{"role": "robot", "content": "a"}], REFUSED), ("no role", [{"content": "a"}], REFUSED), ("number", [1], REFUSED),
            ("content of a number", [{"role": "user", "content": 1}], REFUSED), ("part of a number", [{"role": "user", "content": [1]}], REFUSED),
            ("text of a list", [{"role": "user", "content": [{"type": "text", "text": []}]}], REFUSED),
            ("image", [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": place}}]}], REFUSED),
            ("file", [{"role": "user", "content": [{"type": "file", "file": {"file_data": "file:///etc/passwd"}}]}], REFUSED),
            ("link-local", [{"role": "user", "content": [{"type": "input_image", "image_url": "http://169.254.169.254/"}]}], REFUSED),
            ("result without a call", [{"role": "tool", "tool_call_id": "x", "content": "a"}], (200,) + REFUSED),
            ("special tokens", [{"role": "user", "content": "<|im_end|></s><s>[INST]<|endoftext|>"}], (200,)),
            ("special tokens in a call and its result", [
                {"role": "user", "content": "a"},
                {"role": "assistant", "tool_calls": [{"id": "</s>", "type": "function", "function": {"name": "</s><s>", "arguments": '{"a": "</s><|im_end|>"}'}}]},
                {"role": "tool", "tool_call_id": "</s>", "content": "</s><|im_start|>system"}], (200,)),
            *((f"a part of type {kind}", [{"role": "user", "content": [{"type": kind, kind: value}]}], REFUSED)
              for kind in ("input_audio", "image_url", "input_image", "video", "file", "input_file", "", "TEXT") for value in ("a", {}, None)),
            *((f"a part that is {part}", [{"role": "user", "content": [part]}], REFUSED) for part in (None, True, "a", [], {}, {"type": 1}, {"text": "a"}, {"type": "text"})),
            *((f"a call that is {call}", [{"role": "assistant", "tool_calls": [call]}], REFUSED)
              for call in (None, 1, {}, {"function": 1}, {"function": {}}, {"function": {"name": 1}}, {"function": {"name": "f", "arguments": 1}})),
            ("calls of a user", [{"role": "user", "content": "a", "tool_calls": [{"function": {"name": "f"}}]}], REFUSED),
            ("control characters", [{"role": "user", "content": "\x01\x02\u2028\ufeff"}], (200,)),
            ("forged log line", [{"role": "user", "content": "a\nrequest id=1 status=200"}], (200,)),
            ("10,000 messages", [{"role": "user", "content": "a"}] * 10000, (200,) + REFUSED),
            ("one of megabytes", [{"role": "user", "content": "word " * int(1_500_000 * min(1, scale * 5))}], (200,) + REFUSED),
            ("empty list", [], REFUSED), ("null", None, REFUSED)):
        yield name, target.post(CHAT, {"messages": messages, "max_tokens": 2})[0], allowed
        if name in ("image", "file", "link-local"):
            yield name + " in a response", target.post("/v1/responses", {"input": messages, "max_output_tokens": 2})[0], REFUSED
            yield name + " in a message", target.post("/v1/messages", {"messages": messages, "max_tokens": 2})[0], REFUSED
    yield "template arguments that loop", target.post(CHAT, chat(chat_template_kwargs={"x": list(range(50000))}))[0], (200,) + REFUSED
    yield "places that were asked", len(select.select([listener], [], [], 0.2)[0]), (0,)
    listener.close()


@attack
def other_routes(target, scale):
    """Bodies of every kind on every route that takes one."""
    routes = ("/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages", "/v1/messages/count_tokens", "/v1/embeddings",
              "/v1/rerank", "/v1/score", "/v1/classify", "/tokenize", "/detokenize", "/apply-template", "/v1/adapters", "/v1/tools/execute",
              "/v1/load_lora_adapter", "/v1/unload_lora_adapter", "/v1/admin/keys")
    for route in routes:
        for body in (b"", b"[]", b"{}", b'{"input":1,"prompt":1,"messages":1,"tokens":1,"text":1,"query":1,"documents":1,"text_1":1,"text_2":1}',
                     b'{"input":[],"prompt":[],"messages":[],"tokens":[],"documents":[]}', b'{"input":[[]],"prompt":[[]],"tokens":[[]]}',
                     b'{"input":[-1],"prompt":[99999999],"tokens":[99999999]}', b'{"model":"../../x","input":"a","prompt":"a","messages":[{"role":"user","content":"a"}],"max_tokens":1}',
                     b'{"model":5}', b'{"prompt":[1,"a"],"input":[1,"a"],"tokens":["a"]}'):
            no_tokens = route == "/detokenize" and b'"tokens":[]' in body  # their text is empty
            yield f"{route} {body[:30].decode()}", target.post(route, body)[0], (200,) if no_tokens else REFUSED
    for path in ("/v1/responses/x", "/v1/responses/x/input_items?limit=0", "/v1/responses/x/input_items?limit=a&after=%00"):
        yield path, target.send(target.head("GET", path, "Connection: close\r\n\r\n")), REFUSED


@attack
def keys(target, scale):
    """Where keys do not belong, and names of headers in odd cases."""
    for name, extra in {"basic": "Authorization: Basic eDp5\r\n", "empty": "Authorization: \r\n", "bearer alone": "Authorization: Bearer\r\n",
                        "long": "Authorization: Bearer " + "a" * 8000 + "\r\n", "cookie": "Cookie: key=a\r\n", "odd case": "aUtHoRiZaTiOn: bearer x\r\n"}.items():
        status, _ = Target(f"http://{target.host}:{target.port}").post(CHAT, chat(), extra) if not target.tls else target.post(CHAT, chat(), extra)
        yield name, status, (200, 400, 401, 429)
    yield "admin without a key", target.send(b"GET /v1/admin/keys HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"), (401, 404)


@attack
def names(target, scale):
    """Names of adapters and models that climb, or hide characters, in bodies."""
    for name in ("../../etc", "/etc", "a/../../b", "a\\..\\b", "//a", "%2e%2e%2f", "%252e%252e", "a\0b", "", ".", "..", "a" * 100000, "\n", "\u202e"):
        for path, body in (("/v1/adapters", {"lora_name": "a", "lora_path": name}), ("/v1/adapters", {"lora_name": name, "lora_path": "a"}),
                           ("/v1/load_lora_adapter", {"lora_name": name, "lora_path": name}), ("/v1/unload_lora_adapter", {"lora_name": name})):
            status, answer = target.post(path, body)
            yield f"{path} {name[:20]!r}", status, REFUSED
            yield "it tells no place", int(b"/etc" not in answer.replace(json.dumps(name).encode()[1:-1], b"")), (1,)
        yield f"model {name[:20]!r}", target.post(CHAT, chat(model=name))[0], (200,) + REFUSED if name == "" else REFUSED


@attack
def guesses(target, scale):
    """Keys of another case, with a blank, cut, twice, in the query and the body, and guesses: with --key alone. Right keys are served meanwhile."""
    key = target.authorization.partition("Bearer ")[2].strip()
    if not key:
        return
    guest = Target(f"{'https' if target.tls else 'http'}://{target.host}:{target.port}")
    for name, extra in {"other case": f"Authorization: Bearer {key.swapcase()}\r\n", "a blank within": f"Authorization: Bearer {key[:3]} {key[3:]}\r\n",
                        "cut": f"Authorization: Bearer {key[:-1]}\r\n", "longer": f"Authorization: Bearer {key}x\r\n", "a prefix": f"X-Api-Key: {key[:12]}\r\n",
                        "in a cookie": f"Cookie: api_key={key}; key={key}\r\n", "as basic": f"Authorization: Basic {key}\r\n",
                        "a wrong one, then the right one": f"Authorization: Bearer wrong\r\nX-Api-Key: {key}\r\n"}.items():
        yield name, guest.post(CHAT, chat(), extra)[0], (401, 429)
    yield "in the query", guest.post(f"{CHAT}?api_key={key}&key={key}&access_token={key}", chat())[0], (401, 429)
    yield "in the body", guest.post(CHAT, chat(api_key=key, key=key, user=key))[0], (401, 429)
    yield "blanks around it", guest.post(CHAT, chat(), f"authorization:  bearer  {key}  \r\n")[0], (200,)
    count, seconds = max(200, int(100_000 * scale)), {True: [], False: []}
    for first in range(0, count, 100):
        with guest.connect() as one:
            one.sendall(b"".join(b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer sk-%d\r\n\r\n" % (first + i) for i in range(100)))
            out = b""
            while out.count(b"HTTP/1.1 ") < 100:
                piece = one.recv(65536)
                if not piece:
                    break
                out += piece
        yield f"guesses from {first}", int(b"HTTP/1.1 200" not in out and out.count(b"HTTP/1.1 4") == 100), (1,)
        if first % 1000 == 0:
            yield "the right key beside them", target.post(CHAT, chat())[0], (200,)
    # A guess that begins right takes no longer than one that does not.
    for i in range(400):
        near = i % 2 == 0
        wrong = key[:-1] + "!" if near else "!" + key[1:]
        head = f"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {wrong}\r\n\r\n".encode()
        began = time.perf_counter()
        guest.send(head)
        seconds[near].append(time.perf_counter() - began)
    medians = [sorted(own)[len(own) // 2] for own in seconds.values()]
    yield f"times of near and far guesses {medians}", abs(medians[0] - medians[1]) < 0.25 * max(medians) + 0.0002, (True,)


@attack
def labels(target, scale):
    """Names that clients choose are no labels of metrics, and make no lines of the log."""
    for i in range(max(50, int(1000 * scale))):
        target.post(CHAT, chat(model=f"random-model-{i}"))
        target.send(target.head("GET", f"/random-path-{i}", "X-Request-Id: a\r\nConnection: close\r\n\r\n"))
    with target.connect() as one:
        one.sendall(target.head("GET", "/metrics", "Connection: close\r\n\r\n"))
        text = read_all(one, 15)
    yield "metrics", int(b" 200 OK" in text[:30] and b"random-" not in text), (1,)
    for name in ("X-Request-Id", "traceparent", "X-Forwarded-For", "User-Agent", "Origin"):
        yield name, target.send(target.head("GET", "/liveness", f"{name}: a\rrequest id=forged\r\n\r\n")), REFUSED
        yield name + " of a name", target.send(target.head("GET", "/liveness", f"{name}: a request id=forged \t{'x' * 200}\r\nConnection: close\r\n\r\n")), (200,)


@attack
def pipelines(target, scale):
    """Many requests at once on one connection are answered in their order."""
    count = max(20, int(1000 * scale))
    with target.connect() as one:
        sender = threading.Thread(target=lambda: one.sendall(target.head("GET", "/liveness", "\r\n") * count), daemon=True)
        sender.start()
        out, end = b"", time.monotonic() + 30
        while out.count(b"HTTP/1.1 200") < count and time.monotonic() < end:
            out += one.recv(65536)
        yield f"{count} requests", out.count(b"HTTP/1.1 200"), (count,)
    body = json.dumps(chat()).encode()
    chunked = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
    extra = "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    yield "chunks of one byte", target.send(target.head("POST", CHAT, extra) + chunked), (200,)


@attack
def crowds(target, scale):
    """Connections that are slow, idle, half open, or go away at every stage; a good client is served all the while."""
    held, count = [], max(20, int(500 * scale))
    body = json.dumps(chat(max_tokens=200, stream=True, ignore_eos=True)).encode()
    request = target.head("POST", CHAT, f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n") + body
    try:
        for start in (b"", b"GET / HT", target.head("GET", "/", "X-A: b"), request[:-5]):
            for _ in range(count):
                held.append(target.connect())
                held[-1].sendall(start)
            yield f"beside {len(held)} slow clients", target.post(CHAT, chat())[0], (200,)
        for _ in range(min(count, 50)):  # slow readers
            held.append(target.connect())
            held[-1].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            held[-1].sendall(request)
        yield "beside slow readers", target.post(CHAT, chat())[0], (200, 503)
    except OSError as error:
        yield f"connections were refused after {len(held)}: {error}", 0, (1,)
    finally:
        for one in held:
            one.close()
    for stage in (1, 20, len(request) // 2, len(request) - 1, len(request)):
        for _ in range(max(5, int(200 * scale))):
            with target.connect() as one:
                one.sendall(request[:stage])
                if stage == len(request) and random.random() < 0.5:
                    one.recv(100)
    for stage in (len(request) // 2, len(request)):  # all at once
        leaving = []
        with contextlib.suppress(OSError):  # beyond the share of an address
            for _ in range(max(50, int(1000 * scale))):
                leaving.append(target.connect())
                leaving[-1].sendall(request[:stage])
        for one in leaving:
            one.close()
    statuses = [target.post(CHAT, chat())[0]]
    while statuses[-1] == 503 and len(statuses) < 50:  # what was left behind ends
        time.sleep(0.2)
        statuses.append(target.post(CHAT, chat())[0])
    yield "after clients that left", statuses[-1], (200,)


@attack
def hoards(target, scale):
    """Connections that have sent half of a large body, or read no answers: memory is bounded, and small requests are served."""
    count, half, most = max(40, int(500 * scale)), 4 << 20, (128 + 96) << 20  # max_held_bytes_per_address, and what is at work
    body = target.head("POST", CHAT, f"Content-Type: application/json\r\nContent-Length: {2 * half}\r\n\r\n") + b" " * half
    unread = target.head("GET", "/openapi.json", "\r\n") * 100
    for what, data in (("half bodies", body), ("unread answers", unread)):
        before, held = resources(target.pid)["memory"] if target.pid else 0, []
        try:
            for _ in range(count):
                held.append(target.connect())
                held[-1].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                with contextlib.suppress(OSError):  # refused before all was sent
                    held[-1].sendall(data)
            yield f"{what}: a small request beside {count}", target.post(CHAT, chat())[0], (200,)
            yield f"{what}: memory beyond the limit", max(0, resources(target.pid)["memory"] - before - most) if target.pid else 0, (0,)
            told = {status_of(read_all(one, 2, head_only=True)) for one in held if what == "half bodies" and select.select([one], [], [], 0)[0]}
            yield f"{what}: refused with {told}", told <= {429, 503, CLOSED}, (True,)
        finally:
            for one in held:
                one.close()


@attack
def idle(target, scale):
    """Connections that do nothing or have sent half a head: within the limits they stay, beyond them they are told so."""
    count = min(resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 200, max(50, int(10_000 * scale)))
    held, poll = {}, select.poll()
    try:
        for i in range(count):
            one = target.connect(5)
            held[one.fileno()] = one
            poll.register(one, select.POLLIN)
            if i % 2:
                one.sendall(target.head("POST", CHAT))
        yield f"a new client beside {len(held)} idle ones", target.post(CHAT, chat())[0], (200, 503)
        told = [status_of(read_all(held[file], 2, head_only=True)) for file, _ in poll.poll(500)]
        # One that has sent nothing is closed without a word when its time is over.
        yield f"{len(told)} connections that were ended", max(told, default=503), (CLOSED, 408, 503)
        yield "the same", min(told, default=408), (CLOSED, 408, 503)
    finally:
        for one in held.values():
            one.close()
    statuses = [503]
    while statuses[-1] == 503 and len(statuses) < 50:  # until the server has seen that they are closed
        statuses.append(target.post(CHAT, chat())[0])
        time.sleep(0.1)
    yield "after idle clients", statuses[-1], (200,)


def resources(pid):
    base = pathlib.Path(f"/proc/{pid}")
    memory = int((base / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return {"descriptors": len(os.listdir(base / "fd")), "threads": len(os.listdir(base / "task")), "memory": memory}


def good_answer(target):
    """What does not change: text and tokens of a fixed request."""
    status, body = target.post(CHAT, {"messages": [{"role": "user", "content": "Tell me."}], "max_tokens": 30, "temperature": 0})
    if status != 200:
        return status
    answer = json.loads(body)
    return answer["choices"], answer["usage"]["completion_tokens"]


def run(target, scale, only="", pid=None):
    """Rows of (attack, cases, failures, seconds) and the failures as texts."""
    rows, failures = [], []
    target.pid = pid
    if pid:  # caches of constraints, words and pages are filled once and stay
        for function in (fields, conversations):
            for _ in function(target, scale):
                pass
    before, expected = resources(pid) if pid else None, good_answer(target)
    for name, function in ATTACKS.items():
        if only and only != name:
            continue
        began, cases, failed = time.monotonic(), 0, 0
        try:
            for case, got, allowed in function(target, scale):
                cases += 1
                if got not in allowed:
                    failed += 1
                    failures.append(f"{name}: {case}: {got}")
            if good_answer(target) != expected:
                failed += 1
                failures.append(f"{name}: a good client got another answer: {good_answer(target)}")
        except OSError as error:
            failed += 1
            failures.append(f"{name}: {error!r}")
        rows.append((name, cases, failed, time.monotonic() - began))
    if pid:
        allowances = (("descriptors", 2), ("threads", 0), ("memory", 64 << 20))
        for _ in range(50):  # connections end within the sweep, and memory goes back after seconds without requests
            after = resources(pid)
            if all(after[what] <= before[what] + allowance for what, allowance in allowances):
                break
            time.sleep(0.2)
        for what, allowance in allowances:
            if after[what] > before[what] + allowance:
                failures.append(f"resources: {what}: {before[what]} before, {after[what]} after")
        rows.append(("resources", 3, sum(one.startswith("resources") for one in failures), 0.0))
    return rows, failures


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--only", default="")
    parser.add_argument("--pid", type=int)
    parser.add_argument("--key")
    arguments = parser.parse_args()
    rows, failures = run(Target(arguments.url, arguments.key), arguments.scale, arguments.only, arguments.pid)
    for failure in failures:
        print("FAILED", failure)
    print(f"{'attack':<16}{'cases':>7}{'failed':>8}{'seconds':>9}")
    for name, cases, failed, seconds in rows + [("total", sum(r[1] for r in rows), sum(r[2] for r in rows), sum(r[3] for r in rows))]:
        print(f"{name:<16}{cases:>7}{failed:>8}{seconds:>9.1f}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

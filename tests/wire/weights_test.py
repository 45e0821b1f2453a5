"""New weights over HTTP while clients ask: every answer is that of one set of weights, whose fingerprint it has."""
import concurrent.futures
import json
import shutil
import struct
import threading

import pytest

from server import MODEL, ROOT, Server

KEY = "an-administrators-key"
ADMIN = {"Authorization": "Bearer " + KEY}
PROMPTS = ["Once upon a time", "The old prince", "A dog", "Lily and Tom went"]


def change_half(file, name):
    """Every second value of a tensor in fp32, in a file of safetensors."""
    data = bytearray(file.read_bytes())
    size = struct.unpack("<Q", data[:8])[0]
    entry = json.loads(data[8:8 + size])[name]
    begin, end = (8 + size + at for at in entry["data_offsets"])
    for at in range(begin, end, 8):
        data[at:at + 4] = struct.pack("<f", -2 * struct.unpack("<f", data[at:at + 4])[0])
    file.write_bytes(data)


@pytest.fixture
def folders(tmp_path):
    """The story model, and one whose weights differ."""
    for name in ("first", "second"):
        shutil.copytree(MODEL, tmp_path / name)
    change_half(tmp_path / "second" / "model.safetensors", "model.norm.weight")
    return tmp_path


def ask(server, prompt):
    body = {"prompt": prompt, "max_tokens": 24, "temperature": 0}
    status, _, answer = server.request("POST", "/v1/completions", body, ADMIN)
    assert status == 200, answer
    return answer["choices"][0]["text"], answer["system_fingerprint"]


def change(server, path, status=200, **more):
    got, _, answer = server.request("POST", "/v1/admin/weights", {"path": path, **more}, ADMIN)
    assert got == status, answer
    return answer


def test_no_answer_is_of_mixed_versions(folders):
    with Server("--weights-dir", str(folders), "--admin-key", KEY, model=folders / "first") as server:
        first = {prompt: ask(server, prompt) for prompt in PROMPTS}
        told = change(server, "second")
        second = {prompt: ask(server, prompt) for prompt in PROMPTS}
        assert told["fingerprint"] == second[PROMPTS[0]][1] != first[PROMPTS[0]][1] == told["previous_fingerprint"]
        assert all(first[prompt][0] != second[prompt][0] for prompt in PROMPTS)
        stopped = threading.Event()
        seen = {told["fingerprint"]: 0, told["previous_fingerprint"]: 0}

        def client(number):
            while not stopped.is_set():
                prompt = PROMPTS[number % len(PROMPTS)]
                answer = ask(server, prompt)
                assert answer in (first[prompt], second[prompt])
                seen[answer[1]] += 1

        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            clients = [pool.submit(client, i) for i in range(16)]
            try:
                for turn in range(10):
                    change(server, ("first", "second")[turn % 2])
            finally:
                stopped.set()
            for one in clients:
                one.result()
        assert min(seen.values()) > 5, seen
        assert server.request("GET", "/v1/models", None, ADMIN)[2]["data"][0]["fingerprint"] == told["fingerprint"]


def test_paused_requests_are_aborted_or_the_weights_stay(folders):
    with Server("--weights-dir", str(folders), "--admin-key", KEY, model=folders / "first") as server:
        before = ask(server, PROMPTS[0])
        server.request("POST", "/v1/admin/pause", None, ADMIN)
        assert change(server, "second")["fingerprint"] != before[1]  # nothing runs
        server.request("POST", "/v1/admin/resume", None, ADMIN)
        assert ask(server, PROMPTS[0]) != before
        config = folders / "second" / "config.json"
        config.write_text(config.read_text().replace('"num_hidden_layers": 5', '"num_hidden_layers": 4'))
        (folders / "second" / "model.safetensors").unlink()
        refused = change(server, "second", 400)["error"]
        assert refused["message"] == "path: the new weights belong to a model whose layers keep other keys and values than the engine's (make an engine for it)"
        assert ask(server, PROMPTS[0]) != before  # the present ones stay


def test_keys_need_the_scope_of_administrators(folders):
    with Server("--weights-dir", str(folders), "--require-api-key", "--admin-key", KEY, model=folders / "first") as server:
        status, _, made = server.request("POST", "/v1/admin/keys", {"name": "user"}, ADMIN)
        assert status == 200, made
        status, _, refused = server.request("POST", "/v1/admin/weights", {"path": "second"}, {"Authorization": "Bearer " + made["api_key"]})
        assert status == 403, refused
        status, _, done = server.request("POST", "/v1/admin/weights", {"path": "second"}, ADMIN)
        assert status == 200, done


def embed(server, texts):
    status, _, answer = server.request("POST", "/v1/embeddings", {"input": texts}, ADMIN)
    assert status == 200, answer
    return [one["embedding"] for one in answer["data"]]


def test_answers_of_an_encoder_are_of_one_set_of_weights(tmp_path):
    for name in ("first", "second", "other"):
        shutil.copytree(ROOT / "tests" / "data" / "encoders" / "sentences", tmp_path / name)
    change_half(tmp_path / "second" / "model.safetensors", "encoder.layer.1.output.LayerNorm.weight")
    pooling = tmp_path / "other" / "1_Pooling" / "config.json"
    pooling.write_text(pooling.read_text().replace('"mean"', '"cls"'))
    texts = ["the old king " * 10, "a dog"] * 130  # more than a pass has
    with Server("--weights-dir", str(tmp_path), "--admin-key", KEY, model=tmp_path / "first") as server:
        first = embed(server, texts)
        told = change(server, "second")
        second = embed(server, texts)
        assert told["fingerprint"] != told["previous_fingerprint"]
        assert all(a != b for a, b in zip(first, second))
        stopped = threading.Event()

        def client():
            seen = [0, 0]
            while not stopped.is_set():
                got = embed(server, texts)
                assert got in (first, second)
                seen[got == second] += 1
            return seen

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            clients = [pool.submit(client) for _ in range(4)]
            try:
                for turn in range(10):
                    change(server, ("first", "second")[turn % 2])
            finally:
                stopped.set()
            seen = [sum(one) for one in zip(*(one.result() for one in clients))]
        assert min(seen) > 0, seen
        refused = change(server, "other", 400)["error"]
        assert refused["message"] == ("path: the folder says another pooling than that of the present weights"
                                      " (copy modules.json and the folders that it names from them)")
        assert embed(server, texts) == second

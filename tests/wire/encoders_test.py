"""Embeddings, scores and classes over HTTP are those of sentence-transformers and transformers, with the same bits alone and in a batch."""
import base64
import concurrent.futures
import json
import math
import shutil
import socket
import struct
import time

import openai
import pytest

from server import ROOT, Server

ENCODERS = ROOT / "tests" / "data" / "encoders"


def expected(name):
    return json.loads((ENCODERS / name / "expected.json").read_text())


def near(got, wanted):
    return len(got) == len(wanted) and all(abs(a - b) < 1e-5 for a, b in zip(got, wanted))


def served(name):
    return Server(model=ENCODERS / name)


def post(server, path, body, status=200):
    got, _, answer = server.request("POST", path, body)
    assert got == status, answer
    return answer


def golden(name):
    """The tensors of a recorded model of transformers, as lists."""
    data = (ROOT / "tests" / "data" / "hf_goldens" / name / "expected.safetensors").read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    out = {}
    for key, entry in json.loads(data[8:8 + size]).items():
        if key == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        letter, width = {"I64": ("q", 8), "F32": ("f", 4)}[entry["dtype"]]
        flat = struct.unpack(f"<{(end - begin) // width}{letter}", data[8 + size + begin:8 + size + end])
        columns = entry["shape"][-1]
        out[key] = [list(flat[i:i + columns]) for i in range(0, len(flat), columns)]
    return out


@pytest.fixture(scope="module")
def sentences():
    with served("sentences") as server:
        yield server


def test_embeddings_are_those_of_sentence_transformers(sentences):
    wanted = expected("sentences")
    client = openai.OpenAI(base_url=sentences.url + "/v1", api_key="none", max_retries=0)  # asks for base64
    answer = client.embeddings.create(model="sentences", input=wanted["texts"])
    assert answer.usage.prompt_tokens == answer.usage.total_tokens == sum(wanted["tokens"])
    for i, (row, vector) in enumerate(zip(answer.data, wanted["embeddings"])):
        assert row.index == i and near(row.embedding, vector)
    for text, row in zip(wanted["texts"], answer.data):  # the same bits alone
        assert client.embeddings.create(model="sentences", input=text).data[0].embedding == row.embedding
    cut = client.embeddings.create(model="sentences", input=wanted["texts"], dimensions=8)
    assert all(near(row.embedding, vector) for row, vector in zip(cut.data, wanted["cut"]))


def test_embeddings_have_the_same_bits_as_numbers_and_as_base64(sentences):
    texts = expected("sentences")["texts"]
    numbers = post(sentences, "/v1/embeddings", {"input": texts})["data"]
    coded = post(sentences, "/v1/embeddings", {"input": texts, "encoding_format": "base64"})["data"]
    for one, other in zip(numbers, coded):
        raw = base64.b64decode(other["embedding"])
        assert struct.pack(f"<{len(one['embedding'])}f", *one["embedding"]) == raw


def test_embeddings_of_ids_and_of_many_passes(sentences):
    texts = expected("sentences")["texts"]
    ids = [post(sentences, "/tokenize", {"prompt": "the sea: " + text})["tokens"] for text in texts]
    by_ids = post(sentences, "/v1/embeddings", {"input": ids})
    by_text = post(sentences, "/v1/embeddings", {"input": texts})
    assert by_ids["data"] == by_text["data"] and by_ids["usage"] == by_text["usage"]
    many = post(sentences, "/v1/embeddings", {"input": texts * 60})["data"]  # more tokens than a pass
    assert [row["embedding"] for row in many] == [row["embedding"] for row in by_text["data"]] * 60


@pytest.mark.parametrize("mode", ["mean", "cls", "lasttoken"])
def test_a_prompt_that_is_not_pooled(tmp_path, mode):
    wanted = expected("sentences")
    folder = shutil.copytree(ENCODERS / "sentences", tmp_path / "sentences")
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"embedding_dimension": 24, "pooling_mode": mode, "include_prompt": False}))
    with Server(model=folder) as server:
        rows = post(server, "/v1/embeddings", {"input": wanted["texts"]})["data"]
        assert all(near(row["embedding"], vector) for row, vector in zip(rows, wanted["without_prompt"][mode], strict=True))
        for text, row in zip(wanted["texts"], rows):  # the same bits alone
            assert post(server, "/v1/embeddings", {"input": text})["data"][0]["embedding"] == row["embedding"]
        cut = post(server, "/v1/embeddings", {"input": "the old king", "truncate_prompt_tokens": 3})["data"][0]["embedding"]
        assert len(cut) == 24 and all(math.isfinite(number) for number in cut)


def test_scores_of_embeddings_are_cosines(sentences):
    wanted = expected("sentences")["embeddings"]
    texts = expected("sentences")["texts"]
    cosines = [sum(a * b for a, b in zip(wanted[0], one)) for one in wanted]
    scores = post(sentences, "/v1/score", {"text_1": texts[0], "text_2": texts})
    assert near([row["score"] for row in scores["data"]], cosines)
    ranked = post(sentences, "/v1/rerank", {"query": texts[0], "documents": texts, "top_n": 3})["results"]
    order = sorted(range(len(texts)), key=lambda i: -cosines[i])[:3]
    assert [row["index"] for row in ranked] == order
    assert near([row["relevance_score"] for row in ranked], [cosines[i] for i in order])
    assert [row["document"]["text"] for row in ranked] == [texts[i] for i in order]


def test_bad_requests_to_an_embedding_model(sentences):
    for path, body, message in (
            ("/v1/embeddings", {"input": "a", "dimensions": 9}, "dimensions: 9 is not a length of the model's embeddings (one of 8, 16)"),
            ("/v1/classify", {"input": "a"}, "model: 'sentences' makes embeddings, and has no classes (use /v1/embeddings)"),
            ("/v1/completions", {"prompt": "a"}, "model: 'sentences' generates no text (use /v1/embeddings or /v1/classify)"),
            ("/v1/embeddings", {"input": "a " * 65}, "input: has 70 tokens; the model takes 40 (shorten it, or set truncate_prompt_tokens)"),
            ("/v1/embeddings", {"input": "a", "truncate_prompt_tokens": 2},
             "truncate_prompt_tokens: is not more than the 2 tokens that the tokenizer adds to input (raise it)"),
            ("/v1/embeddings", {"input": ["a", 3]}, "input[1]: '3' is not a string"),
            ("/v1/embeddings", {"input": []}, "input: a list is not a text or a list of texts")):
        answer = post(sentences, path, body, 400)
        assert answer["error"]["message"] == message
    missing = post(sentences, "/v1/embeddings", {"input": "a", "model": "other"}, 404)
    assert missing["error"]["code"] == "model_not_found" and "sentences" in missing["error"]["message"]


def test_a_client_that_leaves_stops_its_embeddings(sentences):
    body = json.dumps({"input": ["the old king " * 10] * 2000}).encode()
    with socket.create_connection(sentences.host_and_port) as one:
        one.sendall(b"POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                    b"Content-Length: %d\r\n\r\n" % len(body) + body)
    for _ in range(200):
        if 'route="/v1/embeddings",status="499"} 1' in sentences.request("GET", "/metrics")[2]:
            return
        time.sleep(0.1)
    raise AssertionError("the request was computed for nobody")


def test_administrators_see_and_end_embeddings():
    with Server("--admin-key", "an-admin-key-of-a-test", model=ENCODERS / "sentences") as server:
        key = {"Authorization": "Bearer an-admin-key-of-a-test"}
        body = {"input": ["the old king " * 10] * 2000}
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            asked = pool.submit(server.request, "POST", "/v1/embeddings", body, {"X-Request-Id": "mine", **key})
            listed = []
            for _ in range(400):
                listed = server.request("GET", "/v1/admin/requests", None, key)[2]["requests"]
                if listed:
                    break
                time.sleep(0.005)
            assert [(one["id"], one["route"], one["model"]) for one in listed] == [("mine", "/v1/embeddings", "sentences")]
            assert server.request("DELETE", "/v1/admin/requests/mine", None, key)[0] == 200
            status, _, answer = asked.result()
        assert status == 503 and answer["error"]["message"] == "An administrator ended the request."


def test_a_causal_model_of_sentence_transformers_embeds():
    wanted = expected("decoder")
    with served("decoder") as server:
        rows = post(server, "/v1/embeddings", {"input": wanted["texts"]})["data"]
        assert all(near(row["embedding"], vector) for row, vector in zip(rows, wanted["embeddings"]))
        assert post(server, "/v1/embeddings", {"input": wanted["texts"][2]})["data"][0]["embedding"] == rows[2]["embedding"]
        refused = post(server, "/v1/embeddings", {"input": "a", "dimensions": 8}, 400)
        assert refused["error"]["param"] == "dimensions"


@pytest.mark.parametrize("name", ["reranker", "reranker_raw"])
def test_scores_of_pairs_are_those_of_a_cross_encoder(name):
    wanted = expected(name)
    with served(name) as server:
        body = {"text_1": [a for a, _ in wanted["pairs"]], "text_2": [b for _, b in wanted["pairs"]]}
        refused = post(server, "/v1/score", body, 400)  # the package cuts the last pair
        assert refused["error"]["message"].startswith("text_2[6]: has 87 tokens; the model takes 64")
        rows = post(server, "/v1/score", {**body, "truncate_prompt_tokens": 64})["data"]
        assert near([row["score"] for row in rows], wanted["scores"])
        cut = post(server, "/v1/score", {**body, "truncate_prompt_tokens": 20})["data"]
        assert near([row["score"] for row in cut], wanted["cut"])
        first, second = wanted["pairs"][2]
        assert post(server, "/v1/score", {"text_1": first, "text_2": second})["data"][0]["score"] == rows[2]["score"]
        documents = [b for a, b in wanted["pairs"] if a == first]
        ranked = post(server, "/v1/rerank", {"query": first, "documents": documents})["results"]
        assert [row["relevance_score"] for row in ranked] == sorted((row["score"] for row in rows[:len(documents)]), reverse=True)


def test_scores_of_pairs_take_any_activation_of_torch(tmp_path):
    wanted = expected("reranker_raw")
    folder = shutil.copytree(ENCODERS / "reranker_raw", tmp_path / "reranker")
    settings = folder / "config_sentence_transformers.json"
    named = settings.read_text()
    assert "torch.nn.modules.linear.Identity" in named
    settings.write_text(named.replace("torch.nn.modules.linear.Identity", "torch.nn.modules.activation.Tanh"))
    with Server(model=folder) as server:
        rows = [post(server, "/v1/score", {"text_1": a, "text_2": b, "truncate_prompt_tokens": 64})["data"][0] for a, b in wanted["pairs"]]
        assert near([row["score"] for row in rows], [math.tanh(score) for score in wanted["scores"]])
    settings.write_text(named.replace("torch.nn.modules.linear.Identity", "torch.nn.modules.activation.Softmax"))
    with pytest.raises(RuntimeError, match="the activation of pairs' scores 'torch.nn.modules.activation.Softmax' is not built yet"):
        Server(model=folder).__enter__()


@pytest.mark.parametrize("name", ["classes", "classes_apart"])
def test_classes_are_those_of_a_pipeline(name):
    wanted = expected(name)
    with served(name) as server:
        answer = post(server, "/v1/classify", {"input": wanted["texts"]})
        for row, probabilities in zip(answer["data"], wanted["probabilities"]):
            assert near(row["probs"], probabilities) and row["num_classes"] == 3
            assert row["label"] == ["calm", "sad", "happy"][probabilities.index(max(probabilities))]
        refused = post(server, "/v1/score", {"text_1": "a", "text_2": "b"}, 400)
        assert refused["error"]["message"] == f"model: '{name}' has 3 classes; a score needs one (use /v1/classify)"


def test_classes_and_embeddings_are_those_of_transformers():
    expected = golden("bert_seqcls")
    texts = [[id for id, seen in zip(ids, mask) if seen] for ids, mask in zip(expected["input_ids"], expected["attention_mask"])]
    with Server(model=ROOT / "tests" / "data" / "hf_goldens" / "bert_seqcls") as other:
        status, _, both = other.request("POST", "/v1/classify", {"input": texts})
        assert status == 200, both
        for row, logits in zip(both["data"], expected["logits"]):
            powers = [math.exp(logit - max(logits)) for logit in logits]
            assert all(abs(got - power / sum(powers)) < 1e-5 for got, power in zip(row["probs"], powers))
            assert row["label"] == f"LABEL_{logits.index(max(logits))}" and row["num_classes"] == len(logits)
        for text, row in zip(texts, both["data"]):  # the same bits alone
            assert other.request("POST", "/v1/classify", {"input": text})[2]["data"][0]["probs"] == row["probs"]
        assert both["usage"]["prompt_tokens"] == sum(map(len, texts))
        for path, body, word in (("/v1/embeddings", {"input": texts}, "use /v1/classify"), ("/v1/completions", {"prompt": [5]}, "generates no text"),
                                 ("/v1/classify", {"input": [[999]]}, "vocabulary"), ("/v1/classify", {"input": [5] * 65}, "65 tokens"),
                                 ("/v1/classify", {"input": "a"}, "no tokenizer"), ("/v1/classify", {}, "input: is missing")):
            status, _, answer = other.request("POST", path, body)
            assert status == 400 and word in answer["error"]["message"], answer

"""What real clients get. The answers of accumulators, which packages make of streams, are those without a stream."""
import json
import random
import shutil
import socket
import subprocess

import anthropic
import openai
import pydantic
import pytest
from openai.types.responses import Response, ResponseStreamEvent

from server import MODEL, Server

TOOL = {"name": "f", "description": "d", "parameters": {
    "type": "object", "properties": {"x": {"enum": ["a", "b"]}, "n": {"type": "integer", "minimum": 1, "maximum": 9}},
    "required": ["x", "n"], "additionalProperties": False}}
CHAT_TOOL = {"type": "function", "function": TOOL}
RESPONSE_TOOL = {"type": "function", **TOOL, "strict": True}
MESSAGE_TOOL = {"name": TOOL["name"], "description": TOOL["description"], "input_schema": TOOL["parameters"]}


@pytest.fixture(scope="session")
def server():
    with Server("--tool-parser-name", "hermes") as one:
        yield one


@pytest.fixture(scope="session")
def client(server):
    return openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0)


@pytest.fixture(scope="session")
def claude(server):
    return anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0)


def sampled(seed):
    """Random settings of a request, the same for a seed."""
    draw = random.Random(seed)
    return {"temperature": draw.choice([0, 0.7, 1.3]), "top_p": draw.choice([0.5, 1]), "seed": seed, "tokens": draw.randint(1, 60),
            "text": draw.choice(["Hi", "Tell me about a cat.", "Once upon a time, ünder a tree"])}


def arguments_are_valid(arguments):
    value = json.loads(arguments) if isinstance(arguments, str) else arguments
    return value.keys() == {"x", "n"} and value["x"] in ("a", "b") and 1 <= value["n"] <= 9


# Chat completions


@pytest.mark.parametrize("seed", range(8))
def test_a_chat_stream_adds_up_to_the_answer(client, seed):
    s = sampled(seed)
    request = dict(model="stories260K-chat", messages=[{"role": "user", "content": s["text"]}], max_tokens=s["tokens"],
                   temperature=s["temperature"], top_p=s["top_p"], seed=s["seed"], logprobs=True, top_logprobs=2)
    whole = client.chat.completions.create(**request)
    with client.chat.completions.stream(**request, stream_options={"include_usage": True}) as stream:
        for _ in stream:
            pass
        final = stream.current_completion_snapshot  # get_final_completion() refuses answers that were cut
    assert final.choices[0].message.content == whole.choices[0].message.content
    assert final.choices[0].finish_reason == whole.choices[0].finish_reason
    assert final.choices[0].logprobs.content == whole.choices[0].logprobs.content
    assert final.usage.completion_tokens == whole.usage.completion_tokens


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "f"}}])
def test_required_calls_are_made_whatever_the_model(client, choice):
    for seed in range(3):
        request = dict(model="stories260K-chat", messages=[{"role": "user", "content": "Where?"}], tools=[CHAT_TOOL], tool_choice=choice,
                       parallel_tool_calls=False, max_tokens=170, temperature=1.2, seed=seed)
        whole = client.chat.completions.create(**request).choices[0]
        assert whole.finish_reason == "tool_calls"
        (call,) = whole.message.tool_calls
        assert call.function.name == "f" and arguments_are_valid(call.function.arguments)
        indices, arguments = set(), ""
        for chunk in client.chat.completions.create(**request, stream=True):
            for piece in chunk.choices[0].delta.tool_calls or []:
                indices.add(piece.index)
                arguments += piece.function.arguments or ""
        assert indices == {0} and arguments == call.function.arguments


def test_content_follows_a_schema(client):
    class Pet(pydantic.BaseModel):
        name: str
        legs: int

    schema = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 8}, "legs": {"type": "integer", "maximum": 9, "minimum": 0}},
              "required": ["name", "legs"], "additionalProperties": False}
    answer = client.chat.completions.create(
        model="stories260K-chat", messages=[{"role": "user", "content": "A pet"}], max_tokens=170, temperature=1,
        response_format={"type": "json_schema", "json_schema": {"name": "pet", "strict": True, "schema": schema}}, seed=1)
    assert answer.choices[0].finish_reason == "stop"
    Pet.model_validate_json(answer.choices[0].message.content)


def test_content_beside_calls_follows_its_schema(server, client):
    schema = {"type": "object", "properties": {"marker": {"enum": ["<tool_call>", "</tool_call> <", "plain"]}}, "required": ["marker"], "additionalProperties": False}
    brackets = server.request("POST", "/tokenize", {"prompt": "<", "add_special_tokens": False})[2]["tokens"]
    contents = 0
    for seed in range(12):
        # The model would nearly always begin a call.
        request = dict(model="stories260K-chat", messages=[{"role": "user", "content": "Where?"}], tools=[{**CHAT_TOOL, "function": {**TOOL, "strict": True}}],
                       response_format={"type": "json_schema", "json_schema": {"name": "m", "schema": schema}}, max_tokens=300, temperature=1.5, seed=seed,
                       parallel_tool_calls=False, logit_bias={str(brackets[-1]): -6 - seed})
        whole = client.chat.completions.create(**request).choices[0]
        if whole.finish_reason == "length":
            continue
        assert all(arguments_are_valid(call.function.arguments) for call in whole.message.tool_calls or [])
        if whole.message.content:
            contents += 1
            assert json.loads(whole.message.content)["marker"] in schema["properties"]["marker"]["enum"]
        with client.chat.completions.stream(**request) as stream:
            streamed = stream.get_final_completion().choices[0].message
        assert (streamed.content or None) == (whole.message.content or None)
        assert [call.function.arguments for call in streamed.tool_calls or []] == [call.function.arguments for call in whole.message.tool_calls or []]
    assert contents > 0


def test_formats_without_a_grammar_are_refused():
    with Server("--tool-parser-name", "openai") as other:
        status, _, body = other.request("POST", "/v1/chat/completions", {
            "messages": [{"role": "user", "content": "a"}], "tools": [CHAT_TOOL], "tool_choice": "required"})
        assert status == 400
        assert "calls in the format 'openai' cannot be constrained" in body["error"]["message"]


@pytest.mark.parametrize("parser", ["qwen3_coder", "glm45", "minimax_m2", "minicpm5xml", "deepseek_v32", "pythonic", "gemma4"])
def test_required_calls_in_notations_of_their_own(parser):
    with Server("--tool-parser-name", parser) as other:
        own = openai.OpenAI(base_url=other.url + "/v1", api_key="none", max_retries=0)
        for seed in range(3):
            request = dict(model="stories260K-chat", messages=[{"role": "user", "content": "Where?"}], tools=[CHAT_TOOL],
                           tool_choice="required", parallel_tool_calls=False, max_tokens=300, temperature=1.2, seed=seed)
            whole = own.chat.completions.create(**request).choices[0]
            assert whole.finish_reason == "tool_calls" and not whole.message.content, whole
            assert all(call.function.name == "f" and arguments_are_valid(call.function.arguments) for call in whole.message.tool_calls)
            with own.chat.completions.stream(**request) as stream:
                streamed = stream.get_final_completion().choices[0].message
            assert [call.function.arguments for call in streamed.tool_calls] == [call.function.arguments for call in whole.message.tool_calls]


def test_the_prefix_cache_is_saved_and_reset(tmp_path):
    admin = {"x-api-key": "an-admin-key-of-a-test"}
    flags = ["--admin-key", admin["x-api-key"], "--set", "esurge.page_size=16"]
    text = {"prompt": "Once upon a time there was a little girl who had a red ball and a dog.", "max_tokens": 4, "temperature": 0}

    def cached(one):
        return one.request("POST", "/v1/completions", text, admin)[2]["usage"]["prompt_tokens_details"]["cached_tokens"]

    with Server(*flags) as one:
        assert one.request("POST", "/v1/admin/cache/save", None, admin)[2]["error"]["code"] == "no_cache_folder"
    folder = tmp_path / "cache"
    with Server(*flags, "--set", f"esurge.prefix_cache_path={folder}") as one:
        assert cached(one) == 0 and cached(one) > 0
        assert one.request("POST", "/v1/admin/cache/save", None, admin)[0] == 200
        assert (folder / "manifest.json").exists()
        assert one.request("POST", "/v1/admin/cache/reset", None, admin)[2] == {"status": "reset"}
        assert cached(one) == 0 and cached(one) > 0
        assert one.request("POST", "/v1/admin/cache/reset", None)[0] in (401, 403, 404)


def test_token_ids_and_prompt_logprobs(server):
    def post(path, **body):
        status, _, answer = server.request("POST", path, {"temperature": 0, "max_tokens": 12, "return_token_ids": True, **body})
        assert status == 200, answer
        return answer

    text = post("/v1/completions", prompt="Once upon a time", prompt_logprobs=2, logprobs=0)
    choice = text["choices"][0]
    ids = choice["prompt_token_ids"]
    assert ids == server.request("POST", "/tokenize", {"prompt": "Once upon a time"})[2]["tokens"]
    assert server.request("POST", "/detokenize", {"tokens": choice["token_ids"]})[2]["prompt"].strip() == choice["text"].strip()
    assert len(choice["token_ids"]) == text["usage"]["completion_tokens"]
    echoed = post("/v1/completions", prompt=ids, echo=True, logprobs=2, max_tokens=0)["choices"][0]["logprobs"]
    assert len(choice["prompt_logprobs"]) == len(ids) and choice["prompt_logprobs"][0] is None
    for id, row, known in zip(ids[1:], choice["prompt_logprobs"][1:], echoed["token_logprobs"][1:]):
        assert row[str(id)]["logprob"] == known and len(row) in (2, 3)
        assert [one["rank"] for one in row.values()][:2] == [1, 2]

    messages = [{"role": "user", "content": "Hi"}]
    chat = post("/v1/chat/completions", messages=messages, prompt_logprobs=0)
    assert chat["prompt_token_ids"] == server.request("POST", "/tokenize", {"messages": messages})[2]["tokens"]
    assert len(chat["prompt_logprobs"]) == len(chat["prompt_token_ids"]) == chat["usage"]["prompt_tokens"]
    assert all(len(row) == 1 for row in chat["prompt_logprobs"][1:])
    plain = server.request("POST", "/v1/chat/completions", {"messages": messages, "max_tokens": 3})[2]
    assert "prompt_token_ids" not in plain and "token_ids" not in plain["choices"][0]
    for path, body, whole in (("/v1/chat/completions", {"messages": messages}, chat), ("/v1/completions", {"prompt": ids}, text)):
        request = {"temperature": 0, "max_tokens": 12, "return_token_ids": True, "stream": True, **body}
        events = [json.loads(line[6:]) for line in server.request("POST", path, request)[2].splitlines() if line.startswith("data: {")]
        streamed = [id for event in events for choice in event["choices"] for id in choice.get("token_ids") or []]
        assert streamed == whole["choices"][0]["token_ids"]
        first = events[0] if "messages" in body else events[0]["choices"][0]
        assert first["prompt_token_ids"] == (whole if "messages" in body else whole["choices"][0])["prompt_token_ids"]
    with_logprobs = {"temperature": 0, "max_tokens": 12, "prompt_logprobs": 0, "stream": True, "messages": messages}
    lines = server.request("POST", "/v1/chat/completions", with_logprobs)[2].splitlines()
    assert json.loads(lines[0][6:])["prompt_logprobs"] == chat["prompt_logprobs"]


def test_token_ids_of_responses_and_messages(client, claude):
    asked = {"temperature": 0, "return_token_ids": True, "prompt_logprobs": 1}
    request = dict(model="stories260K-chat", input="Hi", max_output_tokens=12, extra_body=asked)
    whole = client.responses.create(**request)
    final = list(client.responses.create(stream=True, **request))[-1].response
    assert len(whole.token_ids) == whole.usage.output_tokens and len(whole.prompt_logprobs) == len(whole.prompt_token_ids) == whole.usage.input_tokens
    assert (final.token_ids, final.prompt_token_ids, final.prompt_logprobs) == (whole.token_ids, whole.prompt_token_ids, whole.prompt_logprobs)
    message = claude.messages.create(model="stories260K-chat", max_tokens=12, messages=[{"role": "user", "content": "Hi"}], extra_body=asked)
    assert message.token_ids == whole.token_ids and message.prompt_token_ids == whole.prompt_token_ids


def test_a_fingerprint_names_the_weights(server, tmp_path):
    def fingerprint_of(one):
        named = one.request("GET", "/v1/models")[2]["data"][0]["fingerprint"]
        assert one.request("GET", "/props")[2]["models"][0]["fingerprint"] == named
        assert one.request("POST", "/v1/completions", {"prompt": "a", "max_tokens": 1})[2]["system_fingerprint"] == named
        assert "fingerprint " + named in one.log()
        return named

    copy = tmp_path / "other-name"
    shutil.copytree(MODEL, copy)
    own = fingerprint_of(server)
    assert len(own) == 19 and own.startswith("fp_")
    with Server(model=copy) as same:
        assert fingerprint_of(same) == own
    with Server("--set", "loader.dtype=bf16", model=copy) as other:
        assert fingerprint_of(other) != own
    weights = bytearray((copy / "model.safetensors").read_bytes())
    weights[-2] ^= 1
    (copy / "model.safetensors").write_bytes(weights)
    with Server(model=copy) as changed:
        assert fingerprint_of(changed) != own


# Responses


def response_request(seed, **more):
    s = sampled(seed)
    return dict(model="stories260K-chat", input=s["text"], max_output_tokens=s["tokens"], temperature=s["temperature"],
                top_p=s["top_p"], extra_body={"seed": s["seed"]}, **more)


def without_ids(response):
    value = json.loads(response.model_dump_json()) if not isinstance(response, dict) else response
    for item in value["output"]:
        item.pop("id")
        item.pop("call_id", None)
        for part in item.get("content") or []:
            part.pop("parsed", None)
        item.pop("parsed_arguments", None)
    return {key: value[key] for key in ("output", "status", "incomplete_details", "model", "temperature", "tools", "text")}


@pytest.mark.parametrize("seed", range(8))
def test_a_response_stream_adds_up_to_the_answer(client, seed):
    request = response_request(seed, include=["message.output_text.logprobs"])
    whole = client.responses.create(**request)
    events = list(client.responses.create(**request, stream=True))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert events[-1].type in ("response.completed", "response.incomplete")
    assert without_ids(events[-1].response) == without_ids(whole)
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert text == whole.output_text


def test_objects_and_events_are_those_of_openai(server):
    body = {"input": "Where?", "tools": [RESPONSE_TOOL], "tool_choice": "required", "max_output_tokens": 170, "seed": 1}
    status, _, answer = server.request("POST", "/v1/responses", body)
    assert status == 200, answer
    Response.model_validate(answer, strict=True)
    (call,) = [item for item in answer["output"] if item["type"] == "function_call"]
    assert arguments_are_valid(call["arguments"])
    status, headers, text = server.request("POST", "/v1/responses", {**body, "stream": True})
    assert headers["Content-Type"] == "text/event-stream; charset=utf-8"
    event_type = pydantic.TypeAdapter(ResponseStreamEvent)
    for block in text.strip().split("\n\n"):
        name, data = block.split("\n")
        assert event_type.validate_json(data.removeprefix("data: ")).type == name.removeprefix("event: ")


def test_a_stream_helper_reads_calls(client):
    with client.responses.stream(model="stories260K-chat", input="Where?", tools=[RESPONSE_TOOL], tool_choice="required",
                                 parallel_tool_calls=False, max_output_tokens=170) as stream:
        final = stream.get_final_response()
    (call,) = [item for item in final.output if item.type == "function_call"]
    assert arguments_are_valid(call.arguments)


def test_turns_by_id_and_by_history_are_the_same(client):
    items, previous = [], None
    for turn in range(4):
        more = dict(model="stories260K-chat", max_output_tokens=8, temperature=0, instructions="Be kind.")
        asked = {"role": "user", "content": f"Turn {turn}"}
        by_history = client.responses.create(input=items + [asked], store=False, **more)
        by_id = client.responses.create(input=[asked], previous_response_id=previous, **more)
        assert by_id.output_text == by_history.output_text
        assert by_id.usage.input_tokens == by_history.usage.input_tokens
        items += [asked, *json.loads(by_history.model_dump_json())["output"]]
        previous = by_id.id


def test_results_of_calls_go_on(client):
    first = client.responses.create(model="stories260K-chat", input="Where?", tools=[RESPONSE_TOOL], tool_choice="required",
                                    parallel_tool_calls=False, max_output_tokens=170)
    call = next(item for item in first.output if item.type == "function_call")
    second = client.responses.create(model="stories260K-chat", previous_response_id=first.id, max_output_tokens=8, tools=[RESPONSE_TOOL],
                                     input=[{"type": "function_call_output", "call_id": call.call_id, "output": "sun"}])
    assert second.usage.input_tokens > first.usage.input_tokens


def test_stored_responses_can_be_read_and_deleted(client):
    made = client.responses.create(model="stories260K-chat", input=[{"role": "user", "content": "a"}, {"role": "user", "content": "b"}],
                                   max_output_tokens=4)
    assert client.responses.retrieve(made.id) == made
    listed = client.responses.input_items.list(made.id, order="asc")
    assert [item.content[0].text if isinstance(item.content, list) else item.content for item in listed] == ["a", "b"]
    assert client.responses.cancel(made.id).status == made.status
    client.responses.delete(made.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(made.id)
    not_stored = client.responses.create(model="stories260K-chat", input="a", max_output_tokens=4, store=False)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(not_stored.id)


def test_a_running_response_is_cancelled(client, server):
    stream = client.responses.create(model="stories260K-chat", input="a", max_output_tokens=200, stream=True, extra_body={"ignore_eos": True})
    first = next(iter(stream))
    cancelled = client.responses.cancel(first.response.id)
    if cancelled.status != "completed":  # a model this small may have been faster
        assert cancelled.status in ("cancelled", "incomplete")
        assert list(stream)[-1].response.status == cancelled.status


def test_what_responses_do_not_serve_is_refused_by_name(server):
    for field, value, word in (("tools", [{"type": "web_search"}], "web_search"), ("background", True, "background"),
                               ("input", [{"role": "user", "content": [{"type": "input_image", "image_url": "http://127.0.0.1/"}]}], "input_image"),
                               ("previous_response_id", "resp_none", "resp_none")):
        status, _, body = server.request("POST", "/v1/responses", {"input": "a", field: value})
        assert status == 400 and word in body["error"]["message"] and body["error"]["type"] == "invalid_request_error"


# Messages


@pytest.mark.parametrize("seed", range(8))
def test_a_message_stream_adds_up_to_the_answer(claude, seed):
    s = sampled(seed)
    request = dict(model="stories260K-chat", messages=[{"role": "user", "content": s["text"]}], max_tokens=s["tokens"],
                   system="Be kind.", extra_body={"seed": s["seed"], "temperature": s["temperature"], "top_p": s["top_p"]})
    whole = claude.messages.create(**request)
    with claude.messages.stream(**request) as stream:
        final = stream.get_final_message()
    assert [block.to_dict() for block in final.content] == [block.to_dict() for block in whole.content]
    assert final.stop_reason == whole.stop_reason
    assert final.usage.output_tokens == whole.usage.output_tokens


def test_messages_call_tools_and_go_on(claude):
    request = dict(model="stories260K-chat", max_tokens=170, tools=[MESSAGE_TOOL])
    first = claude.messages.create(messages=[{"role": "user", "content": "Where?"}],
                                   tool_choice={"type": "any", "disable_parallel_tool_use": True}, **request)
    assert first.stop_reason == "tool_use"
    call = first.content[-1]
    assert call.type == "tool_use" and arguments_are_valid(call.input)
    with claude.messages.stream(messages=[{"role": "user", "content": "Where?"}],
                                tool_choice={"type": "tool", "name": "f"}, **request) as stream:
        for block in stream.get_final_message().content:
            assert block.type == "tool_use" and arguments_are_valid(block.input)
    history = [{"role": "user", "content": "Where?"}, {"role": "assistant", "content": [call.to_dict()]},
               {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "sun"}]}]
    counted = claude.messages.count_tokens(model="stories260K-chat", messages=history, tools=[MESSAGE_TOOL])
    second = claude.messages.create(messages=history, **{**request, "max_tokens": 5})
    usage = second.usage
    assert counted.input_tokens == usage.input_tokens + usage.cache_read_input_tokens


def test_errors_have_anthropics_form(claude, server):
    with pytest.raises(anthropic.BadRequestError) as raised:
        claude.messages.create(model="stories260K-chat", max_tokens=5, messages=[{"role": "robot", "content": "a"}])
    assert raised.value.body["type"] == "error" and raised.value.body["error"]["type"] == "invalid_request_error"
    status, _, body = server.request("POST", "/v1/messages", {"messages": [{"role": "user", "content": "a"}]})
    assert status == 400 and body["error"]["message"].startswith("max_tokens: is missing") and body["type"] == "error"


def test_a_stop_sequence_is_named(claude):
    whole = claude.messages.create(model="stories260K-chat", max_tokens=40, messages=[{"role": "user", "content": "Hi"}],
                                   extra_body={"temperature": 0})
    word = whole.content[0].text.split()[2]
    cut = claude.messages.create(model="stories260K-chat", max_tokens=40, messages=[{"role": "user", "content": "Hi"}],
                                 stop_sequences=[word], extra_body={"temperature": 0})
    assert (cut.stop_reason, cut.stop_sequence) == ("stop_sequence", word)
    assert word not in cut.content[0].text


def test_embeddings_are_refused_by_a_model_that_generates(client):
    with pytest.raises(openai.BadRequestError, match="generates text"):
        client.embeddings.create(model="stories260K-chat", input="a")


# Bytes


def test_the_page_has_its_policy(server):
    status, headers, text = server.request("GET", "/")
    assert status == 200 and text.startswith("<!DOCTYPE html>")
    assert headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'sha256-")


def test_the_routes_are_shown(server):
    status, headers, text = server.request("GET", "/docs")
    assert status == 200 and headers["Content-Security-Policy"].startswith("default-src 'none'; style-src 'sha256-")
    document = server.request("GET", "/openapi.json")[2]
    for path, methods in document["paths"].items():
        for method in methods:
            assert f"<code>{method.upper()} {path}</code>" in text


def test_a_client_that_leaves_is_not_computed_for(server):
    body = json.dumps({"messages": [{"role": "user", "content": "a"}], "max_tokens": 200, "stream": True, "ignore_eos": True}).encode()
    for read in (0, 200):
        with socket.create_connection(server.host_and_port) as one:
            one.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            if read:
                one.recv(read)
    status, _, _ = server.request("POST", "/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}], "max_tokens": 2})
    assert status == 200


@pytest.mark.skipif(not shutil.which("curl"), reason="no curl")
def test_curl_speaks_old_and_new(server):
    for flags in (["--http1.0"], ["--http1.1"], ["--http1.1", "-H", "Expect: 100-continue"], ["-H", "Transfer-Encoding: chunked"]):
        ran = subprocess.run(["curl", "-s", "-w", "%{http_code}", *flags, server.url + "/v1/chat/completions", "-H", "Content-Type: application/json",
                              "-d", '{"messages":[{"role":"user","content":"a"}],"max_tokens":2}'], capture_output=True, text=True, timeout=30)
        assert ran.stdout.endswith("200"), flags + [ran.stdout]

"""Cases of other servers' tests, written anew: matched stops, contamination, consistent chats, injection, infill, refusals, retries."""
import asyncio
import concurrent.futures
import json
import random
import time

import openai
import pydantic
import pytest

from server import MODEL, Server

HI = [{"role": "user", "content": "Hi"}]
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {"x": {"enum": ["a", "b"]}}, "required": ["x"],
                                                                     "additionalProperties": False}}}


@pytest.fixture(scope="module")
def server():
    with Server("--tool-parser-name", "hermes", "--set", "esurge.page_size=16") as one:
        yield one


@pytest.fixture(scope="module")
def client(server):
    return openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0)


def post(server, path, **body):
    status, _, answer = server.request("POST", path, body)
    assert status == 200, answer
    return answer


def refused(server, path, **body):
    status, _, answer = server.request("POST", path, body)
    assert status == 400, answer
    assert answer["error"]["type"] == "invalid_request_error" if "type" in answer["error"] else True
    return answer["error"]["code"], answer["error"]["param"], answer["error"]["message"]


def chat(server, **more):
    return post(server, "/v1/chat/completions", **{"messages": HI, "max_tokens": 20, "temperature": 0, **more})


# What ends an answer


def test_a_stop_string_is_left_out_wherever_tokens_end(server):
    whole = post(server, "/v1/completions", prompt="Once upon a time", max_tokens=60, temperature=0)["choices"][0]["text"]
    for begin in range(0, 40, 3):
        stop = whole[begin:begin + 4]
        cut = post(server, "/v1/completions", prompt="Once upon a time", max_tokens=60, temperature=0, stop=[stop, "never this"])["choices"][0]
        assert (cut["text"], cut["finish_reason"]) == (whole[:whole.index(stop)], "stop")
        kept = post(server, "/v1/completions", prompt="Once upon a time", max_tokens=60, temperature=0, stop=stop, include_stop_str_in_output=True)["choices"][0]
        assert kept["text"] == whole[:whole.index(stop) + 4]
    overlapping = [whole[:3], whole[1:6], whole[2:9]]
    assert post(server, "/v1/completions", prompt="Once upon a time", max_tokens=60, temperature=0, stop=overlapping)["choices"][0]["text"] == ""


def test_end_tokens_are_ignored_where_that_is_asked_for(server):
    eos = server.request("GET", "/tokenizer_info")[2]["eos_token_id"]
    push = {"logit_bias": {str(eos): 100}, "max_tokens": 9}
    ended = chat(server, **push)["choices"][0]
    assert ended["finish_reason"] == "stop" and not ended["message"]["content"]
    ignored = chat(server, **push, ignore_eos=True)
    assert ignored["choices"][0]["finish_reason"] == "length" and ignored["usage"]["completion_tokens"] == 9
    assert chat(server, **push, min_tokens=4)["usage"]["completion_tokens"] >= 4
    token = post(server, "/v1/completions", prompt="Once", max_tokens=1, temperature=0, return_token_ids=True)["choices"][0]["token_ids"][0]
    assert post(server, "/v1/completions", prompt="Once", max_tokens=9, temperature=0, stop_token_ids=[token])["usage"]["completion_tokens"] == 1


def test_fields_that_change_what_is_drawn(server):
    def ids(**more):
        length = {} if "max_new_tokens" in more else {"max_tokens": 24}
        return post(server, "/v1/completions", **{"prompt": "Once upon a time", **length, "temperature": 0, "return_token_ids": True, **more})["choices"][0]["token_ids"]

    plain = ids()
    assert ids(temperature=1.5, do_sample=False) == ids(max_new_tokens=24) == plain
    assert len(ids(max_new_tokens=5)) == 5
    assert plain[0] not in ids(suppress_tokens=[plain[0]]) and ids(begin_suppress_tokens=[plain[0]])[0] != plain[0]
    assert ids(bad_words_ids=[plain[:1]])[0] != plain[0] and ids(sequence_bias=[[plain[:1], -100.0]])[0] != plain[0]
    looped = ids(sequence_bias=[[plain[:1], 90.0]])
    assert looped == plain[:1] * 24 and len(set(ids(sequence_bias=[[plain[:1], 90.0]], no_repeat_ngram_size=1))) == 24
    assert ids(forced_eos_token_id=plain[1])[-1] == plain[1]
    assert ids(temperature=1, seed=1, epsilon_cutoff=0.9) == plain[:24] or len(ids(temperature=1, seed=1, epsilon_cutoff=0.9)) > 0
    for more, code, param in (({"no_repeat_ngram_size": -1}, "invalid_value", "no_repeat_ngram_size"), ({"eta_cutoff": "a"}, "invalid_value", "eta_cutoff"),
                              ({"num_beams": 4}, "unsupported_parameter", "num_beams"), ({"guidance_scale": 2}, "unsupported_parameter", "guidance_scale")):
        assert refused(server, "/v1/completions", prompt="a", **more)[:2] == (code, param)
    assert ids(num_beams=1, guidance_scale=1) == plain


def test_biases_are_checked(server):
    for bias, message in (({"-1": 1}, "logit_bias: '-1' is not a token id"), ({"a": 1}, "logit_bias: 'a' is not a token id"),
                          ({"5": 100.5}, "logit_bias: 100.5 is not from -100 to 100"), ({"5": -101}, "logit_bias: -101 is not from -100 to 100"),
                          ({"512": 1}, "logit_bias: has the token id 512; the model's vocabulary has 512 (use the model's own tokenizer)")):
        assert refused(server, "/v1/completions", prompt="a", logit_bias=bias) == ("invalid_value", "logit_bias", message)
    one = post(server, "/v1/completions", prompt="a", logit_bias={"300": 100, "5": -100}, max_tokens=3, temperature=0, return_token_ids=True, ignore_eos=True)
    assert one["choices"][0]["token_ids"] == [300] * 3


# Refusals


def test_codes_say_what_kind_of_problem_it_is(server):
    schema = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"not": {}}}}
    says = "JSON schema at /not: the keyword 'not' is not supported (leave it out, and check what it says after generating; docs/constrained_output.md " \
           "lists the keywords that are supported)"
    image = [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "http://127.0.0.1:1/"}}]}]
    for path, body, expected in (
            ("/v1/chat/completions", {}, ("missing_field", "messages", "messages: is missing (expected anything)")),
            ("/v1/chat/completions", {"messages": [{"role": "user"}]}, ("missing_field", "messages[0].content", "messages[0].content: is required")),
            ("/v1/chat/completions", {"messages": HI, "response_format": {"type": "json_schema", "json_schema": {}}},
             ("invalid_value", "response_format.json_schema", "response_format.json_schema: has no schema (give {\"name\": ..., \"schema\": {...}})")),
            ("/v1/completions", {}, ("missing_field", "prompt", "prompt: is required (give a text, token ids, or a list of either)")),
            ("/detokenize", {}, ("missing_field", "tokens", "tokens: is missing (give one list)")),
            ("/detokenize", {"tokens": [[1], [2]]}, ("invalid_value", "tokens", "tokens: is not a list of token ids (give one list)")),
            ("/v1/chat/completions", {"messages": HI, "audio": {}}, ("unsupported_parameter", "audio", "audio: sound is not supported (leave it out)")),
            ("/v1/chat/completions", {"messages": HI, "chat_template": "{{ 1 }}"},
             ("unsupported_parameter", "chat_template", "chat_template: this server takes no templates from requests (leave it out, or set "
              "allow_request_templates: true on the server)")),
            ("/v1/chat/completions", {"messages": image}, ("unsupported_parameter", "messages[0].content[1]",
                                                           "messages[0].content[1]: parts of type 'image_url' are not supported (send text)")),
            ("/v1/chat/completions", {"messages": HI, "response_format": schema},
             ("unsupported_schema", "response_format.json_schema.schema", "response_format.json_schema.schema: " + says)),
            ("/v1/chat/completions", {"messages": HI, "guided_json": {"not": {}}}, ("unsupported_schema", "guided_json", "guided_json: " + says)),
            ("/v1/completions", {"prompt": "a", "structured_outputs": {"json": {"not": {}}}}, ("unsupported_schema", "structured_outputs", "structured_outputs: " + says)),
            ("/v1/completions", {"prompt": "a", "guided_regex": "("},
             ("unsupported_schema", "guided_regex", "guided_regex: regex: the pattern '(' has a '(' without ')' (at byte 1)")),
            ("/v1/responses", {"input": "a", "text": {"format": {"type": "json_schema", "name": "a", "schema": {"not": {}}}}},
             ("unsupported_schema", "text.format.schema", "text.format.schema: " + says)),
            ("/v1/chat/completions", {"messages": HI, "tool_choice": "required", "tools": [{"type": "function", "function": {"name": "f", "parameters": {"not": {}}}}]},
             ("unsupported_schema", "tools", "tools: " + says)),
            ("/v1/chat/completions", {"messages": HI, "max_tokens": 3, "max_completion_tokens": 0},
             ("invalid_value", "max_completion_tokens",
              "max_completion_tokens: 0 is out of range (expected an integer of at least 1, or null (default null))")),
            ("/v1/chat/completions", {"messages": HI, "reasoning_effort": "much"},
             ("invalid_value", "reasoning_effort", "reasoning_effort: 'much' is not none, minimal, low, medium, high or xhigh")),
            ("/v1/completions", {"prompt": "a", "guided_regex": "a", "guided_choice": ["a"]},
             ("invalid_value", "guided_regex", "guided_regex: and other constraints exclude each other (give one constraint)"))):
        assert refused(server, path, **body) == expected
    status, _, answer = server.request("POST", "/v1/chat/completions", b'{"messages": [], "n": 1, "n": 2}')
    assert (status, answer["error"]["param"], answer["error"]["message"]) == (400, "n", "n: is given twice (keep one of them)")
    for body in (b"[]", b"1", b'"a"', b"null", b"true", b""):
        for path in ("/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages", "/tokenize", "/v1/embeddings"):
            status, _, answer = server.request("POST", path, body)
            assert status == 400 and answer["error"]["message"] in ("The body is not a JSON object.", "The body is empty.", "The body is not JSON."), (path, body, answer)


def test_unknown_fields_are_refused_where_requests_are_strict():
    with Server("--strict-requests", "true") as strict:
        assert refused(strict, "/v1/chat/completions", messages=HI, max_tokns=1) == (
            "unsupported_parameter", "max_tokns", "max_tokns: no such key (did you mean 'max_tokens'?)")
        assert strict.metric("easydel_unknown_fields_total") == 0


# The context


def test_prompts_that_are_too_long_are_cut_and_say_so(server):
    ids = [5] * 700
    with_ids = {"prompt": ids, "max_tokens": 4, "temperature": 0}
    status, headers, answer = server.request("POST", "/v1/completions", with_ids)
    usage = answer["usage"]
    assert status == 200 and usage["prompt_tokens_details"]["truncated_tokens"] == 700 - usage["prompt_tokens"] > 0
    assert headers["X-EasyDeL-Truncated"] == str(700 - usage["prompt_tokens"])
    status, headers, _ = server.request("POST", "/v1/completions", {**with_ids, "prompt": ids[:20]})
    assert status == 200 and "X-EasyDeL-Truncated" not in headers
    with Server("--set", "esurge.strict_context=true") as strict:
        code, _, message = refused(strict, "/v1/completions", **with_ids)
        assert code == "context_length_exceeded" and all(number in message for number in ("700", "512", "4")), message


# Caches, order and company


def test_an_answer_does_not_depend_on_what_is_cached(server):
    draw = random.Random(3)
    prompts = ["Once upon a time " + " ".join(draw.choice("cat dog sun moon ball".split()) for _ in range(draw.randint(1, 60))) for _ in range(12)]
    asked = dict(max_tokens=12, temperature=0, logprobs=2, echo=True)
    first = [post(server, "/v1/completions", prompt=prompt, **asked)["choices"][0] for prompt in prompts]
    order = list(range(12)) * 2
    draw.shuffle(order)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        again = list(pool.map(lambda i: post(server, "/v1/completions", prompt=prompts[i], **asked)["choices"][0], order))
    assert all(answer == first[i] for i, answer in zip(order, again))


def test_the_salt_of_a_cache_keeps_prefixes_apart(server):
    def cached(**more):
        return post(server, "/v1/completions", prompt="A salted prompt that is long enough for more than a page of tokens.", max_tokens=1, **more)["usage"]["prompt_tokens_details"]["cached_tokens"]

    assert cached(cache_salt="a") == 0 and cached(cache_salt="a") > 0 and cached(cache_salt="b") == 0


def test_chats_are_consistent(server, client):
    seen = set()
    for stream in (False, True) * 4:
        if stream:
            text = "".join(chunk.choices[0].delta.content or "" for chunk in client.chat.completions.create(
                model="stories260K-chat", messages=HI, max_tokens=30, temperature=1, seed=11, stream=True) if chunk.choices)
        else:
            text = client.chat.completions.create(model="stories260K-chat", messages=HI, max_tokens=30, temperature=1, seed=11).choices[0].message.content
        seen.add(text)
    assert len(seen) == 1


def test_a_turn_of_history_is_the_prompt_that_was_answered(server):
    first = chat(server, return_token_ids=True)
    said = first["choices"][0]["message"]["content"]
    turns = HI + [{"role": "assistant", "content": said}, {"role": "user", "content": "More"}]
    rendered = post(server, "/apply-template", messages=turns)
    assert rendered["count"] == len(rendered["tokens"]) == len(chat(server, messages=turns, return_token_ids=True)["prompt_token_ids"])
    begun = post(server, "/apply-template", messages=HI + [{"role": "assistant", "content": "There was"}], continue_final_message=True)
    assert begun["prompt"].endswith("There was")
    parts = [{"role": "user", "content": [{"type": "text", "text": "H"}, {"type": "text", "text": "i"}]}]
    assert post(server, "/apply-template", messages=parts)["count"] > 0


def test_calls_without_content_can_be_told(server):
    call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"x": "a"}'}}
    turns = HI + [{"role": "assistant", "content": None, "tool_calls": [call]}, {"role": "tool", "tool_call_id": "call_1", "content": "sun"}]
    filled = HI + [{"role": "assistant", "content": "", "tool_calls": [call]}, turns[2]]
    assert chat(server, messages=turns)["choices"] == chat(server, messages=filled)["choices"]


def test_ten_turns_with_tools_have_the_same_ids_by_id_and_by_history():
    tool = {"type": "function", "name": "f", "parameters": TOOL["function"]["parameters"], "strict": True}
    with Server("--tool-parser-name", "hermes", "--set", "base_config.values.max_position_embeddings=4096") as roomy:
        own = openai.OpenAI(base_url=roomy.url + "/v1", api_key="none", max_retries=0)
        items, new, previous = [], [{"role": "user", "content": "Turn 0"}], None
        for turn in range(10):
            calls = turn % 3 == 1
            more = dict(model="stories260K-chat", max_output_tokens=170 if calls else 8, temperature=0, instructions="Be kind.", tools=[tool],
                        tool_choice="required" if calls else "none", parallel_tool_calls=False, extra_body={"return_token_ids": True})
            by_history = own.responses.create(input=items + new, store=False, **more)
            by_id = own.responses.create(input=new, previous_response_id=previous, **more)
            assert by_id.prompt_token_ids == by_history.prompt_token_ids and by_id.token_ids == by_history.token_ids
            said = json.loads(by_id.model_dump_json(exclude_none=True))["output"]
            items, previous = items + new + said, by_id.id
            new = [{"type": "function_call_output", "call_id": item["call_id"], "output": "sun"} for item in said if item["type"] == "function_call"]
            assert bool(new) == calls
            new.append({"role": "user", "content": f"Turn {turn + 1}"})
        assert by_id.usage.input_tokens > 200


# Speculation, filling in, timings, reasoning


def test_speculation_changes_nothing(server):
    body = dict(prompt="the cat and the dog and the cat and the dog and the cat and", max_tokens=40, temperature=0, logprobs=1)
    with Server("--set", "esurge.num_speculative_tokens=4") as other:
        assert post(other, "/v1/completions", **body)["choices"] == post(server, "/v1/completions", **body)["choices"]
        assert other.metric("esurge_accepted_draft_tokens_total") > 0


def test_timings_are_given_where_they_are_asked_for(server):
    assert "timings" not in chat(server)
    answer = chat(server, timings=True)
    timings, usage = answer["timings"], answer["usage"]
    assert timings["prompt_n"] + timings["cache_n"] == usage["prompt_tokens"] and timings["predicted_n"] == usage["completion_tokens"] == 20
    assert timings["prompt_ms"] > 0 and timings["predicted_ms"] > 0
    assert abs(timings["predicted_per_second"] - 1000 * timings["predicted_n"] / timings["predicted_ms"]) < 1e-6 * timings["predicted_per_second"]
    for path, body in (("/v1/chat/completions", {"messages": HI}), ("/v1/completions", {"prompt": "a"})):
        text = server.request("POST", path, {**body, "max_tokens": 4, "ignore_eos": True, "stream": True, "timings_per_token": True})[2]
        events = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]
        assert [event["choices"][0]["finish_reason"] for event in events if "timings" in event] == ["length"]
        assert events[-1]["timings"]["predicted_n"] == 4


def test_infill_needs_tokens_for_it(server):
    assert refused(server, "/v1/completions", prompt="a", suffix="b") == (
        "invalid_value", "suffix", "suffix: the tokenizer has no tokens for filling in the middle (leave it out)")


def test_reasoning_is_ended_by_its_budget_and_switched_off():
    with Server("--set", "esurge.reasoning_parser=deepseek_r1") as thinking:
        free = chat(thinking, max_tokens=40)
        assert free["choices"][0]["message"]["reasoning_content"] and not free["choices"][0]["message"]["content"]
        short = chat(thinking, max_tokens=60, thinking_budget=6)
        message = short["choices"][0]["message"]
        assert message["content"] and free["choices"][0]["message"]["reasoning_content"].startswith(message["reasoning_content"])
        assert 6 <= short["usage"]["completion_tokens_details"]["reasoning_tokens"] <= 14
        thought = thinking.request("POST", "/v1/messages", {"messages": HI, "max_tokens": 60, "temperature": 0, "thinking": {"type": "enabled", "budget_tokens": 6}})[2]
        assert [block["type"] for block in thought["content"]] == ["thinking", "text"] and thought["content"][0]["thinking"] == message["reasoning_content"]
        for off in ({"reasoning_effort": "none"}, {"enable_thinking": False}):
            assert not chat(thinking, **off)["choices"][0]["message"].get("reasoning_content"), off
        assert chat(thinking, reasoning_effort="low")["choices"][0]["message"]["reasoning_content"]


def test_calls_are_restricted_to_allowed_tools(server):
    other = {"type": "function", "function": {**TOOL["function"], "name": "g"}}
    for seed in range(3):
        answer = chat(server, tools=[TOOL, other], temperature=1.2, seed=seed, max_tokens=200, parallel_tool_calls=False,
                      tool_choice={"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": "g"}}]}})
        assert [call["function"]["name"] for call in answer["choices"][0]["message"]["tool_calls"]] == ["g"]


# Logs


def test_lines_of_the_log_cannot_be_forged(server):
    forged = "x\nrequest id=forged status=200"
    for headers in ({"X-Request-Id": "a b"}, {"X-Request-Id": "x" * 65}, {"User-Agent": "forged"}):
        server.request("GET", "/health", None, headers)
    server.request("POST", "/v1/completions", {"prompt": forged, "model": forged, "user": forged})
    server.request("GET", "/v1/models/" + "x%0Arequest%20id=forged")
    server.request("GET", "/" + "x%0Arequest%20id=forged")
    assert not [line for line in server.log().splitlines() if "id=forged" in line]
    for i in range(30):
        server.request("POST", "/v1/completions", {"prompt": "a", "model": f"random-{i}"})
    assert "random-" not in server.request("GET", "/metrics")[2]


# Clients


def test_helpers_that_parse(client):
    class Pet(pydantic.BaseModel):
        name: str = pydantic.Field(max_length=8)
        legs: int = pydantic.Field(ge=0, le=9)

    answer = client.chat.completions.parse(model="stories260K-chat", messages=HI, response_format=Pet, max_tokens=200, temperature=1, seed=2)
    assert isinstance(answer.choices[0].message.parsed, Pet)
    response = client.responses.parse(model="stories260K-chat", input="A pet", text_format=Pet, max_output_tokens=200)
    assert isinstance(response.output_parsed, Pet)
    raw = client.chat.completions.with_raw_response.create(model="stories260K-chat", messages=HI, max_tokens=2, extra_headers={"X-Request-Id": "my-own"})
    assert raw.headers["x-request-id"] == "my-own" and raw.parse().choices[0].finish_reason == "length"
    assert [model.id for model in client.models.list()] == ["stories260K-chat"] and client.models.retrieve("stories260K-chat").owned_by == "easydel"


def test_clients_wait_and_try_again():
    with Server("--admin-key", "an-admin-key-of-a-test", "--max-concurrent-generations", "1", "--overload-message", "Later.") as one:
        def ask(retries, **more):
            own = openai.OpenAI(base_url=one.url + "/v1", api_key="an-admin-key-of-a-test", max_retries=retries)
            return own.chat.completions.create(**{"model": "stories260K-chat", "messages": HI, "max_tokens": 2, **more})

        running = ask(0, max_tokens=400, stream=True, extra_body={"ignore_eos": True})
        next(iter(running))
        key = {"Authorization": "Bearer an-admin-key-of-a-test"}
        one.request("POST", "/v1/admin/pause", None, key)
        with pytest.raises(openai.InternalServerError) as raised:
            ask(0)
        assert raised.value.status_code == 503 and raised.value.response.headers["retry-after"] == "10" and raised.value.code == "paused"
        one.request("POST", "/v1/admin/resume", None, key)
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            statuses = list(pool.map(lambda _: one.request("POST", "/v1/completions", {"prompt": "a", "max_tokens": 300, "ignore_eos": True}, key), range(6)))
        busy = [answer for status, _, answer in statuses if status == 503]
        assert busy and busy[0]["error"] == {"message": "Later.", "type": "server_error", "param": None, "code": "overloaded"}
        running.close()
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            answers = list(pool.map(lambda _: ask(8), range(3)))
        assert [answer.choices[0].finish_reason for answer in answers] == ["length"] * 3
        limited = one.request("POST", "/v1/admin/keys", {"name": "a", "rate_limits": {"requests_per_minute": 1}}, key)[2]["api_key"]
        own = openai.OpenAI(base_url=one.url + "/v1", api_key=limited, max_retries=0)
        own.models.list()
        with pytest.raises(openai.RateLimitError) as limit:
            own.models.list()
        assert 1 <= int(limit.value.response.headers["retry-after"]) <= 60 and limit.value.response.headers["x-ratelimit-remaining-requests"] == "0"


def test_what_is_cancelled_is_not_computed(server, client):
    before = server.metric("esurge_requests_aborted_total")
    regex = {"guided_regex": "[ab]{450,}"}
    with pytest.raises(openai.APITimeoutError):
        client.completions.create(model="stories260K-chat", prompt="a", max_tokens=490, timeout=0.05, extra_body=regex)

    async def cancelled():
        async with openai.AsyncOpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0) as own:
            task = asyncio.create_task(own.completions.create(model="stories260K-chat", prompt="a", max_tokens=490, extra_body=regex))
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(cancelled())
    for _ in range(100):
        if server.metric("esurge_requests_aborted_total") >= before + 2:
            return
        time.sleep(0.1)
    raise AssertionError("the server computes on")


def test_a_model_without_a_template_answers_no_conversations(tmp_path):
    import shutil

    folder = shutil.copytree(MODEL, tmp_path / "plain")
    for name in ("chat_template.jinja", "chat_template.json"):
        (folder / name).unlink(missing_ok=True)
    settings = folder / "tokenizer_config.json"
    if settings.exists():
        kept = json.loads(settings.read_text())
        kept.pop("chat_template", None)
        settings.write_text(json.dumps(kept))
    with Server(model=folder) as plain:
        assert ("serve: the model 'plain' has no chat template, so it answers no conversations; give one with model.chat_template") in plain.log()
        assert refused(plain, "/v1/chat/completions", messages=HI) == (
            "invalid_value", "messages", "messages: the model 'plain' has no chat template (use /v1/completions, or give the server a template with model.chat_template)")
        assert post(plain, "/v1/completions", prompt="a", max_tokens=2)["usage"]["completion_tokens"] == 2

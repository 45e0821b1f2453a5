"""Settings of the server that change what clients get: each on and off."""
import json
import shutil

from server import MODEL, ROOT, Server

ADMIN = {"Authorization": "Bearer an-admin-key-of-a-test"}
HI = [{"role": "user", "content": "Hi"}]
PARTS = [{"role": "user", "content": [{"type": "text", "text": "H"}, {"type": "text", "text": "i"}]}]
TOOLS = [{"type": "function", "function": {"name": "f"}}]


def test_settings_that_are_off():
    with Server("--enable-function-calling", "false", "--allow-request-templates", "true", "--enable-response-store", "false", "--ping-seconds", "0.05",
                "--admin-key", "an-admin-key-of-a-test", "--enable-audit-logging", "false") as server:
        def post(path, body):
            status, _, answer = server.request("POST", path, body, ADMIN)
            return answer if status == 200 else (status, answer["error"].get("code"), answer["error"]["message"])

        message = "this server does not take tools (leave them out, or set enable_function_calling: true)"
        assert post("/v1/chat/completions", {"messages": HI, "tools": TOOLS}) == (400, "unsupported_parameter", "tools: " + message)
        assert post("/v1/responses", {"input": "a", "tools": [{"type": "function", "name": "f"}]}) == (400, "unsupported_parameter", "tools: " + message)
        assert post("/v1/messages", {"messages": HI, "max_tokens": 1, "tools": [{"name": "f", "input_schema": {}}]}) == (400, None, "tools: " + message)
        assert post("/v1/chat/completions", {"messages": HI, "functions": [{"name": "f"}]}) == (400, "unsupported_parameter", "functions: " + message)
        # Templates of requests.
        assert post("/apply-template", {"messages": HI, "chat_template": "{{ messages[0].content }}!"})["prompt"] == "Hi!"
        assert post("/v1/chat/completions", {"messages": HI, "chat_template": "{% for"})[:2] == (400, "invalid_value")
        endless = post("/v1/chat/completions", {"messages": HI, "chat_template": "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}"})
        assert endless[0] == 400, endless
        # Responses.
        made = post("/v1/responses", {"input": "a", "max_output_tokens": 2})
        assert made["store"] is False and server.request("GET", "/v1/responses/" + made["id"], None, ADMIN)[0] == 404
        for field, value in (("store", True), ("previous_response_id", "resp_a"), ("conversation", "conv_a")):
            assert post("/v1/responses", {"input": "a", field: value}) == (
                400, "invalid_value", f"{field}: this server stores no responses (send the whole conversation as input)")
        server.request("POST", "/v1/admin/keys", {"name": "a"}, ADMIN)
        assert server.request("GET", "/v1/admin/audit-logs", None, ADMIN)[2] == {"logs": []}
        # A stream without events is kept alive.
        server.request("POST", "/v1/admin/pause", None, ADMIN)
        assert post("/v1/completions", {"prompt": "a"}) == (503, "paused", "The server is paused.")
        assert server.request("GET", "/health")[::2] == (503, {"status": "paused"})


def test_requests_that_take_too_long():
    slow = {"guided_regex": "[ab]{400,}", "max_tokens": 490}
    with Server("--request-timeout-seconds", "0.05") as server:
        status, _, answer = server.request("POST", "/v1/completions", {"prompt": "a", **slow})
        assert (status, answer["error"]) == (504, {"message": "The request took too long.", "type": "server_error", "param": None, "code": "deadline_exceeded"})
        status, _, answer = server.request("POST", "/v1/messages", {"messages": HI, **slow})
        assert (status, answer["error"]) == (504, {"type": "timeout_error", "message": "The request took too long."})
        text = server.request("POST", "/v1/completions", {"prompt": "a", "stream": True, **slow})[2]
        assert json.loads(text.split("\n\n")[-3][6:])["error"]["code"] == "deadline_exceeded" and text.endswith("data: [DONE]\n\n")


def test_the_audit_log_is_bounded_and_responses_are_kept_where_that_is_said():
    with Server("--admin-key", "an-admin-key-of-a-test", "--max-audit-entries", "3", "--default-store-responses", "false", "--max-stored-responses", "2") as server:
        for i in range(5):
            server.request("POST", "/v1/admin/keys", {"name": f"key {i}"}, ADMIN)
        assert [entry["details"] for entry in server.request("GET", "/v1/admin/audit-logs", None, ADMIN)[2]["logs"]] == ["key 4", "key 3", "key 2"]

        def made(**more):
            return server.request("POST", "/v1/responses", {"input": "a", "max_output_tokens": 2, **more}, ADMIN)[2]["id"]

        def is_kept(id):
            return server.request("GET", "/v1/responses/" + id, None, ADMIN)[0] == 200

        assert not is_kept(made()) and is_kept(made(store=True))
        kept = [made(store=True) for _ in range(3)]
        assert [is_kept(id) for id in kept] == [False, True, True]


def test_what_the_template_can_do_is_told():
    with Server("--tool-parser-name", "hermes") as server:
        (props,), (tools,) = server.request("GET", "/props")[2]["models"], server.request("GET", "/v1/tools")[2]["models"]
        assert props["tool_parser"] == tools["tool_parser"] == "hermes" and props["defaults"]["temperature"] == 1
        assert props["template"] == tools["template"] == {"system_role": True, "tools": False, "tool_calls": False, "tool_results": True, "keeps_reasoning": False,
                                                          "thinking": False, "content_parts": False}


def test_parts_are_one_text_unless_the_template_takes_them(tmp_path):
    folder = shutil.copytree(MODEL, tmp_path / "parts")
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    settings["chat_template"] = ("{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}"
                                 "{% for part in m.content %}[{{ part.text }}]{% endfor %}{% endif %}{% endfor %}")
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    for flag, rendered in (("true", "[H][i]"), ("false", "H\ni")):
        with Server("--oai-like-processor", flag, model=folder) as server:
            assert server.request("POST", "/apply-template", {"messages": PARTS})[2]["prompt"] == rendered


def test_documents_are_left_out_of_a_ranking():
    with Server(model=ROOT / "tests" / "data" / "encoders" / "sentences") as server:
        body = {"query": "the old king", "documents": ["a ship", {"text": "the king"}], "return_documents": False}
        status, _, answer = server.request("POST", "/v1/rerank", body)
        assert status == 200 and all(sorted(row) == ["index", "relevance_score"] for row in answer["results"])
        assert sorted(row["index"] for row in answer["results"]) == [0, 1]


def test_speculated_tokens_are_counted_for_their_request():
    body = {"prompt": "the cat and the dog and the cat and the dog and the cat and", "max_tokens": 40, "temperature": 0, "logprobs": 1}
    with Server("--set", "esurge.num_speculative_tokens=4") as speculates, Server() as plain:
        found, expected = (server.request("POST", "/v1/completions", body)[2] for server in (speculates, plain))
        assert found["choices"] == expected["choices"]
        details = found["usage"]["completion_tokens_details"]
        assert details["accepted_prediction_tokens"] + details["rejected_prediction_tokens"] > 0
        assert details["accepted_prediction_tokens"] == speculates.metric("esurge_accepted_draft_tokens_total")
        assert expected["usage"]["completion_tokens_details"]["rejected_prediction_tokens"] == 0

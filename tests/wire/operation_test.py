"""What an operator does: signals, certificates, keys, proxies, logs and traces, on the built program."""
import concurrent.futures
import http.client
import http.server
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time

import pytest

from server import MODEL, Server, program

ADMIN = "an-admin-key-of-a-test"
LONG = {"prompt": "Once", "max_tokens": 450, "ignore_eos": True, "stream": True}


class Stream:
    """A streamed completion whose answer has begun."""

    def __init__(self, server, body=None, headers=()):
        self.connection = http.client.HTTPConnection(*server.host_and_port, timeout=60)
        self.connection.request("POST", "/v1/completions", json.dumps(body or LONG), {"Content-Type": "application/json", **dict(headers)})
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200

    def events(self):
        return self.answer.read().decode().split("\n\n")[:-1]


def bearer(key):
    return {"Authorization": "Bearer " + key}


def key_of(server, **settings):
    status, _, made = server.request("POST", "/v1/admin/keys", {"name": "of a test", **settings}, bearer(ADMIN))
    assert status == 200, made
    return made["api_key"]


def is_refused(server):
    """Whether nobody listens any more, which is a moment after the line of the log."""
    for _ in range(100):
        try:
            socket.create_connection(server.host_and_port).close()
        except ConnectionRefusedError:
            return True
        time.sleep(0.02)
    return False


# Signals


def test_streams_end_whole_after_sigterm():
    with Server() as server:
        streams = [Stream(server) for _ in range(32)]
        server.process.send_signal(signal.SIGTERM)
        server.wait_for_log("serve: shutting down; 32 requests may finish within 30 s; a second signal ends at once")
        assert is_refused(server)
        for stream in streams:
            events = stream.events()
            assert events[-1] == "data: [DONE]"
            assert json.loads(events[-2][6:])["choices"][0]["finish_reason"] == "length"
        assert server.process.wait(timeout=30) == 0


def paused_streams(server, count):
    streams = [Stream(server, headers=bearer(ADMIN)) for _ in range(count)]
    assert server.request("POST", "/v1/admin/pause", None, bearer(ADMIN))[0] == 200
    return streams


def test_streams_that_take_too_long_get_an_event():
    with Server("--admin-key", ADMIN, "--shutdown-timeout-seconds", "0.2") as server:
        streams = paused_streams(server, 5)
        server.process.send_signal(signal.SIGTERM)
        for stream in streams:
            events = stream.events()
            assert json.loads(events[-2][6:]) == {"error": {"message": "The server is shutting down.", "type": "server_error", "param": None,
                                                            "code": "draining"}}
            assert events[-1] == "data: [DONE]"
        assert server.process.wait(timeout=30) == 0


def test_a_second_signal_ends_at_once():
    with Server("--admin-key", ADMIN) as server:
        streams = paused_streams(server, 2)
        server.process.send_signal(signal.SIGINT)
        server.wait_for_log("a second signal ends at once")
        began = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(timeout=10) == 128 + signal.SIGTERM and time.monotonic() - began < 5
        assert len(streams) == 2


def test_systemd_is_told(tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(60)
        with Server(environment={"NOTIFY_SOCKET": str(tmp_path / "notify")}) as server:
            assert manager.recv(100) == b"READY=1"
            server.process.send_signal(signal.SIGTERM)
            assert manager.recv(100) == b"STOPPING=1"
            assert server.process.wait(timeout=30) == 0


# Addresses


def test_a_unix_socket_is_for_its_user(tmp_path):
    path = tmp_path / "socket"
    with Server("--host", f"unix:{path}"):
        assert path.stat().st_mode & 0o777 == 0o600
        if shutil.which("curl"):
            ran = subprocess.run(["curl", "-s", "--unix-socket", str(path), "http://localhost/health"], capture_output=True, text=True, timeout=30)
            assert ran.stdout == '{"status": "ready"}'
    assert not path.exists()


def test_who_can_be_reached_without_keys_is_warned():
    warning = "can use this server, because it needs no API keys. Give admin_key and make keys, or host: 127.0.0.1"
    with Server("--host", "0.0.0.0") as server:
        assert server.log().count(warning) == 1
        assert f"serve: everybody who reaches {server.url} {warning}" in server.log()
    for flags in (["--host", "0.0.0.0", "--admin-key", ADMIN], ["--host", "127.0.0.1"]):
        with Server(*flags) as server:
            assert warning not in server.log()


def test_keys_of_the_action_are_flags_and_variables():
    with Server("--max-target-bytes", "200", environment={"EASYDEL_SERVE_MAX_TARGET_BYTES": "100", "EASYDEL_SERVE_STRICT_REQUESTS": "true",
                                                          "EASYDEL_SERVE_EXTRA_STOPS": '["e"]'}) as server:
        assert server.request("GET", "/health?" + "a" * 150)[0] == 200  # a flag comes before a variable
        assert server.request("GET", "/health?" + "a" * 250)[0] == 414
        assert server.request("POST", "/v1/completions", {"prompt": "a", "temprature": 1})[0] == 400
        answer = server.request("POST", "/v1/completions", {"prompt": "Once", "max_tokens": 60, "temperature": 0})[2]["choices"][0]
        assert answer["finish_reason"] == "stop" and "e" not in answer["text"]


# Certificates


def make_certificate(folder, name, host):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", f"/CN={host}",
                    "-keyout", str(folder / f"{name}.key"), "-out", str(folder / f"{name}.crt")], check=True, capture_output=True)


def served_name(server):
    pem = ssl.get_server_certificate(server.host_and_port)
    ran = subprocess.run(["openssl", "x509", "-noout", "-subject"], input=pem, capture_output=True, text=True, check=True)
    return ran.stdout.strip().rpartition("=")[2].strip()


class TlsServer(Server):
    """Its certificate is not checked while it starts."""

    def __enter__(self):
        self.wait_for_log("serve: ready on", 60)
        self.url = "https://" + self.log().partition("listening on https://")[2].split()[0]
        return self

    @property
    def host_and_port(self):
        host, _, port = self.url.removeprefix("https://").rpartition(":")
        return host, int(port)


@pytest.mark.skipif(not shutil.which("openssl"), reason="no openssl")
def test_a_certificate_is_replaced_under_load(tmp_path):
    make_certificate(tmp_path, "used", "first")
    make_certificate(tmp_path, "next", "second")
    flags = ["--ssl-certfile", str(tmp_path / "used.crt"), "--ssl-keyfile", str(tmp_path / "used.key")]
    with TlsServer(*flags) as server:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        kept = http.client.HTTPSConnection(*server.host_and_port, timeout=60, context=context)
        kept.request("POST", "/v1/completions", json.dumps(LONG), {"Content-Type": "application/json"})
        answer = kept.getresponse()
        assert served_name(server) == "first"
        for ending in ("crt", "key"):
            os.replace(tmp_path / f"next.{ending}", tmp_path / f"used.{ending}")
        server.process.send_signal(signal.SIGHUP)
        server.wait_for_log("serve: read the certificate anew")
        assert served_name(server) == "second"
        assert answer.read().endswith(b"data: [DONE]\n\n")
        kept.request("GET", "/health")  # on the connection with the old one
        assert kept.getresponse().read() == b'{"status": "ready"}'
        address = ":".join(map(str, server.host_and_port))
        for version, works in (("-tls1_2", True), ("-tls1_3", True), ("-tls1_1", False)):
            ran = subprocess.run(["openssl", "s_client", "-connect", address, version, "-quiet", "-ign_eof"], capture_output=True, timeout=30,
                                 input=b"GET /health HTTP/1.0\r\n\r\n")
            assert (b'{"status": "ready"}' in ran.stdout) == works, version


# Keys


@pytest.fixture(scope="module")
def guarded():
    with Server("--admin-key", ADMIN, "--set", "esurge.page_size=16") as server:
        yield server


def test_a_key_allows_what_it_says(guarded):
    def asked(key, path="/v1/completions", **more):
        status, _, answer = guarded.request("POST", path, {"max_tokens": 4, **({"prompt": "a"} if "messages" not in more else {}), **more}, bearer(key))
        return (status, "") if status == 200 else (status, answer["error"]["message"], answer["error"]["type"], answer["error"]["param"], answer["error"]["code"])

    messages = [{"role": "user", "content": "a"}]
    tools = [{"type": "function", "function": {"name": "f"}}]
    small = key_of(guarded, permissions={"max_tokens_per_request": 8, "enable_streaming": False, "enable_function_calling": False})
    assert asked(small) == asked(small, max_tokens=8) == (200, "")
    assert asked(small, max_tokens=9) == (403, "The key allows at most 8 generated tokens for a request, but 9 are asked for.", "permission_error",
                                          "max_tokens", "permission_denied")
    assert asked(small, n=3, temperature=1)[0] == 403
    assert asked(small, stream=True) == (403, "The key does not allow streams.", "permission_error", "stream", "permission_denied")
    assert asked(small, "/v1/chat/completions", messages=messages, tools=tools) == (
        403, "The key does not allow tools.", "permission_error", "tools", "permission_denied")
    other = key_of(guarded, permissions={"allowed_models": ["another"]})
    assert asked(other) == (403, "The key does not allow the model 'stories260K-chat'.", "permission_error", "model", "model_not_allowed")


def test_clients_of_a_key_never_pass_its_quota(guarded):
    key = key_of(guarded, quota={"max_total_tokens": 400})
    body = {"prompt": [1, 2, 3, 4, 5], "max_tokens": 20, "ignore_eos": True}
    with concurrent.futures.ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(lambda _: guarded.request("POST", "/v1/completions", body, bearer(key)), range(50)))
    assert {status for status, _, _ in answers} == {200, 429}
    keys = guarded.request("GET", "/v1/admin/keys", None, bearer(ADMIN))[2]["keys"]
    used = [one["usage"]["total_tokens"] for one in keys if key.startswith(one["key_prefix"])]
    assert 0 < used[0] <= 400 and sum(answer["usage"]["total_tokens"] for status, _, answer in answers if status == 200) <= used[0]
    refused = next(answer["error"] for status, _, answer in answers if status == 429)
    assert refused["type"] == refused["code"] == "insufficient_quota"


def cached_tokens(server, key, prompt):
    return server.request("POST", "/v1/completions", {"prompt": prompt, "max_tokens": 1}, bearer(key))[2]["usage"]["prompt_tokens_details"]["cached_tokens"]


@pytest.mark.parametrize("shared", ["false", "true"])
def test_prefixes_are_apart_per_key(shared):
    prompt = "Once upon a time there was a little girl who had a red ball and a dog, and they played."
    with Server("--admin-key", ADMIN, "--set", "esurge.page_size=16", "--shared-prefix-cache", shared) as server:
        one, other = key_of(server), key_of(server)
        assert cached_tokens(server, one, prompt) == 0 and cached_tokens(server, one, prompt) > 0
        assert (cached_tokens(server, other, prompt) > 0) == (shared == "true")


def test_responses_belong_to_their_key(guarded):
    one, other = key_of(guarded), key_of(guarded)
    made = guarded.request("POST", "/v1/responses", {"input": "a", "max_output_tokens": 2}, bearer(one))[2]["id"]
    for method, path in (("GET", made), ("GET", made + "/input_items"), ("POST", made + "/cancel"), ("DELETE", made)):
        status, _, answer = guarded.request(method, "/v1/responses/" + path, None, bearer(other))
        assert (status, answer["error"]["message"], answer["error"]["code"]) == (404, f"Response with id '{made}' not found.", "response_not_found")
    goes_on = {"input": "b", "max_output_tokens": 2, "previous_response_id": made}
    assert guarded.request("POST", "/v1/responses", goes_on, bearer(other))[0] == 400
    assert guarded.request("POST", "/v1/responses", goes_on, bearer(one))[0] == guarded.request("DELETE", "/v1/responses/" + made, None, bearer(one))[0] == 200


def test_a_forwarded_address_counts_only_from_a_trusted_proxy(guarded):
    with Server("--admin-key", ADMIN, "--trusted-proxies", '["127.0.0.1"]') as behind:
        for server, trusts in ((guarded, False), (behind, True)):
            key = key_of(server, permissions={"allowed_ip_addresses": ["203.0.113.9"]})
            for forwarded, right in (("203.0.113.9", True), ("10.0.0.1, 203.0.113.9", True), ("203.0.113.9, 10.0.0.1", False), ("10.0.0.1", False), (None, False)):
                headers = {**bearer(key), **({"X-Forwarded-For": forwarded} if forwarded else {})}
                assert server.request("GET", "/v1/models", None, headers)[0] == (200 if trusts and right else 403), (forwarded, trusts)


def test_keys_are_read_anew(tmp_path):
    with Server("--admin-key", ADMIN, "--storage-dir", str(tmp_path), "--auto-save-interval", "0.01") as server:
        key = key_of(server)
        assert server.request("GET", "/v1/models", None, bearer(key))[0] == 200
        file = tmp_path / "keys.json"
        for _ in range(200):
            if file.exists() and '"total_requests": 1' in file.read_text():
                break
            time.sleep(0.05)
        time.sleep(0.2)
        kept = json.loads(file.read_text())
        file.write_text(json.dumps({**kept, "keys": []}))
        server.process.send_signal(signal.SIGHUP)
        server.wait_for_log("serve: read the keys anew")
        assert server.request("GET", "/v1/models", None, bearer(key))[0] == 401


# What is logged and counted


def test_the_log_adds_up_to_the_metrics():
    with Server("--log-format", "json") as server:
        def ask(i):
            kind = i % 5
            if kind == 0:
                return server.request("POST", "/v1/completions", {"prompt": f"a {i}", "max_tokens": 3, "ignore_eos": True}, {"X-Request-Id": f"mine-{i}"})[0]
            if kind == 1:
                return server.request("POST", "/v1/chat/completions", {"messages": [{"role": "user", "content": "a\nrequest id=x"}], "max_tokens": 2, "strem": 1})[0]
            if kind == 2:
                return server.request("POST", "/v1/completions", {"prompt": 5})[0]
            if kind == 3:
                return server.request("GET", f"/none{i}")[0]
            return server.request("POST", "/tokenize", {"prompt": "a"})[0]

        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            statuses = list(pool.map(ask, range(1000)))
        metrics = server.request("GET", "/metrics")[2]
        lines = [json.loads(line) for line in server.log().splitlines() if line.startswith("{")]
    asked = [line for line in lines if line["message"] == "request" and line["route"] != "GET /health" and line["route"] != "GET /metrics"]
    assert len(asked) == len(statuses) == 1000
    counted = {}
    for line in asked:
        name = (line["route"].partition(" ")[2], line["status"])
        counted[name] = counted.get(name, 0) + 1
    for (route, status), count in counted.items():
        assert f'easydel_requests_total{{route="{route}",status="{status}"}} {count}\n' in metrics
    assert counted == {("/v1/completions", 200): 200, ("/v1/chat/completions", 200): 200, ("/v1/completions", 400): 200, ("(unknown)", 404): 200, ("/tokenize", 200): 200}
    tokens = sum(line.get("generated_tokens", 0) for line in asked)
    assert f'esurge_generated_tokens_total{{model_name="stories260K-chat"}} {tokens}\n' in metrics
    assert 'easydel_unknown_fields_total{route="/v1/chat/completions"} 200\n' in metrics
    assert sum(line.get("unknown_fields", 0) for line in asked) == 200
    one = next(line for line in asked if line["id"] == "mine-0")
    assert {"key", "seconds", "model", "prompt_tokens", "cached_tokens", "completion_tokens", "first_token_seconds", "finish_reason"} <= one.keys()
    assert one["finish_reason"] == "length" and one["model"] == "stories260K-chat"


def test_bytes_are_counted():
    with Server() as server:
        received, sent = server.metric("easydel_received_bytes_total"), server.metric("easydel_sent_bytes_total")
        body = {"prompt": "a", "max_tokens": 1, "user": "x" * 20000}
        answer = json.dumps(server.request("POST", "/v1/completions", body)[2])
        more_received, more_sent = server.metric("easydel_received_bytes_total") - received, server.metric("easydel_sent_bytes_total") - sent
        assert 20000 < more_received < 21500 and more_sent > len(answer) / 2


def test_traces_go_to_a_collector():
    bodies = []

    class Collector(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            bodies.append((self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector) as collector:
        threading.Thread(target=collector.serve_forever, daemon=True).start()
        with Server("--otlp-endpoint", f"http://127.0.0.1:{collector.server_port}") as server:
            trace = "0af7651916cd43dd8448eb211c80319c"
            server.request("POST", "/v1/completions", {"prompt": "a", "max_tokens": 2}, {"traceparent": f"00-{trace}-b7ad6b7169203331-01"})
            spans = []
            for _ in range(200):
                spans = [span for _, body in list(bodies) for resource in body["resourceSpans"] for scope in resource["scopeSpans"] for span in scope["spans"]
                         if span["traceId"] == trace]
                if len(spans) >= 4:
                    break
                time.sleep(0.1)
        collector.shutdown()
    assert bodies[0][0] == "/v1/traces"
    assert sorted(span["name"] for span in spans) == ["POST /v1/completions", "decode", "prefill", "queue"]
    root = next(span for span in spans if span["name"].startswith("POST"))
    assert root["parentSpanId"] == "b7ad6b7169203331" and all(span["parentSpanId"] == root["spanId"] for span in spans if span is not root)


def test_a_command_that_was_refused_says_why_and_listens_nowhere(tmp_path):
    ran = subprocess.run([program(), "serve", str(MODEL), "--port", "0", "--api-keys-file", str(tmp_path)], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 2 and ran.stdout == ""

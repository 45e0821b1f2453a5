"""Clients that are tested where they could be installed: openai for Node, langchain-openai, schemathesis, prometheus_client."""
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from server import ROOT, Server

HERE = pathlib.Path(__file__).resolve().parent
NODE_FOLDER = pathlib.Path(os.environ.get("EASYDEL_WIRE_NODE", ROOT / "build" / "wire-node"))


@pytest.fixture(scope="module")
def server():
    with Server("--tool-parser-name", "hermes") as one:
        yield one


def test_openai_for_node(server, tmp_path):
    if not shutil.which("node") or not (NODE_FOLDER / "node_modules" / "openai").exists():
        pytest.skip("node or its package openai is not installed")
    (tmp_path / "node_modules").symlink_to(NODE_FOLDER / "node_modules")
    script = shutil.copy(HERE / "openai_client.mjs", tmp_path)
    ran = subprocess.run(["node", str(script), server.url], capture_output=True, text=True, timeout=120)
    assert ran.stdout == "passed\n", ran.stdout + ran.stderr


def test_langchain(server):
    langchain = pytest.importorskip("langchain_openai")
    model = langchain.ChatOpenAI(base_url=server.url + "/v1", api_key="none", model="stories260K-chat", temperature=0, max_tokens=60, max_retries=0)
    whole = model.invoke("Tell me about a cat.")
    pieces = list(model.stream("Tell me about a cat."))
    assert "".join(piece.content for piece in pieces) == whole.content
    assert whole.usage_metadata["output_tokens"] == whole.response_metadata["token_usage"]["completion_tokens"] > 0
    assert model.batch(["Tell me about a cat.", "Hi"])[0].content == whole.content

    schema = {"title": "answer", "description": "d", "type": "object", "properties": {"x": {"enum": ["a", "b"]}, "n": {"type": "integer", "maximum": 9}},
              "required": ["x", "n"], "additionalProperties": False}
    longer = langchain.ChatOpenAI(base_url=server.url + "/v1", api_key="none", model="stories260K-chat", temperature=0, max_tokens=300, max_retries=0)
    for method in ("json_schema", "function_calling"):
        answer = longer.with_structured_output(schema, method=method, strict=True).invoke("Choose.")
        assert answer["x"] in ("a", "b") and isinstance(answer["n"], int)
    bound = longer.bind_tools([{"type": "function", "function": {"name": "f", "description": "d", "parameters": schema}}], tool_choice="f")
    call = bound.invoke("Choose.").tool_calls[0]
    assert call["name"] == "f" and call["args"]["x"] in ("a", "b")
    with Server(model=ROOT / "tests" / "data" / "encoders" / "sentences") as encoder:
        vectors = langchain.OpenAIEmbeddings(base_url=encoder.url + "/v1", api_key="none", model="sentences", check_embedding_ctx_length=False)
        two = vectors.embed_documents(["the old king", "a ship"])
        assert vectors.embed_query("a ship") == two[1] and len(two[0]) == 24


def test_schemathesis_finds_nothing(tmp_path):
    """Random requests by the OpenAPI document, right and wrong ones; routes that are 501, or stop the server, are left out."""
    pytest.importorskip("schemathesis")
    examples = os.environ.get("EASYDEL_SCHEMA_EXAMPLES", "10")
    with Server("--log-level", "error", "--request-timeout-seconds", "20") as one:
        command = [str(pathlib.Path(sys.executable).parent / "schemathesis"), "run", one.url + "/openapi.json", "--url", one.url, "--checks", "all",
                   "--exclude-checks", "ignored_auth,positive_data_acceptance", "--phases", "fuzzing", "--max-examples", examples, "--seed", "7",
                   "--exclude-path-regex", "adapter|tools/execute|cache|drain|pause", "--suppress-health-check", "all", "--workers", "2"]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=300 + 30 * int(examples), cwd=tmp_path,
                             env=dict(os.environ, SCHEMATHESIS_HOOKS=str(HERE / "schema_hooks.py"), PYTHONDONTWRITEBYTECODE="1"))
        assert one.process.poll() is None, one.log()[-3000:]
    assert ran.returncode == 0, ran.stdout[-6000:] + ran.stderr[-2000:]


def test_prometheus_reads_the_metrics(server):
    parser = pytest.importorskip("prometheus_client.parser")
    server.request("POST", "/v1/completions", {"prompt": "a", "max_tokens": 3})
    families = {family.name: family for family in parser.text_string_to_metric_families(server.request("GET", "/metrics")[2])}
    made = families["esurge_generated_tokens"].samples[0]
    assert made.labels == {"model_name": "stories260K-chat"} and made.value >= 3
    assert {"easydel_requests", "easydel_requests_in_flight", "esurge_request_seconds"} <= families.keys()

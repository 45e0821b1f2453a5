"""`easydel generate` and `easydel chat` with --server print what they print with the model itself."""
import json
import signal
import socket
import subprocess
import time

import pytest

from server import MODEL, Server, program

ADMIN = "an-admin-key-of-a-test"


@pytest.fixture(scope="module")
def server():
    with Server() as one:
        yield one


def run(*arguments, text=None):
    return subprocess.run([program(), *arguments], input=text, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("more", [["-t", "0", "-n", "30"], ["--do-sample", "false", "-n", "12", "--num-return-sequences", "1"],
                                  ["-t", "0.8", "--top-p", "0.9", "--seed", "5", "-n", "30"], ["-t", "0", "-n", "9", "--choice", "sun", "--choice", "moon"]])
def test_generate_prints_what_the_model_does(server, more):
    prompts = ["-p", "Once upon a time", "-p", "The old king"]
    remote, local = run("generate", "--server", server.url, *prompts, *more), run("generate", str(MODEL), *prompts, *more)
    assert remote.returncode == local.returncode == 0, remote.stderr
    # In the process, what ends first is printed first.
    assert sorted(remote.stdout.splitlines()) == sorted(local.stdout.splitlines())


def lines_of(ran):
    assert ran.returncode == 0, ran.stderr
    return [json.loads(line) for line in ran.stdout.splitlines()]


def test_generate_writes_lines(server):
    flags = ["-p", "Once", "-p", "The old king", "--jsonl", "-n", "40", "-t", "0", "--stop-strings", "girl"]
    remote, local = lines_of(run("generate", "--server", server.url, *flags)), lines_of(run("generate", str(MODEL), *flags))
    local.sort(key=lambda line: line["index"])
    assert [line.pop("finish_reason") for line in remote] == ["stop", "length"]
    assert [line.pop("finish_reason") for line in local] == ["stop_string", "length"]
    for line in remote + local:
        assert line.pop("prefill_seconds") > 0 and line.pop("decode_seconds") >= 0
    assert remote == local


def test_the_tokens_of_several_answers_are_those_of_the_model(server):
    flags = ["-p", "Once", "--chat", "--jsonl", "-n", "7", "-t", "0.5", "--seed", "3", "--num-return-sequences", "2", "--stop-strings", "e"]
    remote, local = lines_of(run("generate", "stories260K-chat", "--server", server.url + "/v1/", *flags)), lines_of(run("generate", str(MODEL), *flags))
    assert len(remote) == 2
    assert [(line["text"], line["prompt_tokens"], line["new_tokens"]) for line in remote] == \
        [(line["text"], line["prompt_tokens"], line["new_tokens"]) for line in local]


def test_reasoning_is_shown_first():
    with Server("--set", "esurge.reasoning_parser=deepseek_r1") as thinking:
        shown = run("generate", "--server", thinking.url, "--chat", "--no-echo", "-p", "Once", "-n", "9", "-t", "0")
        line = lines_of(run("generate", "--server", thinking.url, "--chat", "--jsonl", "-p", "Once", "-n", "9", "-t", "0"))[0]
    whole = run("generate", str(MODEL), "--chat", "--no-echo", "-p", "Once", "-n", "9", "-t", "0")
    assert shown.stdout == whole.stdout and line["reasoning"] == whole.stdout[:-1] and line["text"] == ""


def test_a_unix_socket_is_asked_as_a_port_is(tmp_path):
    flags = ["-p", "Once", "-n", "9", "-t", "0"]
    with Server("--host", f"unix:{tmp_path}/s") as local:
        ran = run("generate", "--server", local.url, *flags)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == run("generate", str(MODEL), *flags).stdout


def test_chat_keeps_the_conversation(server):
    words = "Hi\nWho are you?\n/reset\nHi\n"
    flags = ["--system", "Be kind.", "-t", "0", "-n", "15"]
    remote, local = run("chat", "--server", server.url, *flags, text=words), run("chat", str(MODEL), *flags, text=words)
    assert remote.returncode == 0, remote.stderr
    assert remote.stdout == local.stdout
    assert remote.stdout.splitlines()[0] == remote.stdout.splitlines()[-1]


def test_a_server_that_is_away_is_one_clear_error():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        ran = run("generate", "--server", f"http://127.0.0.1:{free.getsockname()[1]}", "-p", "a")
    assert ran.returncode == 2 and ran.stdout == ""
    assert ran.stderr.startswith("--server: http://127.0.0.1:") and "is the server running?" in ran.stderr


def test_refusals_are_in_the_servers_words(server):
    for more, words in ((["wrong-name"], "the server answered 404: Model 'wrong-name' not found. Available: stories260K-chat"),
                        (["--num-beams", "2"], "--num-beams: cannot be sent to a server"),
                        (["--dtype", "bf16"], "--dtype: is for a model in this process"),
                        (["--key-file", "/nowhere"], "/nowhere")):
        ran = run("generate", *more, "--server", server.url, "-p", "a")
        assert ran.returncode == 2 and words in ran.stderr, ran.stderr
    for flags, words in ((["--server", "127.0.0.1:5"], "is not an address"), ([], "model: is required"),
                         (["--key-file", "k", str(MODEL)], "--key-file: is given without --server")):
        ran = run("generate", *flags, "-p", "a")
        assert ran.returncode == 2 and words in ran.stderr, ran.stderr


def test_a_key_comes_from_a_file(tmp_path):
    (tmp_path / "key").write_text(ADMIN + "\n")
    with Server("--require-api-key", "true", "--admin-key", ADMIN) as guarded:
        refused = run("generate", "--server", guarded.url, "-p", "a", "-n", "2")
        assert refused.returncode == 2 and "the server answered 401" in refused.stderr and "--key-file" in refused.stderr
        ran = run("generate", "--server", guarded.url, "--key-file", str(tmp_path / "key"), "-p", "a", "-n", "2")
        assert ran.returncode == 0, ran.stderr


def test_ctrl_c_ends_the_request(server):
    def aborted():
        return [line for line in server.request("GET", "/metrics")[2].splitlines() if line.startswith("esurge_requests_aborted_total")]

    before = aborted()
    # Answers of many tokens: the text can only be these letters.
    process = subprocess.Popen([program(), "generate", "--server", server.url, "-p", "a", "-n", "400", "--regex", "[ab]{400,}"],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.read(3)  # the answer has begun
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGINT and "stopped by Ctrl-C" in said
    for _ in range(100):
        if aborted() != before:
            return
        time.sleep(0.1)
    raise AssertionError("the server computes on")

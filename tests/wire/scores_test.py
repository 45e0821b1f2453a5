"""Log-probabilities of prompts over HTTP."""
import pytest

from server import Server


@pytest.fixture(scope="module")
def server():
    with Server() as one:
        yield one


def test_scored_prompts_share_their_beginnings(server):
    """What lm-evaluation-harness sends: the endings of one context, each echoed with its log-probabilities."""
    context, endings = [7, 40, 9, 33, 58, 70, 81, 95, 14, 22], ([100, 101, 102], [100, 103], [200])

    def post(ending, salt):
        body = {"prompt": [[*context, *ending]], "echo": True, "logprobs": 1, "max_tokens": 1, "temperature": 0, "cache_salt": salt}
        answer = server.request("POST", "/v1/completions", body)[2]
        return answer["usage"]["prompt_tokens_details"]["cached_tokens"], answer["choices"][0]["logprobs"]

    together = [post(ending, "together") for ending in endings]
    alone = [post(ending, f"alone {i}") for i, ending in enumerate(endings)]
    assert [logprobs for _, logprobs in together] == [logprobs for _, logprobs in alone]
    assert [cached for cached, _ in alone] == [0, 0, 0]
    # The scores after the last shared token are of another next token, so that one is computed again.
    assert [cached for cached, _ in together] == [0, 10, 9]

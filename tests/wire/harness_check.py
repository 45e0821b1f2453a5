#!/usr/bin/env python3
"""lm-evaluation-harness' own clients of OpenAI's interface against a server of the built program.

Run by a Python with lm_eval and its `api` extra; without them nothing is checked, which a line says. The figures are those of
the adapter, which asks `easydel score`: with token ids, with texts, with the server's tokenizer, and for conversations. Where
torch is installed, too, they are those of the harness' own model `hf`.
"""
import contextlib
import importlib.util
import os
import pathlib
import sys
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from server import MODEL, ROOT, Server, program  # noqa: E402

PLAIN = ROOT / "tests" / "data" / "models" / "stories260K-hf"
LENGTH = 512


def results(model, arguments, tasks, **more):
    """Of each document of each task: the answers to its requests."""
    from lm_eval import evaluator, simple_evaluate
    from lm_eval.tasks import TaskManager

    evaluator.add_env_info = lambda results: None
    with contextlib.redirect_stdout(sys.stderr):
        found = simple_evaluate(
            model=model,
            model_args=arguments,
            tasks=tasks,
            task_manager=TaskManager(include_path=str(ROOT / "examples" / "tasks"), include_defaults=False),
            limit=8,
            num_fewshot=0,
            bootstrap_iters=0,
            gen_kwargs={"max_gen_toks": 12},
            **more,
        )
    out = {}
    for task, samples in found["samples"].items():
        for sample in samples:
            out[task, sample["doc_id"]] = [answer[0] for answer in sample["resps"]]
    return out


def check(name, ours, theirs):
    assert ours.keys() == theirs.keys(), f"{name}: other documents"
    for key, expected in ours.items():
        for one, other in zip(expected, theirs[key], strict=True):
            if isinstance(one, str):
                assert one.strip() == other.strip(), f"{name} {key}: {one!r} {other!r}"
                continue
            (a, greedy), (b, other_greedy) = (x if isinstance(x, (tuple, list)) else (x, None) for x in (one, other))
            assert abs(a - b) <= 1e-4 * abs(a) + 1e-4, f"{name} {key}: {a} {b}"
            assert greedy == other_greedy, f"{name} {key}: greedy"
    print(f"{name}: {len(ours)} documents are equal", flush=True)


class Checks:
    """Counts checks; one that fails prints why, and the next ones run."""

    def __init__(self):
        self.passed = self.failed = 0

    @contextlib.contextmanager
    def of(self, name):
        try:
            yield
            self.passed += 1
        except Exception:  # noqa: BLE001: a check may fail in any way of a client
            print(f"FAILED {name}\n{traceback.format_exc()}", flush=True)
            self.failed += 1


def main():
    missing = [name for name in ("lm_eval", "aiohttp", "tenacity", "requests") if importlib.util.find_spec(name) is None]
    if missing:
        print("nothing was checked: no " + ", ".join(missing))
        print("0 passed, 0 failed, 1 skipped")
        return 0
    os.chdir(ROOT)
    os.environ.update(TQDM_DISABLE="1", HF_HUB_OFFLINE="1", EASYDEL_PROGRAM=program())
    sys.path.insert(0, str(ROOT / "python"))
    import easydel_harness  # noqa: F401: registers the model

    checks = Checks()
    tasks = ["copa", "lambada", "gsm8k"]
    common = f"max_length={LENGTH},num_concurrent=4,max_retries=1"
    ours = results("easydel", f"pretrained={PLAIN},dtype=fp32", tasks)
    with Server("--dtype", "fp32", model=PLAIN) as server:
        base = f"base_url={server.url}/v1/completions,model={PLAIN.name},{common}"
        with checks.of("texts"):
            check("texts", ours, results("local-completions", base + ",tokenized_requests=False", tasks))
        if importlib.util.find_spec("transformers"):
            ids = f",tokenizer={PLAIN},tokenizer_backend=huggingface,add_bos_token=True"
            with checks.of("ids"):
                check("ids", ours, results("local-completions", base + ids, tasks))
            with checks.of("rolling"):
                rolling = results("easydel", f"pretrained={PLAIN},dtype=fp32,max_length={LENGTH - 2}", ["wikitext"])
                check("rolling", rolling, results("local-completions", base + ids, ["wikitext"]))
        if importlib.util.find_spec("transformers") and importlib.util.find_spec("torch"):
            # The interface keeps two tokens of its length for itself.
            theirs = results("hf", f"pretrained={PLAIN},dtype=float32,device=cpu,max_length={LENGTH - 2},add_bos_token=True", [*tasks, "wikitext"])
            for concurrent in (1, 32):
                with checks.of(f"hf, {concurrent} at once"):
                    own = base.replace("num_concurrent=4", f"num_concurrent={concurrent}") + ids
                    check(f"hf, {concurrent} at once", theirs, results("local-completions", own, [*tasks, "wikitext"]))
        with checks.of("remote tokenizer"):
            from lm_eval.utils import check_remote_tokenizer_support

            assert check_remote_tokenizer_support(f"{server.url}/v1/completions"), "the remote tokenizer is not found"
    conversation = {"apply_chat_template": True}
    ours = results("easydel", f"pretrained={MODEL},dtype=fp32", ["gsm8k"], **conversation)
    with Server("--dtype", "fp32", model=MODEL) as server, checks.of("conversations"):
        base = f"base_url={server.url}/v1/chat/completions,model={MODEL.name},{common}"
        check("conversations", ours, results("local-chat-completions", base, ["gsm8k"], **conversation))
    print(f"{checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())

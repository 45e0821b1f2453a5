#!/usr/bin/env python3
"""Models against lm-evaluation-harness' own back end: evaluated_models.py FOLDER... [--limit 4] [--max-length N].

Run by a Python that has lm_eval 0.4.13 with transformers. Every request of some bundled tasks in fp32: how far log-probabilities are
apart, in parts of what is allowed (2e-4 of their size + 1e-4), how many greedy flags and generated texts differ, and metrics that
differ. A folder without a tokenizer gets one of single characters.
"""
import argparse
import contextlib
import json
import os
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
TASKS = ["copa", "lambada", "winograd", "wikitext", "gsm8k"]


def write_tokenizer(folder):
    """ASCII by characters, with BOS, for the small models whose vocabulary has 128 tokens."""
    special = ["<s>", "</s>", "<unk>"]
    vocabulary = {token: i for i, token in enumerate([*special, *map(chr, range(32, 127)), "\n", "\t"])}
    begin = {"SpecialToken": {"id": "<s>", "type_id": 0}}
    tokenizer = {
        "version": "1.0",
        "added_tokens": [
            {"id": i, "content": token, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
            for i, token in enumerate(special)
        ],
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [begin, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [begin, {"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [0], "tokens": ["<s>"]}},
        },
        "decoder": {"type": "Fuse"},
        "model": {"type": "BPE", "unk_token": "<unk>", "vocab": vocabulary, "merges": []},
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    names = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(names))


def results(model, arguments, limit):
    from lm_eval import evaluator, simple_evaluate
    from lm_eval.tasks import TaskManager

    evaluator.add_env_info = lambda results: None
    manager = TaskManager(include_path=str(ROOT / "examples" / "tasks"), include_defaults=False)
    with contextlib.redirect_stdout(sys.stderr):
        return simple_evaluate(model=model, model_args=arguments, tasks=TASKS, task_manager=manager, limit=limit, num_fewshot=0,
                               bootstrap_iters=0, gen_kwargs={"max_gen_toks": 16})


def compare(ours, theirs):
    requests, worst, flags, texts = 0, 0.0, 0, 0
    for task, samples in theirs["samples"].items():
        own = {sample["doc_id"]: sample["resps"] for sample in ours["samples"][task]}
        for sample in samples:
            for (one, *_), (other, *_) in zip(own[sample["doc_id"]], sample["resps"], strict=True):
                requests += 1
                if isinstance(other, str):
                    texts += one != other
                    continue
                (a, greedy), (b, expected) = (x if isinstance(x, (tuple, list)) else (x, None) for x in (one, other))
                worst = max(worst, abs(a - b) / (2e-4 * abs(b) + 1e-4))
                flags += greedy != expected
    metrics = [
        f"{task} {name}: {ours['results'][task][name]} instead of {value}"
        for task, own in theirs["results"].items()
        for name, value in own.items()
        if "," in name and isinstance(value, float) and abs(ours["results"][task][name] - value) > 1e-4 * abs(value)
    ]
    return f"{requests} requests, {worst:.4f} of what is allowed, {flags} flags and {texts} texts differ", metrics


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    parser.add_argument("--limit", type=int, default=4)
    parser.add_argument("--max-length", type=int)
    options = parser.parse_args()
    os.environ.setdefault("EASYDEL_PROGRAM", str(ROOT / "build" / "bin" / "easydel"))
    os.environ.update(TQDM_DISABLE="1", HF_HUB_OFFLINE="1")
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT / "python"))
    import easydel_harness  # noqa: F401: registers the model

    more = f",max_length={options.max_length}" if options.max_length else ""
    for source in options.folders:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            for file in source.resolve().iterdir():
                (folder / file.name).symlink_to(file)
            if not any((source / file).exists() for file in ("tokenizer.json", "tokenizer.model")):
                write_tokenizer(folder)
            ours = results("easydel", f"pretrained={folder},dtype=fp32{more}", options.limit)
            theirs = results("hf", f"pretrained={folder},dtype=float32,device=cpu{more}", options.limit)
        said, metrics = compare(ours, theirs)
        print(f"{source.name}: {said}", *metrics, sep="\n  ", flush=True)


if __name__ == "__main__":
    main()

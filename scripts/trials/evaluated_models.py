#!/usr/bin/env python3
"""Models against lm-evaluation-harness' own back end: evaluated_models.py FOLDER... [--limit 4] [--max-length N] [--tasks A,B]
[--data FOLDER].

Run by a Python that has lm_eval 0.4.13 with transformers. Every request of the bundled tasks in fp32: how far log-probabilities are
apart, in parts of what is allowed (2e-4 of their size + 1e-4), how many greedy flags and generated texts differ (each is shown), and
metrics that differ. --data: the folder of the shared datasets, whose multiple choice, mathematics and bbh become tasks, too. A folder
without a tokenizer gets one of single characters.
"""
import argparse
import contextlib
import csv
import json
import os
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
TASKS = ["hellaswag", "arc_easy", "piqa", "copa", "openbookqa", "winograd", "lambada", "mmlu", "wikitext", "gsm8k"]


def write_task(folder, name, documents, lines):
    """A task of these documents, whose YAML has these lines in addition."""
    data = folder / f"{name}.jsonl"
    data.write_text("".join(json.dumps(document) + "\n" for document in documents))
    common = f"task: {name}\ndataset_path: json\ndataset_kwargs: {{data_files: {{test: {data}}}}}\ntest_split: test\n"
    (folder / f"{name}.yaml").write_text(common + "\n".join(lines) + "\n")
    return name


def lines_of(file, count=200):
    return [json.loads(line) for line in file.read_text().splitlines()[:count]]


def write_tasks(folder, data):
    """Tasks of the shared datasets; their names."""
    choices = ["output_type: multiple_choice", "doc_to_choice: '{{choices}}'", "doc_to_target: gold",
               "metric_list: [{metric: acc}, {metric: acc_norm}]"]
    answers = ["output_type: generate_until", "doc_to_target: '{{answer}}'", "metric_list: [{metric: exact_match}]"]
    names = []
    for file in ("arc_easy", "openbook_qa", "piqa", "siqa", "hellaswag_val_first4000"):
        documents = [{**one, "query": one.get("query", "")} for one in lines_of(data / "mc" / f"{file}.jsonl")]
        names.append(write_task(folder, f"shared_{file}", documents, ["doc_to_text: '{{query}}'", *choices]))
    for file in sorted((data / "mc" / "mmlu").glob("*_test.csv")):
        with file.open(newline="") as text:
            rows = list(csv.DictReader(text))[:50]
        documents = [{"query": row["question"], "choices": [row[f"choice{i}"] for i in range(4)], "gold": int(row["answer"])} for row in rows]
        names.append(write_task(folder, f"shared_mmlu_{file.stem}", documents, ["doc_to_text: '{{query}}\\nAnswer:'", *choices]))
    aqua = [{"query": one["question"], "choices": one["options"], "gold": "ABCDE".index(one["correct"])}
            for one in lines_of(data / "math" / "aqua_dev.jsonl")]
    names.append(write_task(folder, "shared_aqua", aqua, ["doc_to_text: '{{query}}\\nAnswer:'", *choices]))
    sums = [{"query": one["context"], "answer": one["continuation"]} for one in lines_of(data / "mc" / "simple_arithmetic.jsonl")]
    names.append(write_task(folder, "shared_arithmetic", sums, ["output_type: loglikelihood", "doc_to_text: '{{query}}'",
                                                                "doc_to_target: '{{answer}}'", "metric_list: [{metric: acc}]"]))
    for file, question, answer in (("gsm8k_test", "question", "answer"), ("gsm_hard_test", "input", "target"),
                                   ("math_test_1500", "problem", "solution")):
        documents = [{"query": one[question], "answer": str(one[answer])} for one in lines_of(data / "math" / f"{file}.jsonl")]
        names.append(write_task(folder, f"shared_{file}", documents, [
            "doc_to_text: 'Question: {{query}}\\nAnswer:'", "generation_kwargs: {until: ['Question:', \"\\n\\n\"]}", *answers]))
    for file in sorted((data / "mc" / "bbh").glob("*.json")):
        documents = [{"query": one["input"], "answer": one["target"]} for one in json.loads(file.read_text())["examples"][:50]]
        names.append(write_task(folder, f"shared_bbh_{file.stem}", documents, [
            "doc_to_text: 'Q: {{query}}\\nA:'", "generation_kwargs: {until: ['</s>', 'Q', \"\\n\\n\"]}", *answers]))
    return names


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


def results(model, arguments, tasks, folder, limit):
    from lm_eval import evaluator, simple_evaluate
    from lm_eval.tasks import TaskManager

    evaluator.add_env_info = lambda results: None
    manager = TaskManager(include_path=[str(ROOT / "examples" / "tasks"), str(folder)], include_defaults=False)
    with contextlib.redirect_stdout(sys.stderr):
        return simple_evaluate(model=model, model_args=arguments, tasks=tasks, task_manager=manager, limit=limit, num_fewshot=0,
                               bootstrap_iters=0, gen_kwargs={"max_gen_toks": 16})


def compare(ours, theirs):
    requests, worst, flags, texts, shown = 0, 0.0, 0, 0, []
    for task, samples in theirs["samples"].items():
        own = {sample["doc_id"]: sample["resps"] for sample in ours["samples"][task]}
        for sample in samples:
            for (one, *_), (other, *_) in zip(own[sample["doc_id"]], sample["resps"], strict=True):
                requests += 1
                if isinstance(other, str):
                    if one != other:
                        texts += 1
                        shown.append(f"{task} {sample['doc_id']}: {one!r} instead of {other!r}")
                    continue
                (a, greedy), (b, expected) = (x if isinstance(x, (tuple, list)) else (x, None) for x in (one, other))
                worst = max(worst, abs(a - b) / (2e-4 * abs(b) + 1e-4))
                if greedy != expected:
                    flags += 1
                    shown.append(f"{task} {sample['doc_id']}: greedy {greedy} at {a}")
    metrics = [
        f"{task} {name}: {ours['results'][task][name]} instead of {value}"
        for task, own in theirs["results"].items()
        for name, value in own.items()
        if "," in name and isinstance(value, float) and "stderr" not in name
        and abs(ours["results"][task][name] - value) > (1e-4 * abs(value) if "perplexity" in name or "bits" in name else 0)
    ]
    return f"{requests} requests, {worst:.4f} of what is allowed, {flags} flags and {texts} texts differ", shown + metrics


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    parser.add_argument("--limit", type=int, default=4)
    parser.add_argument("--max-length", type=int)
    parser.add_argument("--tasks", help="separated by commas; default: all bundled ones")
    parser.add_argument("--data", type=pathlib.Path)
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
            own = folder / "tasks"
            own.mkdir()
            tasks = [*(options.tasks.split(",") if options.tasks else TASKS), *(write_tasks(own, options.data) if options.data else [])]
            ours = results("easydel", f"pretrained={folder},dtype=fp32{more}", tasks, own, options.limit)
            theirs = results("hf", f"pretrained={folder},dtype=float32,device=cpu,logits_cache=False{more}", tasks, own, options.limit)
        said, metrics = compare(ours, theirs)
        print(f"{source.name}: {said}", *metrics, sep="\n  ", flush=True)


if __name__ == "__main__":
    main()

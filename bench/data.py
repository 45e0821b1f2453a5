"""Preparing data: this program beside `datasets` and TRL, and beside what its own parts allow.

  python bench/data.py [--mb 200] [--rounds 5] [--threads 2] [--gb 1] [--copies 4]
                       [--only jsonl,parquet,csv,masks,alone,memory,start,index,reading,stream,training] [--model PATH]

Runs in the folder of the repository with a Python that has datasets and transformers (and TRL for masks); without them
it prints its own figures and says which peer is missing. Both sides run in turns; a ratio is that of each pair, and the
middle one is printed with the smallest and the largest. Texts are made of
shuffled sentences of ../shared/data (C4) or, without it, of docs.

  jsonl, parquet, csv   rows a second from a file to tokens: `easydel data prepare` against load_dataset and
                        map(batched=True, num_proc=THREADS) with the same tokenizer
  masks                 conversations with a template and a mask against TRL's preparation
  alone                 the rate of preparing jsonl as a share of that of tokenizing the bare texts (tokenizer_bench)
  memory                the most memory of `data prepare`, for MB and COPIES (4) times MB; its store needs as much disk
  start                 to the end of `data prepare` if the store exists: MB against a hundredth
  index                 MB/s of indexing the rows of a file as a share of reading its bytes (rows_bench)
  reading               rows a second of reading alone against iterating over a stream of `datasets` (rows_bench)
  stream                rows that are read while the run goes on, out of GB of hard links to one file: the most memory
                        for the first 1 % of an epoch and for all of it (at most 200,000 rows), and the seconds to the
                        first update and to one at 90 %. Not by default
  training              tokens a second of 12 updates of 4 rows of at most 512 tokens in bf16, from a store and read while
                        the run goes on, as a share of those in memory. The model in PATH. Not by default
"""

import argparse
import contextlib
import gzip
import importlib.util
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("EASYDEL_SHARED_DATA", ROOT.parent / "shared/data"))
PROGRAM = os.environ.get("EASYDEL_PROGRAM", str(ROOT / "build/bin/easydel"))
CONFIG = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 151936, "hidden_size": 64,
    "intermediate_size": 128, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2,
    "max_position_embeddings": 2048, "rms_norm_eps": 1e-5, "eos_token_id": 151643,
}  # fmt: skip
LENGTH = 1024
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.role == 'assistant' %}{% generation %}{{ m.content }}<|im_end|>"
    "{% endgeneration %}{% else %}{{ m.content }}<|im_end|>{% endif %}\n{% endfor %}"
)


def model_folder(folder):
    """A model without weights, with the largest tokenizer that is there."""
    out = folder / "model"
    out.mkdir()
    tokenizer = SHARED / "tokenizers/qwen2"
    config = dict(CONFIG)
    if tokenizer.is_dir():
        (out / "tokenizer.json").write_bytes(gzip.open(tokenizer / "tokenizer.json.gz").read())
        settings = json.loads((tokenizer / "tokenizer_config.json").read_text())
    else:
        plain = ROOT / "tests/data/models/stories260K-hf"
        shutil.copy(plain / "tokenizer.json", out)
        settings = json.loads((plain / "tokenizer_config.json").read_text())
        config.update(vocab_size=512, eos_token_id=2)
        print("the tokenizer is the story model's: ../shared/data is not there")
    settings["chat_template"] = TEMPLATE
    (out / "tokenizer_config.json").write_text(json.dumps(settings))
    (out / "config.json").write_text(json.dumps(config))
    return out


def texts_of():
    file = SHARED / "datasets/text/c4_demo.jsonl"
    if file.is_file():
        return [json.loads(line)["text"] for line in file.read_text().splitlines()]
    # Without it the texts of the repository's own pages.
    pages = sorted((ROOT / "docs").glob("*.md"))
    return [part for page in pages for part in page.read_text().split("\n\n") if len(part) > 80]


def made_texts(texts, megabytes, seed=0):
    """Sentences of the texts in a random order, until there are so many bytes."""
    draw = random.Random(seed)
    sentences = [text.split(". ") for text in texts]
    size = 0
    while size < megabytes << 20:
        parts = list(draw.choice(sentences))
        draw.shuffle(parts)
        text = ". ".join(parts)
        size += len(text.encode())
        yield text


def write_texts(folder, texts, megabytes):
    import csv

    rows = list(made_texts(texts, megabytes))
    with open(folder / "texts.jsonl", "w") as file:
        file.writelines(json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in rows)
    with open(folder / "texts.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text"])
        writer.writerows([text] for text in rows)
    with contextlib.suppress(ImportError):
        import pyarrow
        import pyarrow.parquet

        more = {f"other{i}": [i] * len(rows) for i in range(9)}
        pyarrow.parquet.write_table(pyarrow.table({"text": rows, **more}), folder / "texts.parquet", row_group_size=10000)
    with open(folder / "chats.jsonl", "w") as file:
        for first, second in zip(rows[::2], rows[1::2]):
            turns = [("user", first[:400]), ("assistant", first[400:1200]), ("user", second[:200]), ("assistant", second[200:900])]
            messages = [{"role": role, "content": content or "Yes."} for role, content in turns]
            file.write(json.dumps({"messages": messages}, ensure_ascii=False) + "\n")
    return len(rows)


def most_memory(process):
    """MiB that a process held at most, looked at while it runs: what wait4 says may be what this script held before."""
    most = 0
    while process.poll() is None:
        with contextlib.suppress(OSError):
            found = re.search(r"VmHWM:\s*(\d+)", Path(f"/proc/{process.pid}/status").read_text())
            most = max(most, int(found[1]) if found else 0)
        time.sleep(0.02)
    return most / 1024


def prepare(options, model, data, folder, *, fresh=True, more=()):
    """Seconds and megabytes of `easydel data prepare`."""
    cache = folder / "cache"
    if fresh:
        shutil.rmtree(cache, ignore_errors=True)
    run = {
        "model": {"name_or_path": str(model)},
        "mixture": {"cache_dir": str(cache), "cache_min_bytes": 0, "informs": [{"data_files": str(data)}]},
        "trainer": {"total_batch_size": 2, "max_length": LENGTH, **dict(more)},
    }
    (folder / "run.json").write_text(json.dumps(run))
    begin = time.perf_counter()
    with open(folder / "said.txt", "wb") as said:
        process = subprocess.Popen([PROGRAM, "data", "prepare", str(folder / "run.json")], stdout=subprocess.DEVNULL,
                                   stderr=said, env={**os.environ, "OMP_NUM_THREADS": str(options.threads)})  # fmt: skip
        most = most_memory(process)
    if process.returncode != 0:
        sys.exit(f"easydel data prepare failed: {(folder / 'said.txt').read_text()[-2000:]}")
    return time.perf_counter() - begin, most


# The peers, each in a process of its own: what is measured excludes the imports.


def peer_texts(model, data, threads, cache):
    from datasets import load_dataset
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model)
    kind = "json" if data.endswith(".jsonl") else data.rpartition(".")[2]
    begin = time.perf_counter()
    rows = load_dataset(kind, data_files=data, split="train", cache_dir=cache)
    rows = rows.map(lambda part: {"input_ids": tokenizer(part["text"], truncation=True, max_length=LENGTH)["input_ids"]},
                    batched=True, num_proc=threads, remove_columns=rows.column_names)  # fmt: skip
    return time.perf_counter() - begin


def peer_reading(model, data, threads, cache):
    from datasets import load_dataset

    kind = "json" if data.endswith(".jsonl") else "parquet"
    more = {"columns": ["text", "other0"]} if kind == "parquet" else {}
    rows = load_dataset(kind, data_files=data, split="train", cache_dir=cache, streaming=True, **more)
    begin = time.perf_counter()
    for _ in rows:
        pass
    return time.perf_counter() - begin


def peer_masks(model, data, threads, cache):
    import torch
    from datasets import load_dataset
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM
    from trl import SFTConfig, SFTTrainer

    torch.set_num_threads(threads)
    tokenizer = AutoTokenizer.from_pretrained(model)
    tokenizer.pad_token = tokenizer.eos_token
    network = LlamaForCausalLM(LlamaConfig.from_pretrained(model))
    arguments = SFTConfig(output_dir=cache, max_length=LENGTH, assistant_only_loss=True, dataset_num_proc=threads,
                          report_to="none", use_cpu=True, bf16=False)  # fmt: skip
    begin = time.perf_counter()
    rows = load_dataset("json", data_files=data, split="train", cache_dir=cache)
    SFTTrainer(model=network, args=arguments, train_dataset=rows, processing_class=tokenizer)
    return time.perf_counter() - begin


def peer(name, model, data, options):
    with tempfile.TemporaryDirectory() as cache:
        ran = subprocess.run([sys.executable, __file__, "--peer", json.dumps([name, str(model), str(data), options.threads, cache])],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             env={**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": cache, "TOKENIZERS_PARALLELISM": "false"})  # fmt: skip
    line = next((line for line in ran.stdout.splitlines() if line.startswith("@")), None)
    if line is None:
        sys.exit(f"the peer of {name} failed:\n{ran.stderr[-2000:]}")
    return float(line[1:])


def middle(values):
    return sorted(values)[len(values) // 2]


def say(name, rows, ours, ratios, limit):
    text = f"{name:8} {rows / middle(ours):9.0f} rows/s"
    if ratios:
        text += f"   {middle(ratios):.2f} times the peer ({min(ratios):.2f} to {max(ratios):.2f}; target {limit})"
    print(text, flush=True)


def against_peer(name, peer_name, limit, data, rows, context, more=()):
    options, model, folder = context
    needs = ["datasets", "transformers"] + (["trl"] if peer_name == "masks" else [])
    missing = [package for package in needs if importlib.util.find_spec(package) is None]
    ours, ratios = [], []
    for _ in range(options.rounds):
        ours.append(prepare(options, model, data, folder, more=more)[0])
        if not missing:
            ratios.append(peer(peer_name, model, data, options) / ours[-1])
    say(name, rows, ours, ratios, limit)
    if missing:
        print(f"         no peer: {', '.join(missing)} is not installed")


def alone(context):
    """Preparing against tokenizing the bare texts."""
    options, model, folder = context
    bench = Path(PROGRAM).with_name("tokenizer_bench")
    if not bench.is_file():
        return print(f"alone    {bench} is not built")
    texts = [json.loads(line)["text"] for line in open(folder / "texts.jsonl")]
    (folder / "bare.txt").write_text("\n\n".join(texts))
    few = folder / "few.jsonl"
    few.write_text('{"text": "a"}\n')
    ratios = []
    for _ in range(options.rounds):
        taken = prepare(options, model, folder / "texts.jsonl", folder)[0] - prepare(options, model, few, folder)[0]
        said = subprocess.run([bench, "--tokenizer", model / "tokenizer.json", "--text", folder / "bare.txt", "--reps", "1"],
                              stdout=subprocess.PIPE, text=True, check=True).stdout  # fmt: skip
        rate = float(re.search(rf"batch over {options.threads} threads +([0-9.]+)", said)[1])
        ratios.append(sum(len(text.encode()) for text in texts) / 1e6 / taken / rate)
    print(f"alone    {middle(ratios):.2f} of the rate of tokenizing the bare texts ({min(ratios):.2f} to {max(ratios):.2f}; target 0.5)")


def memory(context):
    options, model, folder = context
    megabytes = []
    for copies in (1, options.copies):
        parts = folder / f"copies{copies}"
        parts.mkdir(exist_ok=True)
        for i in range(copies):
            with contextlib.suppress(FileExistsError):
                os.link(folder / "texts.jsonl", parts / f"{i}.jsonl")
        megabytes.append(prepare(options, model, parts, folder)[1])
    small = folder / "small.jsonl"
    small.write_text('{"text": "a"}\n')
    base = prepare(options, model, small, folder)[1]
    print(f"memory   {megabytes[0]:.0f} MiB for {options.mb} MB, {megabytes[1]:.0f} MiB for {options.copies * options.mb} MB, {base:.0f} MiB for one row")


def start(context):
    options, model, folder = context
    lines = (folder / "texts.jsonl").read_text().splitlines(keepends=True)
    (folder / "few.jsonl").write_text("".join(lines[: max(1, len(lines) // 100)]))
    seconds = {}
    for name in ("texts.jsonl", "few.jsonl"):
        prepare(options, model, folder / name, folder)
        seconds[name] = middle([prepare(options, model, folder / name, folder, fresh=False)[0] for _ in range(options.rounds)])
    print(f"start    {seconds['texts.jsonl']:.2f} s with a store of {len(lines)} rows, "
          f"{seconds['texts.jsonl'] / seconds['few.jsonl']:.2f} times that with a hundredth of them")  # fmt: skip


def rows_bench(*words):
    """{bytes, index: MB/s, rows: rows/s}; None: it is not built."""
    bench = Path(PROGRAM).with_name("rows_bench")
    if not bench.is_file():
        return print(f"{bench} is not built")
    said = subprocess.run([bench, *words], stdout=subprocess.PIPE, text=True, check=True).stdout
    return {name: float(value) for name, value in (line.split("\t") for line in said.splitlines())}


def index(context):
    folder = context[2]
    for name in ("texts.jsonl", "texts.csv"):
        if found := rows_bench(folder / name):
            print(f"index    {name}: {found['index']:.0f} MB/s, {found['index'] / found['bytes']:.2f} of reading its bytes (target 0.5)")


def reading(context, rows):
    options, model, folder = context
    for name, words, limit in (("texts.jsonl", [], 5), ("texts.parquet", ["text,other0"], 2)):
        if not (folder / name).exists():
            continue
        ours, ratios = [], []
        for _ in range(options.rounds):
            found = rows_bench(folder / name, *words)
            if not found:
                return
            ours.append(rows / found["rows"])
            if importlib.util.find_spec("datasets"):
                ratios.append(peer("reading", model, folder / name, options) / ours[-1])
        say(name[6:], rows, ours, ratios, limit)


def stream(context, rows):
    options, model, folder = context
    parts = folder / "links"
    parts.mkdir()
    links = max(1, round(options.gb * 1000 / options.mb))
    for i in range(links):
        os.link(folder / "texts.jsonl", parts / f"{i}.jsonl")
    run = {
        "model": {"name_or_path": str(model)},
        "mixture": {"cache_dir": str(folder / "cache"), "cache_min_bytes": 0, "enable_caching": False,
                    "informs": [{"data_files": str(parts)}]},
        "trainer": {"total_batch_size": 16, "max_length": LENGTH},
    }  # fmt: skip
    (folder / "run.json").write_text(json.dumps(run))

    def order(first, last):
        begin = time.perf_counter()
        process = subprocess.Popen([PROGRAM, "data", "order", str(folder / "run.json"), "--steps", f"{first}..{last}"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
        most = most_memory(process)
        if process.returncode != 0:
            sys.exit("easydel data order failed")
        return time.perf_counter() - begin, most

    steps = links * rows // 16
    order(1, 1)  # makes the index
    at_start = [order(1, 1)[0] for _ in range(options.rounds)]
    at_end = [order(int(0.9 * steps), int(0.9 * steps))[0] for _ in range(options.rounds)]
    few, all_steps = max(1, steps // 100), min(steps, 200_000 // 16)
    print(f"stream   {links} links, {links * rows} rows: first update after {middle(at_start):.2f} s, one at 90 % after "
          f"{middle(at_end):.2f} s ({middle(at_end) / middle(at_start):.2f} times; target 2); "
          f"{order(1, min(few, all_steps))[1]:.0f} MiB for {min(few, all_steps)} updates, {order(1, all_steps)[1]:.0f} MiB for {all_steps}")  # fmt: skip


def training(context):
    options, _, folder = context
    if not options.model:
        return print("training  name the folder of a model: --model PATH")
    kinds = {"memory": {"streaming": False}, "mapped": {}, "stream": {"enable_caching": False}}

    def rate(kind, name):
        run = {
            "model": {"name_or_path": options.model},
            "loader": {"dtype": "bf16", "param_dtype": "bf16"},
            "mixture": {"cache_dir": str(folder / "training"), "cache_min_bytes": 0,
                        "informs": [{"data_files": str(folder / "texts.jsonl")}], **kinds[kind]},
            "trainer": {"total_batch_size": 4, "max_length": 512, "max_training_steps": 12, "report_steps": 1,
                        "save_directory": str(folder / "runs"), "model_name": name, "do_last_save": False,
                        "tensorboard": False},
            "actions": ["train"],
        }  # fmt: skip
        (folder / "train.json").write_text(json.dumps(run))
        subprocess.run([PROGRAM, "run", str(folder / "train.json")], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": str(options.threads)})  # fmt: skip
        lines = [json.loads(line) for line in open(folder / "runs" / name / "metrics.jsonl")]
        first, last = lines[1], lines[-1]  # the first updates allocate
        return (last["num_tokens"] - first["num_tokens"]) / (last["seconds"] - first["seconds"])

    rate("mapped", "store")  # builds it
    rates = {kind: [] for kind in kinds}
    for i in range(options.rounds):
        for kind in kinds:
            rates[kind].append(rate(kind, f"{kind}-{i}"))
    for kind, target in (("mapped", 0.99), ("stream", 0.98)):
        ratios = [one / memory for one, memory in zip(rates[kind], rates["memory"])]
        print(f"training  {kind}: {middle(ratios):.3f} of {middle(rates['memory']):.0f} tokens/s in memory "
              f"({min(ratios):.3f} to {max(ratios):.3f}; target {target})")  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mb", type=int, default=200)
    parser.add_argument("--gb", type=float, default=1)
    parser.add_argument("--copies", type=int, default=4, help="of the row memory")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", default="jsonl,parquet,csv,masks,alone,memory,start,index,reading")
    parser.add_argument("--model", help="folder of the model that trains")
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peer:
        name, *arguments = json.loads(options.peer)
        return print("@", {"texts": peer_texts, "masks": peer_masks, "reading": peer_reading}[name](*arguments))
    with tempfile.TemporaryDirectory(prefix="easydel_data_") as folder:
        folder = Path(folder)
        model = model_folder(folder)
        rows = write_texts(folder, texts_of(), options.mb)
        context = options, model, folder
        print(f"{rows} rows, {options.mb} MB, {options.threads} threads, {options.rounds} rounds")
        asked = options.only.split(",")
        for name, limit in (("jsonl", 12), ("parquet", 10), ("csv", 8)):
            if name in asked and (folder / f"texts.{name}").exists():
                against_peer(name, "texts", limit, folder / f"texts.{name}", rows, context)
        if "masks" in asked:
            chats = sum(1 for _ in open(folder / "chats.jsonl"))
            against_peer("masks", "masks", 10, folder / "chats.jsonl", chats, context, {"assistant_only_loss": True}.items())
        if "alone" in asked:
            alone(context)
        if "memory" in asked:
            memory(context)
        if "start" in asked:
            start(context)
        if "index" in asked:
            index(context)
        if "reading" in asked:
            reading(context, rows)
        if "stream" in asked:
            stream(context, rows)
        if "training" in asked:
            training(context)


if __name__ == "__main__":
    main()

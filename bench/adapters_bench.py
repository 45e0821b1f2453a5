"""Speed and memory of adapters, codes and eight-bit states: this program beside TRL, PEFT and bitsandbytes, and beside itself.

  python bench/adapters_bench.py --only ROW[,ROW] [--peer PYTHON] [--steps 4] [--warmup 1] [--rounds 3] [--threads 2]

PYTHON has trl 1.16, peft 0.21.2 and bitsandbytes 0.50.2; without it a row prints its own figures and says that the peer
is missing. Both sides of a ratio run in turns, each in a process of its own; a ratio is that of a round, and the middle
one is printed with the smallest and the largest. Training's steps are timed from the end of one to the end of the next,
on the clock and in CPU time, which other work moves less. Memory is the most that a process held. Weights are random.

  lora, lora-full        LoRA, r 16 on all linear layers, SmolLM2-135M's shape, 2 x 512 tokens, bf16: against TRL and PEFT
                         with weights in bf16; against our own training of all weights
  qlora, qlora-lora      the same over nf4: against TRL, PEFT and bitsandbytes; against our LoRA over bf16
  qlora-1b               nf4, the shape of Llama-3.2-1B, 1 x 512, against TRL, PEFT and bitsandbytes
  qlora-8b               Llama-3.1-8B's shape, nf4, recomputation, 1 x 512: three steps; loading, peak, GFLOP/s
  gpt-oss                gpt_oss-20b's shape in MXFP4 (writes 13 GB): 32 tokens and one step of LoRA
  decode                 one sequence with an adapter, and with it merged, against the base
  eight                  eight sequences of the engine with eight adapters, against eight with one
  codes                  each format of quantization.model: a token at a time and a prompt of 512, against bf16
  states                 a step of adamw_8bit against adamw, of 8 tokens, so that the optimizer is most of it; their states
  keys                   a token after 8,192 others with keys and values in bytes, against bf16
  merge                  `easydel merge` of the 1B shape; --layers 0 --shape 8b: that of 8B (writes 33 GB)

--layers N: fewer layers than the shape has, to try a row.
"""

import argparse
import json
import os
import random
import re
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from methods_bench import PROGRAM, ROOT, STORY, Run, Texts, own_step, peer_step, spread

SHAPES = {
    "135m": {"vocab_size": 49152, "hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30,
             "num_attention_heads": 9, "num_key_value_heads": 3, "tie_word_embeddings": True},
    "1b": {"vocab_size": 128256, "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16,
           "num_attention_heads": 32, "num_key_value_heads": 8, "tie_word_embeddings": True},
    "8b": {"vocab_size": 128256, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
           "num_attention_heads": 32, "num_key_value_heads": 8, "tie_word_embeddings": False},
}  # fmt: skip
LLAMA = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "max_position_embeddings": 16384, "rms_norm_eps": 1e-5,
         "rope_theta": 100000.0, "hidden_act": "silu", "initializer_range": 0.02, "bos_token_id": 1, "eos_token_id": 2,
         "dtype": "bfloat16"}  # fmt: skip
GPT_OSS = {"architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss", "vocab_size": 201088, "hidden_size": 2880,
           "intermediate_size": 2880, "num_hidden_layers": 24, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64,
           "num_local_experts": 32, "num_experts_per_tok": 4, "sliding_window": 128, "attention_bias": True, "rms_norm_eps": 1e-5,
           "max_position_embeddings": 4096, "rope_theta": 150000.0, "hidden_act": "silu", "bos_token_id": 1, "eos_token_id": 2,
           "tie_word_embeddings": False, "swiglu_limit": 7.0, "dtype": "bfloat16",
           "quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": [
               "model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]}}  # fmt: skip
LORA = {"r": 16, "alpha": 32, "target_modules": "all-linear"}
FORMATS = ["8bit", "a8bit", "a8q", "nf4", "fp4", "a4q", "affine", "mxfp4", "mxfp8", "nvfp4", "nvfp8", "ternary", "binary"]


class Bench:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder

    # A folder of config.json and the story model's tokenizer. `weights`: also random values in bf16.
    def model(self, shape, weights=False):
        config = dict(LLAMA, **SHAPES[shape]) if shape in SHAPES else dict(GPT_OSS)
        if self.options.layers:
            config["num_hidden_layers"] = self.options.layers
        if shape not in SHAPES:
            config["layer_types"] = ["full_attention" if i % 2 else "sliding_attention" for i in range(config["num_hidden_layers"])]
        path = self.folder / f"{shape}{'_weights' if weights else ''}"
        if path.exists():
            return path
        path.mkdir()
        (path / "config.json").write_text(json.dumps(config))
        for name in ("tokenizer.json", "tokenizer_config.json"):
            (path / name).write_bytes((STORY / name).read_bytes())
        if weights:
            write_weights(path, gpt_oss_tensors(config) if shape not in SHAPES else llama_tensors(config))
        return path

    def data(self, rows, length):
        path = self.folder / f"rows_{length}.jsonl"
        texts = Texts()
        lines = [json.dumps({"text": texts.take(length - 1)}) + "\n" for _ in range(rows * (self.options.steps + self.options.warmup))]
        path.write_text("".join(lines))
        return path

    # One run of training; `keys`: sections over the usual ones.
    def train(self, model, rows, length, keys, steps=None, save=None):
        options = self.options
        trainer = {"trainer_type": "sft", "total_batch_size": rows, "max_length": length, "learning_rate": 1e-4,
                   "max_training_steps": steps or options.steps + options.warmup, "scheduler": "constant", "clip_grad": 1.0,
                   "shuffle_train_dataset": False, "num_train_epochs": 100, "log_steps": 1, "report_steps": 1,
                   "progress_bar_type": "json", "do_last_save": save is not None, "resume_if_possible": False,
                   "save_directory": str(save or self.folder / "out"), "model_name": "m", **keys.get("trainer", {})}  # fmt: skip
        document = {"model": {"name_or_path": str(model)}, "loader": {"dtype": "bf16", "param_dtype": "bf16"},
                    "mixture": {"informs": [{"data_files": str(self.data(rows, length))}]}, "actions": ["train"],
                    **{name: value for name, value in keys.items() if name != "trainer"}, "trainer": trainer}  # fmt: skip
        (self.folder / "run.json").write_text(json.dumps(document))
        begin = time.perf_counter()
        warmup = 1 if steps else options.warmup
        run = Run([PROGRAM, "elarge", str(self.folder / "run.json")], own_step, options.threads, warmup, NOTHING)
        run.all = time.perf_counter() - begin
        return run

    def peer(self, model, rows, length, quantized):
        options = self.options
        spec = {"model": str(model), "data": str(self.data(rows, length)), "rows": rows, "length": length, "nf4": quantized,
                "steps": options.steps + options.warmup, "threads": options.threads}  # fmt: skip
        command = [options.peer, str(ROOT / "bench/adapters_peer.py"), json.dumps(spec)]
        return Run(command, peer_step, options.threads, options.warmup, NOTHING)

    def adapter(self, model, keys=None):
        out = self.folder / f"trained_{model.name}_{len(list(self.folder.iterdir()))}"
        self.train(model, 1, 32, {"lora": LORA, **(keys or {}), "trainer": {"merge_lora_before_save": False}}, steps=2, save=out)
        return next(out.glob("**/adapter"))

    # Seconds on the clock and of CPU time, and the peak in MiB, of a command.
    def timed(self, *command):
        environment = {**os.environ, "OMP_NUM_THREADS": str(self.options.threads)}
        begin = time.perf_counter()
        process = subprocess.Popen([PROGRAM, *map(str, command)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment)
        # ru_maxrss would count what this process held when it started the other one.
        peak, ended = [0.0], threading.Event()

        def watch():
            while not ended.wait(0.02):
                try:
                    found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text())
                except OSError:
                    return
                peak[0] = int(found[1]) / 1024 if found else peak[0]

        watcher = threading.Thread(target=watch)
        watcher.start()
        said = self.said = process.stderr.read()
        ended.set()
        watcher.join()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            sys.exit(f"{str(command)[:300]} failed with status {process.returncode}\n{said[-3000:]}")
        return time.perf_counter() - begin, used.ru_utime + used.ru_stime, peak[0]

    # The same of each of `tokens` new tokens after the first four, without loading and the prompt.
    def per_token(self, prompt, tokens, *command):
        def run(count):
            return self.timed("generate", *command, "--prompt", prompt, "--max-new-tokens", count, "--min-new-tokens", count)

        few, many = run(4), run(4 + tokens)
        return (many[0] - few[0]) / tokens, (many[1] - few[1]) / tokens, many[2]


NOTHING = re.compile("(?!)")


def llama_tensors(config):
    hidden, feed, vocabulary = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
    head = hidden // config["num_attention_heads"]
    keys = config["num_key_value_heads"] * head
    yield "model.embed_tokens.weight", "BF16", [vocabulary, hidden]
    for i in range(config["num_hidden_layers"]):
        for name, shape in {"self_attn.q_proj": [hidden, hidden], "self_attn.k_proj": [keys, hidden], "self_attn.v_proj": [keys, hidden],
                            "self_attn.o_proj": [hidden, hidden], "mlp.gate_proj": [feed, hidden], "mlp.up_proj": [feed, hidden],
                            "mlp.down_proj": [hidden, feed], "input_layernorm": [hidden], "post_attention_layernorm": [hidden]}.items():  # fmt: skip
            yield f"model.layers.{i}.{name}.weight", "BF16", shape
    yield "model.norm.weight", "BF16", [hidden]
    if not config["tie_word_embeddings"]:
        yield "lm_head.weight", "BF16", [vocabulary, hidden]


def gpt_oss_tensors(config):
    hidden, feed, experts = config["hidden_size"], config["intermediate_size"], config["num_local_experts"]
    heads, keys = config["num_attention_heads"] * 64, config["num_key_value_heads"] * 64
    yield "model.embed_tokens.weight", "BF16", [config["vocab_size"], hidden]
    for i in range(config["num_hidden_layers"]):
        layer = f"model.layers.{i}."
        for name, rows, columns in (("q", heads, hidden), ("k", keys, hidden), ("v", keys, hidden), ("o", hidden, heads)):
            yield f"{layer}self_attn.{name}_proj.weight", "BF16", [rows, columns]
            yield f"{layer}self_attn.{name}_proj.bias", "BF16", [rows]
        yield f"{layer}self_attn.sinks", "BF16", [config["num_attention_heads"]]
        yield f"{layer}mlp.router.weight", "BF16", [experts, hidden]
        yield f"{layer}mlp.router.bias", "BF16", [experts]
        for name, rows, columns in (("gate_up", 2 * feed, hidden), ("down", hidden, feed)):
            yield f"{layer}mlp.experts.{name}_proj_blocks", "U8", [experts, rows, columns // 32, 16]
            yield f"{layer}mlp.experts.{name}_proj_scales", "U8", [experts, rows, columns // 32]
            yield f"{layer}mlp.experts.{name}_proj_bias", "BF16", [experts, rows]
        for name in ("input_layernorm", "post_attention_layernorm"):
            yield f"{layer}{name}.weight", "BF16", [hidden]
    yield "model.norm.weight", "BF16", [hidden]
    yield "lm_head.weight", "BF16", [config["vocab_size"], hidden]


# Safetensors of random values: bf16 of deviation 0.02 (vectors 1 for norms), codes, and scales of 2^-7.
def write_weights(folder, tensors):
    draw = random.Random(0)
    normal = b"".join(struct.pack("<f", draw.gauss(0, 0.02))[2:] for _ in range(1 << 20))
    codes = draw.randbytes(1 << 21)
    header, at, order = {}, 0, []
    for name, dtype, shape in tensors:
        size = 2 if dtype == "BF16" else 1
        for extent in shape:
            size *= extent
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
        order.append((name, size))
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # as the libraries pad it; values out of line would be copied
    with open(folder / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name, size in order:
            chunk = b"\x80\x3f" * (1 << 20) if "norm" in name else bytes([120]) * (1 << 21) if name.endswith("_scales") else codes if name.endswith("_blocks") else normal  # fmt: skip
            while size > 0:
                size -= file.write(chunk[:size])


def described(run):
    return f"{run.seconds:.2f} s a step, {run.cpu:.2f} s of CPU time, {run.peak:.0f} MiB; losses {run.losses[0]:.4f} to {run.losses[-1]:.4f}, tokens {run.tokens[-1]}"


def compare(bench, name, own, other, against):
    ours, theirs = [], []
    for _ in range(bench.options.rounds):
        ours.append(own())
        if other:
            theirs.append(other())
    print(f"{name:12} {described(ours[len(ours) // 2])}", flush=True)
    if not other:
        return print(f"{'':12} the peer is missing: --peer PYTHON", flush=True)
    print(f"{'  ' + against:12} {described(theirs[len(theirs) // 2])}")
    clock = spread([b.seconds / a.seconds for a, b in zip(ours, theirs)])
    cpu = spread([b.cpu / a.cpu for a, b in zip(ours, theirs)])
    memory = spread([a.peak / b.peak for a, b in zip(ours, theirs)])
    print(f"{'  ratios':12} speed {clock}, by CPU time {cpu}; memory {memory}", flush=True)


def row_training(bench, name):
    shape, rows = ("1b", 1) if name == "qlora-1b" else ("135m", 2)
    nf4 = {"lora": LORA, "quantization": {"model": {"quantization_method": "nf4"}}}
    keys = {"lora": LORA} if name in ("lora", "lora-full") else nf4
    model = bench.model(shape, weights=True)

    def ours(of):
        return lambda: bench.train(model, rows, 512, of)

    if name in ("lora-full", "qlora-lora"):
        return compare(bench, name, ours(keys), ours({} if name == "lora-full" else {"lora": LORA}), "against")
    peer = (lambda: bench.peer(model, rows, 512, keys is nf4)) if bench.options.peer else None
    compare(bench, name, ours(keys), peer, "peer")


def row_8b(bench, name):
    model = bench.model(bench.options.shape or "8b")
    config = json.loads((model / "config.json").read_text())
    run = bench.train(model, 1, 512, {"lora": LORA, "quantization": {"model": {"quantization_method": "nf4"}},
                                      "base_config": {"values": {"gradient_checkpointing": "nothing_saveable"}}}, steps=3)  # fmt: skip
    elements = sum(struct_size(shape) for key, _, shape in llama_tensors(config) if "proj" in key or "lm_head" in key)
    print(f"{name:12} {described(run)}; loading and the first step {run.all - 2 * run.seconds:.0f} s; "
          f"{6e-9 * elements * run.tokens[-1] / run.seconds:.0f} GFLOP/s (forward, again, and backward to x)", flush=True)  # fmt: skip


def struct_size(shape):
    out = 1
    for extent in shape:
        out *= extent
    return out


def row_gpt_oss(bench, name):
    model = bench.model("gpt_oss", weights=True)
    config = json.loads((model / "config.json").read_text())
    size = (model / "model.safetensors").stat().st_size
    # Loading 13 GB takes longer than the tokens, so what the program says of them counts. An expert is laid out for products
    # when the first token asks for it; after 40 tokens all but a few were asked for, and the next 64 give the steady rate.
    def reading():
        environment = {**os.environ, "OMP_NUM_THREADS": str(bench.options.threads)}
        said = subprocess.run([PROGRAM, "doctor"], capture_output=True, text=True, env=environment).stdout
        return float(re.search(r"reading memory ([\d.]+) GB/s", said)[1])

    seconds, peak, loop = {}, 0, reading()
    for tokens in (32, 40, 104):
        _, _, held = bench.timed("generate", model, "--stats", "--prompt", "Once upon a time", "--max-new-tokens", tokens, "--min-new-tokens", tokens)
        seconds[tokens], peak = tokens / float(re.search(r"continuation: .*, ([\d.]+) tokens/s", bench.said)[1]), max(peak, held)
    clock, loop = (seconds[104] - seconds[40]) / 64, (loop + reading()) / 2
    active = 0
    for key, dtype, shape in gpt_oss_tensors(config):
        share = config["num_experts_per_tok"] / config["num_local_experts"] if "experts" in key else 0 if "embed" in key else 1
        active += share * struct_size(shape) * (2 if dtype == "BF16" else 1)
    print(f"{name:12} {size / 1e9:.2f} GB of files; 32 tokens {seconds[32] / 32 * 1e3:.0f} ms each, from the 41st on {clock * 1e3:.0f} ms, {active / clock / 1e9:.1f} GB/s of {active / 1e9:.2f} GB that it reads, {active / clock / 1e9 / loop:.2f} of the reading loop's {loop:.1f}; peak {peak:.0f} MiB", flush=True)  # fmt: skip
    run = bench.train(model, 1, 128, {"lora": {"r": 16, "alpha": 32, "target_modules": ["q_proj", "k_proj", "v_proj", "o_proj"]},
                                      "base_config": {"values": {"gradient_checkpointing": "nothing_saveable"}}}, steps=2)  # fmt: skip
    print(f"{'':12} LoRA of attention, 128 tokens: {described(run)}", flush=True)


def row_decode(bench, name):
    model = bench.model("135m", weights=True)
    adapter, merged = bench.adapter(model), bench.folder / "merged"
    bench.timed("merge", model, "--adapter", adapter, "--out", merged)
    sides = {"base": [model], "adapter": [model, "--adapter", adapter], "merged": [merged]}
    taken = {side: [] for side in sides}
    for _ in range(bench.options.rounds):
        for side, command in sides.items():
            taken[side].append(bench.per_token("Once upon a time", 192, *command))
    for side in ("adapter", "merged"):
        ratios = [[b[i] / a[i] for a, b in zip(taken[side], taken["base"])] for i in (0, 1)]
        print(f"{name:12} {side}: {statistics.median(t[0] for t in taken[side]) * 1e3:.2f} ms a token; of the base's speed {spread(ratios[0])}, by CPU time {spread(ratios[1])}", flush=True)  # fmt: skip


def row_eight(bench, name):
    model = bench.model("135m", weights=True)
    trained = bench.adapter(model)
    adapters = {f"a{i}": str(shutil.copytree(trained, bench.folder / f"adapter_{i}")) for i in range(8)}

    def run(chosen, tokens):
        document = {"model": {"name_or_path": str(model)}, "loader": {"dtype": "bf16", "param_dtype": "bf16"}, "adapters": adapters,
                    "actions": [{"generate": {"prompts": [f"Once upon a time {i}" for i in range(8)], "adapter": chosen, "engine": "esurge",
                                              "max_new_tokens": tokens, "min_new_tokens": tokens, "temperature": 0}}]}  # fmt: skip
        (bench.folder / "eight.json").write_text(json.dumps(document))
        return bench.timed("elarge", bench.folder / "eight.json")

    def per_token(chosen):
        few, many = run(chosen, 4), run(chosen, 132)
        return [(many[i] - few[i]) / 128 for i in (0, 1)]

    eight, one = [], []
    for _ in range(bench.options.rounds):
        eight.append(per_token(list(adapters)))
        one.append(per_token(["a0"] * 8))
    ratios = [[b[i] / a[i] for a, b in zip(eight, one)] for i in (0, 1)]
    print(f"{name:12} {statistics.median(t[0] for t in eight) * 1e3:.1f} ms for a token of all; of the speed with one adapter {spread(ratios[0])}, by CPU time {spread(ratios[1])}", flush=True)  # fmt: skip


def row_codes(bench, name):
    model = bench.model("135m", weights=True)
    texts = Texts()
    short, long = texts.take(16), texts.take(512)

    def sides(of):
        extra = ["--set", f"quantization.model.quantization_method={of}"] if of else []
        token = bench.per_token(short, 96, model, *extra)
        ends = [bench.timed("generate", model, *extra, "--prompt", prompt, "--max-new-tokens", 1) for prompt in (short, long)]
        return token[1], ends[1][1] - ends[0][1], token[0]

    for of in bench.options.formats.split(",") if bench.options.formats else FORMATS:
        taken = [(sides(None), sides(of)) for _ in range(bench.options.rounds)]
        token, prompt, clock = ([plain[i] / codes[i] for plain, codes in taken] for i in (0, 1, 2))
        print(f"{name:12} {of}: of bf16's speed, a token {spread(clock)}, by CPU time {spread(token)}; a prompt of 512 by CPU time {spread(prompt)}", flush=True)  # fmt: skip


def row_states(bench, name):
    model = bench.model("135m", weights=True)
    taken, sizes = {"adamw_8bit": [], "adamw": []}, {}
    for round in range(bench.options.rounds):
        for optimizer, runs in taken.items():
            out = bench.folder / f"{optimizer}_{round}" if round == 0 else None
            runs.append(bench.train(model, 1, 8, {"trainer": {"optimizer": optimizer}}, save=out))
            if out:
                sizes[optimizer] = sum(file.stat().st_size for file in out.glob("**/optimizer/*"))
    cpu = [b.cpu / a.cpu for a, b in zip(*taken.values())]
    clock = [b.seconds / a.seconds for a, b in zip(*taken.values())]
    print(f"{name:12} adamw_8bit: {taken['adamw_8bit'][0].seconds:.2f} s a step of 8 tokens; of adamw's speed {spread(clock)}, by CPU time {spread(cpu)}; "
          f"saved state {sizes['adamw_8bit'] / 1e6:.0f} of {sizes['adamw'] / 1e6:.0f} MB, {sizes['adamw_8bit'] / sizes['adamw']:.3f}", flush=True)  # fmt: skip


def row_keys(bench, name):
    model = bench.model("135m", weights=True)
    texts = Texts()
    short, long = texts.take(16), texts.take(8192)
    bytes_of_keys = ["--set", "quantization.kv_cache.quantization_method=8bit"]

    def attention(extra):
        return [far - near for far, near in zip(*(bench.per_token(prompt, 64, model, *extra)[:2] for prompt in (long, short)))]

    taken = [(attention([]), attention(bytes_of_keys)) for _ in range(bench.options.rounds)]
    clock, cpu = ([plain[i] / codes[i] for plain, codes in taken] for i in (0, 1))
    print(f"{name:12} attention to 8,192 tokens in bytes: {taken[0][1][0] * 1e3:.2f} ms a token; of bf16's speed {spread(clock)}, by CPU time {spread(cpu)}", flush=True)  # fmt: skip


def row_merge(bench, name):
    model = bench.model(bench.options.shape or "1b", weights=True)
    adapter = bench.adapter(model, {"quantization": {"model": {"quantization_method": "nf4"}}})
    size = (model / "model.safetensors").stat().st_size
    clock, cpu, peak = bench.timed("merge", model, "--adapter", adapter, "--out", bench.folder / "merged_model")
    print(f"{name:12} {size / 1e9:.2f} GB in {clock:.1f} s ({cpu:.1f} s of CPU time): {size / clock / 1e9:.2f} GB/s; peak {peak:.0f} MiB", flush=True)  # fmt: skip


ROWS = {**dict.fromkeys(["lora", "lora-full", "qlora", "qlora-lora", "qlora-1b"], row_training), "qlora-8b": row_8b, "gpt-oss": row_gpt_oss,
        "decode": row_decode, "eight": row_eight, "codes": row_codes, "states": row_states, "keys": row_keys, "merge": row_merge}  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", required=True, help="rows, with commas")
    parser.add_argument("--peer", metavar="PYTHON", default=os.environ.get("EASYDEL_PEER_PYTHON"))
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--warmup", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--layers", type=int, default=0, help="fewer, to try a row; 0: the shape's")
    parser.add_argument("--shape", choices=list(SHAPES), help="another one for qlora-8b and merge")
    parser.add_argument("--formats", help="of the row codes, with commas")
    parser.add_argument("--folder", help="where models are written; a temporary one")
    options = parser.parse_args()
    names = options.only.split(",")
    if unknown := set(names) - set(ROWS):
        parser.error(f"--only: unknown {', '.join(sorted(unknown))}; known are {', '.join(ROWS)}")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for name in names:
            ROWS[name](Bench(options, Path(folder)), name)


if __name__ == "__main__":
    main()

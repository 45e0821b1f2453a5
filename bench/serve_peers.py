"""Throughput and latency of `easydel serve` against llama-server, by the load generator of the shared peers, in turns.

  python bench/serve_peers.py MODEL [--llama-server PROGRAM --gguf FILE] [--clients 32,8,1] [--pairs 2] [--requests 2]
                              [--threads 2] [--set KEY=VALUE ...] [--load "serve_load.py's other arguments"] [--seed 0]

Runs in the folder of the repository with any Python 3. MODEL is a checkpoint's folder with a chat template
(../shared/peers/make_models.py); its GGUF file is made by convert_gguf.py and llama-quantize, llama-server is built as
../shared/peers/README.md says. Both servers are up all the time, so the idle one must not take CPU time. Of each number of clients each
side answers --requests requests a client. Without llama-server the figures are ours alone; EASYDEL_PEERS names the folder
of serve_load.py.
"""

import argparse
import json
import os
import shlex
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).parent.parent
PEERS = Path(os.environ.get("EASYDEL_PEERS", ROOT.parent / "shared/peers"))
# What is compared and where it stands in the answer of serve_load.py.
ROWS = {
    "output tokens/s": ("output_tok_per_s", None),
    "first token p50, ms": ("ttft_ms", "p50"),
    "first token p99, ms": ("ttft_ms", "p99"),
    "between tokens p50, ms": ("itl_ms", "p50"),
    "between tokens p99, ms": ("itl_ms", "p99"),
}


def free_port():
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return made.getsockname()[1]


class Server:
    def __init__(self, name, command, port, threads):
        self.name, self.url = name, f"http://127.0.0.1:{port}"
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
        self.process = subprocess.Popen(
            command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        begin = time.monotonic()
        while True:
            if self.process.poll() is not None:
                sys.exit(f"{name} ended with status {self.process.returncode}: {shlex.join(command)}")
            try:
                if urllib.request.urlopen(self.url + "/health", timeout=2).status == 200:
                    return
            except OSError:
                time.sleep(0.05)
            if time.monotonic() - begin > 120:
                sys.exit(f"{name} is not ready after 120 s")

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def cpu_seconds(self):
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def load(self, clients, requests, seed, extra):
        command = [sys.executable, str(PEERS / "serve_load.py"), "--url", self.url, "--concurrency", str(clients)]
        command += ["--requests", str(requests), "--seed", str(seed), *extra]
        begin = self.cpu_seconds()
        ran = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        if ran.returncode != 0:
            sys.exit(f"{self.name}: the load failed: {ran.stdout[-500:]}")
        answer = json.loads(ran.stdout)
        answer["cpu"] = self.cpu_seconds() - begin
        return answer


def spread(values, digits):
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def report(clients, runs):
    prompt = statistics.mean(one["prompt_tokens"] / one["ok"] for one in runs[0])
    fresh = statistics.mean(one["output_tokens"] / one["ok"] for one in runs[0])
    print(f"{clients} clients, {prompt:.0f} tokens in, {fresh:.0f} out, medians of {len(runs[0])}")
    for row, (key, part) in ROWS.items():
        sides = [[one[key] if part is None else one[key][part] for one in side] for side in runs]
        line = f"  {row:24} {spread(sides[0], 1):34}"
        if len(runs) > 1:
            ratios = [ours / theirs for ours, theirs in zip(*sides)]
            line += f" llama-server {spread(sides[1], 1):34} ratio {spread(ratios, 3)}"
        print(line, flush=True)
    cpu = [[1e3 * one["cpu"] / one["output_tokens"] for one in side] for side in runs]
    print("  CPU ms an output token   " + "; ".join(spread(side, 2) for side in cpu), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--llama-server")
    parser.add_argument("--gguf")
    parser.add_argument("--clients", default="32,8,1")
    parser.add_argument("--slots", type=int, default=32)
    parser.add_argument("--requests", type=int, default=2)
    parser.add_argument("--pairs", type=int, default=2)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--set", action="append", default=["quantization.model.quantization_method=a8bit", "esurge.max_model_len=512"])
    parser.add_argument("--load", default="")
    options = parser.parse_args()
    if not (PEERS / "serve_load.py").exists():
        sys.exit(f"no {PEERS / 'serve_load.py'}: set EASYDEL_PEERS to its folder")
    program = os.environ.get("EASYDEL_PROGRAM", str(ROOT / "build/bin/easydel"))
    port = free_port()
    command = [program, "serve", options.model, "--port", str(port), "--max-connections-per-address", "1024"]
    for one in options.set:
        command += ["--set", one]
    servers = [Server("easydel", command, port, options.threads)]
    try:
        if options.llama_server and options.gguf:
            port, slots = free_port(), options.slots
            command = [options.llama_server, "-m", options.gguf, "-t", str(options.threads), "-tb", str(options.threads)]
            command += ["-np", str(slots), "-c", str(512 * slots), "--port", str(port), "--no-webui"]
            servers.append(Server("llama-server", command, port, options.threads))
        else:
            print("no llama-server (--llama-server and --gguf): ours alone")
        extra = shlex.split(options.load)
        for server in servers:
            server.load(2, 2, 999, extra)
        for clients in map(int, options.clients.split(",")):
            runs = [[] for _ in servers]
            requests = max(options.requests * clients, 4)
            for pair in range(options.pairs):
                for side, server in zip(runs, servers):
                    side.append(server.load(clients, requests, options.seed + 100 * pair + clients, extra))
            report(clients, runs)
    finally:
        for server in servers:
            server.stop()


if __name__ == "__main__":
    main()

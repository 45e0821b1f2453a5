#!/usr/bin/env python3
"""Clients that leave a running server (easydel serve) at random moments, for a while; then nothing of them may be left.

The server has to run with --set esurge.enable_prefix_caching=false: at the end no request runs or waits, and no page of the cache has
content. With --pid the server's memory, descriptors and threads are printed each minute. Two clients that stay send one request again
and again meanwhile, whose answer must not change."""
import argparse
import json
import random
import re
import socket
import struct
import sys
import threading
import time
import urllib.parse
import urllib.request
from pathlib import Path


def body_of(draw):
    ids = [draw.randint(3, 500) for _ in range(draw.randint(1, 120))]
    stream = draw.random() < 0.6
    body = {"prompt": ids, "max_tokens": draw.randint(1, 200), "stream": stream, "ignore_eos": True, "seed": draw.randint(0, 99)}
    if draw.random() < 0.3:
        body.update(n=draw.randint(1, 3), temperature=1)
    return json.dumps(body).encode()


def leave(address, draw):
    """One request that is given up somewhere between its first byte and its last event."""
    with socket.create_connection(address, timeout=30) as client:
        body = body_of(draw)
        head = f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        request = head.encode() + body
        stage = draw.random()
        if stage < 0.15:
            client.sendall(request[: draw.randint(1, len(request) - 1)])
        else:
            client.sendall(request)
        if stage > 0.3:
            client.settimeout(draw.choice([0.01, 0.05, 0.3, 1]))
            try:
                while draw.random() < 0.8 and client.recv(draw.choice([1, 200, 4096])):
                    pass
            except TimeoutError:
                pass
        if draw.random() < 0.5:  # a reset instead of an orderly end
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


class Trial:
    def __init__(self, url, end):
        parts = urllib.parse.urlsplit(url)
        self.url, self.address, self.end = url, (parts.hostname, parts.port), end
        self.left = self.answered = 0
        self.failures = []

    def leaver(self, seed):
        draw = random.Random(seed)
        while time.monotonic() < self.end:
            try:
                leave(self.address, draw)
            except OSError as error:
                self.failures.append(f"a client that wanted to leave: {error}")
            self.left += 1

    def stayer(self):
        body = json.dumps({"prompt": "Once upon a time", "max_tokens": 40, "temperature": 0}).encode()
        first = None
        while time.monotonic() < self.end:
            request = urllib.request.Request(self.url + "/v1/completions", body, {"Content-Type": "application/json"})
            try:
                with urllib.request.urlopen(request, timeout=120) as answer:
                    text = json.loads(answer.read())["choices"][0]["text"]
            except urllib.error.HTTPError as error:
                if error.code != 503:  # overloaded: it may come again
                    self.failures.append(f"a client that stayed: {error.code}")
                time.sleep(0.2)
                continue
            first = first if first is not None else text
            if text != first:
                self.failures.append(f"another answer: {text!r} instead of {first!r}")
            self.answered += 1

    def metrics(self):
        text = urllib.request.urlopen(self.url + "/metrics", timeout=60).read().decode()
        return {name: float(value) for name, value in re.findall(r"^(\w+)(?:\{[^}]*\})? (\S+)$", text, re.M)}


def resources(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    kib = int(re.search(r"VmRSS:\s+(\d+)", status)[1])
    threads = int(re.search(r"Threads:\s+(\d+)", status)[1])
    return f"{kib / 1024:.1f} MiB, {len(list(Path(f'/proc/{pid}/fd').iterdir()))} descriptors, {threads} threads"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", help="http://127.0.0.1:11556")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--pid", type=int)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    start = time.monotonic()
    trial = Trial(options.url, start + options.seconds)
    threads = [threading.Thread(target=trial.leaver, args=(options.seed * 1000 + i,)) for i in range(options.clients)]
    threads += [threading.Thread(target=trial.stayer) for _ in range(2)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        if options.pid:
            print(f"{time.monotonic() - start:.0f} s: {trial.left} left, {trial.answered} answered, {resources(options.pid)}", flush=True)
        for _ in range(60):
            time.sleep(1)
            if not any(thread.is_alive() for thread in threads):
                break
    names = ("esurge_running_requests", "esurge_waiting_requests", "esurge_cache_pages_used")
    for _ in range(100):
        rest = {name: trial.metrics()[name] for name in names}
        if not any(rest.values()):
            break
        time.sleep(0.1)
    else:
        trial.failures.append(f"left behind: {rest}")
    for failure in trial.failures[:10]:
        print(failure)
    if options.pid:
        print("at the end:", resources(options.pid))
    print(f"{trial.left} clients left, {trial.answered} requests were answered, {len(trial.failures)} failures")
    return 1 if trial.failures else 0


if __name__ == "__main__":
    sys.exit(main())

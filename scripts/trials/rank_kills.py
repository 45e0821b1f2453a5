#!/usr/bin/env python3
"""Kills rank 1 of a server of two models on two ranks at random moments under load, while adapters are loaded and weights change.

Every answer that ends before the kill has the text of a run without kills; all others end with an error within the limit, and so does
the server, whose status is that of the kill. Prints one line for each run."""
import argparse
import http.client
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = ROOT / "tests/data/models/stories260K-chat"
KEY = "an-admin-key-for-the-trial"
LIMIT_SECONDS = 20
PROMPTS = ["Once upon a time", "Tom and", "The dog", "Lily was"]


def post(port, path, body, timeout=LIMIT_SECONDS):
    """(status, body); status 0: the connection ended without an answer."""
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        client.request("POST", path, json.dumps(body), {"Content-Type": "application/json", "Authorization": f"Bearer {KEY}"})
        answer = client.getresponse()
        return answer.status, answer.read().decode()
    except (ConnectionError, http.client.HTTPException):
        return 0, ""
    finally:
        client.close()


class Server:
    def __init__(self, program, folder, dims):
        self.out, self.err = folder / "out", folder / "err"
        command = [program, "--nproc", "2", "serve", "--model", f"one={MODEL}", "--model", f"two={MODEL}",
                   "--port", "0", "--dtype", "fp32", "--weights-dir", str(folder / "weights"), "--admin-key", KEY,
                   "--set", f"esurge.sharding_axis_dims={dims}"]
        environment = dict(os.environ, OMP_NUM_THREADS="1", OMP_WAIT_POLICY="PASSIVE")
        self.process = subprocess.Popen(command, stdout=self.out.open("w"), stderr=self.err.open("w"), env=environment)
        self.port = self.wait_for(lambda: re.search(r"listening on http://127.0.0.1:(\d+)", self.out.read_text()), 60).group(1)
        self.wait_for(lambda: "serve: ready on " in self.err.read_text(), 120)

    def wait_for(self, found, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if got := found():
                return got
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        raise RuntimeError(f"the server is not ready:\n{self.err.read_text()}")

    def ranks(self):
        return [int(pid) for pid in pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()]


def body_of(draw):
    return {"model": draw.choice(["one", "two"]), "prompt": draw.choice(PROMPTS), "max_tokens": draw.choice([8, 40, 200]),
            "temperature": draw.choice([0, 1]), "seed": draw.randint(0, 3), "ignore_eos": True}


def one_run(program, folder, draw, dims, expected):
    server = Server(program, folder, dims)
    killed, failures, counts = threading.Event(), [], {"answered": 0, "failed": 0, "orders": 0}

    def client(seed):
        own = random.Random(seed)
        while not killed.is_set():
            body = body_of(own)
            began = time.monotonic()
            try:
                status, answer = post(int(server.port), "/v1/completions", body)
            except TimeoutError:
                return failures.append(f"no answer within {LIMIT_SECONDS} s")
            if status == 200:
                counts["answered"] += 1
                text = json.loads(answer)["choices"][0]["text"]
                if expected.setdefault(json.dumps({**body, "model": ""}), text) != text:
                    failures.append(f"another text of {body}")
            elif status in (0, 500, 503) and time.monotonic() - began < LIMIT_SECONDS:
                counts["failed"] += 1
                return None
            else:
                return failures.append(f"status {status}: {answer[:200]}")

    def orders(seed):
        own = random.Random(seed)
        while not killed.is_set():
            try:
                status, _ = post(int(server.port), "/v1/admin/weights", {"path": "same", "model": own.choice(["one", "two"])})
            except TimeoutError:
                return failures.append(f"new weights: no answer within {LIMIT_SECONDS} s")
            if status == 200:
                counts["orders"] += 1
            time.sleep(own.random() / 5)

    threads = [threading.Thread(target=client, args=(draw.random(),)) for _ in range(6)]
    threads.append(threading.Thread(target=orders, args=(draw.random(),)))
    for thread in threads:
        thread.start()
    moment = draw.random() * 3
    time.sleep(moment)
    os.kill(server.ranks()[1], signal.SIGKILL)
    began = time.monotonic()
    killed.set()
    for thread in threads:
        thread.join(LIMIT_SECONDS + 5)
        if thread.is_alive():
            failures.append("a client waits for ever")
    try:
        status = server.process.wait(LIMIT_SECONDS)
    except subprocess.TimeoutExpired:
        server.process.kill()
        status = "it does not end"
    if status != 128 + signal.SIGKILL:
        failures.append(f"the server's status is {status}")
    print(f"killed after {moment:.2f} s, ended {time.monotonic() - began:.2f} s later: {counts}", *failures, sep="\n  ", flush=True)
    if failures:
        print(server.err.read_text())
    return not failures


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=20261124)
    parser.add_argument("--program", default=os.environ.get("EASYDEL_PROGRAM", str(ROOT / "build/bin/easydel")))
    options = parser.parse_args()
    draw = random.Random(options.seed)
    expected, bad = {}, 0
    for run in range(options.count):
        with tempfile.TemporaryDirectory(prefix="easydel-trial-") as folder:
            folder = pathlib.Path(folder)
            shutil.copytree(MODEL, folder / "weights/same")
            dims = ["[1, 1, 1, 2, 1]", "[2, 1, 1, 1, 1]"][run % 2]
            bad += not one_run(options.program, folder, draw, dims, expected if run % 2 == 0 else {})
    print(f"{options.count - bad} of {options.count} runs ended as they should")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Stands for a Python with lm_eval in tests: says FAKE_VERSION, and speaks the child's side of the socket.

FAKE_MODE: "" (two tasks, one request of each kind, results of their answers), "dies" (after its first request),
"killed" (the same by a signal), "dies late" (after its first task), "refuses" (a task that is not there), "garbage" (an answer that is no message), "sleeps" (after it wrote its
process id to FAKE_PID).
"""

import json
import os
import signal
import socket
import sys
import time

mode = os.environ.get("FAKE_MODE", "")
if sys.argv[1] == "-c":
    version = os.environ.get("FAKE_VERSION", "0.4.13")
    print(version)
    sys.exit(0)

stream = socket.socket(fileno=int(sys.argv[3])).makefile("rw", encoding="utf-8", newline="\n")


def send(message):
    stream.write(json.dumps(message) + "\n")
    stream.flush()


def ask(lines):
    send({"lines": lines})
    answers = [None] * len(lines)
    for _ in lines:
        message = json.loads(stream.readline())
        if "failed" in message:
            send({"refused": {"problem": message["failed"], "remedy": ""}})
            return None
        answers[message["line"]] = message["answer"]
    return answers


print("the fake harness begins", flush=True)
prepared = {}
for text in stream:
    message = json.loads(text)
    if "prepare" in message:
        settings = prepared[message["evaluation"]] = message["prepare"]
        if mode == "refuses":
            send({"refused": {"problem": "there is no task 'helaswag'", "remedy": "did you mean 'hellaswag'?"}})
            continue
        send({"version": "0.4.13"})
        send({"ready": {"names": settings["tasks"], "tasks": settings["tasks"], "import_seconds": 0, "build_seconds": 0}})
    elif "run" in message:
        settings = prepared[message["evaluation"]]
        if mode == "sleeps":
            with open(os.environ["FAKE_PID"], "w") as file:
                file.write(str(os.getpid()))
            time.sleep(120)
        if mode == "garbage":
            stream.write("no message\n")
            stream.flush()
            continue
        lines = [
            {"context": "Once upon a time", "continuation": ", there"},
            {"context": "Once upon a time", "continuation": " Tom"},
            {"text": "Once upon a time."},
            {"context": "Once upon a time", "until": ["."], "max_gen_toks": 8},
        ]
        answers = ask(lines)
        if answers is None:
            continue
        if mode == "dies":
            print("Traceback: out of luck", flush=True)
            sys.exit(7)
        if mode == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        better = answers[0]["logprob"] > answers[1]["logprob"]
        task = settings["tasks"][0]
        sample = {"doc_id": 0, "filter": "none", "metrics": ["acc"], "acc": 1.0 if better else 0.0}
        part = {"results": {task: {"alias": task, "acc,none": sample["acc"]}}}
        send({"task": {"name": task, "seconds": 0.5, "results": part}})
        if mode == "dies late":
            sys.exit(7)
        document = {
            "results": {task: {"alias": task, "acc,none": sample["acc"], "acc_stderr,none": 0.0}},
            "answers": answers,
            "settings": settings,
            "samples": {task: [sample]},
            "model_name": settings["model_name"],
        }
        send({"results": {"document": document, "table": "|Tasks|\n|-----|", "groups": ""}})

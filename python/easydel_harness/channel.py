"""Ways to a model that answers lines of JSON."""

import json
import os
import shutil
import socket
import subprocess


class ModelError(RuntimeError):
    """The model's process failed, or one of its answers is an error."""


class SocketChannel:
    """The process that started this one, over a socket."""

    def __init__(self, descriptor):
        self._stream = socket.socket(fileno=descriptor).makefile("rw", encoding="utf-8", newline="\n")

    def send(self, message):
        self._stream.write(json.dumps(message, ensure_ascii=False) + "\n")
        self._stream.flush()

    def receive(self):
        """The next message; None if the other process has ended."""
        line = self._stream.readline()
        return json.loads(line) if line else None

    def ask(self, lines, on_answer):
        """Answers to lines: on_answer(index, answer) for each, in the order in which they come."""
        self.send({"lines": lines})
        left = len(lines)
        while left:
            message = self.receive()
            if message is None:
                raise ModelError("the process that holds the model has ended")
            if "failed" in message:
                raise ModelError(message["failed"])
            on_answer(message["line"], message["answer"])
            left -= 1

    def close(self):
        self._stream.close()


class ScoreChannel:
    """``easydel score`` as a child of this process."""

    def __init__(self, model, options):
        program = os.environ.get("EASYDEL_PROGRAM") or shutil.which("easydel")
        if not program:
            raise ModelError("the program easydel was not found: put it into PATH, or set EASYDEL_PROGRAM")
        self._process = subprocess.Popen(
            [program, "score", model, *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )

    def ask(self, lines, on_answer):
        texts = [json.dumps(line, ensure_ascii=False) for line in lines]
        try:
            self._process.stdin.write("\n".join(texts) + "\n\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # what the process said stands in the log above
        for index in range(len(lines)):
            answer = self._process.stdout.readline()
            if not answer:
                raise ModelError(f"easydel score ended with status {self._process.wait()}")
            on_answer(index, json.loads(answer))

    def close(self):
        self._process.stdin.close()
        self._process.wait()

"""A server of the built program for tests, on a free port of this machine."""
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = ROOT / "tests" / "data" / "models" / "stories260K-chat"


def program():
    return os.environ.get("EASYDEL_PROGRAM", str(ROOT / "build" / "bin" / "easydel"))


class Server:
    """`with Server("--port", "0") as server:` is ready, and ended by its process id."""

    def __init__(self, *arguments, model=MODEL, environment=None):
        self.output = tempfile.NamedTemporaryFile("w+", suffix=".log")
        self.process = subprocess.Popen([program(), "serve", str(model), "--port", "0", *arguments], stdin=subprocess.DEVNULL,
                                        stdout=self.output, stderr=subprocess.STDOUT,
                                        env=dict(os.environ, OMP_NUM_THREADS="1", OMP_WAIT_POLICY="PASSIVE", **(environment or {})))

    def log(self):
        return pathlib.Path(self.output.name).read_text(errors="replace")

    def __enter__(self):
        for _ in range(600):
            found = re.search(r"listening on (\S+)", self.log())
            if found and found[1].startswith("unix:"):
                self.url = found[1]
                if "serve: ready on" in self.log():
                    return self
            elif found:
                self.url = found[1]
                try:
                    if urllib.request.urlopen(self.url + "/health", timeout=5).status == 200:
                        return self
                except OSError:
                    pass
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        raise RuntimeError("the server did not start:\n" + self.log())

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    @property
    def host_and_port(self):
        host, _, port = self.url.removeprefix("http://").rpartition(":")
        return host, int(port)

    def request(self, method, path, body=None, headers=()):
        """Status, headers and the body, parsed where it is JSON."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, method=method,
                                         headers={"Content-Type": "application/json", **dict(headers)})
        try:
            answer = urllib.request.urlopen(request, timeout=60)
        except urllib.error.HTTPError as error:
            answer = error
        text = answer.read().decode()
        try:
            return answer.status, answer.headers, json.loads(text)
        except ValueError:
            return answer.status, answer.headers, text

    def metric(self, name):
        """The sum of the samples of a metric; `name` may begin with a part of their labels."""
        lines = [line for line in self.request("GET", "/metrics")[2].splitlines() if line.startswith(name)]
        return sum(float(line.rpartition(" ")[2]) for line in lines)

    def wait_for_log(self, text, seconds=30):
        for _ in range(seconds * 20):
            if text in self.log():
                return
            time.sleep(0.05)
        raise AssertionError(f"'{text}' is not in the log:\n" + self.log())

    def resident_bytes(self):
        return int(pathlib.Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def threads(self):
        return len(os.listdir(f"/proc/{self.process.pid}/task"))

"""A hub for tests: serves the repository of the folder given, on a free port of this machine, which it prints.

Arguments: FOLDER [LOG]. FOLDER/main/... are the files of revision main. Names of files ask for misbehaviour:
"slow..." comes in drips, "broken..." ends half-way at the first try, "wrong..." has another hash, "big..." is a file
of the store (another port, as another host). The log gets a line for each request: method, path, whether a token came.
"""
import hashlib
import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ROOT, LOG = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else os.devnull
COMMIT = "0123456789abcdef0123456789abcdef01234567"
broken, store, received = set(), {}, {}


def content(name):
    with open(os.path.join(ROOT, "main", name), "rb") as file:
        return file.read()


def names():
    base = os.path.join(ROOT, "main")
    found = (os.path.relpath(os.path.join(d, f), base) for d, _, fs in os.walk(base) for f in fs)
    return sorted(found)


def large(name):
    return os.path.basename(name).startswith(("big", "wrong", "broken", "slow"))


def etag(name):
    data = content(name)
    if os.path.basename(name).startswith("wrong"):
        return "0" * 64
    if large(name):
        return hashlib.sha256(data).hexdigest()
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class Hub(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def note(self):
        with open(LOG, "a") as log:
            log.write(f"{self.server.role} {self.command} {self.path} {self.headers.get('Authorization', '-')} {self.headers.get('Range', '-')}\n")

    def answer(self, status, body=b"", headers=()):
        self.send_response(status)
        for key, value in headers:
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_file(self, name):
        data, base = content(name), os.path.basename(name)
        wanted = self.headers.get("Range")
        begin = int(wanted.split("=")[1].split("-")[0]) if wanted else 0
        self.send_response(206 if wanted else 200)
        self.send_header("Content-Length", str(len(data) - begin))
        self.end_headers()
        data = data[begin:]
        if base.startswith("broken") and name not in broken:
            broken.add(name)
            self.wfile.write(data[: len(data) // 2])
            self.wfile.flush()
            self.connection.close()
            self.close_connection = True
        elif base.startswith("slow"):
            for at in range(0, len(data), max(1, len(data) // 4)):
                self.wfile.write(data[at : at + max(1, len(data) // 4)])
                self.wfile.flush()
                time.sleep(0.05)
        else:
            self.wfile.write(data)

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        self.note()
        path = self.path.split("?")[0]
        commit = ("X-Repo-Commit", COMMIT)
        if self.server.role == "store":
            return self.send_file(path.lstrip("/"))
        if path.startswith(("/api/models/org/name/tree/", "/api/datasets/org/name/tree/")):
            tree = []
            for name in names():
                data = content(name)
                entry = {"type": "file", "path": name, "size": len(data), "oid": hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()}
                if large(name):
                    entry["lfs"] = {"oid": hashlib.sha256(data).hexdigest(), "size": len(data)}
                tree.append(entry)
            return self.answer(200, json.dumps(tree).encode())
        if path.startswith(("/api/models/org/name/revision/", "/api/datasets/org/name/revision/")):
            if path.rsplit("/", 1)[1] not in ("main", COMMIT):
                return self.answer(404, b"", [("X-Error-Code", "RevisionNotFound")])
            files = [{"rfilename": name} for name in names()] + [{"rfilename": "../outside"}]
            return self.answer(200, json.dumps({"sha": COMMIT, "siblings": files}).encode())
        if path.startswith("/api/") or not path.startswith(("/org/name/resolve/", "/org/old/resolve/", "/datasets/org/name/resolve/")):
            gated = "/gated/" in path or path.startswith("/org/gated")
            return self.answer(403 if gated else 401, b"", [("X-Error-Code", "GatedRepo" if gated else "RepoNotFound")])
        revision, name = path.split("/resolve/", 1)[1].split("/", 1)
        if path.startswith("/org/old/"):
            return self.answer(307, b"", [("Location", self.path.replace("/org/old/", "/org/name/"))])
        if revision not in ("main", COMMIT):
            return self.answer(404, b"", [("X-Error-Code", "RevisionNotFound")])
        if name not in names():
            return self.answer(404, b"", [("X-Error-Code", "EntryNotFound"), commit])
        if large(name):
            where = f"http://127.0.0.1:{store['port']}/{name}"
            return self.answer(302, b"", [commit, ("X-Linked-Etag", f'"{etag(name)}"'), ("X-Linked-Size", str(len(content(name)))), ("Location", where)])
        if self.command == "HEAD":
            self.send_response(200)
            for key, value in (commit, ("ETag", f'"{etag(name)}"'), ("Content-Length", str(len(content(name))))):
                self.send_header(key, value)
            return self.end_headers()
        self.send_file(name)

    def do_POST(self):
        self.note()
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        with open(LOG, "a") as log:
            log.write("  body " + body.decode() .replace("\n", "\\n") + "\n")
        if self.path == "/api/repos/create":
            return self.answer(409, b"{}")
        if "/preupload/" in self.path:
            files = [{"path": f["path"], "uploadMode": "lfs" if f["path"].endswith(".safetensors") else "regular"} for f in json.loads(body)["files"]]
            return self.answer(200, json.dumps({"files": files}).encode())
        if self.path.endswith("/info/lfs/objects/batch"):
            objects = []
            for one in json.loads(body)["objects"]:
                href = f"http://127.0.0.1:{store['port']}/{one['oid']}"
                objects.append({**one, "actions": {"upload": {"href": href, "header": {"X-Store": "yes"}}}})
            return self.answer(200, json.dumps({"objects": objects}).encode())
        if "/commit/" in self.path:
            return self.answer(200, json.dumps({"commitOid": COMMIT, "commitUrl": "http://hub/commit"}).encode())
        self.answer(404, b"{}")

    def do_PUT(self):
        self.note()
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        good = hashlib.sha256(body).hexdigest() == self.path.lstrip("/") and self.headers.get("X-Store") == "yes"
        self.answer(200 if good else 400)


servers = []
for role in ("hub", "store"):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    server.role = role
    server.daemon_threads = True
    servers.append(server)
store["port"] = servers[1].server_address[1]
for server in servers:
    threading.Thread(target=server.serve_forever, daemon=True).start()
print(servers[0].server_address[1], flush=True)
sys.stdin.read()

"""A web server for tests: serves the files of FOLDER on a free port of this machine, which it prints.

Arguments: FOLDER LOG. A file's name asks for misbehaviour: "broken..." ends half-way at the first try, "busy..." answers
503 twice, "once429..." answers 429 once, "secret..." wants the token "open", "whole..." knows no ranges, "changing..." is another file after each
request, of which the first one ends half-way unless it asks for a part, "headless..." takes no HEAD, "slow..." sends little by little. The log gets a line for each request: method, path, range, If-Range.
"""
import hashlib
import os
import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ROOT, LOG = sys.argv[1:3]
tries = {}


class Web(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def refuse(self, status):
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_HEAD(self):
        self.serve()

    def do_GET(self):
        self.serve()

    def serve(self):
        name = os.path.basename(self.path.split("?")[0])
        with open(LOG, "a") as log:
            log.write(f"{self.command} {self.path} {self.headers.get('Range', '-')}\n")
        if not os.path.exists(os.path.join(ROOT, name)):
            return self.refuse(404)
        if name.startswith("secret") and self.headers.get("Authorization") != "Bearer open":
            return self.refuse(403)
        if name.startswith("headless") and self.command == "HEAD":
            return self.refuse(405)
        key = (name, self.command)
        tries[key] = tries.get(key, 0) + 1
        if name.startswith("busy") and self.command == "GET" and tries[key] <= 2:
            return self.refuse(503)
        if name.startswith("once") and self.command == "GET" and tries[key] == 1:
            return self.refuse(int(name[4:7]))
        with open(os.path.join(ROOT, name), "rb") as file:
            data = file.read()
        if name.startswith("changing") and tries.get((name, "GET"), 0) > 1:
            data = data.replace(b"a", b"b")
        etag = '"' + hashlib.sha1(data).hexdigest() + '"'
        begin, end, is_part = 0, len(data), False
        has_range = "Range" in self.headers and not name.startswith("whole")
        if has_range:
            first, last = self.headers["Range"].split("=")[1].split("-")
            begin, end, is_part = int(first), min(int(last) + 1, end) if last else end, bool(last)
            if self.headers.get("If-Range", etag) != etag and not name.startswith("changing"):
                begin, end, has_range = 0, len(data), False
        if has_range and begin >= len(data):
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(data)}")
            self.send_header("Content-Length", "0")
            return self.end_headers()
        self.send_response(206 if has_range else 200)
        self.send_header("ETag", etag)
        if has_range:
            self.send_header("Content-Range", f"bytes {begin}-{end - 1}/{len(data)}")
        self.send_header("Content-Length", str(end - begin))
        self.end_headers()
        if self.command == "HEAD":
            return None
        data = data[begin:end]
        if name.startswith("slow"):
            for at in range(0, len(data), 1000):
                self.wfile.write(data[at : at + 1000])
                self.wfile.flush()
                time.sleep(0.002)
            return None
        if name.startswith(("broken", "whole") if is_part else ("broken", "changing", "whole")) and tries[key] == 1:
            self.wfile.write(data[: len(data) // 2])
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
            return None
        self.wfile.write(data)


server = ThreadingHTTPServer(("127.0.0.1", 0), Web)
print(server.server_address[1], flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()  # ends with the test

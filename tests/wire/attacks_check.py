#!/usr/bin/env python3
"""The attacks of attacks.py, at a size of seconds, against a server of the built program."""
import sys

import attacks
from server import Server


def main():
    with Server("--log-level", "error") as server:
        rows, failures = attacks.run(attacks.Target(server.url), 0.02, pid=server.process.pid)
        alive = server.process.poll() is None
    if not alive:
        failures.append("the server ended:\n" + server.log()[-3000:])
    for failure in failures:
        print(failure)
    failed = max(sum(row[2] for row in rows), len(failures))
    print(f"{sum(row[1] for row in rows) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""The attacks of attacks.py, at a size of seconds, against a server of the built program."""
import sys

import attacks
from server import Server


ADMIN = "an-admin-key-of-a-test"


def main():
    rows, failures = [], []
    for flags, key, only in (([], None, ""), (["--admin-key", ADMIN], ADMIN, "guesses")):
        with Server("--log-level", "error", *flags) as server:
            more, failed = attacks.run(attacks.Target(server.url, key), 0.02, only, server.process.pid)
            if server.process.poll() is not None:
                failed.append("the server ended:\n" + server.log()[-3000:])
        rows += more
        failures += failed
    for failure in failures:
        print(failure)
    failed = max(sum(row[2] for row in rows), len(failures))
    print(f"{sum(row[1] for row in rows) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

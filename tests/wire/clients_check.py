#!/usr/bin/env python3
"""Real clients against a server of the built program: the packages openai and anthropic, curl, and sockets.

The packages go into a private environment (build/wire-venv, or EASYDEL_WIRE_VENV); where they cannot be installed, the check is
counted as skipped. The tests are the files *_test.py, for pytest. Those of packages_test.py need MORE_PACKAGES, and the package openai of npm in
build/wire-node (EASYDEL_WIRE_NODE); each is skipped where its package cannot be installed.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
VENV = pathlib.Path(os.environ.get("EASYDEL_WIRE_VENV", HERE.parents[1] / "build" / "wire-venv"))
PACKAGES = ["pytest", "openai", "anthropic"]
MORE_PACKAGES = {"langchain_openai": "langchain-openai", "schemathesis": "schemathesis", "prometheus_client": "prometheus_client",
                 "selenium": "selenium"}
NODE_FOLDER = pathlib.Path(os.environ.get("EASYDEL_WIRE_NODE", HERE.parents[1] / "build" / "wire-node"))
INSTALL_SECONDS = 150


def environment():
    """The Python of the private environment, or why there is none."""
    python = VENV / "bin" / "python"
    test = [str(python), "-c", "import pytest, openai, anthropic"]
    if python.exists() and subprocess.run(test, capture_output=True).returncode == 0:
        return python, ""
    for command in ([sys.executable, "-m", "venv", str(VENV)], [str(python), "-m", "pip", "install", "-q", *PACKAGES]):
        try:
            ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=INSTALL_SECONDS)
        except (OSError, subprocess.TimeoutExpired) as error:
            return None, str(error)
        if ran.returncode != 0:
            return None, (ran.stdout + ran.stderr).strip().splitlines()[-1:]
    return python, ""


def install_more(python):
    """What only some tests need, as far as it can be had."""
    commands = []
    if subprocess.run([str(python), "-c", "import " + ", ".join(MORE_PACKAGES)], capture_output=True).returncode != 0:
        commands.append([str(python), "-m", "pip", "install", "-q", *MORE_PACKAGES.values()])
    if shutil.which("npm") and not (NODE_FOLDER / "node_modules" / "openai").exists():
        NODE_FOLDER.mkdir(parents=True, exist_ok=True)
        commands.append(["npm", "install", "--no-audit", "--no-fund", "--prefix", str(NODE_FOLDER), "openai"])
    for command in commands:
        try:
            subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=INSTALL_SECONDS)
        except (OSError, subprocess.TimeoutExpired):
            pass  # the tests are skipped, which is counted


def main():
    python, why = environment()
    if not python:
        print(f"clients: skipped, because pytest, openai and anthropic could not be installed: {why}")
        print("0 passed, 0 failed, 1 skipped")
        return 0
    install_more(python)
    ran = subprocess.run([str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", str(HERE), *sys.argv[1:]],
                         stdin=subprocess.DEVNULL, capture_output=True, text=True,
                         env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1"))
    count = {word: int(number) for number, word in re.findall(r"(\d+) (passed|failed|error|skipped)", ran.stdout)}
    failed = count.get("failed", 0) + count.get("error", 0)
    if ran.returncode != 0:
        print(ran.stdout[-6000:] + ran.stderr[-2000:])
        failed = max(failed, 1)
    print(f"{count.get('passed', 0)} passed, {failed} failed, {count.get('skipped', 0)} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

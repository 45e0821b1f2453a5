"""Runs the built test binaries and the Python checks, prints one line for each, and a total.

The last line is `N passed, M failed, K skipped`; the exit status is 1 if anything failed.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIMIT_SECONDS = 900  # per suite, so that one that hangs does not block the run


class Suite:
    def __init__(self, name):
        self.name, self.passed, self.failed, self.skipped = name, 0, 0, 0
        self.details = []  # messages of failures
        self.said = []  # lines that a check printed about its parts


def environment(suite_name):
    """One thread per process by default; the caller's environment takes precedence."""
    env = dict(os.environ)
    env.setdefault("OMP_NUM_THREADS", "1")
    env.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    env.setdefault("MKL_NUM_THREADS", "1")
    for name in ("EASYDEL_FAULT", "EASYDEL_ISA", "EASYDEL_LOG"):
        env.pop(name, None)
    return env


def run_gtest(binary, filter_text):
    suite = Suite(binary.name)
    pattern = None
    if filter_text and filter_text not in binary.name:
        pattern = f"*{filter_text}*"
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        command = [str(binary), f"--gtest_output=json:{report}", "--gtest_color=no", "--gtest_brief=1"]
        if pattern:
            command.append(f"--gtest_filter={pattern}")
        try:
            ran = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                 env=environment(binary.name), timeout=LIMIT_SECONDS, cwd=folder)
            status, output = ran.returncode, ran.stdout.decode("utf-8", "replace")
        except subprocess.TimeoutExpired as late:
            status, output = f"no end after {LIMIT_SECONDS} s", (late.stdout or b"").decode("utf-8", "replace")
        try:
            document = json.loads(report.read_text())
        except (OSError, ValueError):
            document = None  # it crashed before writing a report
    if document:
        for group in document.get("testsuites", []):
            for case in group.get("testsuite", []):
                if case.get("failures"):
                    suite.failed += 1
                    text = "\n".join(failure["failure"] for failure in case["failures"])
                    suite.details.append(f"{group['name']}.{case['name']}\n{text}")
                elif case.get("result") == "SKIPPED":
                    suite.skipped += 1
                elif case.get("status") == "RUN":
                    suite.passed += 1
    if status != 0 and not suite.failed:
        suite.failed += 1
        suite.details.append(f"{binary.name} ended with {status}\n" + output[-4000:])
    return suite


def run_script(script, filter_text):
    """A Python check prints `N passed, M failed[, K skipped]` as its last line and exits with 1 if one failed."""
    suite = Suite(str(script.relative_to(ROOT)))
    if filter_text and filter_text not in suite.name:
        return suite
    try:
        ran = subprocess.run([sys.executable, str(script)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, env=environment(script.name), timeout=LIMIT_SECONDS, cwd=ROOT)
        status, output = ran.returncode, ran.stdout.decode("utf-8", "replace")
    except subprocess.TimeoutExpired as late:
        status, output = f"no end after {LIMIT_SECONDS} s", (late.stdout or b"").decode("utf-8", "replace")
    counts = parse_counts(output)
    if counts:
        suite.passed, suite.failed, suite.skipped = counts
    if not counts or (status != 0) != (suite.failed > 0):
        suite.failed = max(suite.failed, 1)
    if suite.failed:
        suite.details.append(f"{suite.name} ended with {status}\n" + output[-4000:])
    else:
        suite.said = output.strip().splitlines()[:-1]
    return suite


def parse_counts(output):
    lines = output.strip().splitlines()
    if not lines:
        return None
    found = {"passed": 0, "failed": 0, "skipped": 0}
    for part in lines[-1].split(","):
        words = part.split()
        if len(words) != 2 or not words[0].isdigit() or words[1] not in found:
            return None
        found[words[1]] = int(words[0])
    return found["passed"], found["failed"], found["skipped"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("filter", nargs="?", default="", help="part of the name of a suite or a test")
    parser.add_argument("--build", default=str(ROOT / "build"))
    parser.add_argument("--eval", action="store_true", help="for easydel.sh, which installs lm_eval for the tests that need it")
    parser.add_argument("--fuzz", action="store_true", help="also search with libFuzzer, 30 s per target, if clang is installed")
    arguments = parser.parse_args()

    os.environ.setdefault("EASYDEL_PROGRAM", str(pathlib.Path(arguments.build) / "bin" / "easydel"))
    binaries = sorted(path for path in pathlib.Path(arguments.build, "bin").glob("test_*") if os.access(path, os.X_OK))
    folders = ["wire", "golden", "install"] + ["fuzz"] * arguments.fuzz
    scripts = sorted(path for folder in folders for path in (ROOT / "tests" / folder).glob("*_check.py"))
    if not binaries:
        print(f"no test binaries in {arguments.build}/bin; ./easydel.sh test builds them", file=sys.stderr)
        return 1

    total, failures = Suite("all"), []
    for run, path in [(run_gtest, path) for path in binaries] + [(run_script, path) for path in scripts]:
        started = time.monotonic()
        suite = run(path, arguments.filter)
        if not (suite.passed or suite.failed or suite.skipped):
            continue
        skipped = f", {suite.skipped} skipped" if suite.skipped else ""
        # Indented, so that the only line that is nothing but counts is the last.
        print(f"  {suite.name:<28} {suite.passed} passed, {suite.failed} failed{skipped}"
              f"  ({time.monotonic() - started:.1f} s)", flush=True)
        for line in suite.said:
            print("    " + line, flush=True)
        for detail in suite.details:
            print("    FAILED " + detail.replace("\n", "\n      "), flush=True)
            failures.append(f"{suite.name}: {detail.splitlines()[0]}")
        total.passed += suite.passed
        total.failed += suite.failed
        total.skipped += suite.skipped
    if arguments.filter and not (total.passed or total.failed or total.skipped):
        print(f"no suite and no test has '{arguments.filter}' in its name")
    if failures:
        print("failed:\n  " + "\n  ".join(failures))
    print(f"{total.passed} passed, {total.failed} failed, {total.skipped} skipped", flush=True)
    return 1 if total.failed or not total.passed else 0


if __name__ == "__main__":
    sys.exit(main())

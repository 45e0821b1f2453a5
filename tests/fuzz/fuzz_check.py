#!/usr/bin/env python3
"""Searches on with libFuzzer from every stored corpus: fuzz_check.py [--seconds 30] [--seed 1] [--only NAME] [--jobs 2].

CI runs it (`./easydel.sh test --fuzz`). Where there is no clang++ with libFuzzer it is skipped; the corpora are replayed by
test_fuzz_* in any case. It builds in build-fuzz, only what parses bytes from outside; a build of more than ten minutes is
given up, and said. An input that is a finding is kept in build-fuzz/findings: mend it, and keep it in tests/fuzz/corpus.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build-fuzz"
BUILD_SECONDS = 600


def find_clang():
    """The newest clang++ of the PATH that links a program with libFuzzer."""
    names = {"clang++"}
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        if os.path.isdir(folder):
            names.update(name for name in os.listdir(folder) if re.fullmatch(r"clang\+\+-\d+", name))
    newest = sorted(names, key=lambda name: int(name.rpartition("-")[2]) if "-" in name else 0, reverse=True)
    source = 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }'
    with tempfile.TemporaryDirectory() as folder:
        for name in newest:
            if not shutil.which(name):
                continue
            command = [name, "-x", "c++", "-", "-fsanitize=fuzzer,address,undefined", "-o", f"{folder}/probe"]
            if subprocess.run(command, input=source.encode(), capture_output=True).returncode == 0:
                return name
    return None


def build(clang, targets):
    """Nothing, or why there are no programs."""
    configure = ["cmake", "-S", str(ROOT), "-B", str(BUILD), "-G", "Ninja", "-DEASYDEL_FUZZ=ON", f"-DCMAKE_CXX_COMPILER={clang}",
                 "-DCMAKE_BUILD_TYPE=RelWithDebInfo"]
    for command in (configure, ["ninja", "-C", str(BUILD)] + targets):
        try:
            ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=BUILD_SECONDS)
        except subprocess.TimeoutExpired:
            return f"{command[0]} took more than {BUILD_SECONDS} s; the next run goes on from there"
        if ran.returncode != 0:
            raise SystemExit((ran.stdout + ran.stderr)[-4000:] + f"\n0 passed, {len(targets)} failed")
    return None


def search(name, seconds, seed):
    """Whether `seconds` of searching found nothing, and what is to be said of it."""
    findings = BUILD / "findings"
    findings.mkdir(exist_ok=True)
    # Leaks are looked for by hand: that needs ptrace, which containers refuse.
    environment = {"ASAN_OPTIONS": "detect_leaks=0"} | os.environ
    with tempfile.TemporaryDirectory() as found:
        ran = subprocess.run(
            [str(BUILD / "bin" / f"fuzz_{name}"), f"-max_total_time={seconds}", f"-seed={seed}", "-timeout=60", "-rss_limit_mb=2560", "-print_final_stats=1",
             f"-artifact_prefix={findings}/{name}-", found, str(ROOT / "tests" / "fuzz" / "corpus" / name)],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", env=environment)
    executed = re.search(r"stat::number_of_executed_units: *(\d+)", ran.stderr)
    said = f"in {seconds} s, {executed[1] if executed else 'no'} inputs"
    if ran.returncode == 0:
        return True, f"no finding {said}"
    kept = re.search(r"Test unit written to (\S+)", ran.stderr)
    return False, f"FOUND {said}; the input: {kept[1] if kept else 'none was kept'}\n" + ran.stderr[-3000:]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1, help="of the search; 0: another each time. CI's is always the same")
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--compiler", action="store_true", help="name the compiler and stop; the exit status is 1 where there is none")
    a = parser.parse_args()
    names = sorted(path.name.removesuffix("_fuzz.cpp") for path in (ROOT / "tests" / "fuzz").glob("*_fuzz.cpp") if a.only in path.name)
    clang = find_clang()
    if a.compiler:
        print(clang or "none")
        return 0 if clang else 1
    why = "no clang++ with libFuzzer" if not clang else build(clang, [f"fuzz_{name}" for name in names])
    if why:
        for name in names:
            print(f"fuzz_{name}: skipped: {why}")
        print(f"0 passed, 0 failed, {len(names)} skipped")
        return 0
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        for name, (good, said) in zip(names, pool.map(lambda name: search(name, a.seconds, a.seed), names)):
            failed += not good
            print(f"fuzz_{name}: {said}", flush=True)
    print(f"{len(names) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

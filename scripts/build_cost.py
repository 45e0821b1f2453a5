#!/usr/bin/env python3
"""Builds from cold and prints the CPU time of the build and of its steps.

    scripts/build_cost.py [--target easydel] [--folder DIR] [--top 30] [-- cmake options]

No compiler cache is used. CPU time is user and system time of the compilers, linkers and everything that they start; it
grows by 10 to 40 % where other programs use the processor. CCACHE_PREFIX is put before each compiler, as ccache does.
"""
import argparse
import os
import pathlib
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

root = pathlib.Path(__file__).resolve().parent.parent


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def record(log, command):
    """Runs one step and appends its CPU time and its output to the log."""
    status = subprocess.call(shlex.split(os.environ.get("CCACHE_PREFIX", "")) + command)
    output = command[command.index("-o") + 1] if "-o" in command else command[-1]
    with open(log, "a") as out:
        out.write(f"{cpu_seconds():.2f} {output}\n")
    return status


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="easydel", help="what ninja builds; all: everything")
    parser.add_argument("--folder", type=pathlib.Path, help="build folder to make, and to keep")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--top", type=int, default=30, help="steps to print")
    parser.add_argument("options", nargs="*", help="options of cmake, after --")
    arguments = parser.parse_args()
    folder = arguments.folder or pathlib.Path(tempfile.mkdtemp(prefix="easydel-build-"))
    if (folder / "build.ninja").exists():
        sys.exit(f"build_cost.py: {folder} was built in before; give a new folder")
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "steps.txt"
    launcher = f"{sys.executable};{__file__};--record;{log}"
    subprocess.run(
        ["cmake", "-S", root, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
         f"-DTorchWheel_PYTHON={root}/.venv/bin/python", f"-DCMAKE_CXX_COMPILER_LAUNCHER={launcher}",
         f"-DCMAKE_CXX_LINKER_LAUNCHER={launcher}", *arguments.options],
        check=True, stdout=subprocess.DEVNULL)
    before, begin = cpu_seconds(), time.time()
    status = subprocess.call(["ninja", "-C", folder, "-j", str(arguments.jobs), "-k", "0", arguments.target],
                             stdout=subprocess.DEVNULL if not os.environ.get("VERBOSE") else None)
    steps = sorted(((float(line.split(" ", 1)[0]), line.split(" ", 1)[1].strip()) for line in open(log)), reverse=True)
    for seconds, output in steps[:arguments.top]:
        print(f"{seconds:8.1f}  {output}")
    total = cpu_seconds() - before
    print(f"{total:8.1f}  all of {arguments.target}: {total / 60:.1f} CPU-minutes, {len(steps)} steps, "
          f"{(time.time() - begin) / 60:.1f} minutes on the clock with {arguments.jobs} at a time")
    if not arguments.folder:
        shutil.rmtree(folder)
    return status


if __name__ == "__main__":
    if sys.argv[1:2] == ["--record"]:
        sys.exit(record(sys.argv[2], sys.argv[3:]))
    sys.exit(main())

"""Adapters and codes beside other libraries, where these are installed: scripts/random_adapters.py (peft 0.21.2, transformers 5.23.0) and
scripts/trials/loaded_codes.py (also bitsandbytes 0.50.2, compressed-tensors 0.20.0, gguf)."""
import os
import subprocess
import sys

import pytest

from server import ROOT


def test_random_adapters():
    pytest.importorskip("peft")
    program = os.environ.get("EASYDEL_PROGRAM", str(ROOT / "build" / "bin" / "easydel"))
    ran = subprocess.run([sys.executable, str(ROOT / "scripts" / "random_adapters.py"), "--program", program, "--count", "20", "--seed", "3"],
                         cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "20 adapters, 0 failed" in ran.stdout


def test_codes_of_ours_are_loaded():
    for package in ("peft", "bitsandbytes", "compressed_tensors", "gguf"):
        pytest.importorskip(package)
    program = os.environ.get("EASYDEL_PROGRAM", str(ROOT / "build" / "bin" / "easydel"))
    ran = subprocess.run([sys.executable, str(ROOT / "scripts" / "trials" / "loaded_codes.py"), "--program", program],
                         cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "32 kinds of codes, 0 failed" in ran.stdout

"""Random adapters against PEFT, both ways, where it is installed (peft 0.21.2, transformers 5.23.0): scripts/random_adapters.py."""
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

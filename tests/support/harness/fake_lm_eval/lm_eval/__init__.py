"""Stands for lm-evaluation-harness where it is not installed: as much of its interface as python/easydel_harness uses.

FAKE_TASKS names a JSON file of tasks: {NAME: {"config": {...}, "requests": [{"kind", "arguments", "messages", "repeats"}]}}; a
request with messages is a conversation. The results have the answers, and what simple_evaluate was called with.
"""

__version__ = "0.4.13"

from .evaluator import simple_evaluate  # noqa: F401

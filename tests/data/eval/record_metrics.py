"""Records the metrics of bundled tasks with lm-evaluation-harness' own back end: python record_metrics.py MODEL OUTPUT.json

Needs lm_eval 0.4.13 with transformers; run it in the folder of the repository. tests/golden/evaluation_test.cpp compares.
"""

import json
import sys

from lm_eval import simple_evaluate
from lm_eval.models.huggingface import HFLM
from lm_eval.tasks import TaskManager


class Limited(HFLM):
    max_gen_toks = 24  # of tasks that give no limit


def main():
    folder, output = sys.argv[1:]
    model = Limited(pretrained=folder, dtype="float32", device="cpu", batch_size=1, logits_cache=False)
    tasks = ["hellaswag", "copa", "winograd", "mmlu", "lambada", "wikitext", "gsm8k"]
    manager = TaskManager(include_path="examples/tasks", include_defaults=False)
    results = simple_evaluate(model=model, tasks=tasks, task_manager=manager, limit=20, bootstrap_iters=0)["results"]
    metrics = {
        task: {name: value for name, value in own.items() if isinstance(value, (int, float)) and "," in name and "stderr" not in name}
        for task, own in results.items()
    }
    with open(output, "w", encoding="utf-8") as file:
        json.dump(metrics, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()

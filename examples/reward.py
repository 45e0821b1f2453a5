"""A reward for examples/18_grpo_program.yaml: one line of JSON in, one line out, for each completion.

In:  {"id": 3, "prompt": "...", "completion": "...", "ids": [...], "row": {...}}
Out: {"id": 3, "reward": 0.5}, in any order; null means that the reward does not count for this completion.
What is printed to standard error appears in the log of the run.
"""
import json
import sys


def reward(completion, row):
    """The share of the words that are in the row's list: short words make an easy text."""
    words = completion.lower().replace(".", " ").replace(",", " ").replace('"', " ").split()
    if not words:
        return 0.0
    return sum(len(word) <= row.get("longest", 3) for word in words) / len(words)


def main():
    for line in sys.stdin:
        asked = json.loads(line)
        answer = {"id": asked["id"], "reward": reward(asked["completion"], asked["row"])}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()

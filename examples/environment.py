"""An environment for examples/21_episodes.yaml: one line of JSON in, one line out, for the beginning of each episode
and for each turn of the model.

In:  {"id": 3, "episode": 0, "seed": 7, "row": {...}}, then {"id": 9, "episode": 0, "message": {"role": "assistant",
     "content": "..."}}. An episode is always answered by the same process.
Out: {"id": 9, "messages": [{"role": "user", "content": "..."}], "reward": 0.5, "done": true}, in any order.
What is printed to standard error appears in the log of the run.
"""
import json
import sys


def reward(said):
    """The share of words of at most three letters: short words make an easy text."""
    words = said.lower().replace(".", " ").replace(",", " ").replace('"', " ").split()
    return sum(len(word) <= 3 for word in words) / len(words) if words else 0.0


def main():
    turns = {}  # of each episode
    for line in sys.stdin:
        asked = json.loads(line)
        episode, answer = asked["episode"], {"id": asked["id"], "messages": []}
        if "row" in asked:  # the episode begins
            turns[episode] = 0
        else:
            turns[episode] += 1
            answer["reward"] = reward(asked["message"]["content"])
            answer["done"] = turns[episode] == 2
            if not answer["done"]:
                answer["messages"] = [{"role": "user", "content": "What did they do then?"}]
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()

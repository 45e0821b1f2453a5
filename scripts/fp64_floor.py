#!/usr/bin/env python3
"""How far the recorded run dpo_trl024/alpha_divergence is from the same run in fp64: the noise of its own arithmetic.

usage: fp64_floor.py SHARED_DATA CASE.json

Adds "fp64_rerun" to a copy of the case, as the other recordings have it. The losses are exponentials of differences of
sums of some hundred log-probabilities, so the last bits of fp32 move the gradients by up to 3e-4; torch in fp32 with
another order of operations differs from the recording by 1.3e-4. Needs torch 2.13 and transformers 4.57.
"""
import json, sys, torch
import torch.nn.functional as F
from transformers import AutoModelForCausalLM

torch.set_num_threads(1)


def run(shared, case, lines, dtype):
    load = lambda: AutoModelForCausalLM.from_pretrained(f"{shared}/{case['model']}", attn_implementation="eager", dtype=torch.float32)
    model, reference = load().to(dtype), load()
    with torch.no_grad():
        for name, weight in reference.named_parameters():
            if "down_proj" in name:
                weight.mul_(0.9)
    reference = reference.to(dtype)
    config = case["config"]
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.0, fused=dtype == torch.float32)

    def sums(scored, batch, side):
        rows = []
        for i in range(len(batch["prompt_input_ids"])):
            kept = lambda name: torch.tensor(batch[name + "_input_ids"][i])[torch.tensor(batch[name + "_attention_mask"][i]).bool()]
            prompt, answer = kept("prompt"), kept(side)
            ids = torch.cat([prompt, answer])
            cut = max(0, len(ids) - config["max_length"])
            rows.append((ids[cut:], max(0, len(prompt) - cut)))
        width = max(len(ids) for ids, _ in rows)
        ids, mask = torch.zeros(len(rows), width, dtype=torch.long), torch.zeros(len(rows), width, dtype=torch.long)
        learned = torch.zeros(len(rows), width)
        for i, (row, begin) in enumerate(rows):
            ids[i, : len(row)], mask[i, : len(row)], learned[i, begin : len(row)] = row, 1, 1
        logits = scored(ids, attention_mask=mask).logits[:, :-1]
        logps = torch.gather(logits, 2, ids[:, 1:, None]).squeeze(-1) - torch.stack([torch.logsumexp(row, -1) for row in logits])
        return (logps * learned[:, 1:].to(logps.dtype)).sum(-1)

    out = []
    for step, batch in enumerate(lines):
        for group in optimizer.param_groups:
            group["lr"] = config["learning_rate"] * (1 - step / config["max_steps"])
        chosen, rejected = sums(model, batch, "chosen"), sums(model, batch, "rejected")
        with torch.no_grad():
            was_chosen, was_rejected = sums(reference, batch, "chosen"), sums(reference, batch, "rejected")
        alpha, exp = config["f_alpha_divergence_coef"], lambda x: torch.exp(torch.clamp(x, max=80))
        margin = (exp((was_rejected - rejected) * alpha) - exp((was_chosen - chosen) * alpha)) / alpha
        loss = -F.logsigmoid(config["beta"] * margin).mean()
        optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), config["max_grad_norm"])
        optimizer.step()
        out.append((loss.item(), norm.item()))
    return out


def main():
    shared, file = sys.argv[1], sys.argv[2]
    case = json.load(open(file))
    lines = [json.loads(line) for line in open(f"{shared}/trl_goldens/dpo_trl024/{case['batches']}")]
    far = lambda got, want: float(f"{abs(got - want) / abs(want):.2g}")
    whole = run(shared, case, lines, torch.float64)
    case["fp64_rerun"] = {
        "rel_loss": [far(ours[0], step["loss"]) for ours, step in zip(whole, case["steps"])],
        "rel_grad_norm": [far(ours[1], step["grad_norm"]) for ours, step in zip(whole, case["steps"])],
    }
    json.dump(case, open(file, "w"))


if __name__ == "__main__":
    main()

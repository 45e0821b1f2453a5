#!/usr/bin/env python3
"""Draws random generation settings and records what transformers generates, as cases for `easydel probe vectors`.

    python scripts/random_generation.py --models DIR... --out FOLDER [--draws 100] [--seed 0] [--only generate|processors]
    build/bin/easydel probe vectors FOLDER/*/*.json --check

FOLDER/NAME/generate.json: continuations (greedy, beams) of a model; FOLDER/NAME/processors.json: processed scores (first model only).
Needs torch and transformers.
"""
import argparse
import inspect
import json
import math
import os
import random
import warnings

import torch
import transformers
from transformers import AutoModelForCausalLM, GenerationConfig


def ids(r, vocabulary, count):
    return [r.randrange(3, vocabulary) for _ in range(count)]


def processors(r, vocabulary, prompt):
    """Settings that change scores whether or not there is a draw."""
    wide = min(vocabulary, 40)  # so that what is named comes up
    few = lambda n: [r.choice(prompt) if r.random() < 0.5 else r.randrange(3, wide) for _ in range(n)]
    choices = {
        "repetition_penalty": lambda: r.choice([0.8, 1.1, 1.3, 2.0]),
        "encoder_repetition_penalty": lambda: r.choice([0.8, 1.2, 1.5]),
        "no_repeat_ngram_size": lambda: r.randint(1, 4),
        "encoder_no_repeat_ngram_size": lambda: r.randint(1, 4),
        "bad_words_ids": lambda: [few(r.randint(1, 3)) for _ in range(r.randint(1, 4))],
        "sequence_bias": lambda: [list(x) for x in {tuple(few(r.randint(1, 3))): round(r.uniform(-5, 5), 2)
                                                    for _ in range(r.randint(1, 4))}.items()],
        "min_length": lambda: r.randint(1, 20),
        "min_new_tokens": lambda: r.randint(1, 12),
        "forced_bos_token_id": lambda: r.randrange(3, vocabulary),
        "forced_eos_token_id": lambda: r.choice([r.randrange(3, vocabulary), ids(r, vocabulary, 2)]),
        "remove_invalid_values": lambda: True,
        "exponential_decay_length_penalty": lambda: [r.randint(0, 6), r.choice([1.02, 1.2, 1.5])],
        "suppress_tokens": lambda: ids(r, vocabulary, r.randint(1, 6)),
        "begin_suppress_tokens": lambda: ids(r, vocabulary, r.randint(1, 6)),
        "renormalize_logits": lambda: True,
        "watermarking_config": lambda: {"greenlist_ratio": r.choice([0.25, 0.5]), "bias": r.choice([1.0, 2.5]), "hashing_key": r.choice([15485863, 7]),
                                        "seeding_scheme": r.choice(["lefthash", "selfhash"]), "context_width": r.randint(1, 2)},
    }
    names = r.sample(sorted(choices), r.choice([0, 1, 1, 2, 3, 4]))
    out = {name: choices[name]() for name in names}
    if "sequence_bias" in out:
        out["sequence_bias"] = [[list(tokens), bias] for tokens, bias in out["sequence_bias"]]
    if "encoder_repetition_penalty" in out and len(set(prompt)) < len(prompt):
        del out["encoder_repetition_penalty"]
    return out


WARPERS = {
    "temperature": lambda r: r.choice([0.3, 0.7, 1.5]),
    "top_k": lambda r: r.choice([1, 3, 10, 50]),
    "top_p": lambda r: r.choice([0.1, 0.5, 0.9, 0.99]),
    "min_p": lambda r: r.choice([0.02, 0.1, 0.5]),
    "top_h": lambda r: r.choice([0.2, 0.5, 0.9]),
    "typical_p": lambda r: r.choice([0.2, 0.6, 0.95]),
    "epsilon_cutoff": lambda r: r.choice([0.001, 0.02, 0.3]),
    "eta_cutoff": lambda r: r.choice([0.001, 0.02, 0.3]),
}


def draw_generation(r, model, vocabulary):
    rows = r.choice([1, 1, 1, 2, 3])
    lengths = [r.choice([1, 2, 3, 5, 8]) for _ in range(rows)]
    prompts = [ids(r, vocabulary, n) for n in lengths]
    args = {"max_new_tokens": r.choice([1, 2, 5, 12, 20]), "do_sample": False}
    eos = r.choice([None, ids(r, vocabulary, 1), ids(r, vocabulary, 3)])
    if r.random() < 0.4:  # an end that really comes
        with torch.no_grad():
            eos = [model.generate(torch.tensor([prompts[0]]), max_new_tokens=4, do_sample=False)[0, -1].item()]
    if eos is not None:
        args["eos_token_id"] = eos if len(eos) > 1 else eos[0]
    if r.random() < 0.3:
        args["pad_token_id"] = r.choice([0, 1])
    # Padding counts as text in some of transformers' processors: those are drawn for one row alone.
    if rows == 1:
        args.update(processors(r, vocabulary, prompts[0]))
        if r.random() < 0.2:
            args["max_length"] = lengths[0] + args.pop("max_new_tokens")
    if r.random() < 0.6:
        beams = r.randint(2, 6)
        args.update(num_beams=beams, length_penalty=r.choice([-1.0, 0.0, 0.5, 1.0, 2.0]), early_stopping=r.choice([True, False, "never"]),
                    num_return_sequences=r.randint(1, beams))
        if isinstance(args.get("forced_eos_token_id"), list):  # equal scores are in no order
            args["forced_eos_token_id"] = args["forced_eos_token_id"][0]
    elif rows == 1 and r.random() < 0.25 and "past_key_values" in inspect.signature(model.forward).parameters:
        args["guidance_scale"] = r.choice([1.5, 3.0])  # theirs forgets what other caches hold
    return prompts, args


def generate(model, prompts, args):
    width = max(map(len, prompts))
    tokens = torch.tensor([[0] * (width - len(p)) + p for p in prompts])
    mask = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts])
    config = GenerationConfig(**args)
    cached = inspect.signature(model.forward).parameters
    use_cache = not ("cache_params" in cached and args.get("num_beams", 1) > 1)  # theirs cannot be reordered
    with torch.no_grad():
        out = model.generate(tokens, attention_mask=mask, generation_config=config, return_dict_in_generate=True, output_scores=True,
                             use_cache=use_cache)
    case = {"input_ids": tokens.tolist(), "attention_mask": mask.tolist(), "args": args, "sequences": out.sequences.tolist()}
    if args.get("num_beams", 1) > 1:
        case["sequences_scores"] = [float(f"{s:.9g}") for s in out.sequences_scores.tolist()]
    return case


def number(x):
    return "nan" if math.isnan(x) else ("inf" if x > 0 else "-inf") if math.isinf(x) else float(f"{x:.9g}")


def draw_processors(r, model, vocabulary):
    """Scores of one row through the whole chain, as transformers builds it."""
    prompt = r.randint(1, 6)
    row = [r.randrange(3, 12) for _ in range(prompt + r.randint(0, 8))]
    args = processors(r, vocabulary, row[:prompt])
    args["eos_token_id"] = r.choice([2, [2, 6], 5])
    args["max_length"] = r.choice([len(row) + 1, len(row) + 9])
    if r.random() < 0.7:
        args["do_sample"] = True
        for name in r.sample(sorted(WARPERS), r.randint(1, 4)):
            args[name] = WARPERS[name](r)
    scores = torch.randn(1, vocabulary, generator=torch.Generator().manual_seed(r.randrange(1 << 30))) * r.choice([0.5, 3.0])
    config = GenerationConfig(**{"top_k": 0, **args})
    config.update(**GenerationConfig._get_default_generation_params(), defaults_only=True)
    if config.min_new_tokens is not None:
        config.min_length = config.min_new_tokens + prompt
    model._prepare_special_tokens(config, True, device="cpu")
    tokens = torch.tensor([row])
    chain = model._get_logits_processor(config, input_ids_seq_length=prompt, encoder_input_ids=tokens[:, :prompt], device="cpu",
                                        model_kwargs={"attention_mask": torch.ones(1, prompt, dtype=torch.long)})
    out = chain(tokens, scores.clone())
    args.update(prompt_length=prompt, encoder_input_ids=[row[:prompt]])
    return {"args": args, "input_ids": [row], "scores_in": [[number(x) for x in scores[0].tolist()]],
            "scores_out": [[number(x) for x in out[0].tolist()]]}


def write(path, what, cases, **more):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    for i, case in enumerate(cases):
        case["name"] = f"{what}_{i}"
    with open(path, "w") as f:
        json.dump({"transformers": transformers.__version__, **more, "cases": cases}, f)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--root", help="name models relative to this folder (the probe looks in the folders above its file)")
    parser.add_argument("--only", choices=["generate", "processors"])
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    transformers.logging.set_verbosity_error()
    for folder in options.models:
        name = os.path.basename(folder.rstrip("/"))
        r = random.Random(f"{options.seed} {name}")
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
        vocabulary = model.config.get_text_config().vocab_size
        if options.only != "processors":
            cases = []
            while len(cases) < options.draws:
                prompts, args = draw_generation(r, model, vocabulary)
                try:
                    case = generate(model, prompts, args)
                    if min(case.get("sequences_scores", [0])) > -1e8:  # else fewer than were asked for were found
                        cases.append(case)
                except Exception as error:  # what transformers cannot do is no case
                    print(f"{name}: {type(error).__name__}: {str(error)[:150]}: {args}")
            write(f"{options.out}/{name}/generate.json", "generate", cases, kind="sampling/generate",
                  model=os.path.relpath(folder, options.root) if options.root else os.path.abspath(folder))
        if options.only != "generate" and folder == options.models[0]:
            cases = [draw_processors(r, model, vocabulary) for _ in range(options.draws)]
            write(f"{options.out}/{name}/processors.json", "processors", cases, kind="sampling/logits_processors")


if __name__ == "__main__":
    main()

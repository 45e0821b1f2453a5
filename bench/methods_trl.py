"""The peer of bench/methods_bench.py: one run of TRL's or sentence-transformers' trainer on the files that it made.

  methods_trl.py make FOLDER SEED weights for the folder's config.json, fp32
  methods_trl.py run SPEC         SPEC: JSON with method, dtype, model, teacher, data, rows, length, group, steps, threads

A run prints "@step LOSS TOKENS" at the end of each step and "@sampling SECONDS" after each generation; the tokens are
those of the step that are not padding.
"""

import json
import os
import sys
import tempfile
import time

os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
os.environ.update(TRL_EXPERIMENTAL_SILENCE="1", CUDA_VISIBLE_DEVICES="", HF_DATASETS_DISABLE_PROGRESS_BARS="1")
import torch
import transformers


def make(folder, seed):
    torch.manual_seed(seed)
    config = transformers.AutoConfig.from_pretrained(folder)
    transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).save_pretrained(folder)


def tell(*words):
    print(*words, flush=True)


class Steps(transformers.TrainerCallback):
    def __init__(self):
        self.tokens = 0

    def on_log(self, args, state, control, logs=None, **_):
        if logs and "loss" in logs:
            tell("@step", logs["loss"], self.tokens)
            self.tokens = 0


def counted(trainer, steps):
    """Adds up the tokens that enter the trained model."""

    def count(_, args, kwargs):
        if not torch.is_grad_enabled():
            return
        inputs = {**args[0], **kwargs} if args and isinstance(args[0], dict) else kwargs
        if inputs.get("attention_mask") is not None:
            steps.tokens += int(inputs["attention_mask"].sum())

    model = trainer.model
    (model[0] if hasattr(model, "encode") else model).register_forward_pre_hook(count, with_kwargs=True)


def arguments(spec, **more):
    return dict(
        output_dir=tempfile.mkdtemp(), max_steps=spec["steps"], per_device_train_batch_size=spec["rows"], learning_rate=1e-6,
        logging_steps=1, save_strategy="no", report_to=[], use_cpu=True, bf16=False, gradient_checkpointing=False,
        disable_tqdm=True, seed=0, train_sampling_strategy="sequential", optim="adamw_torch", max_grad_norm=1.0,
        lr_scheduler_type="constant",
    ) | more  # fmt: skip


def trainer_of(spec, steps):
    import datasets
    import trl

    tokenizer = transformers.AutoTokenizer.from_pretrained(spec["model"])
    tokenizer.pad_token = tokenizer.unk_token
    dtype = {"fp32": torch.float32, "bf16": torch.bfloat16}[spec["dtype"]]

    def load(kind=transformers.AutoModelForCausalLM, folder=spec["model"], **more):
        model = kind.from_pretrained(folder, dtype=dtype, **more)
        model.config.pad_token_id = tokenizer.pad_token_id
        if getattr(model, "generation_config", None):
            model.generation_config.pad_token_id = tokenizer.pad_token_id
        return model

    method, length = spec["method"], spec["length"]
    rows = datasets.load_dataset("json", data_files=spec["data"], split="train", cache_dir=tempfile.mkdtemp())
    common = dict(processing_class=tokenizer, train_dataset=rows, callbacks=[steps])
    if method == "dpo":
        return trl.DPOTrainer(load(), args=trl.DPOConfig(max_length=length, **arguments(spec)), **common)
    if method == "orpo":
        from trl.experimental.orpo import ORPOConfig, ORPOTrainer

        return ORPOTrainer(load(), args=ORPOConfig(max_length=length, **arguments(spec)), **common)
    if method == "kto":
        return trl.KTOTrainer(load(), args=trl.KTOConfig(max_length=length, **arguments(spec)), **common)
    if method == "reward":
        head = load(transformers.AutoModelForSequenceClassification, num_labels=1)
        return trl.RewardTrainer(head, args=trl.RewardConfig(max_length=length, **arguments(spec)), **common)
    if method == "gkd":
        from trl.experimental.gkd import GKDConfig, GKDTrainer

        settings = GKDConfig(max_length=length, lmbda=0.0, beta=0.5, temperature=1.0, **arguments(spec))
        return GKDTrainer(load(), teacher_model=load(folder=spec["teacher"]), args=settings, **common)
    if method == "grpo":
        settings = trl.GRPOConfig(max_completion_length=length, num_generations=spec["group"], temperature=1.0, beta=0.0,
                                  **arguments(spec))  # fmt: skip

        def letters(completions, **_):
            return [text.count("e") / max(1, len(text)) for text in completions]

        trainer = trl.GRPOTrainer(load(), args=settings, reward_funcs=letters, **common)
        generate = trainer._generate

        def timed(*args, **kwargs):
            begin = time.perf_counter()
            out = generate(*args, **kwargs)
            tell("@sampling", time.perf_counter() - begin)
            return out

        trainer._generate = timed
        return trainer
    raise ValueError(method)


def embedding_trainer(spec, steps):
    import datasets
    import sentence_transformers as st
    from sentence_transformers.sentence_transformer import losses
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    network = Transformer(spec["model"], max_seq_length=spec["length"], model_kwargs={"dtype": torch.bfloat16})
    network.tokenizer.pad_token = network.tokenizer.unk_token
    pooling = Pooling(network.get_embedding_dimension(), "mean")
    model = st.SentenceTransformer(modules=[network, pooling], device="cpu")
    rows = datasets.load_dataset("json", data_files=spec["data"], split="train", cache_dir=tempfile.mkdtemp())
    return st.SentenceTransformerTrainer(
        model=model, args=st.SentenceTransformerTrainingArguments(**arguments(spec)), train_dataset=rows,
        loss=losses.MultipleNegativesRankingLoss(model), callbacks=[steps],
    )  # fmt: skip


def run(spec):
    torch.set_num_threads(spec["threads"])
    transformers.set_seed(0)
    steps = Steps()
    trainer = (embedding_trainer if spec["method"] == "embedding" else trainer_of)(spec, steps)
    counted(trainer, steps)
    trainer.train()


if __name__ == "__main__":
    make(sys.argv[2], int(sys.argv[3])) if sys.argv[1] == "make" else run(json.loads(sys.argv[2]))

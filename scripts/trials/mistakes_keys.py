"""Keys with a wrong name, and values of a wrong kind, out of range, or against each other."""
from mistakes import RUN, Mistake


# Values that are accepted, with a note or without one: what the program says about them matters here, too.
ACCEPTED = {"trainer.max_grad_norm: 1.0", "trainer.max_steps: 10", "trainer.learning_rate: 0", "trainer.learning_rate: null",
            "trainer.total_batch_size: null", "trainer.total_batch_size: 1e12", "trainer.evaluation_steps: 10",
            "trainer.optimizer: adam", "trainer.save_directory: /proc/x", "trainer.model_name: a/b", "trainer.model_name: 3",
            "model.name_or_path: ~/model", "model.revision: ''", "model.revision: 3", "inform.content_field: 3",
            "inform.format_fields: {a: 3}", "mixture.mixture_weights: {a: 1}"}


def key(path, value, **more):
    more.setdefault("may_pass", f"{path}: {value}" in ACCEPTED)
    section, name = path.split(".", 1)
    line = f"  {name}: {value}\n"
    text = RUN
    if section == "mixture":
        text = text.replace("mixture:\n", "mixture:\n" + line)
    elif section == "inform":
        text = text.replace("data_files: data.jsonl", f"data_files: data.jsonl\n      {name}: {value}")
    elif section == "trainer":
        text = "".join(old for old in text.splitlines(True) if not old.startswith(f"  {name}:"))
        text = text.replace("trainer:\n", "trainer:\n" + line)
    elif section in ("model", "loader"):
        text = "".join(old for old in text.splitlines(True) if not old.startswith(section))
        text += f"{section}:\n" + ("  name_or_path: model\n" if section == "model" and name != "name_or_path" else "") + line
    else:
        text += f"{section}:\n" + line
    return Mistake(f"{path}: {value}", {"run.yaml": text}, **more)


def top(name, value):
    return Mistake(f"{name}: {value}", {"run.yaml": RUN + f"{name}: {value}\n"})


MISTAKES = [
    # values that do not fit the model
    key("trainer.frozen_layers", "[99]"), key("trainer.frozen_parameters", "nothing_here"),
    key("trainer.frozen_parameters", "'.*'"),
    Mistake("distillation of layers that are not there", {"run.yaml": RUN + "teacher_model: {name_or_path: model}\n"},
            "validate run.yaml --set trainer.trainer_type=distillation --set trainer.hidden_state_loss_weight=1 "
            "--set trainer.hidden_state_layers=[-1,7]"),
    Mistake("matryoshka_dims above the model's", {"data.jsonl": '{"query": "a dog", "positive": "a cat"}\n' * 4},
            "validate run.yaml --set trainer.trainer_type=embedding --set trainer.matryoshka_dims=[32,100] --set model.task=embedding"),
    # names of this program, misspelled
    *[key("trainer." + name, value) for name, value in [
        ("learning_rat", "1e-3"), ("learningrate", "1e-3"), ("max_lenght", "32"), ("batch_size", "4"), ("epochs", "3"),
        ("optimiser", "adamw"), ("seed_", "1"), ("save_dir", "out"), ("xyzzy", "1")]],
    *[key("inform." + name, value) for name, value in [
        ("file", "data.jsonl"), ("content_feild", "text"), ("formats", "jsonl"), ("splt", "train")]],
    *[key("mixture." + name, value) for name, value in [("inform", "[]"), ("pack", "true"), ("batchsize", "4")]],
    *[key("model." + name, value) for name, value in [("path", "model"), ("tokeniser", "model"), ("dtype", "bf16")]],
    *[key("loader." + name, value) for name, value in [("type", "bf16"), ("torch_dtype", "bf16"), ("devices", "cpu")]],
    *[top(name, value) for name, value in [
        ("trainers", "{}"), ("data", "{}"), ("dataset", "data.jsonl"), ("seed", "1"), ("learning_rate", "1e-3"),
        ("output_dir", "out"), ("training_arguments", "{}"), ('""', "1"), ("Model", "{}"), ("version", "1")]],
    # names of other tools
    *[key("trainer." + name, value) for name, value in [
        ("output_dir", "out"), ("per_device_train_batch_size", "4"), ("num_epochs", "3"), ("lr_scheduler_type", "cosine"),
        ("bf16", "true"), ("gradient_checkpointing", "true"), ("micro_batch_size", "4"),
        ("eval_steps", "10"), ("logging_steps", "10"), ("adam_beta1", "0.9"), ("max_seq_length", "32"),
        ("optim", "adamw_torch"), ("report_to", "wandb"), ("use_wandb", "true"), ("max_grad_norm", "1.0"),
        ("cutoff_len", "512"), ("sequence_len", "512"), ("lora_r", "8"), ("resume_from_checkpoint", "true"), ("max_steps", "10")]],
    *[top(name, value) for name, value in [
        ("base_model", "model"), ("model_name_or_path", "model"), ("datasets", "[{path: data.jsonl}]"),
        ("load_in_8bit", "true"), ("adapter", "lora"), ("deepspeed", "zero3.json"), ("fsdp", "full_shard"),
        ("sequence_len", "512"), ("stage", "sft"), ("template", "llama3")]],
    # numbers
    *[key("trainer.learning_rate", value) for value in [
        "fast", "-1", "0", ".inf", ".nan", "[1e-3]", "{a: 1}", "true", "''", "1e-3f", "1,5", "10^-3", "null"]],
    *[key("trainer.max_training_steps", value) for value in [
        "many", "-1", "0", "1.5", "1e30", "99999999999999999999", "true", "[2]", "0x", "2 steps"]],
    *[key("trainer.total_batch_size", value) for value in ["0", "-4", "2.5", "auto", "null", "1e12"]],
    *[key("trainer.max_length", value) for value in ["0", "-1", "long", "1e18"]],
    *[key("trainer.gradient_accumulation_steps", value) for value in ["0", "3", "-1", "half"]],
    *[key("trainer.num_train_epochs", value) for value in ["0", "-1", "one", ".inf"]],
    *[key("trainer.warmup_steps", value) for value in ["-1", "0.1", "10%"]],
    *[key("trainer.weight_decay", value) for value in ["-0.1", "some"]],
    *[key("trainer.clip_grad", value) for value in ["-1", "0", "yes"]],
    *[key("trainer.save_steps", value) for value in ["0", "-1", "often"]],
    *[key("trainer.save_total_limit", value) for value in ["0", "-1", "all"]],
    *[key("trainer.evaluation_steps", value) for value in ["0", "-1", "10"]],
    *[key("trainer.training_time_limit", value) for value in ["1 hour and a bit", "-5min", "5 parsecs", "0"]],
    # words
    *[key("trainer.trainer_type", value) for value in ["stf", "SFT!", "grpo", "orpo", "reward", "sdpo", "3", "[sft]", "''"]],
    *[key("trainer.optimizer", value) for value in ["adam", "paged_adamw_32bit", "3", "{name: adamw}"]],
    *[key("trainer.scheduler", value) for value in ["cosin", "true"]],
    *[key("loader.dtype", value) for value in ["bf17", "fp16", "fp8", "float64", "32", "int8"]],
    *[key("loader.param_dtype", value) for value in ["half precision", "fp64"]],
    *[key("loader.device", value) for value in ["gpu0", "cuda", "tpu", "cpu:0"]],
    # yes and no
    *[key("trainer.do_eval", value) for value in ["yes", "1", "on", "maybe"]],
    *[key("trainer.shuffle_train_dataset", value) for value in ["'true'", "no", "0"]],
    # paths
    *[key("trainer.save_directory", value) for value in ["''", "~nobody/x", "$NOT_SET/x", "data.jsonl", "[out]", "/proc/x"]],
    *[key("trainer.model_name", value) for value in ["''", "a/b", "..", "3"]],
    *[key("model.name_or_path", value) for value in [
        "missing", "./missing", "owner/name", "data.jsonl", "~/model", "$HOME/nothing", "3", "[model]", "https://huggingface.co/a/b"]],
    *[key("model.tokenizer", value) for value in ["missing", "data.jsonl", "''", "3"]],
    *[key("model.task", value) for value in ["chat", "causal", "vision"]],
    *[key("model.revision", value) for value in ["''", "3"]],
    # mixtures
    *[key("inform.type", value) for value in ["xml", "image", "3", "owner/name", "[jsonl]"]],
    *[key("inform.split", value) for value in ["test[:10%]", "''", "3"]],
    *[key("inform.num_rows", value) for value in ["0", "-1", "all"]],
    *[key("inform.content_field", value) for value in ["3", "''", "[text]"]],
    *[key("inform.format_fields", value) for value in ["text", "[a]", "{a: 3}"]],
    *[key("mixture.batch_size", value) for value in ["0", "7", "big"]],
    *[key("mixture.pack_seq_length", value) for value in ["0", "-3"]],
    *[key("mixture.mixture_weights", value) for value in ["{a: 1}", "[1]", "1"]],
    *[key("mixture.save", value) for value in ["true", "rows.xml", "{path: rows.jsonl, format: xml}", "{}"]],
    *[key("mixture.stop_strategy", value) for value in ["never", "3"]],
    # other sections
    *[key("sharding.axis_dims", value) for value in [
        "[2, 2]", "[2, 1, 1, 1, 1]", "[-1, -1, 1, 1, 1]", "[0, 1, 1, 1, 1]", "auto", "[1, 1, 1, 1, 1, 1]"]],
    *[key("quantization.method", value) for value in ["nf5", "4bit", "3"]],
    key("quantization.model", "{dtype: nf4}", may_pass=True),
    key("lora.rank", "many"),
    key("lora.r", "0"),
    key("base_config.values", "{hidden_sise: 3}"),
    key("base_config.values", "{num_hidden_layers: many}"),
    key("base_config.values", "{gradient_checkpointing: everything}"),
    key("base_config.values", "3"),
    key("esurge.page_size", "big"),
    key("esurge.page_size", "-1"),
    key("esurge.pagesize", "16"),
    key("esurge.max_num_seqs", "0"),
]

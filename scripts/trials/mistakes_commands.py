"""Commands, flags and the environment."""
from mistakes import RUN, Mistake


def command(words, **more):
    name = "command: " + (words if isinstance(words, str) else " ".join(words))
    change = more.pop("change", None)
    note = more.pop("note", "")
    return Mistake(name + note, change, words, **more)


def environment(words, change=None, may_pass=False, **variables):
    name = "environment: " + ", ".join(f"{key}={value}" for key, value in variables.items())
    return Mistake(name, change, words, may_pass=may_pass, **variables)


GENERATE = ["generate", "model", "-p", "Once"]


def generate(*words, **more):
    short = [] if "--max-new-tokens" in words else ["-n", "2"]
    return command(GENERATE + short + list(words), **more)


MISTAKES = [
    command([], may_pass=True), command("trian"), command("train"), command("train run.yaml"), command("xyzzy"), command("run"), command("validate"),
    command("run missing.yaml"), command("run run.yaml extra.yaml"), command("run --config run.yaml run.yaml"),
    command("run run.yaml --dry"), command("run run.yaml --verbose"), command("run run.yaml -x"),
    command("missing.yaml"), command("model"), command("--help-me"), command("-z"), command("--nproc"),
    command("--nproc 0 run run.yaml"), command("--nproc many run run.yaml"), command("--nproc -1 run run.yaml"),
    command("--nproc 2 tokenize model a"), command("--plugin missing.so run run.yaml"),
    command("--plugin run.yaml validate run.yaml"),
    *[command(["validate", "run.yaml", "--set", value], may_pass=value.endswith("=")) for value in [
        "", "trainer", "trainer.learning_rate", "=1", "trainer.learning_rate=", "trainer.learning_rate=fast",
        "trainer.learning_rat=1", "trainer.learning_rate.x=1", "trainer..x=1", "trainer={", "mixture.informs.5.type=txt",
        "mixture.informs[0].type=xml", "mixture.informs[x].type=txt", "mixture.informs.-1.type=txt", "actions=[trian]",
        "actions.0=trian", "nothing=1", "trainer=1", "model=other", "trainer.seed=1.5", "loader.dtype=[bf16",
        "trainer.save_directory=''"]],
    command("validate -", stdin=""), command("validate -", stdin="a: [\n", note=" (broken)"),
    command("validate -", stdin=RUN.replace("out", "[out]"), note=" (a wrong value)"),
    command("run -", stdin="hello\n", note=" (a word)"),
    command("generate"), command("generate missing -p a"), command("generate owner/name -p a"),
    command("generate https://huggingface.co/owner/name -p a"), command("generate model", stdin="", may_pass=True),
    command("generate model -p"), command(["generate", "model", "-p", ""], may_pass=True),
    generate("--temperature", "hot"), generate("--temperature", "-1"), generate("--top-p", "2"), generate("--top-p", "-0.1"),
    generate("--top-k", "-1"), generate("--top-k", "1.5"), generate("--num-beams", "0"), generate("--num-beams", "1000000000"),
    generate("--num-return-sequences", "3"), generate("--num-return-sequences", "1000000000", "--do-sample"),
    generate("--num-beams", "2", "--num-return-sequences", "3"), generate("--max-new-tokens", "0"),
    generate("--max-new-tokens", "-5"), generate("--max-new-tokens", "all"), generate("--seed", "-1"), generate("--seed", "x"),
    generate("--eos-token-id", "x"), generate("--eos-token-id", "-1", may_pass=True), generate("--eos-token-id", "999999", may_pass=True),
    generate("--stop", "", may_pass=True), generate("--guidance-scale", "x"), generate("--repetition-penalty", "0"),
    generate("--repetition-penalty", "-1"), generate("--no-repeat-ngram-size", "-1"), generate("--bad-words-ids", "[a]"),
    generate("--bad-words-ids", "[[999999]]"), generate("--sequence-bias", "[[1], x]"),
    generate("--suppress-tokens", "a"), generate("--watermarking-config", "{a: 1}"), generate("--watermarking-config", "3"),
    generate("--length-penalty", "x", "--num-beams", "2"), generate("--early-stopping", "maybe", "--num-beams", "2"),
    generate("--exponential-decay-length-penalty", "[1]"), generate("--max-time", "-1"), generate("--max-time", "soon"),
    generate("--min-length", "-1"), generate("--use-cache", "maybe"), generate("--temperature"),
    generate("--top-q", "0.9"), generate("--max-tokens", "5"), generate("--max_new_tokens", "2", may_pass=True),
    generate("--length", "5"), generate("--batch", "0"), generate("--batch", "x"), generate("--dtype", "bf17"),
    generate("--dtype", "fp16"), generate("--device", "gpu"), generate("--device", "moon"), generate("--tokenizer", "missing"),
    generate("--set", "loader.dtype=bf17"), generate("--set", "nothing=1"), generate("--chat"),
    generate("--negative-prompt", "bad", may_pass=True), generate("--prompts-file", "missing.txt"),
    generate("--prompts-file", "model"), generate("--template", "missing.jinja", "--chat"),
    command("generate model --prompts-file p.jsonl -n 2", change={"p.jsonl": '{"text": 3}\n'}, note=" (a number)"),
    command("generate model --prompts-file p.jsonl -n 2", change={"p.jsonl": "{\n"}, note=" (not JSON)"),
    command("generate model --prompts-file p.txt -n 2", change={"p.txt": ""}, note=" (empty)", may_pass=True),
    command("generate model --prompts-file p.txt -n 2", change={"p.txt": b"caf\xe9\n"}, note=" (not UTF-8)"),
    generate("--json-schema", "{"), generate("--json-schema", '{"type": "strin"}'), generate("--json-schema", "missing.json"),
    generate("--regex", "(a"), generate("--grammar", "root ::= ("), generate("--choice", "", may_pass=True),
    generate("--regex", "a", "--choice", "b"),
    command("chat"), command("chat missing"), command("chat model --system x --temperature hot", stdin="hi\n"),
    command("chat model", stdin="hi\n", note=" (no template)"), command("chat model --template missing.jinja", stdin="hi\n"),
    command("export model"), command("export missing -o x.gguf"), command("export model -o x.gguf --format onnx"),
    command("export model -o x.gguf --dtype q9"), command("export model -o no/such/folder/x.gguf", may_pass=True),
    command("export model -o model --format gguf"), command("export model -o run.yaml --format safetensors"),
    command("export model -o x --format safetensors --dtype q8_0"),
    command("export model -o x --format safetensors --max-shard-size many"),
    command("export model -o x --format safetensors --max-shard-size 0"),
    command("export model -o x.gguf --pre nothing"), command("export model -o x.gguf --tokenizer missing"),
    command("export model -o x.gguf", change={"model/tokenizer.json": None}, note=" (no tokenizer)", may_pass=True),
    command("export data.jsonl -o x.gguf"), command("export model -o /proc/x.gguf"),
    command("quantize model"), command("quantize model --to gptq --out x"), command("quantize model --to int3 --out x"),
    command("quantize model --pattern nothing --out x"), command("quantize model --pattern ( --out x"),
    command("quantize model --to mxfp4 --pattern down_proj --out x"), command("quantize model --out model"),
    command("quantize model --out run.yaml"), command("quantize model --to q8_0 --pattern mlp --out x.gguf"),
    command("quantize model --to q8_0 --max-shard-size 1MB --out x.gguf"), command("quantize model --text missing --out x"),
    command("tokenize"), command("tokenize missing a"), command("tokenize model a b c"), command("tokenize model --token a"),
    command("tokenize run.yaml a"), command("tokenize data.jsonl a"),
    command("tokenize model", stdin=b"caf\xe9 \xff\xfe", may_pass=True),
    command("describe"), command("describe modle model"), command("describe model"), command("describe model missing"),
    command("describe model data.jsonl"), command("describe keys trainer.learning_rat"), command("describe keys nothing"),
    command("describe keys trainer.learning_rate.x"), command("describe keys --markdown --x"), command("describe mesh"),
    command("describe mesh missing.yaml"), command("describe mesh run.yaml --devices 0"),
    command("describe mesh run.yaml --devices 3", change={"run.yaml": RUN + "sharding: {axis_dims: [2, 1, 1, 1, 1]}\n"}),
    command("config-schema x"), command("doctor x"), command("version x"), command("completion"), command("completion tcsh"),
    command("man x"), command("help nothing"), command("help x y"),
    command("probe"), command("probe nothing"), command("probe logits"), command("probe logits missing missing"),
    command("probe tokenize missing"), command("probe vectors missing"), command("probe replay missing"),
    command("probe tools missing"), command("probe constrain missing"), command("probe render missing"),
    environment("validate run.yaml", EASYDEL_LOG="loud"),
    environment("run run.yaml", RANK="0"), environment("run run.yaml", WORLD_SIZE="2"),
    environment("run run.yaml", RANK="2", WORLD_SIZE="2"), environment("run run.yaml", RANK="-1", WORLD_SIZE="2"),
    environment("run run.yaml", RANK="a", WORLD_SIZE="2"), environment("run run.yaml", RANK="0", WORLD_SIZE="0"),
    environment("run run.yaml", RANK="0", WORLD_SIZE="2", MASTER_PORT="99999"),
    environment("run run.yaml", RANK="0", WORLD_SIZE="2", MASTER_PORT="http"),
    environment("--nproc 2 run run.yaml", RANK="0", WORLD_SIZE="2"),
    environment("run run.yaml", EASYDEL_FAULT="everything"), environment("run run.yaml", EASYDEL_FAULT="write:3"),
    environment("--nproc 3 run run.yaml"), environment("run run.yaml", OMP_NUM_THREADS="many"),
    environment("run run.yaml", EASYDEL_ISA="avx9"), environment("-q run run.yaml", HF_ENDPOINT="not a url", may_pass=True),
    environment("validate run.yaml", {"run.yaml": RUN.replace("name_or_path: model", "name_or_path: owner/name")},
                HF_HUB_OFFLINE="1"),
    environment("validate run.yaml", {"run.yaml": RUN.replace("name_or_path: model", "name_or_path: owner/name")},
                HF_HUB_OFFLINE="0", HF_ENDPOINT="http://127.0.0.1:9"),
    environment("validate run.yaml", {"run.yaml": RUN.replace("name_or_path: model", "name_or_path: owner/name")},
                HF_HUB_OFFLINE="0", HF_ENDPOINT="nonsense://x"),
    environment("validate run.yaml", {"run.yaml": RUN.replace("save_directory: out", "save_directory: ~/out")}, HOME=None,
                may_pass=True),
    environment("validate run.yaml", {"run.yaml": RUN.replace("save_directory: out", "save_directory: $WHERE/out")}, WHERE=""),
    environment("run run.yaml", {"run.yaml": RUN.replace("[train]", "[{push_to_hub: owner/name}]")}, HF_HUB_OFFLINE="0",
                HF_ENDPOINT="http://127.0.0.1:9", HF_TOKEN="hf_x"),
]

"""Folders of models: config.json, generation_config.json and files of weights that are missing, broken or others'."""
import json
import struct

from mistakes import MODEL, RUN, Mistake

CONFIG = json.loads((MODEL / "config.json").read_text())
WEIGHTS = (MODEL / "model.safetensors").read_bytes()
HEADER = struct.unpack("<Q", WEIGHTS[:8])[0]
TENSORS = json.loads(WEIGHTS[8:8 + HEADER])
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 1044992\n"
PAGE = "<!DOCTYPE html>\n<html><head><title>404 Not Found</title></head></html>\n"


def safetensors(tensors, data=WEIGHTS[8 + HEADER:]):
    header = (json.dumps(tensors) if not isinstance(tensors, str) else tensors).encode()
    return struct.pack("<Q", len(header)) + header + data


# A whole file of some of the tensors, under other names.
def file_of(keep=lambda name: True, rename=lambda name: name):
    header, data = {}, b""
    for name, tensor in TENSORS.items():
        if name == "__metadata__" or not keep(name):
            continue
        begin, end = tensor["data_offsets"]
        piece = WEIGHTS[8 + HEADER + begin:8 + HEADER + end]
        header[rename(name)] = {**tensor, "data_offsets": [len(data), len(data) + len(piece)]}
        data += piece
    return safetensors(header, data)


def with_tensor(name, **fields):
    return {**TENSORS, name: {**TENSORS[name], **fields}}


def nan_weights():
    name = "model.layers.2.mlp.up_proj.weight"
    begin = 8 + HEADER + TENSORS[name]["data_offsets"][0]
    return WEIGHTS[:begin] + struct.pack("<f", float("nan")) + WEIGHTS[begin + 4:]


def config(name, change=None, command="generate model -p Once -n 2", **more):
    if isinstance(change, dict):
        change = json.dumps({key: value for key, value in {**CONFIG, **change}.items() if value != "REMOVED"})
    return Mistake("config.json: " + name, {"model/config.json": change}, command, **more)


def weights(name, content, command="generate model -p Once -n 2", **more):
    files = content if isinstance(content, dict) else {"model/model.safetensors": content}
    return Mistake("weights: " + name, files, command, **more)


def index(weight_map, **more):
    return json.dumps({"metadata": {}, "weight_map": weight_map, **more})


SHARDED = {"model/model.safetensors": None}
NORM = "model.norm.weight"

MISTAKES = [
    config("missing"),
    config("empty", ""),
    config("not JSON", "{model_type: llama}"),
    config("a list", "[]"),
    config("null", "null"),
    config("a page of HTML", PAGE),
    config("a pointer of Git LFS", POINTER),
    config("cut off", (MODEL / "config.json").read_text()[:200]),
    config("two equal keys", '{"model_type": "llama", "model_type": "gpt2"}'),
    config("no model_type", {"model_type": "REMOVED"}),
    config("an unknown model_type", {"model_type": "lama"}),
    config("a model_type that is not built", {"model_type": "clip"}),
    config("a model_type of another kind", {"model_type": 3}),
    config("no hidden_size", {"hidden_size": "REMOVED"}),
    config("hidden_size is a text", {"hidden_size": "64"}),
    config("hidden_size is 0", {"hidden_size": 0}),
    config("hidden_size is negative", {"hidden_size": -64}),
    config("hidden_size is a fraction", {"hidden_size": 64.5}),
    config("hidden_size is huge", {"hidden_size": 10**12}),
    config("heads that do not divide", {"num_attention_heads": 7, "head_dim": "REMOVED"}),
    config("more key heads than heads", {"num_key_value_heads": 16}),
    config("key heads that do not divide", {"num_key_value_heads": 3}),
    config("no layers", {"num_hidden_layers": 0}),
    config("too many layers", {"num_hidden_layers": 10**9}),
    config("an unknown activation", {"hidden_act": "sillu"}),
    config("an epsilon that is a text", {"rms_norm_eps": "small"}),
    config("an unknown rope", {"rope_scaling": {"rope_type": "spiral", "factor": 2}}),
    config("rope without its factor", {"rope_scaling": {"rope_type": "linear"}}),
    config("rope_scaling is a text", {"rope_scaling": "linear"}),
    config("rope_theta is 0", {"rope_theta": 0}),
    config("tie_word_embeddings is a text", {"tie_word_embeddings": "yes"}),
    config("torch_dtype is unknown", {"torch_dtype": "float5"}),
    config("eos_token_id is a text", {"eos_token_id": "</s>"}),
    config("an architecture that is none", {"architectures": ["LlamaForVision"]}),
    config("architectures is a text", {"architectures": "LlamaForCausalLM"}),
    config("a classifier generates", {"architectures": ["LlamaForSequenceClassification"]}),
    config("a quantized checkpoint", {"quantization_config": {"quant_method": "gptq", "bits": 4}}),
    config("vocab_size is too small for the file", {"vocab_size": 100}),
    config("another size than the file", {"hidden_size": 128}),
    config("more layers than the file", {"num_hidden_layers": 6}),
    config("fewer layers than the file", {"num_hidden_layers": 4}),
    config("another family", {"model_type": "gpt2"}),
    config("an encoder generates", {"model_type": "bert", "architectures": ["BertForMaskedLM"]}),
    Mistake("generation_config.json: not JSON", {"model/generation_config.json": "{"}, "generate model -p Once -n 2"),
    Mistake("generation_config.json: a wrong kind", {"model/generation_config.json": '{"temperature": "hot"}'},
            "generate model -p Once -n 2"),
    Mistake("generation_config.json: absurd", {"model/generation_config.json": '{"num_beams": 1000000000}'},
            "generate model -p Once -n 2"),
    Mistake("generation_config.json: out of range", {"model/generation_config.json": '{"top_p": 1.5, "do_sample": true}'},
            "generate model -p Once -n 2"),
    weights("missing", None),
    weights("missing, for training", None, "-q run run.yaml", may_pass=True),
    weights("empty", b""),
    weights("four bytes", b"\0\0\0\1"),
    weights("a page of HTML", PAGE),
    weights("a pointer of Git LFS", POINTER),
    weights("random bytes", bytes((i * 7919 + 13) % 256 for i in range(5000))),
    weights("a header that is longer than the file", struct.pack("<Q", 10**6) + b"{}"),
    weights("a header of 2^63 bytes", struct.pack("<Q", 2**63) + b"{}"),
    weights("a header that is not JSON", safetensors("{hello")),
    weights("a header that is a list", safetensors("[]")),
    weights("a header without tensors", safetensors("{}")),
    weights("cut off", WEIGHTS[:500000]),
    weights("cut off in the header", WEIGHTS[:1000]),
    weights("bytes after the end", WEIGHTS + b"hello", may_pass=True),
    weights("a tensor is missing", file_of(lambda name: name != NORM)),
    weights("all tensors of a layer are missing", file_of(lambda name: "layers.3." not in name)),
    weights("a tensor that belongs to nothing", file_of(rename=lambda name: name.replace("norm.weight", "norm.wait"))),
    weights("a tensor too many", safetensors({**TENSORS, "model.extra.weight": TENSORS[NORM]}), may_pass=True),
    weights("names with another beginning", file_of(rename=lambda name: "transformer." + name), may_pass=True),
    weights("names of another program", file_of(rename=lambda name: name.replace("model.layers.", "blk."))),
    weights("a tensor of another shape", safetensors(with_tensor(NORM, shape=[8, 8]))),
    weights("a shape that is not that of the bytes", safetensors(with_tensor(NORM, shape=[65]))),
    weights("a negative shape", safetensors(with_tensor(NORM, shape=[-64]))),
    weights("an unknown dtype", safetensors(with_tensor(NORM, dtype="F31"))),
    weights("a dtype of whole numbers", safetensors(with_tensor(NORM, dtype="I32"))),
    weights("offsets beyond the end", safetensors(with_tensor(NORM, data_offsets=[10**9, 10**9 + 256]))),
    weights("offsets the wrong way round", safetensors(with_tensor(NORM, data_offsets=[256, 0]))),
    weights("a tensor without offsets", safetensors({**TENSORS, NORM: {"dtype": "F32", "shape": [64]}})),
    weights("NaN in a weight", nan_weights()),
    weights("NaN in a weight, for training", nan_weights(), "-q run run.yaml"),
    weights("an adapter instead of a model", {**SHARDED, "model/config.json": None,
            "model/adapter_config.json": '{"peft_type": "LORA", "base_model_name_or_path": "owner/name"}',
            "model/adapter_model.safetensors": WEIGHTS}),
    weights("an adapter next to a configuration", {**SHARDED,
            "model/adapter_config.json": '{"peft_type": "LORA", "base_model_name_or_path": "owner/name"}',
            "model/adapter_model.safetensors": WEIGHTS}),
    weights("an index that is not JSON", {**SHARDED, "model/model.safetensors.index.json": "{"}),
    weights("an index without a map", {**SHARDED, "model/model.safetensors.index.json": "{}"}),
    weights("an index of a wrong kind", {**SHARDED, "model/model.safetensors.index.json": index(["a"])}),
    weights("an index that names a missing file", {**SHARDED, "model/model.safetensors.index.json": index(
        {key: "model-00001-of-00002.safetensors" for key in TENSORS})}),
    weights("an index that names a file elsewhere", {**SHARDED, "model/model.safetensors.index.json": index(
        {key: "../../etc/passwd" for key in TENSORS})}),
    weights("an index that names tensors that are not there", {**SHARDED, "model/a.safetensors": file_of(lambda name: name != NORM),
            "model/model.safetensors.index.json": index({key: "a.safetensors" for key in TENSORS if key != "__metadata__"})}),
    weights("one of two parts is missing, no index", {**SHARDED,
            "model/model-00001-of-00002.safetensors": file_of(lambda name: "layers.4." not in name)}),
    weights("two files that hold the same", {"model/model-copy.safetensors": WEIGHTS}, may_pass=True),
    weights("pytorch_model.bin is no archive", {**SHARDED, "model/pytorch_model.bin": b"hello" * 100}),
    weights("pytorch_model.bin is empty", {**SHARDED, "model/pytorch_model.bin": b""}),
    weights("pytorch_model.bin runs code", {**SHARDED, "model/pytorch_model.bin": b"\x80\x02cos\nsystem\nX\x04\0\0\0true\x85R."}),
    weights("tf_model.h5", {**SHARDED, "model/tf_model.h5": b"\x89HDF\r\n"}),
    weights("GGUF: cut off", {**SHARDED, "m.gguf": b"GGUF\3\0\0\0"}, "generate m.gguf -p Once"),
    weights("GGUF: another file", {"m.gguf": PAGE}, "generate m.gguf -p Once"),
    weights("GGUF: version 1", {"m.gguf": b"GGUF" + struct.pack("<IQQ", 1, 0, 0)}, "generate m.gguf -p Once"),
    weights("GGUF: nothing inside", {"m.gguf": b"GGUF" + struct.pack("<IQQ", 3, 0, 0)}, "generate m.gguf -p Once"),
    weights("GGUF: a billion keys", {"m.gguf": b"GGUF" + struct.pack("<IQQ", 3, 0, 10**9)}, "generate m.gguf -p Once"),
    weights("GGUF: big-endian", {"m.gguf": b"GGUF" + struct.pack(">IQQ", 3, 0, 0)}, "generate m.gguf -p Once"),
    weights("the file of weights instead of the folder", {}, "generate model/model.safetensors -p Once"),
    weights("the folder above", {}, "generate . -p Once"),
    weights("a folder of data", {"texts/a.txt": "hello"}, "generate texts -p Once"),
]

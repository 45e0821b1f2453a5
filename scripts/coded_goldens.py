#!/usr/bin/env python3
"""Makes tests/data/codes: tiny checkpoints in codes, the digests of their decoded values, and the logits of the decoded model.

    python -m venv v && v/bin/pip install torch==2.13.0 transformers==5.23.0 accelerate bitsandbytes==0.50.2 compressed-tensors==0.20.0
    v/bin/python scripts/coded_goldens.py tests/data/codes

bitsandbytes' folders are written by transformers itself. compressed-tensors' tensors are made and decoded by its compressors. fp8 is
decoded by transformers' Fp8Dequantize. GPTQ's and AWQ's words are packed as AutoGPTQ and AutoAWQ publish them, and AWQ's are decoded
by compressed-tensors' converter.
"""
import hashlib, json, os, shutil, sys, tempfile
import torch
import transformers
from safetensors.torch import load_file, save_file

torch.manual_seed(20)
torch.set_num_threads(2)
out_dir = sys.argv[1]
work = tempfile.mkdtemp()
VOCABULARY = 48


def base_model(kind, dtype):
    shared = dict(vocab_size=VOCABULARY, hidden_size=64, intermediate_size=128, num_hidden_layers=1, num_attention_heads=4,
                  num_key_value_heads=2, max_position_embeddings=64, initializer_range=0.15, tie_word_embeddings=False, bos_token_id=1,
                  eos_token_id=2, pad_token_id=0)
    if kind == "llama":
        config = transformers.LlamaConfig(**shared)
    elif kind == "qwen3":
        config = transformers.Qwen3Config(**shared, head_dim=16)
    elif kind == "mixtral":
        config = transformers.MixtralConfig(**{**shared, "intermediate_size": 32}, num_local_experts=2, num_experts_per_tok=1)
    else:
        config = transformers.GptOssConfig(**{**shared, "intermediate_size": 32}, head_dim=16, num_local_experts=2, num_experts_per_tok=1,
                                           layer_types=["full_attention"])
    torch.manual_seed(7)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    for name, parameter in model.named_parameters():
        if name.endswith("bias") or "sinks" in name:
            torch.nn.init.normal_(parameter, std=0.05)
    folder = os.path.join(work, f"{kind}-{str(dtype)[6:]}")
    if not os.path.exists(folder):
        model.to(dtype).save_pretrained(folder)
    return folder


def tensors_of(folder):
    return load_file(os.path.join(folder, "model.safetensors"))


def is_linear(name, value):
    return value.dim() == 2 and name.endswith(".weight") and not any(x in name for x in ("embed", "lm_head", "router", ".gate.weight", "norm"))


def logits_of(base, values):
    """Of the model with these values, in fp32."""
    model_folder = tempfile.mkdtemp(dir=work)
    config = json.load(open(os.path.join(base, "config.json")))
    config["dtype"] = "float32"
    json.dump(config, open(os.path.join(model_folder, "config.json"), "w"))
    save_file({k: v.float().contiguous() for k, v in values.items()}, os.path.join(model_folder, "model.safetensors"), {"format": "pt"})
    model, info = transformers.AutoModelForCausalLM.from_pretrained(model_folder, dtype=torch.float32, output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"], info
    ids = torch.arange(10).mul(7).remainder(VOCABULARY).view(1, 10)
    with torch.no_grad():
        return ids, model.eval()(input_ids=ids).logits


def record(name, base, tensors, decoded, quantization, notes=""):
    """`tensors` are the folder's; `decoded` the values of those in codes."""
    folder = os.path.join(out_dir, name)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    config = json.load(open(os.path.join(base, "config.json")))
    if quantization is not None:
        config["quantization_config"] = quantization
    json.dump(config, open(os.path.join(folder, "config.json"), "w"), indent=1)
    save_file({k: v.contiguous() for k, v in tensors.items()}, os.path.join(folder, "model.safetensors"), {"format": "pt"})
    plain = {k: v for k, v in tensors_of(base).items() if k not in decoded}
    ids, logits = logits_of(base, {**plain, **decoded})
    digest = {k: hashlib.sha256(v.float().contiguous().numpy().tobytes()).hexdigest() for k, v in sorted(decoded.items())}
    json.dump({"notes": notes, "versions": versions, "sha256_of_values": digest}, open(os.path.join(folder, "expected.json"), "w"), indent=1)
    save_file({"input_ids": ids, "logits": logits}, os.path.join(folder, "expected.safetensors"))
    print(name, len(digest), "weights", float(logits.abs().max()))


import bitsandbytes as bnb
import compressed_tensors
from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme

versions = {"transformers": transformers.__version__, "bitsandbytes": bnb.__version__, "compressed-tensors": compressed_tensors.__version__,
            "torch": torch.__version__}


def make_bitsandbytes():
    for name, kind, dtype, options in [
        ("bnb_nf4", "llama", torch.bfloat16, dict(load_in_4bit=True, bnb_4bit_quant_type="nf4")),
        ("bnb_nf4_double", "qwen3", torch.bfloat16, dict(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True)),
        ("bnb_fp4", "llama", torch.float16, dict(load_in_4bit=True, bnb_4bit_quant_type="fp4")),
        ("bnb_nf4_storage", "llama", torch.float32, dict(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_quant_storage=torch.bfloat16)),
        ("bnb_int8", "llama", torch.bfloat16, dict(load_in_8bit=True)),
    ]:
        base = base_model(kind, dtype)
        config = transformers.BitsAndBytesConfig(**options)
        model = transformers.AutoModelForCausalLM.from_pretrained(base, quantization_config=config, dtype=dtype, device_map={"": "cpu"})
        folder = tempfile.mkdtemp(dir=work)
        model.save_pretrained(folder)
        decoded = {}
        for path, module in model.named_modules():
            if isinstance(module, bnb.nn.Linear4bit):
                state = module.weight.quant_state
                # Its CPU kernel decodes rows that blocks do not divide wrongly: a flat tensor has none.
                shape, state.shape = state.shape, torch.Size([state.shape.numel()])
                decoded[path + ".weight"] = bnb.functional.dequantize_4bit(module.weight.data.reshape(-1, 1), state).view(shape)
                state.shape = shape
            elif isinstance(module, bnb.nn.Linear8bitLt):
                decoded[path + ".weight"] = bnb.functional.int8_vectorwise_dequant(module.weight.data, module.weight.SCB)
        saved = json.load(open(os.path.join(folder, "config.json")))
        record(name, base, tensors_of(folder), decoded, saved["quantization_config"], "written by transformers")


def pack_rows(values, bits):
    """Unsigned values [n, k] to words [n, k * bits / 32] from the lowest bit on."""
    per = 32 // bits
    words = torch.zeros(values.shape[0], values.shape[1] // per, dtype=torch.int64)
    for i in range(per):
        words |= values[:, i::per].long() << (bits * i)
    return torch.where(words >= 1 << 31, words - (1 << 32), words).to(torch.int32)


def affine(weight, group, bits, symmetric):
    """Scales and zeros [groups, out] of rows in fp16, and codes [out, in]."""
    out, inner = weight.shape
    group = inner if group <= 0 else group
    parts = weight.float().view(out, -1, group)
    top = (1 << bits) - 1
    if symmetric:
        scale = (parts.abs().amax(-1) * 2 / top).clamp_min(1e-5)
        zero = torch.full_like(scale, (top + 1) // 2)
    else:
        low, high = parts.amin(-1).clamp_max(0), parts.amax(-1).clamp_min(0)
        scale = ((high - low) / top).clamp_min(1e-5)
        zero = torch.round(-low / scale).clamp(0, top)
    scale = scale.half()
    codes = torch.clamp(torch.round(parts / scale.float().unsqueeze(-1)) + zero.unsqueeze(-1), 0, top)
    return scale.t().contiguous(), zero.t().contiguous(), codes.view(out, inner)


def make_gptq():
    for name, kind, bits, group, symmetric, order, layout in [
        ("gptq_4", "llama", 4, 32, True, False, "gptq"), ("gptq_4_asym_order", "qwen3", 4, 32, False, True, "gptq"),
        ("gptq_8_v2", "llama", 8, -1, False, False, "gptq_v2"), ("gptq_2", "llama", 2, 64, False, False, "gptq"),
        ("gptq_4_mixtral", "mixtral", 4, 32, True, False, "gptq"), ("auto_round_4", "llama", 4, 32, True, False, "auto_round:auto_gptq"),
    ]:
        base = base_model(kind, torch.float16)
        tensors, decoded = {}, {}
        for key, value in tensors_of(base).items():
            if not is_linear(key, value):
                tensors[key] = value
                continue
            stem, (out, inner) = key[:-7], value.shape
            step = inner if group <= 0 else group
            g_idx = torch.arange(inner, dtype=torch.int32) // step
            permuted = torch.randperm(inner) if order else torch.arange(inner)
            if order:
                g_idx = torch.empty_like(g_idx).scatter_(0, permuted, torch.arange(inner, dtype=torch.int32) // step)
            scale, zero, codes = affine(value[:, permuted], step, bits, symmetric)
            codes = torch.empty_like(codes).scatter_(1, permuted.expand(out, -1), codes)
            decoded[key] = (scale[g_idx.long()] * (codes.t().to(torch.int32) - zero.to(torch.int32)[g_idx.long()])).t()
            assert decoded[key].dtype == torch.float16
            stored = zero if layout == "gptq_v2" else (zero - 1) % (1 << bits)
            tensors[stem + ".qweight"] = pack_rows(codes, bits).t()
            tensors[stem + ".qzeros"] = pack_rows(stored, bits)
            tensors[stem + ".scales"] = scale
            tensors[stem + ".g_idx"] = g_idx
        config = {"quant_method": "gptq", "bits": bits, "group_size": group, "sym": symmetric, "desc_act": order, "checkpoint_format": layout}
        if layout.startswith("auto"):
            config = {"quant_method": "auto-round", "bits": bits, "group_size": group, "sym": symmetric, "packing_format": layout}
        record(name, base, tensors, decoded, config, "packed as AutoGPTQ's qlinear_cuda_old.py does")


def make_awq():
    from compressed_tensors.entrypoints.convert.converters.autoawq import AutoAWQConverter
    from compressed_tensors.compressors.pack_quantized.base import PackedQuantizationCompressor
    order = [0, 2, 4, 6, 1, 3, 5, 7]
    for name, kind, group in [("awq_4", "llama", 32), ("awq_4_mixtral", "mixtral", 32)]:
        base = base_model(kind, torch.float16)
        tensors, decoded = {}, {}
        scheme = QuantizationScheme(targets=["Linear"], weights=QuantizationArgs(num_bits=4, symmetric=False, strategy="group", group_size=group))
        for key, value in tensors_of(base).items():
            if not is_linear(key, value):
                tensors[key] = value
                continue
            stem = key[:-7]
            scale, zero, codes = affine(value, group, 4, False)
            shuffled = lambda x: x.view(x.shape[0], -1, 8)[:, :, order].reshape(x.shape)
            own = {stem + ".qweight": pack_rows(shuffled(codes.t().contiguous()), 4), stem + ".qzeros": pack_rows(shuffled(zero), 4),
                   stem + ".scales": scale}
            tensors.update(own)
            made = AutoAWQConverter(group_size=group, ignore=[]).process(dict(own))
            decoded[key] = PackedQuantizationCompressor.decompress({k[len(stem) + 1:]: v for k, v in made.items()}, scheme)["weight"]
        record(name, base, tensors, decoded, {"quant_method": "awq", "bits": 4, "group_size": group, "zero_point": True, "version": "gemm"},
               "packed as AutoAWQ's gemm.py does, decoded by compressed-tensors")


def make_compressed_tensors():
    from compressed_tensors.compressors import BaseCompressor
    for name, kind, form, args, extra in [
        ("ct_w4a16", "llama", "pack-quantized", dict(num_bits=4, strategy="group", group_size=32), {}),
        ("ct_w4a16_asym", "qwen3", "pack-quantized", dict(num_bits=4, strategy="group", group_size=32, symmetric=False), {}),
        ("ct_w8a16", "llama", "pack-quantized", dict(num_bits=8, strategy="channel"), {}),
        ("ct_w8a8", "llama", "int-quantized", dict(num_bits=8, strategy="channel"),
         dict(input_activations=QuantizationArgs(num_bits=8, strategy="token", dynamic=True))),
        ("ct_fp8", "mixtral", "float-quantized", dict(num_bits=8, type="float", strategy="channel"),
         dict(input_activations=QuantizationArgs(num_bits=8, type="float", strategy="token", dynamic=True))),
        ("ct_fp8_tensor", "llama", "naive-quantized", dict(num_bits=8, type="float", strategy="tensor"), {}),
        ("ct_nvfp4", "llama", "nvfp4-pack-quantized", dict(num_bits=4, type="float", strategy="tensor_group", group_size=16), {}),
        ("ct_mxfp4", "llama", "mxfp4-pack-quantized", dict(num_bits=4, type="float", strategy="group", group_size=32), {}),
    ]:
        base = base_model(kind, torch.bfloat16)
        tensors, decoded = {}, {}
        weights = QuantizationArgs(**args)
        scheme = QuantizationScheme(targets=["Linear"], weights=weights, format=form, **extra)
        compressor = BaseCompressor.get_value_from_registry(form)
        for key, value in tensors_of(base).items():
            if not is_linear(key, value):
                tensors[key] = value
                continue
            stem, (out, inner) = key[:-7], value.shape
            group = args.get("group_size", inner)
            parts = value.float().view(1, 1, -1) if args["strategy"] == "tensor" else value.float().view(out, -1, group)
            top = 448 if args.get("type") == "float" and args["num_bits"] == 8 else 6 if args.get("type") == "float" else (2 ** args["num_bits"] - 1) / 2
            state = {"weight": value}
            most = parts.abs().amax(-1)
            if form == "nvfp4-pack-quantized":
                state["weight_global_scale"] = (448 * 6 / value.float().abs().max()).view(1)
                state["weight_scale"] = (state["weight_global_scale"] * most / 6).to(torch.float8_e4m3fn).float()
            elif form == "mxfp4-pack-quantized":
                state["weight_scale"] = torch.exp2(torch.floor(torch.log2(most)) - 2).to(torch.bfloat16)
            else:
                state["weight_scale"] = (most / top).to(torch.bfloat16)
            if not weights.symmetric:
                low, high = parts.amin(-1).clamp_max(0), parts.amax(-1).clamp_min(0)
                state["weight_scale"] = ((high - low) / 15).to(torch.bfloat16)
                state["weight_zero_point"] = torch.clamp(torch.round(-8 - low / state["weight_scale"].float()), -8, 7).to(torch.int8)
            if args["strategy"] == "tensor":
                state["weight_scale"] = state["weight_scale"].view(1)
            made = compressor.compress(dict(state), scheme)
            tensors.update({f"{stem}.{k}": v for k, v in made.items()})
            decoded[key] = compressor.decompress(dict(made), scheme)["weight"]
        group = {"targets": ["Linear"], "format": form, "weights": json.loads(weights.model_dump_json()),
                 "input_activations": json.loads(extra["input_activations"].model_dump_json()) if extra else None}
        config = {"quant_method": "compressed-tensors", "format": form, "quantization_status": "compressed", "ignore": ["lm_head"],
                  "config_groups": {"group_0": group}}
        record(name, base, tensors, decoded, config, "compressed and decompressed by compressed-tensors")


def make_fp8():
    from transformers.integrations.finegrained_fp8 import Fp8Dequantize
    decode = Fp8Dequantize(None)._dequantize_one
    for name, kind, block, form in [("fp8_blocks", "llama", 32, "fp8"), ("fp8_blocks_mixtral", "mixtral", 16, "fp8"),
                                    ("fp8_short_blocks", "qwen3", 48, "fp8"), ("fbgemm_fp8", "llama", 0, "fbgemm_fp8"),
                                    ("modelopt_fp8", "llama", 0, "modelopt"), ("modelopt_nvfp4", "llama", 0, "modelopt_nvfp4")]:
        base = base_model(kind, torch.bfloat16)
        tensors, decoded = {}, {}
        for key, value in tensors_of(base).items():
            if not is_linear(key, value):
                tensors[key] = value
                continue
            (out, inner), x, stem = value.shape, value.float(), key[:-7]
            if form == "fp8":
                rows, columns = -(-out // block), -(-inner // block)
                padded = torch.zeros(rows * block, columns * block)
                padded[:out, :inner] = x
                scale = padded.view(rows, block, columns, block).abs().amax((1, 3)) / 448
                spread = lambda s: s.repeat_interleave(block, 0).repeat_interleave(block, 1)[:out, :inner]
                codes = (x / spread(scale)).to(torch.float8_e4m3fn)
                tensors[key], tensors[stem + ".weight_scale_inv"] = codes, scale
                divides = out % rows == 0 and inner % columns == 0 and out // rows == block and inner // columns == block
                decoded[key] = decode(codes, scale, torch.float32) if divides else codes.float() * spread(scale)
            elif form == "fbgemm_fp8":
                scale = x.abs().amax(1, keepdim=True) / 448
                tensors[key], tensors[stem + ".weight_scale"] = (x / scale).to(torch.float8_e4m3fn), scale
                decoded[key] = tensors[key].float() * scale
            elif form == "modelopt":
                scale = x.abs().max() / 448
                tensors[key], tensors[stem + ".weight_scale"] = (x / scale).to(torch.float8_e4m3fn), scale
                tensors[stem + ".input_scale"] = torch.tensor(0.01)
                decoded[key] = tensors[key].float() * scale
            else:
                second = x.abs().max() / (448 * 6)
                parts = x.view(out, -1, 16)
                scale = (parts.abs().amax(-1) / 6 / second).to(torch.float8_e4m3fn)
                table = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
                full = (scale.float() * second).unsqueeze(-1)
                codes = ((parts / full.clamp_min(1e-9)).unsqueeze(-1) - table).abs().argmin(-1).view(out, inner)
                tensors[key] = (codes[:, 0::2] | codes[:, 1::2] << 4).to(torch.uint8)
                tensors[stem + ".weight_scale"], tensors[stem + ".weight_scale_2"] = scale, second
                tensors[stem + ".input_scale"] = torch.tensor(0.01)
                decoded[key] = (table[codes].view(out, -1, 16) * full).view(out, inner)
        config = {"fp8": {"quant_method": "fp8", "weight_block_size": [block, block], "activation_scheme": "dynamic"},
                  "fbgemm_fp8": {"quant_method": "fbgemm_fp8", "activation_scale_ub": 1200.0, "modules_to_not_convert": ["lm_head"]},
                  "modelopt": {"quant_method": "modelopt", "quant_algo": "FP8", "ignore": ["lm_head"]},
                  "modelopt_nvfp4": {"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head"]}}[form]
        record(name, base, tensors, decoded, config)


def make_gpt_oss():
    from transformers.integrations.mxfp4 import convert_moe_packed_tensors
    base = base_model("gpt_oss", torch.bfloat16)
    tensors, decoded = {}, {}
    for key, value in tensors_of(base).items():
        if not key.endswith(("gate_up_proj", "down_proj")):
            tensors[key] = value
            continue
        experts, inner, out = value.shape
        tensors[key + "_blocks"] = torch.randint(0, 256, (experts, out, inner // 32, 16), dtype=torch.uint8)
        tensors[key + "_scales"] = torch.randint(121, 126, (experts, out, inner // 32), dtype=torch.uint8)
        decoded[key] = convert_moe_packed_tensors(tensors[key + "_blocks"], tensors[key + "_scales"], dtype=torch.bfloat16)
    record("gpt_oss_mxfp4", base, tensors, decoded, {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn", "lm_head"]},
           "decoded by transformers' convert_moe_packed_tensors")


def make_bitnet():
    from transformers.integrations.bitnet import pack_weights, unpack_weights
    base = base_model("llama", torch.bfloat16)
    tensors, decoded = {}, {}
    for key, value in tensors_of(base).items():
        if not is_linear(key, value):
            tensors[key] = value
            continue
        scale = value.float().abs().mean()
        ternary = torch.clamp(torch.round(value.float() / scale), -1, 1) + 0.0  # no negative zeros
        tensors[key] = pack_weights(ternary.clone())
        tensors[key[:-7] + ".weight_scale"] = (1 / scale).to(torch.bfloat16).view(1)
        decoded[key] = ternary * (1 / tensors[key[:-7] + ".weight_scale"].float())
    record("bitnet", base, tensors, decoded, {"quant_method": "bitnet", "linear_class": "bitlinear", "quantization_mode": "offline"},
           "packed by transformers' pack_weights")


def make_corpus():
    """Small inputs of tests/fuzz/coded_folder_fuzz.cpp: a weight or two of each golden."""
    import struct
    corpus = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "fuzz", "corpus", "coded_folder")
    os.makedirs(corpus, exist_ok=True)
    for name in sorted(os.listdir(out_dir)):
        quantization = json.load(open(os.path.join(out_dir, name, "config.json"))).get("quantization_config")
        tensors = load_file(os.path.join(out_dir, name, "model.safetensors"))
        chosen = {k: v for k, v in tensors.items() if "k_proj" in k or "down_proj_" in k}
        file = os.path.join(work, "corpus.safetensors")
        save_file(chosen, file)
        with open(os.path.join(corpus, name), "wb") as out:
            out.write(json.dumps({"quantization_config": quantization}).encode() + b"\n" + open(file, "rb").read())


for make in (make_bitsandbytes, make_gptq, make_awq, make_compressed_tensors, make_fp8, make_gpt_oss, make_bitnet, make_corpus):
    if len(sys.argv) < 3 or sys.argv[2] in make.__name__:
        make()
shutil.rmtree(work)

"""Other spellings of a config.json: those of older files, missing keys, null, and the other names that transformers knows. Used by
random_configs.py."""
import json
import os

import torch
from transformers import AutoConfig

# Without these it is not a valid configuration, or that of another model.
KEPT = {"model_type", "architectures", "transformers_version", "text_config", "vision_config", "dtype", "torch_dtype",
        "original_max_position_embeddings"}  # required here (docs/differences.md)


def old_style(config):
    """The spelling of older files."""
    p = config.pop("rope_parameters", None)
    if "text_config" in config:
        old_style(config["text_config"])
    if p and "rope_type" not in p:  # each type of layer has its own: there is one spelling
        config["rope_parameters"] = p
    elif p:
        config["rope_theta"] = p.pop("rope_theta")
        if "partial_rotary_factor" in p:
            config["partial_rotary_factor"] = p.pop("partial_rotary_factor")
        kind = p.pop("rope_type")
        config["rope_scaling"] = None if kind == "default" and not p else {"type": kind, **p}
    config["torch_dtype"] = config.pop("dtype", "float32")


def fits(folder, written, loader):
    """Whether transformers reads the configuration, and the file's tensors are the model's."""
    path = os.path.join(folder, "config.json")
    json.dump(written, open(path, "w"), indent=2)
    try:
        reloaded, info = loader.from_pretrained(folder, attn_implementation="eager", output_loading_info=True)
        ids = torch.arange(12, 36)[None]  # as many as are compared
        with torch.no_grad():
            reloaded.eval()(ids, attention_mask=torch.ones_like(ids))
        return not any(info[k] for k in ("missing_keys", "unexpected_keys", "mismatched_keys", "error_msgs"))
    except Exception:
        return False


def edits(config, aliases, r):
    """(what, how) of one map of keys at a time, in a random order; each is undone by the caller where it does not fit."""
    maps = [m for m in (config, config.get("text_config"), config.get("rope_parameters"), config.get("rope_scaling")) if isinstance(m, dict)]
    out = []
    for m in maps:
        for key in [k for k in m if k not in KEPT]:
            out.append(("leave out", m, key, lambda m, k: m.pop(k)))
            out.append(("null", m, key, lambda m, k: m.update({k: None})))
            if key in aliases and aliases[key] not in m:
                out.append((f"as {aliases[key]}", m, key, lambda m, k: m.update({aliases[k]: m.pop(k)})))
    r.shuffle(out)
    return out


def respelled(written, r, folder, loader):
    """Changes `written` as far as transformers still loads the folder; returns what was done."""
    cls = type(AutoConfig.from_pretrained(folder))
    aliases = {target: name for name, target in (getattr(cls, "attribute_map", None) or {}).items()}
    done = []
    if not fits(folder, written, loader):
        return done
    for what, m, key, edit in edits(written, aliases, r)[: r.choice([0, 4, 8, 12])]:
        if key not in m:
            continue
        before = dict(m)
        edit(m, key)
        if fits(folder, written, loader):
            done.append(f"{key}: {what}")
        else:
            m.clear()
            m.update(before)
    return done

#!/usr/bin/env python3
"""Writes tests/data/templates/trl_spans.json.gz: what TRL's training templates mark as the assistant's.

Needs transformers and trl (pip install transformers jinja2; pip install --no-deps trl). For each template in TRL that has a
training template, each conversation is rendered with both. The result has the original's text, and in it the characters
that the training template marks; where TRL renders an earlier turn differently (it keeps reasoning that the original
drops), those of the same answer. Left out are conversations whose text the template drops. GLM-4 MoE ends a turn with the
header of the next one; its training template writes one after the last turn, too, which the original does not.

It also has ids and masks that transformers makes of some conversations with some training templates themselves.

    scripts/trl_spans.py TOKENIZER_FOLDER OUT.json.gz
"""
import glob
import gzip
import json
import os
import re
import sys

import trl
from transformers import AutoTokenizer
from transformers.utils.chat_template_utils import render_jinja_template

TOKENS = dict(bos_token="<BOS>", eos_token="<EOS>", pad_token="<PAD>", unk_token="<UNK>")


def message(role, content, **more):
    return dict(role=role, content=content, **more)


def thinking(role, content, reasoning):
    return message(role, content, reasoning_content=reasoning, thinking=reasoning)


def conversations():
    call = dict(id="abcdefghi", type="function", function=dict(name="weather", arguments=dict(city="Paris")))
    result = message("tool", "sunny", name="weather", tool_call_id="abcdefghi")
    out = {
        "two": [message("user", "Hi there"), message("assistant", "Hello!"), message("user", "How are you?"),
                message("assistant", " Fine, thanks. ")],
        "system": [message("system", "Be brief."), message("user", "Hi there"), message("assistant", "Hello!\nMore.")],
        "think": [message("user", "Hi"), thinking("assistant", "A", "because"), message("user", "Why?"),
                  thinking("assistant", "B", "so")],
        "think_in": [message("user", "Hi"), message("assistant", "<think>\nbecause\n</think>\n\nA"),
                     message("user", "Why?"), message("assistant", "<think>\nso\n</think>\n\nB")],
        "tools": [message("user", "Weather?"), message("assistant", "", tool_calls=[call]), result,
                  message("assistant", "It is sunny."), message("user", "Thanks"), message("assistant", "Bye")],
        "tools_said": [message("user", "Weather?"), message("assistant", "Let me see.", tool_calls=[call, call]), result,
                       message("assistant", "It is sunny.")],
        "same": [message("user", "assistant"), message("assistant", "user"), message("user", "user"),
                 message("assistant", "assistant")],
        "ends_with_user": [message("user", "Hi"), message("assistant", "Yes"), message("user", "And?")],
    }
    for name in list(out):
        out[name + "_list"] = [dict(m, content=[{"type": "text", "text": m["content"]}]) for m in out[name]]
    return out


def rendered(template, messages):
    texts, spans = render_jinja_template([messages], chat_template=template, return_assistant_tokens_mask=True,
                                         add_generation_prompt=False, **TOKENS)
    return texts[0], [list(span) for span in spans[0]]


def spans_in(original, text, spans):
    """The training template's spans in the original's text; None: an answer is not in it."""
    if text == original:
        return spans
    out, at = [], 0
    for begin, end in spans:
        part = text[begin:end]
        unended = re.sub(r"<\|user\|>$", "", part) if end == spans[-1][1] and end == len(text) else part
        for words in (part, unended, re.sub(r"^\s*<think>.*?</think>\s*", "", part, flags=re.S)):
            found = original.find(words, at) if words else -1
            if found >= 0:
                at = found + len(words)
                out.append([found, at])
                break
        else:
            return None
    return out


def merged(spans):
    out = []
    for begin, end in spans:
        if out and out[-1][1] == begin:
            out[-1][1] = end
        elif end > begin:
            out.append([begin, end])
    return out


def is_said(m, text):
    content = m["content"]
    parts = [content] if isinstance(content, str) else [part["text"] for part in content]
    return m.get("tool_calls") or all(part.rsplit("</think>", 1)[-1].strip() in text for part in parts)


def masked_ids(folder, template, messages):
    tokenizer = AutoTokenizer.from_pretrained(folder)
    out = tokenizer.apply_chat_template(messages, chat_template=template, return_dict=True,
                                        return_assistant_tokens_mask=True)
    return dict(ids=out["input_ids"], mask=out["assistant_masks"])


def main():
    folder = os.path.join(os.path.dirname(trl.__file__), "chat_templates")
    templates, cases, chats, masks = {}, [], conversations(), []
    for file in sorted(glob.glob(os.path.join(folder, "*_training.jinja"))):
        name = os.path.basename(file)[: -len("_training.jinja")]
        source, training = open(os.path.join(folder, name + ".jinja")).read(), open(file).read()
        for conversation, messages in chats.items():
            try:
                text, spans = rendered(training, messages)
                original, _ = rendered(source, messages)
            except Exception:  # the template does not take such a conversation
                continue
            spans = spans_in(original, text, spans)
            if spans is None or not all(is_said(m, original) for m in messages):
                continue
            # Its texts are names of roles: another conversation shows whether the template drops such contents.
            if conversation == "same_list" and not any(
                    case["template"] == name and case["conversation"] == "two_list" for case in cases):
                continue
            templates[name] = source
            cases.append(dict(template=name, conversation=conversation, text=original, spans=merged(spans)))
    for name in ("gemma3", "gptoss", "llama3", "qwen3"):
        source = open(os.path.join(folder, name + "_training.jinja")).read()
        for conversation in ("two", "think"):
            masks.append(dict(template=source, conversation=conversation,
                              **masked_ids(sys.argv[1], source, chats[conversation])))
    out = dict(source=f"trl {trl.__version__}", templates=templates, conversations=chats, cases=cases,
               masks=masks)
    with open(sys.argv[2], "wb") as file:
        file.write(gzip.compress(json.dumps(out, ensure_ascii=False).encode(), 9, mtime=0))
    print(len(templates), "templates,", len(cases), "cases")


if __name__ == "__main__":
    main()

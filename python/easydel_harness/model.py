"""The model ``easydel`` of lm-evaluation-harness: every call becomes lines that the process with the model answers."""

import hashlib
import re

from lm_eval.api.model import TemplateLM
from lm_eval.api.registry import register_model
from lm_eval.models.utils import normalize_gen_kwargs
from tqdm import tqdm

from .channel import ModelError, ScoreChannel

DTYPES = {"fp32": "torch.float32", "bf16": "torch.bfloat16", "fp16": "torch.float16"}
# The keys of a request's generation that easydel knows; `temperature` and so on come from the task.
NOT_SENT = {"until", "max_gen_toks", "seed"}


class _Tokenizer:
    """What the harness asks of a tokenizer; the model's process has the real one."""

    def __init__(self, chat_template):
        self.chat_template = chat_template


@register_model("easydel")
class EasyDeL(TemplateLM):
    def __init__(self, channel, settings=None):
        super().__init__()
        self._channel = channel
        self._settings = settings or {}
        self.about = self._one({"about": True})
        self.tokenizer = _Tokenizer(self.about["chat_template"])
        self.batch_size = self._settings.get("batch_size") or 1

    @classmethod
    def create_from_arg_string(cls, arg_string, additional_config=None):
        from lm_eval.utils import simple_parse_args_string

        return cls.create_from_arg_obj(simple_parse_args_string(arg_string), additional_config)

    @classmethod
    def create_from_arg_obj(cls, arg_dict, additional_config=None):
        """For ``lm_eval run --model easydel``: pretrained=DIR, and options of `easydel score` with _ for -."""
        arguments = dict(arg_dict)
        model = arguments.pop("pretrained", None)
        if not model:
            raise ValueError("--model easydel needs --model_args pretrained=FOLDER")
        settings = {
            key: arguments.pop(key)
            for key in ("chat_template_args", "enable_thinking", "think_end_token")
            if key in arguments
        }
        options = [f"--{key.replace('_', '-')}={value}" for key, value in arguments.items()]
        batch = (additional_config or {}).get("batch_size")
        if batch and str(batch).isdigit() and int(batch) > 1:
            options.append(f"--batch={batch}")
        settings["batch_size"] = batch
        return cls(ScoreChannel(str(model), options), settings)

    # What the harness asks for.

    @property
    def eot_token_id(self):
        return self.about["eos_token_id"]

    @property
    def prefix_token_id(self):
        return self.about["prefix_token_id"]

    @property
    def max_length(self):
        return self.about["max_length"]

    @property
    def tokenizer_name(self):
        return f"{self.about['model']} {self.about['tokenizer_digest']} {self.about['template_digest']}".replace("/", "__")

    def get_model_info(self):
        return {
            "model_num_parameters": self.about["num_parameters"],
            "model_dtype": DTYPES.get(self.about["dtype"], self.about["dtype"]),
            "model_revision": self._settings.get("revision") or "main",
            "model_sha": "",
        }

    def tok_encode(self, string, add_special_tokens=None, **kwargs):
        raise NotImplementedError("texts are tokenized by the process with the model")

    def _loglikelihood_tokens(self, requests, **kwargs):
        lines = [{"context_ids": context, "continuation_ids": continuation} for _, context, continuation in requests]
        return [self._scores(answer) for answer in self._ask(lines, "loglikelihood")]

    def loglikelihood(self, requests, disable_tqdm=False):
        lines = []
        for request in requests:
            context, continuation = request.args
            lines.append({"context": context, "continuation": continuation})
        return [self._scores(answer) for answer in self._ask(lines, "loglikelihood", requests, disable_tqdm)]

    def loglikelihood_rolling(self, requests, disable_tqdm=False):
        lines = [{"text": request.args[0]} for request in requests]
        return [answer["logprob"] for answer in self._ask(lines, "loglikelihood_rolling", requests, disable_tqdm)]

    def generate_until(self, requests, disable_tqdm=False):
        repeats = {}
        lines = []
        for request in requests:
            context, kwargs = request.args
            repeat = repeats[id(request)] = repeats.get(id(request), -1) + 1
            lines.append({"context": context, **self._generation(kwargs, request, repeat)})
        texts = [answer["text"] for answer in self._ask(lines, "generate_until", requests, disable_tqdm)]
        return [self._normalized(text, request) for text, request in zip(texts, requests)]

    def apply_chat_template(self, chat_history, add_generation_prompt=True):
        line = {
            "messages": chat_history,
            "add_generation_prompt": add_generation_prompt,
            "continue_final_message": not add_generation_prompt,
            "chat_template_args": self._template_args(),
        }
        try:
            return self._one(line)["text"]
        except ModelError:
            # As the harness' own back end: some templates refuse a system message.
            if not any(message["role"] == "system" for message in chat_history):
                raise
            line["messages"] = [message for message in chat_history if message["role"] != "system"]
            return self._one(line)["text"]

    # How requests are made.

    def _template_args(self):
        arguments = dict(self._settings.get("chat_template_args") or {})
        if self._settings.get("enable_thinking") is not None:
            arguments["enable_thinking"] = self._settings["enable_thinking"]
        return arguments

    def _generation(self, kwargs, request, repeat):
        """The generation fields of a line: the task's, then those of the section eval."""
        settings = self._settings
        limits = {"max_gen_toks", "max_new_tokens", "max_tokens", "max_completion_tokens"}
        limited = any(kwargs.get(key) is not None for key in limits)
        kwargs = dict(normalize_gen_kwargs(dict(kwargs)))
        out = {key: value for key, value in kwargs.items() if key not in NOT_SENT and value is not None}
        if limited:
            out["max_gen_toks"] = kwargs["max_gen_toks"]
        out["until"] = [] if settings.get("ignore_benchmark_eos_flags") else kwargs["until"]
        if not out.get("do_sample") and settings.get("temperature"):
            out.update(do_sample=True, temperature=settings["temperature"], top_p=settings.get("top_p", 1.0))
        out.update(settings.get("sampling_params") or {})
        if out.get("do_sample"):
            out["seed"] = kwargs.get("seed", self._seed(request, repeat))
        if settings.get("think_end_token"):
            out["think_end"] = str(settings["think_end_token"])
            if settings.get("think_start_token"):
                out["think_start"] = str(settings["think_start_token"])
        return out

    def _seed(self, request, repeat):
        """A sampled answer depends on the seed, the task, the document and the repeat, and on nothing else."""
        key = f"{self._settings.get('seed', 0)} {request.task_name} {request.doc_id} {request.idx} {repeat}"
        return int.from_bytes(hashlib.sha256(key.encode()).digest()[:6], "big")

    def _normalized(self, text, request):
        hints = self._settings.get("math_answer_task_hints")
        if not self._settings.get("normalize_math_answers") or not hints:
            return text
        task = (request.task_name or "").lower()
        return normalized_math_answer(text) if any(hint.lower() in task for hint in hints) else text

    # How they are sent.

    @staticmethod
    def _scores(answer):
        return answer["logprob"], answer["is_greedy"]

    def _one(self, line):
        return self._ask([line], "request", disable_tqdm=True)[0]

    def _ask(self, lines, kind, requests=None, disable_tqdm=False):
        if not lines:
            return []
        answers, failed = [None] * len(lines), []
        quiet = {"disable": True} if disable_tqdm else {}  # else as TQDM_DISABLE says
        with tqdm(total=len(lines), desc=f"Running {kind} requests", **quiet) as bar:

            def on_answer(index, answer):
                if "error" in answer:
                    failed.append((index, answer["error"]))
                answers[index] = answer
                bar.update(1)

            self._channel.ask(lines, on_answer)
        if failed:
            index, problem = min(failed)
            others = f" ({len(failed)} requests failed)" if len(failed) > 1 else ""
            raise ModelError(f"{_name(requests, index, kind)}: {problem}{others}")
        return answers


def _name(requests, index, kind):
    request = requests[index] if requests else None
    return f"task {request.task_name}, document {request.doc_id}" if request is not None else kind


NUMBER = re.compile(r"-?\$?\d[\d,]*(?:\.\d+)?")


def normalized_math_answer(text):
    """Appends "#### N" with the answer's last number, or what its \\boxed{} holds, if the text has no such line: the form
    that tasks with mathematical answers look for."""
    if "####" in text:
        return text
    answer = boxed(text)
    if answer is None:
        numbers = NUMBER.findall(text)
        if not numbers:
            return text
        answer = numbers[-1].replace("$", "").replace(",", "")
    return f"{text.rstrip()}\n#### {answer}"


def boxed(text):
    """The contents of the last \\boxed{...}; None: there is none."""
    begin = text.rfind("\\boxed{")
    if begin < 0:
        return None
    depth, start = 0, begin + len("\\boxed")
    for at in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return text[start + 1 : at].strip()
    return None

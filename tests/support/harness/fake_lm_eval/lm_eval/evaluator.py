import os
import zlib
from types import SimpleNamespace


def add_env_info(document):
    document["pretty_env_info"] = "a fake"


def _run_code(source):
    """The code that a task is given, as one that runs what a model writes; its last words."""
    said = []
    exec(source, {"say": said.append})
    return said


def _answers(model, task, arguments):
    requests, contexts = [], []
    for number, one in enumerate(task.requests):
        given = list(one.get("arguments", []))
        if "messages" in one:
            history = list(one["messages"])
            if arguments.get("system_instruction"):
                history.insert(0, {"role": "system", "content": arguments["system_instruction"]})
            text = "\n".join(message["content"] for message in history)
            given.insert(0, model.apply_chat_template(history) if arguments.get("apply_chat_template") else text)
        if one["kind"] == "generate_until":
            given[1] = {**given[1], **(arguments.get("gen_kwargs") or {})}
        contexts.append(given[0])
        requests.append(SimpleNamespace(kind=one["kind"], args=tuple(given), task_name=task.config.task, doc_id=number, idx=0))
    answers = [None] * len(requests)
    for kind in dict.fromkeys(request.kind for request in requests):
        chosen = [i for i, request in enumerate(requests) if request.kind == kind]
        repeated = [requests[i] for i in chosen for _ in range(task.requests[i].get("repeats", 1))]
        given = iter(getattr(model, kind)(repeated))
        for i in chosen:
            own = [next(given) for _ in range(task.requests[i].get("repeats", 1))]
            answers[i] = own if "repeats" in task.requests[i] else own[0]
    return answers, contexts


def simple_evaluate(model, tasks, task_manager=None, **arguments):
    results, answers, contexts, said = {}, {}, {}, {}
    for task in tasks:
        answers[task.config.task], contexts[task.config.task] = _answers(model, task, arguments)
        told = repr(answers[task.config.task]).encode()
        results[task.config.task] = {"alias": task.config.task, "crc,none": zlib.crc32(told)}
        if hasattr(task.config, "code"):
            said[task.config.task] = _run_code(task.config.code)
    return {
        "results": results,
        "answers": answers,
        "contexts": contexts,
        "said": said,
        "called": {"arguments": arguments, "bars": "TQDM_DISABLE" not in os.environ},
        "model": {"length": model.max_length, "prefix": model.prefix_token_id, "end": model.eot_token_id},
        "config": model.get_model_info(),
        "tokenizer": model.tokenizer_name,
    }

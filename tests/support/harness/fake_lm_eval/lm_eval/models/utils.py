def normalize_gen_kwargs(kwargs):
    limits = [kwargs.pop(key, None) for key in ("max_gen_toks", "max_new_tokens", "max_tokens", "max_completion_tokens")]
    until = kwargs.get("until", [])
    temperature = float(kwargs.get("temperature", 0.0))
    draws = kwargs.get("do_sample")
    draws = temperature > 0 if draws is None else draws
    return {
        **kwargs,
        "until": until if isinstance(until, list) else [until],
        "max_gen_toks": next((limit for limit in limits if limit is not None), 256),
        "do_sample": draws,
        "temperature": temperature if draws else 0.0,
    }

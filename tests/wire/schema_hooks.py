"""What schemathesis does with bodies that it has made, before it sends them (SCHEMATHESIS_HOOKS): long answers become short ones.

A thousand random requests would otherwise generate up to the end of the context, with as many answers as `n` allows."""
import schemathesis

SHORT = 4  # tokens, or answers


@schemathesis.hook
def map_body(context, body):
    if not isinstance(body, dict) or not any(name in body for name in ("messages", "prompt", "input")):
        return body
    for name in ("max_tokens", "max_completion_tokens", "max_output_tokens", "n", "best_of"):
        value = body.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value > SHORT:
            body[name] = SHORT
    # Not max_tokens: Anthropic's messages require it, and a body without it has to be refused.
    if "messages" in body:
        body.setdefault("max_completion_tokens", SHORT)
    if "input" in body:
        body.setdefault("max_output_tokens", SHORT)
    return body

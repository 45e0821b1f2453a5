"""lm-evaluation-harness on a model that another process holds.

``python -m easydel_harness`` is started by easydel and answers it over a socket. ``python -m easydel_harness.lm_eval`` is
lm_eval's command line with the model ``easydel``, which starts ``easydel score`` itself; importing this package registers
that model for programs that use lm_eval themselves.
"""

try:
    import lm_eval.models  # registers the harness' own models, which it leaves out once there is one
    from lm_eval.api.registry import model_registry
except ImportError:  # without lm_eval there is nothing to register with
    pass
else:
    if "easydel" not in model_registry:
        model_registry.register("easydel", target="easydel_harness.model:EasyDeL")

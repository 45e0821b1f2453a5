"""Writes tests/data/trl/density_ratio.json: scikit-learn's LogisticRegression(class_weight="balanced") on random
embeddings, as TRL 0.24's bco_trainer.py uses it, solved to the last digits.

    python3 scripts/density_ratio_golden.py tests/data/trl/density_ratio.json
"""
import json
import sys

import numpy
import sklearn
from sklearn.linear_model import LogisticRegression

draws = numpy.random.default_rng(7)
good, bad = 23, 41
x = numpy.concatenate([draws.normal(0.4, 1, (good, 5)), draws.normal(0, 1, (bad, 5))]).round(6)
y = numpy.concatenate([numpy.ones(good), numpy.zeros(bad)])
model = LogisticRegression(class_weight="balanced", tol=1e-14, max_iter=100000, solver="newton-cholesky").fit(x, y)
with open(sys.argv[1], "w") as out:
    json.dump({"source": f"scikit-learn {sklearn.__version__}, scripts/density_ratio_golden.py", "good": good, "x": x.tolist(),
               "coefficients": model.coef_[0].tolist(), "intercept": model.intercept_[0],
               "probability": model.predict_proba(x)[:, 1].tolist()}, out, indent=1)
    out.write("\n")

"""Six updates in float64 by the written formulas of MARS and SOAP, and by torch's own classes with other arguments."""
import gzip, json, sys
import numpy as np, torch
torch.manual_seed(5); rng = np.random.default_rng(5)
ROWS, COLUMNS, STEPS = 6, 6, 8
param0 = np.float32(rng.normal(size=(ROWS, COLUMNS)))
grads = np.float32(rng.normal(size=(STEPS, ROWS, COLUMNS)) * rng.uniform(0.2, 3, size=(STEPS, 1, 1)))

def mars(p, g, a):
    b1, b2 = a.get("betas", [0.95, 0.99]); eps, gamma, clip = a.get("eps", 1e-8), a.get("gamma", 0.025), a.get("clip", 1.0)
    m = v = last = np.zeros_like(p); out = []
    for t, gt in enumerate(g, 1):
        c = gt + gamma * b1 / (1 - b1) * (gt - last); last = gt
        if np.linalg.norm(c) > clip > 0: c = c * (clip / np.linalg.norm(c))
        m = b1 * m + (1 - b1) * c; v = b2 * v + (1 - b2) * c * c
        p = p * (1 - a["lr"] * a.get("weight_decay", 0)) - a["lr"] * (m / (1 - b1**t)) / (np.sqrt(v / (1 - b2**t)) + eps)
        out.append(p)
    return np.stack(out)

def soap(p, g, a):
    b1, b2 = a.get("betas", [0.95, 0.95]); eps, every, most = a.get("eps", 1e-8), a.get("precondition_frequency", 10), a.get("max_precond_dim", 10000)
    dims = [d for d in range(p.ndim) if p.ndim > 1 and p.shape[d] <= most]
    gram = {d: np.zeros((p.shape[d],) * 2) for d in dims}; basis = {}
    def into(x):
        for d in dims: x = np.moveaxis(np.tensordot(x, basis[d], ([d], [0])), -1, d)
        return x
    def outof(x):
        for d in dims: x = np.moveaxis(np.tensordot(x, basis[d], ([d], [1])), -1, d)
        return x
    def gather(gt):
        for d in dims:
            rows = np.moveaxis(gt, d, 0).reshape(p.shape[d], -1); gram[d] += (1 - b2) * (rows @ rows.T - gram[d])
    m = v = np.zeros_like(p); out = []
    for t, gt in enumerate(g):
        if t == 0:
            gather(gt)
            for d in dims: basis[d] = np.linalg.eigh(gram[d])[1][:, ::-1]
            out.append(p); continue
        x = into(gt); m = b1 * m + (1 - b1) * x; v = b2 * v + (1 - b2) * x * x
        p = p - a["lr"] * np.sqrt(1 - b2**t) / (1 - b1**t) * outof(m / (np.sqrt(v) + eps))
        p = p * (1 - a["lr"] * a.get("weight_decay", 0))
        gather(gt)
        if t % every == 0:
            straight = outof(m)
            for d in dims:
                order = np.argsort(-np.diag(basis[d].T @ gram[d] @ basis[d]), kind="stable"); v = np.take(v, order, d)
                basis[d] = np.linalg.qr(gram[d] @ basis[d][:, order])[0]
            m = into(straight)
        out.append(p)
    return np.stack(out)

def by_torch(name, a):
    def run(p, g):
        p = torch.nn.Parameter(torch.tensor(p, dtype=torch.float64)); o = getattr(torch.optim, name)([p], **a); out = []
        for gt in g: p.grad = torch.tensor(gt, dtype=torch.float64); o.step(); out.append(p.detach().clone().numpy())
        return np.stack(out)
    return run
def row(kind, run, a, flat=True):
    out = {"class": kind, "args": a, "params_after_step": run(np.float64(param0), np.float64(grads)).tolist()}
    if flat: out["params_1d_after_step"] = run(np.float64(param0[0]), np.float64(grads[:, 0])).tolist()
    return out
M, S = "formula (MARS, arXiv:2411.10438)", "formula (SOAP, arXiv:2409.11321)"
table = {}
for name, a in {"mars": {"lr": 0.01, "weight_decay": 0.1}, "mars_unclipped": {"lr": 0.01, "clip": 0, "gamma": 0.1}}.items(): table[name] = row(M, lambda p, g, a=a: mars(p, g, a), a)
for name, a in {"soap": {"lr": 0.01, "weight_decay": 0.1}, "soap_follows": {"lr": 0.01, "precondition_frequency": 2}, "soap_without_bases": {"lr": 0.01, "max_precond_dim": 5}}.items(): table[name] = row(S, lambda p, g, a=a: soap(p, g, a), a)
for name, kind, a in [("nadam_decay", "NAdam", {"lr": 0.01, "weight_decay": 0.1}), ("nadam_decoupled", "NAdam", {"lr": 0.01, "weight_decay": 0.1, "decoupled_weight_decay": True, "momentum_decay": 0.01}), ("radam_decay", "RAdam", {"lr": 0.01, "weight_decay": 0.1, "betas": [0.8, 0.9]}), ("radam_decoupled", "RAdam", {"lr": 0.01, "weight_decay": 0.1, "decoupled_weight_decay": True}), ("adamax_decay", "Adamax", {"lr": 0.01, "weight_decay": 0.1, "betas": [0.8, 0.9]}), ("adadelta_decay", "Adadelta", {"lr": 0.5, "weight_decay": 0.1, "rho": 0.8}), ("adagrad_decay", "Adagrad", {"lr": 0.1, "lr_decay": 0.1, "initial_accumulator_value": 0.5, "weight_decay": 0.01})]:
    table[name] = row("torch." + kind, by_torch(kind, a), a)
json.dump({"kind": "optim/step_tables", "param0": param0.tolist(), "grads_per_step": grads.tolist(), "note": "float64; the 1-D tables use row 0 of param0 and of every gradient", "table": table}, gzip.open(sys.argv[1], "wt") if sys.argv[1].endswith("gz") else open(sys.argv[1], "w"))

"""Computes optimizer updates in float64: MARS, SOAP, quad and skew by their formulas, others by torch's classes with various arguments."""
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

def philox(key, counter):
    c = [counter & 0xFFFFFFFF, counter >> 32, 0, 0]; k = list(key)
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & 0xFFFFFFFF, (a >> 32) ^ c[3] ^ k[1], a & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c
def normals(name, rows, columns):  # tensor/random.h
    h = 0xCBF29CE484222325
    for ch in name.encode(): h = ((h ^ ch) * 0x100000001B3) & (2**64 - 1)
    key = philox([0, 0], h)[:2]; out = []
    for i in range(-(-rows * columns // 4)):
        bits = philox(key, i)
        for j in (0, 2):
            r, angle = np.sqrt(-2 * np.log((bits[j] + 1) * 2.0**-32)), 2 * np.pi * bits[j + 1] * 2.0**-32
            out += [np.float32(r * np.cos(angle)), np.float32(r * np.sin(angle))]
    return np.array(out[: rows * columns], np.float64).reshape(rows, columns)

def stretch(a, scale):
    if not scale > 0: return 0.0
    a = a / scale; e = (a * a).mean(1); j = e.argmax()
    x = (a[j] / np.sqrt(e[j]) + normals("kron/probes", 4, a.shape[1])) @ a
    for _ in range(5): x = (x / np.abs(x).max()) @ a
    x = (x / np.linalg.norm(x, axis=1, keepdims=True)) @ a
    return np.linalg.norm(x, axis=1).max() * scale

def kron(skew, p, g, a):
    b1, block, dense = a.get("b1", 0.95), a.get("block_size", 256), a.get("max_size_dense", 16384)
    shape = p.shape if p.ndim == 2 else (p.size, 1)
    sides = [(n, n if n > dense or p.ndim == 1 else block, n > dense or p.ndim == 1) for n in shape]
    blocks = [(i, j) for i in range(0, shape[0], sides[0][1]) for j in range(0, shape[1], sides[1][1])]
    sizes = {b: [min(sides[d][1], shape[d] - b[d]) for d in (0, 1)] for b in blocks}
    Q = {b: [np.ones(sizes[b][d]) if sides[d][2] else np.eye(sizes[b][d]) for d in (0, 1)] for b in blocks}
    L = {b: [0.0, 0.0] for b in blocks}
    whiten = lambda q, x: (q * q)[:, None] * x if q.ndim == 1 else q.T @ q @ x
    through = lambda l, x, r: whiten(r, whiten(l, x).T).T
    def procrustes(q):
        r = q.T - q; most = np.abs(r).max()
        if most <= 1.1754943508222875e-38: return q
        r = r / most; rq = r @ q
        if np.trace(rq) <= 0: return q
        rrq = r @ rq; step = 0.125 / stretch(r, np.abs(r).max())
        if np.trace(rrq) < 0: step = min(step, -np.trace(rq) / np.trace(rrq))
        return q + step * (rq + 0.5 * step * rrq)
    def follow(b, d, much, even, plr):
        q = Q[b][d]; now = (much.max() if q.ndim == 1 else stretch(much, np.diag(much).max())) + even
        L[b][d] = max(0.95 * L[b][d] + 0.05 * now, now); z = plr / L[b][d] / (1 if skew else 2)
        if q.ndim == 1: gain = 1 - z * (much - even); Q[b][d] = q * (gain if skew else gain**2); return
        once = q - z * (much @ q - even * q)
        if skew: Q[b][d] = procrustes(once); return
        twice = once - z * (once @ much - even * once); Q[b][d] = (twice + twice.T) / 2
    m = np.zeros_like(p); out = []
    for t, gt in enumerate(g, 1):
        m = b1 * m + (1 - b1) * gt; moment = (m / (1 - b1**t)).reshape(shape); white = np.zeros(shape)
        plr = max(0.7 / np.sqrt(1 + t / 10000), 0.4)
        for b in blocks:
            rows, columns = sizes[b]; x = moment[b[0] : b[0] + rows, b[1] : b[1] + columns]
            if p.ndim == 1:
                q = Q[b][0]; follow(b, 0, (q * q * x[:, 0]) ** 2, 1, plr); y = (Q[b][0] ** 2 * x[:, 0])[:, None]
            else:
                w = through(Q[b][0], x, Q[b][1])
                follow(b, 0, (w * w).sum(1) if sides[0][2] else w @ w.T, columns, plr)
                follow(b, 1, (w * w).sum(0) if sides[1][2] else w.T @ w, rows, plr)
                y = through(Q[b][0], x, Q[b][1])
            white[b[0] : b[0] + rows, b[1] : b[1] + columns] = y
        white = white * (1.1 / max(np.sqrt((white**2).mean()), 1.1)) / 5
        p = p * (1 - a["lr"] * a.get("weight_decay", 0)) - a["lr"] * white.reshape(p.shape); out.append(p)
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
for word in ("quad", "skew"):
    for more, a in {"": {"lr": 0.1, "weight_decay": 0.1}, "_blocks": {"lr": 0.1, "block_size": 4}, "_diagonal": {"lr": 0.1, "max_size_dense": 5}}.items():
        table[word + more] = row(f"formula ({word}, eformer)", lambda p, g, a=a, word=word: kron(word == "skew", p, g, a), a)
for name, kind, a in [("nadam_decay", "NAdam", {"lr": 0.01, "weight_decay": 0.1}), ("nadam_decoupled", "NAdam", {"lr": 0.01, "weight_decay": 0.1, "decoupled_weight_decay": True, "momentum_decay": 0.01}), ("radam_decay", "RAdam", {"lr": 0.01, "weight_decay": 0.1, "betas": [0.8, 0.9]}), ("radam_decoupled", "RAdam", {"lr": 0.01, "weight_decay": 0.1, "decoupled_weight_decay": True}), ("adamax_decay", "Adamax", {"lr": 0.01, "weight_decay": 0.1, "betas": [0.8, 0.9]}), ("adadelta_decay", "Adadelta", {"lr": 0.5, "weight_decay": 0.1, "rho": 0.8}), ("adagrad_decay", "Adagrad", {"lr": 0.1, "lr_decay": 0.1, "initial_accumulator_value": 0.5, "weight_decay": 0.01})]:
    table[name] = row("torch." + kind, by_torch(kind, a), a)
json.dump({"kind": "optim/step_tables", "param0": param0.tolist(), "grads_per_step": grads.tolist(), "note": "float64; the 1-D tables use row 0 of param0 and of every gradient", "table": table}, gzip.open(sys.argv[1], "wt") if sys.argv[1].endswith("gz") else open(sys.argv[1], "w"))

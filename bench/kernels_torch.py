"""Measures torch for kernels_bench, on the same shapes. `kernels_torch.py [product] [attention] [fused]`, or
`kernels_torch.py serve THREADS` for kernels_targets_bench: names of cases on stdin, their minimum seconds on stdout."""

import os
import sys
import time

import torch
import torch.nn.functional as F


def seconds(call):
    call()
    times = []
    while len(times) < 3 or (sum(times) < 0.25 and len(times) < 1000):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return min(times)


def show(what, took, flops=0.0, size=0.0):
    figure = f"{flops / took * 1e-9:8.1f} GFLOP/s" if flops else f"{size / took * 1e-9:8.1f} GB/s"
    print(f"  {what:<58} {took * 1e3:9.3f} ms {figure}", flush=True)


def product():
    for dtype in (torch.float32, torch.bfloat16):
        for n, k in ((576, 576), (1536, 576), (576, 1536), (49152, 576), (2048, 2048)):
            size = n * k * dtype.itemsize
            weights = [torch.randn(n, k).to(dtype) for _ in range(max(1, (256 << 20) // size))]
            for m in (1, 512, 1024):
                x = torch.randn(m, k).to(dtype)
                count = [0]

                def call():
                    F.linear(x, weights[count[0] % len(weights) if m == 1 else 0])
                    count[0] += 1

                what = f"{m} rows, {n} x {k}, {str(dtype)[6:]}"
                took = seconds(call)
                show(what, took, size=size) if m == 1 else show(what, took, flops=2.0 * m * n * k)


def gradients():
    for dtype in (torch.float32, torch.bfloat16):
        for n, k in ((1536, 576), (576, 1536), (5632, 2048)):
            m = 1024
            w, x, dy = torch.randn(n, k).to(dtype), torch.randn(m, k).to(dtype), torch.randn(m, n).to(dtype)
            show(f"{m} rows, {n} x {k}, dx {str(dtype)[6:]}", seconds(lambda: dy @ w), flops=2.0 * m * n * k)
            show(f"{m} rows, {n} x {k}, dw {str(dtype)[6:]}", seconds(lambda: dy.t() @ x), flops=2.0 * m * n * k)


def attention():
    for count, length, heads, kv_heads, dim in ((1, 1024, 8, 8, 64), (2, 512, 9, 3, 64), (1, 4096, 8, 2, 128)):
        q = torch.randn(count, heads, length, dim, requires_grad=True)
        k, v = (torch.randn(count, kv_heads, length, dim, requires_grad=True) for _ in range(2))
        g = torch.randn(count, heads, length, dim)

        def forward():
            return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=heads != kv_heads)

        what = f"{count} x {length} causal, {heads}/{kv_heads} heads of {dim}"
        flops = 2.0 * count * length * length * heads * dim
        one = seconds(forward)
        both = seconds(lambda: forward().backward(g))
        show(what + ", forward", one, flops=flops)
        show(what + ", backward", both - one, flops=2.5 * flops)


def fused():
    rows, n, wide, vocabulary = 1024, 576, 1536, 49152
    x, w = torch.randn(rows, n), torch.randn(n)
    show("rms_norm 1024 x 576", seconds(lambda: F.rms_norm(x, (n,), w)), size=8.0 * rows * n)
    gate, up = torch.randn(rows, wide), torch.randn(rows, wide)
    show("silu x up 1024 x 1536", seconds(lambda: F.silu(gate) * up), size=12.0 * rows * wide)
    logits, labels = torch.randn(256, vocabulary, requires_grad=True), torch.full((256,), 7)
    show("cross_entropy with gradient 256 x 49152",
         seconds(lambda: F.cross_entropy(logits, labels, reduction="sum").backward()), size=8.0 * 256 * vocabulary)
    p = torch.randn(1 << 24, requires_grad=True)
    p.grad = torch.randn(1 << 24)
    optimizer = torch.optim.AdamW([p], fused=True)
    show("adamw 16 M, fp32", seconds(optimizer.step), size=28.0 * (1 << 24))


def case(words):
    """The call that a line of the targets names."""
    kind = words[0]
    if kind == "attention":
        q, k, v = (torch.randn(1, 8, 1024, 64).bfloat16().requires_grad_(words[1] == "both") for _ in range(3))
        g = torch.randn(1, 8, 1024, 64).bfloat16()
        if words[1] == "forward":
            return lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True)

        def both():
            q.grad = k.grad = v.grad = None
            F.scaled_dot_product_attention(q, k, v, is_causal=True).backward(g)

        return both
    dtype = torch.bfloat16 if words[1] == "bf16" else torch.float32
    m, n, k = map(int, words[2:])
    x, w, dy = torch.randn(m, k).to(dtype), torch.randn(n, k).to(dtype), torch.randn(m, n).to(dtype)
    if kind == "product":
        return lambda: F.linear(x, w)
    return lambda: (F.linear(x, w), dy @ w, dy.t() @ x)


def serve(threads):
    torch.set_num_threads(threads)
    cases = {}
    with torch.no_grad():
        for line in sys.stdin:
            if line not in cases:
                cases[line] = case(line.split())
            with torch.set_grad_enabled("both" in line):
                cases[line]()
                times = []
                while len(times) < 3 or (sum(times) < 0.03 and len(times) < 2000):
                    begin = time.perf_counter()
                    cases[line]()
                    times.append(time.perf_counter() - begin)
            print(min(times), flush=True)


PARTS = {"product": product, "gradients": gradients, "attention": attention, "fused": fused}

if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve(int(sys.argv[2]))
        sys.exit()
    threads = int(os.environ.get("OMP_NUM_THREADS", len(os.sched_getaffinity(0))))
    for team in sorted({1, threads}):
        torch.set_num_threads(team)
        print(f"torch {torch.__version__}, {team} thread{'s' if team > 1 else ''}")
        for part in sys.argv[1:] or PARTS:
            PARTS[part]()

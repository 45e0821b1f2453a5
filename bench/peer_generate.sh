#!/usr/bin/env bash
# Runs another engine on SmolLM2-135M's shape, for generate_bench: peer_generate.sh transformers|openvino|llama_cpp DTYPE
# CONTEXTS NEW RUNS, contexts separated by commas. Prints a JSON line for each figure. Threads: OMP_NUM_THREADS, or all of the
# machine.
# transformers: the peer scripts (EASYDEL_PEERS, else ../shared/peers next to the repository), their tokenizers, and a Python
# with torch and transformers (EASYDEL_PEER_PYTHON).
# openvino: the peer scripts, a Python with openvino-genai, and the same model as a GGUF file in f16 or q8_0 (EASYDEL_PEER_GGUF).
# llama_cpp: its llama-bench (EASYDEL_PEER_LLAMA_BENCH), and the model as a GGUF file of any type.
set -euo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
peers=${EASYDEL_PEERS:-$root/../shared/peers}
data=${EASYDEL_SHARED_DATA:-$root/../shared/data}
python=${EASYDEL_PEER_PYTHON:-}
threads=${OMP_NUM_THREADS:-$(nproc)}
needs_python() {
  [ -f "$peers/$2" ] || { echo "no $peers/$2" >&2; exit 3; }
  [ -n "$python" ] || { echo "EASYDEL_PEER_PYTHON names no Python with $1" >&2; exit 3; }
}
needs_gguf() { [ -f "${EASYDEL_PEER_GGUF:-}" ] || { echo "EASYDEL_PEER_GGUF names no file" >&2; exit 3; }; }
case $1 in
transformers)
  needs_python transformers bench_hf.py
  models=${TMPDIR:-/tmp}/easydel-peer-models
  if [ ! -f "$models/smol135m/model.safetensors" ]; then
    "$python" "$peers/make_models.py" --tokenizers "$data/tokenizers" --out "$models" --which smol135m >&2
  fi
  exec "$python" "$peers/bench_hf.py" --model "$models/smol135m" --dtype "$2" --pp "$3" --ctx "$3" --new "$4" --reps "$5" \
    --threads "$threads"
  ;;
openvino)
  needs_python openvino-genai bench_ov.py
  needs_gguf
  exec "$python" "$peers/bench_ov.py" --model "$EASYDEL_PEER_GGUF" --pp "$3" --ctx "$3" --new "$4" --reps "$5" --threads "$threads"
  ;;
llama_cpp)
  [ -x "${EASYDEL_PEER_LLAMA_BENCH:-}" ] || { echo "EASYDEL_PEER_LLAMA_BENCH names no program" >&2; exit 3; }
  needs_gguf
  measure() { "$EASYDEL_PEER_LLAMA_BENCH" -m "$EASYDEL_PEER_GGUF" -t "$threads" -r "$1" -o jsonl "${@:2}"; }
  { measure "$5" -p "$3" -n 0 && measure "$5" -p 0 -n "$4" -d "$3"; } | python3 -c '
import json, sys
for line in sys.stdin:
    if not line.startswith("{"):
        continue
    said = json.loads(line)
    times = sorted(said["samples_ts"])
    prompt, new, depth = said["n_prompt"], said["n_gen"], said["n_depth"]
    print(json.dumps({"test": f"pp{prompt}" if prompt else f"tg{new}@{depth}",
                      "tok_s": {"min": times[0], "median": times[len(times) // 2], "max": times[-1]}}))'
  ;;
*)
  echo "no peer '$1'" >&2
  exit 3
  ;;
esac

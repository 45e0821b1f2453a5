#!/usr/bin/env bash
# Another engine on SmolLM2-135M's shape, for generate_bench: peer_generate.sh transformers|openvino DTYPE CONTEXTS NEW RUNS,
# contexts with commas between them. Prints a JSON line for each figure.
# Needs the peer scripts (EASYDEL_PEERS, else ../shared/peers beside the repository), their tokenizers, and a Python
# (EASYDEL_PEER_PYTHON) with torch and transformers, or with openvino-genai. OpenVINO reads a GGUF file in f16 of the same
# model, EASYDEL_PEER_GGUF: it has no bf16 of those.
set -euo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
peers=${EASYDEL_PEERS:-$root/../shared/peers}
data=${EASYDEL_SHARED_DATA:-$root/../shared/data}
python=${EASYDEL_PEER_PYTHON:-}
[ -f "$peers/bench_hf.py" ] || { echo "no $peers/bench_hf.py" >&2; exit 3; }
[ -n "$python" ] || { echo "EASYDEL_PEER_PYTHON names no Python with $1" >&2; exit 3; }
case $1 in
transformers)
  models=${TMPDIR:-/tmp}/easydel-peer-models
  if [ ! -f "$models/smol135m/model.safetensors" ]; then
    "$python" "$peers/make_models.py" --tokenizers "$data/tokenizers" --out "$models" --which smol135m >&2
  fi
  exec "$python" "$peers/bench_hf.py" --model "$models/smol135m" --dtype "$2" --pp "$3" --ctx "$3" --new "$4" --reps "$5"
  ;;
openvino)
  [ -f "${EASYDEL_PEER_GGUF:-}" ] || { echo "EASYDEL_PEER_GGUF names no file" >&2; exit 3; }
  exec "$python" "$peers/bench_ov.py" --model "$EASYDEL_PEER_GGUF" --pp "$3" --ctx "$3" --new "$4" --reps "$5"
  ;;
*)
  echo "no peer '$1'" >&2
  exit 3
  ;;
esac

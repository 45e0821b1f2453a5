#!/usr/bin/env bash
# Runs TRL's trainer on SmolLM2-135M's shape, for train_bench: peer_trl.sh DTYPE ROWS LENGTH STEPS WARMUP. Prints one JSON line.
# Needs the peer scripts (EASYDEL_PEERS, else ../shared/peers next to the repository), their tokenizers, and a Python with
# torch, transformers, trl, peft, datasets and accelerate: EASYDEL_PEER_PYTHON. To make one:
#   python3 -m venv V; V/bin/pip install torch==2.13.0; V/bin/pip install transformers trl peft datasets accelerate
set -euo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
peers=${EASYDEL_PEERS:-$root/../shared/peers}
data=${EASYDEL_SHARED_DATA:-$root/../shared/data}
python=${EASYDEL_PEER_PYTHON:-}
[ -f "$peers/train_trl.py" ] || { echo "no $peers/train_trl.py" >&2; exit 3; }
[ -n "$python" ] || { echo "EASYDEL_PEER_PYTHON names no Python with TRL" >&2; exit 3; }
models=${TMPDIR:-/tmp}/easydel-peer-models
if [ ! -f "$models/smol135m/model.safetensors" ]; then
  "$python" "$peers/make_models.py" --tokenizers "$data/tokenizers" --out "$models" --which smol135m >&2
fi
exec "$python" "$peers/train_trl.py" --model "$models/smol135m" --data "$data/datasets/text/war_and_peace.txt" --method sft \
  --dtype "$1" --batch "$2" --seq "$3" --steps "$4" --warmup "$5"

#!/bin/sh
# Adapters become part of a model: writes a plain model folder for each of two mixtures of one adapter, and continues a text with them.
#   ./easydel.sh elarge examples/10_lora.yaml && sh examples/13_merge.sh
# Arguments, all optional: adapter, folder to write to, program.
set -eu
adapter=${1:-runs/lora/stories260K-hf/run-40/adapter}
out=${2:-runs/merge}
easydel=${3:-./easydel.sh}
model=tests/data/models/stories260K-hf

"$easydel" merge "$model" --adapter "$adapter" --out "$out/whole"
"$easydel" merge "$model" --adapter "$adapter:0.5" --out "$out/half"    # half of what the adapter learned

for name in whole half; do
  "$easydel" generate "$out/$name" -p "The old prince" --max-new-tokens 40
done

#!/bin/sh
# A model in 4 and 8 bits: writes the codes in the files of three libraries, says what they cost in perplexity, and continues a text with
# each. Takes under a minute on 2 cores.
#   sh examples/14_quantize.sh
# Arguments, all optional: folder to write to, program.
set -eu
out=${1:-runs/quantize}
easydel=${2:-./easydel.sh}
model=tests/data/models/stories260K-hf
text=tests/data/text/war_and_peace_held_out.txt

"$easydel" quantize "$model" --to nf4 --text "$text" --out "$out/nf4"           # bitsandbytes
"$easydel" quantize "$model" --to int8 --text "$text" --out "$out/int8"         # compressed-tensors
"$easydel" quantize "$model" --to q8_0 --out "$out/stories-q8_0.gguf"           # llama.cpp

for name in nf4 int8 stories-q8_0.gguf; do
  "$easydel" generate "$out/$name" -p "Once upon a time" --max-new-tokens 40
done

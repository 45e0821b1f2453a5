#!/usr/bin/env bash
# Runs the quickstart and the model goldens on a GPU:  scripts/gpu_smoke.sh [TORCH ...]
# Each TORCH is a folder site-packages/torch of a CUDA wheel (2.11 to 2.14); default: the torch of ./easydel.sh. Without a
# GPU, it only builds the program and says so.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

smoke() {  # $1: build folder
  local program=$1/bin/easydel
  "$program" doctor
  "$program" elarge examples/01_quickstart.yaml --set loader.device=gpu --set trainer.save_directory="$1/gpu_smoke"
  EASYDEL_TEST_DEVICE=gpu python3 scripts/run_tests.py --build "$1" Golden
}

have_gpu=no
if command -v nvidia-smi >/dev/null && nvidia-smi -L 2>/dev/null | grep -q '^GPU '; then
  have_gpu=yes
  nvidia-smi -L
fi

torches=("$@")
[ ${#torches[@]} -gt 0 ] || torches=("${EASYDEL_TORCH:-}")
for torch in "${torches[@]}"; do
  build=build-gpu
  if [ -n "$torch" ]; then
    version=$(sed -n "s/^__version__ = '\(.*\)'/\1/p" "$torch/version.py")
    build=build-gpu-${version%%+*}
    echo "torch $version in $torch"
  fi
  EASYDEL_TORCH=$torch EASYDEL_BUILD=$PWD/$build ./easydel.sh build
  if [ "$have_gpu" = yes ]; then
    smoke "$PWD/$build"
  else
    echo "no GPU on this machine: built, not run"
  fi
done

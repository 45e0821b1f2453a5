#!/usr/bin/env bash
# Installs what is missing, builds, then runs the program:  ./easydel.sh elarge examples/01_quickstart.yaml
#   ./easydel.sh test [filter]   builds and runs the tests (only those whose suite or name contains the filter); with
#                                --fuzz also searches with libFuzzer, and installs clang for it if possible; with --eval
#                                also runs lm-evaluation-harness, and installs it into the private environment
#   ./easydel.sh build           only installs and builds
#   ./easydel.sh format          runs clang-format on the sources
# Its own messages go to stderr. docs/environment.md lists the environment variables that it reads.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
build=${EASYDEL_BUILD:-$root/build}
venv=${EASYDEL_VENV:-$root/.venv}
torch_version=2.13.0
lm_eval_version=0.4.13
arrow_version=26.0.1
debian_packages=(g++ cmake ninja-build mold ccache pkg-config clang-format git ca-certificates python3 python3-venv
  libyaml-dev libsimdjson-dev zlib1g-dev libutf8proc-dev libonig-dev libcurl4-openssl-dev libssl-dev libcli11-dev libedit-dev
  libjpeg-dev libpng-dev libwebp-dev libgtest-dev)
# The first of these that is installed or that the system has: Asio's headers, from 1.81.
boost_packages=(libboost1.81-dev libboost1.83-dev libboost1.88-dev libboost1.90-dev)
# These only make the build faster, or are needed only by ./easydel.sh format, or to read images.
optional_packages=(mold ccache clang-format libjpeg-dev libpng-dev libwebp-dev)

say() { printf 'easydel.sh: %s\n' "$*" >&2; }
fail() {
  printf 'easydel.sh: %s\n' "$1" >&2
  [ $# -lt 2 ] || printf '    %s\n' "${@:2}" >&2
  exit 2
}

is_installed() { [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

missing_packages() {
  local package
  for package in "${debian_packages[@]}"; do
    is_installed "$package" || printf '%s\n' "$package"
  done
  for package in "${boost_packages[@]}"; do
    ! is_installed "$package" || return 0
  done
  for package in "${boost_packages[@]}"; do
    ! apt-cache show "$package" >/dev/null 2>&1 || { printf '%s\n' "$package"; return 0; }
  done
  printf '%s\n' "${boost_packages[0]}"
}

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  else
    sudo -n "$@"
  fi
}

install_packages() {
  if ! command -v dpkg-query >/dev/null; then
    say "this is not Debian or Ubuntu; the packages to install would be ${debian_packages[*]} ${boost_packages[0]}"
    return
  fi
  local missing needed=() package
  mapfile -t missing < <(missing_packages)
  [ ${#missing[@]} -gt 0 ] || return 0
  for package in "${missing[@]}"; do
    [[ " ${optional_packages[*]} " = *" $package "* ]] || needed+=("$package")
  done
  if [ "$(id -u)" = 0 ] || { command -v sudo >/dev/null && sudo -n true 2>/dev/null; }; then
    say "installing ${missing[*]}"
    local log
    log=$(mktemp)
    if { as_root env DEBIAN_FRONTEND=noninteractive apt-get -q update &&
      mapfile -t missing < <(missing_packages) &&  # which Boost there is, is known only now
      as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install "${missing[@]}"; } \
      >"$log" 2>&1 </dev/null; then
      rm -f "$log"
      return
    fi
    tail -n 15 "$log" >&2
    [ ${#needed[@]} -gt 0 ] || return 0  # nothing that is missing is needed
    fail "apt-get could not install ${needed[*]}" "its complete output is in $log"
  fi
  [ ${#needed[@]} -gt 0 ] || return 0
  fail "these Debian packages are missing: ${needed[*]}" "install them: sudo apt-get install ${missing[*]}"
}

# Installs clang with libFuzzer. Without it the search is skipped, so a failure here is not an error.
install_clang() {
  ! python3 "$root/tests/fuzz/fuzz_check.py" --compiler >/dev/null || return 0
  command -v apt-get >/dev/null || return 0
  [ "$(id -u)" = 0 ] || { command -v sudo >/dev/null && sudo -n true 2>/dev/null; } || return 0
  say "installing clang"
  { as_root timeout 120 apt-get -q update &&
    as_root timeout 600 env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install clang libclang-rt-dev; } \
    >/dev/null 2>&1 </dev/null || say "clang could not be installed: the search with libFuzzer is skipped"
}

# Evaluation alone needs it, so a failure here is not an error: its tests are skipped.
install_harness() {
  [ -z "${EASYDEL_PYTHON:-}" ] || return 0
  ! "$venv/bin/python" -c "import aiohttp, importlib.metadata as m, tenacity; assert m.version('lm_eval') == '$lm_eval_version'" 2>/dev/null || return 0
  say "installing lm_eval $lm_eval_version into ${venv#"$root"/}"
  local kept
  kept=$(mktemp)
  # What is installed keeps its version.
  { "$venv/bin/pip" freeze --disable-pip-version-check >"$kept" &&
    "$venv/bin/pip" install -q --disable-pip-version-check --retries 1 -c "$kept" "lm_eval[api]==$lm_eval_version"; } >&2 </dev/null ||
    say "lm_eval could not be installed: tests with it are skipped"
  rm -f "$kept"
}

# Prints the folder site-packages/torch: that of EASYDEL_TORCH or of the private venv.
find_torch() {
  if [ -n "${EASYDEL_TORCH:-}" ]; then
    printf '%s\n' "$EASYDEL_TORCH"
    return
  fi
  local found
  for found in "$venv"/lib/python3*/site-packages/torch; do
    if [ -d "$found/include/ATen" ] && [ -f "$venv/torch-is-whole" ]; then
      printf '%s\n' "$found"
      return
    fi
  done
}

install_torch() {
  [ -z "$(find_torch)" ] || return 0
  say "installing torch $torch_version into ${venv#"$root"/} (some hundred MB; once)"
  [ -x "$venv/bin/pip" ] || python3 -m venv "$venv" >&2
  # Torch is installed alone and first: together with other packages, an index may select another build of it.
  "$venv/bin/pip" install -q --disable-pip-version-check "torch==$torch_version" >&2 </dev/null ||
    fail "pip could not install torch $torch_version" "if torch is installed already, give its folder: EASYDEL_TORCH=.../site-packages/torch"
  "$venv/bin/pip" install -q --disable-pip-version-check numpy safetensors >&2 </dev/null ||
    say "numpy and safetensors could not be installed: tests that compare with them are skipped"
  touch "$venv/torch-is-whole"
}

# Prints the folder site-packages/pyarrow, whose libraries read Parquet and Arrow files: that of EASYDEL_ARROW, else next to
# torch, else in the private venv.
find_arrow() {
  local found
  for found in "${EASYDEL_ARROW:-}" "$(dirname -- "$(find_torch)")/pyarrow" "$venv"/lib/python3*/site-packages/pyarrow; do
    if [ -d "$found/include/arrow" ]; then
      printf '%s\n' "$found"
      return
    fi
  done
}

# Everything else works without it, so a failure here is not an error.
install_arrow() {
  [ -z "$(find_arrow)" ] || return 0
  say "installing pyarrow $arrow_version into ${venv#"$root"/}"
  { [ -x "$venv/bin/pip" ] || python3 -m venv "$venv"; } >&2 &&
    { "$venv/bin/pip" install -q --disable-pip-version-check --retries 1 "pyarrow==$arrow_version" ||
      "$venv/bin/pip" install -q --disable-pip-version-check --retries 1 "pyarrow>=23"; } >&2 </dev/null ||
    say "pyarrow could not be installed: Parquet and Arrow files cannot be read"
}

configure() {
  local wanted torch arrow
  torch=$(find_torch)
  arrow=$(find_arrow)
  # What the build folder was configured with; it is configured again if torch, Arrow, the compiler or an option changes.
  wanted="torch $torch; arrow $arrow; CXX ${CXX:-}; options ${EASYDEL_CMAKE:-}"
  if [ -f "$build/build.ninja" ] && [ "$(cat "$build/made-with" 2>/dev/null)" = "$wanted" ]; then
    return
  fi
  say "configuring"
  mkdir -p "$build"
  local log=$build/configure.log
  # shellcheck disable=SC2086  # EASYDEL_CMAKE is a list of options
  cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DEASYDEL_TORCH="$torch" -DEASYDEL_ARROW="$arrow" \
    ${EASYDEL_CMAKE:-} \
    >"$log" 2>&1 </dev/null || {
    tail -n 30 "$log" >&2
    fail "cmake could not configure" "its complete output is in $log"
  }
  printf '%s\n' "$wanted" >"$build/made-with"
}

# Builds the named targets (default: the program). Silent if nothing has to be built.
build() {
  local targets=("$@") shown started pid
  [ ${#targets[@]} -gt 0 ] || targets=(easydel)
  if [ -t 2 ]; then
    ninja -C "$build" "${targets[@]}" >&2 </dev/null || fail "the build failed"
    return
  fi
  shown=$build/build.log
  started=$SECONDS
  ninja -C "$build" "${targets[@]}" >"$shown" 2>&1 </dev/null &
  pid=$!
  while kill -0 "$pid" 2>/dev/null; do
    if [ $((SECONDS - started)) -ge 30 ]; then
      say "building $(grep -o '^\[[0-9]*/[0-9]*\]' "$shown" | tail -n 1)"
      started=$SECONDS
    fi
    sleep 0.2
  done
  wait "$pid" || {
    grep -v '^\[[0-9]*/[0-9]*\] ' "$shown" | tail -n 60 >&2
    fail "the build failed" "its complete output is in $shown"
  }
}

set_up() {
  [ -z "${EASYDEL_TORCH:-}" ] || [ -d "$EASYDEL_TORCH/include/ATen" ] ||
    fail "EASYDEL_TORCH=$EASYDEL_TORCH: no include/ATen in it" "give the folder site-packages/torch of an installed torch"
  [ -z "${EASYDEL_ARROW:-}" ] || [ -d "$EASYDEL_ARROW/include/arrow" ] ||
    fail "EASYDEL_ARROW=$EASYDEL_ARROW: no include/arrow in it" "give the folder site-packages/pyarrow of an installed pyarrow"
  # dpkg is queried again only if the list of packages or this script changed.
  local stamp=$build/set-up
  if [ ! "$stamp" -nt "${BASH_SOURCE[0]}" ] || [ ! -f "$build/build.ninja" ] || [ -z "$(find_torch)" ]; then
    install_packages
    [ -n "${EASYDEL_TORCH:-}" ] || install_torch
    install_arrow
    mkdir -p "$build"
  fi
  configure
  touch "$stamp"
}

case "${1:-}" in
  test)
    shift
    if [ -z "${EASYDEL_NO_BUILD:-}" ]; then
      set_up
      [[ " $* " != *" --fuzz "* ]] || install_clang
      [[ " $* " != *" --eval "* ]] || install_harness
      build all
    fi
    python=python3
    [ ! -f "$venv/torch-is-whole" ] || python=$venv/bin/python
    exec "$python" "$root/scripts/run_tests.py" --build "$build" "$@"
    ;;
  build)
    shift
    set_up
    build "${@:-all}"
    ;;
  format)
    cd "$root"
    formatter=$(command -v clang-format || command -v clang-format-14) ||
      fail "clang-format is not installed" "sudo apt-get install clang-format"
    git ls-files -z --cached --others --exclude-standard -- '*.h' '*.cpp' '*.cu' | xargs -0 "$formatter" -i
    ;;
  *)
    if [ -z "${EASYDEL_NO_BUILD:-}" ]; then
      set_up
      build
    fi
    exec "$build/bin/easydel" "$@"
    ;;
esac

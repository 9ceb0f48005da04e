#!/bin/sh
# start.sh: how long a start of `tfm translate` takes, in all and by parts (start.c): medians of RUNS starts, as CSV.
#   RUNS=20 sh tests/bench/start.sh [MODEL FOLDER]...        default: models/en-de
set -eu
cd "$(dirname "$0")/../.."
build=${TFM_BUILD:-build}
[ $# -gt 0 ] || set -- models/en-de
exec "$build/tests/bench/start" "${RUNS:-20}" "$build/tfm" "$@"

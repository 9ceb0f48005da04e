#!/bin/sh
# train.sh: training speed in source + target pieces a second (one </s> a sentence counted, no padding), Transformer-Tiny on
# Multi30k, joint BPE vocabulary of 10,000, dropout 0.3, about 4,096 target pieces an update: tfm and the PyTorch script of
# ../shared/peers/train in turns on the same machine, and the ratio of each pair.
#   RUNS=3 THREADS=2 sh tests/bench/train.sh
# Nothing else should run meanwhile. Needs ../shared (SKIP without) and what its setup.sh installs.
set -eu
cd "$(dirname "$0")/../.."
tfm=$(cd "${TFM_BUILD:-build}" && pwd)/tfm
shared=$(cd "${TFM_SHARED:-../shared}" 2>/dev/null && pwd) || { echo "SKIP: no ../shared"; exit 0; }
threads=${THREADS:-2} updates=${UPDATES:-40}
cache=${CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tfm-peers}
work=$cache/train
mkdir -p "$work"
cp "$shared"/peers/train/* "$work"/
(cd "$work" && VENV=$cache/venv DATA=$shared/data/multi30k PY=$cache/venv/bin/python SRC=$shared/peers/train bash setup.sh >&2)
blas=/usr/lib/x86_64-linux-gnu/openblas-openmp
model=$(mktemp -d)
trap 'rm -rf "$model"' EXIT

run_tfm() { # the last report: 10 updates of warm-up before it
    rm -rf "$model"
    "$tfm" train --preset tiny -t "$work/data/train.en" "$work/data/train.de" -m "$model" \
        -v "$work/spm/joint10k.spm" "$work/spm/joint10k.spm" --dropout 0.3 --mini-batch-words 4096 \
        --cpu-threads "$threads" --after "$((updates + 10))u" --disp-freq 10u --save-freq 1000000u 2>&1 |
        sed -n 's/.*: \([0-9.]*\) words\/s.*/\1/p' | tail -n +2 | awk '{ s += 1 / $1 } END { printf "%.0f\n", NR / s }'
}
run_torch() {
    (cd "$work" && env MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=2000000000 LD_LIBRARY_PATH=$blas \
        /usr/bin/python3 torch_train.py --skip 10 --every 10 --threads "$threads" --updates "$((updates + 10))" 2>&1) |
        sed -n 's/.*source+target_tokens\/s \([0-9]*\).*/\1/p'
}

echo "run,tfm,pytorch,ratio"
for run in $(seq "${RUNS:-3}"); do
    a=$(run_tfm)
    b=$(run_torch)
    echo "$run,$a,$b,$(awk -v a="$a" -v b="$b" 'BEGIN { printf "%.2f", a / b }')"
done

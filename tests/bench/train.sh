#!/bin/sh
# train.sh: speed and memory of training, tfm against the PyTorch script and the Marian of ../shared/peers/train, in turns on
# the same machine: source + target pieces a second (one </s> a sentence counted, no padding), MB of peak memory, the ratios
# of each turn. Multi30k, dropout 0.3, about 4,096 target pieces an update:
#     tiny  4+4 layers, D 128, F 256, H 4, joint BPE vocabulary of 10,000
#     base  6+6 layers, D 512, F 2048, H 8, joint vocabulary of 32,000
#   RUNS=3 THREADS=2 SHAPES="tiny base" PEERS="pytorch marian" sh tests/bench/train.sh
# tfm runs with its own products and, where the CPU has AMX, with --gemm bf16x3 as well; the peers' ratio is to the first.
# Nothing else should run meanwhile. Needs ../shared (SKIP without) and what its setup.sh installs. PyTorch gets the
# OpenBLAS kernels of AVX-512 where the CPU has that: left to itself OpenBLAS takes its slowest for a CPU it does not know.
set -eu
cd "$(dirname "$0")/../.."
tfm=$(cd "${TFM_BUILD:-build}" && pwd)/tfm
shared=$(cd "${TFM_SHARED:-../shared}" 2>/dev/null && pwd) || { echo "SKIP: no ../shared"; exit 0; }
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE
kernels=
grep -q avx512dq /proc/cpuinfo && kernels=OPENBLAS_CORETYPE=SkylakeX
threads=${THREADS:-2}
cache=${CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tfm-peers}
work=$cache/train
export VENV="$cache/venv" PY="$cache/venv/bin/python" DATA="$shared/data/multi30k" SRC="$shared/peers/train"
mkdir -p "$work"
cp "$SRC"/* "$work"/
cd "$work"
bash setup.sh >&2
[ -s spm/tatoeba32k.model ] || "$PY" - "$shared/data/tatoeba/train.en-de.tsv.gz" <<'PY'
import gzip, sys, sentencepiece
lines = (part for line in gzip.open(sys.argv[1], "rt", encoding="utf8") for part in line.rstrip("\n").split("\t")[:2])
sentencepiece.SentencePieceTrainer.train(sentence_iterator=lines, model_prefix="spm/tatoeba32k", vocab_size=32000, eos_id=0,
                                         unk_id=1, bos_id=-1, pad_id=-1, character_coverage=1.0, minloglevel=2)
PY
cp spm/tatoeba32k.model spm/tatoeba32k.spm
sed 's/D, H, FFN, L = 0, -1, 128, 4, 256, 4/D, H, FFN, L = 0, -1, 512, 8, 2048, 6/' torch_train.py >torch_base.py
model=$(mktemp -d)
trap 'rm -rf "$model"' EXIT

# timed LIMIT_S COMMAND...: its output goes to $model/log, its peak memory in MB to $model/mb
timed() {
    limit=$1
    shift
    rm -f timings.jsonl
    "$PY" timed.py bench "$model/log" "$limit" 20000 "$@" >/dev/null
    sed 's/.*"maxrss_mb": \([0-9]*\).*/\1/' timings.jsonl >"$model/mb"
}

# sizes SHAPE: its vocabulary, layers and widths
sizes() {
    vocab=spm/joint10k layers=4 width=128 inner=256 heads=4 updates=${UPDATES:-50} skip=10
    [ "$1" = tiny ] || vocab=spm/tatoeba32k layers=6 width=512 inner=2048 heads=8 updates=${UPDATES_BASE:-10} skip=2
}

# Each prints its speed. run_tfm SHAPE GEMM
run_tfm() {
    timed 900 "$tfm" train --preset "$1" --positions sinusoidal -t data/train.en data/train.de -m "$model/tfm" \
        -v "$vocab.spm" "$vocab.spm" --dropout 0.3 --mini-batch-words 4096 --cpu-threads "$threads" --after "$((updates + skip))u" --disp-freq "${skip}u" --save-freq 1000000u --gemm "$2"
    rm -rf "$model/tfm"
    sed -n 's/.*: \([0-9.]*\) words\/s.*/\1/p' "$model/log" | tail -n +2 | awk '{ s += 1 / $1 } END { if (s > 0) printf "%.0f\n", NR / s }'
}

run_pytorch() {
    script=torch_train.py
    [ "$1" = tiny ] || script=torch_base.py
    # shellcheck disable=SC2086 # or nothing
    timed 900 env $kernels MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=2000000000 LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu/openblas-openmp \
        /usr/bin/python3 "$script" --spm "$vocab.model" --skip "$skip" --every 10 --threads "$threads" --updates "$((updates + skip))"
    sed -n 's/.*source+target_tokens\/s \([0-9]*\).*/\1/p' "$model/log"
}

# Marian counts target pieces alone; the source's are as many in proportion as in the whole corpus.
run_marian() {
    mkdir -p "$model/marian"
    timed 900 "$PY" marian.py train --type transformer --enc-depth "$layers" --dec-depth "$layers" --dim-emb "$width" \
        --transformer-dim-ffn "$inner" --transformer-heads "$heads" --transformer-dropout 0.3 --transformer-ffn-activation relu \
        --tied-embeddings-all --label-smoothing 0.1 --learn-rate 0.005 --lr-warmup 2000 --lr-decay-inv-sqrt 2000 \
        --optimizer-params 0.9 0.98 1e-9 --clip-norm 0 --cost-type ce-sum --mini-batch 1000 --mini-batch-words 4096 --maxi-batch 100 \
        --max-length 200 --cpu-threads "$threads" -w 3000 --sync-sgd --train-sets data/train.en data/train.de \
        --vocabs "$vocab.spm" "$vocab.spm" --model "$model/marian/model.npz" --disp-freq "${skip}u" --disp-label-counts \
        --after "$((updates / 2 + skip))u" --seed 1 --shuffle-in-ram --data-threads 1
    rm -rf "$model/marian"
    share=$("$PY" - "$vocab.model" <<'PY'
import sys, sentencepiece
p = sentencepiece.SentencePieceProcessor(model_file=sys.argv[1])
n = [sum(len(p.encode(line)) + 1 for line in open(f"data/train.{side}", encoding="utf8")) for side in ("en", "de")]
print(sum(n) / n[1])
PY
)
    sed -n 's/.*\* \([0-9,]*\) @.*Time \([0-9.]*\)s.*/\1 \2/p' "$model/log" | tr -d , | tail -n +2 |
        awk -v share="$share" '{ n += $1; s += $2 } END { if (s > 0) printf "%.0f\n", n / s * share }'
}

# ratio A B: their quotient
ratio() {
    awk -v a="$1" -v b="$2" 'BEGIN { if (a > 0 && b > 0) printf "%.2f", a / b; else printf "failed" }'
}

echo "# $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1), $threads threads"
echo "shape,run,trainer,pieces_per_second,peak_mb,tfm_ratio"
for shape in ${SHAPES:-tiny base}; do
    sizes "$shape"
    for run in $(seq "${RUNS:-3}"); do
        speed=$(run_tfm "$shape" own)
        echo "$shape,$run,tfm,$speed,$(cat "$model/mb"),1"
        if grep -q amx_bf16 /proc/cpuinfo; then
            fast=$(run_tfm "$shape" bf16x3)
            echo "$shape,$run,tfm --gemm bf16x3,$fast,$(cat "$model/mb"),$(ratio "$speed" "$fast")"
        fi
        for peer in ${PEERS:-pytorch marian}; do
            other=$("run_$peer" "$shape")
            echo "$shape,$run,$peer,$other,$(cat "$model/mb"),$(ratio "$speed" "${other:-0}")"
        done
    done
done

"""CTranslate2 on a file: prints seconds, seconds of processor time (both without loading the model) and MB of peak memory.

    python ctranslate2_run.py MODEL TYPE THREADS BEAM BATCH IN OUT [PIECES]

TYPE: int8 or float32. PIECES: exactly so many pieces come out of each line; without it, what the model says.
"""
import os
import resource
import sys
import time

model, kind, threads, beam, batch, source, target = sys.argv[1:8]
os.environ["OMP_NUM_THREADS"] = threads
import ctranslate2  # noqa: E402: it reads the number of threads
import sentencepiece  # noqa: E402

vocabulary = sentencepiece.SentencePieceProcessor(model_file=os.path.join(model, "vocab.spm"))
# Whichever way of using the threads is faster: batches side by side.
translator = ctranslate2.Translator(model, device="cpu", compute_type=kind, inter_threads=int(threads), intra_threads=1)
lines = [line.rstrip("\n") for line in open(source, encoding="utf8")]
limits = {"max_decoding_length": 512}
if len(sys.argv) > 8:
    limits = {"min_decoding_length": int(sys.argv[8]), "max_decoding_length": int(sys.argv[8])}
translator.translate_batch([vocabulary.encode(lines[0], out_type=str)], beam_size=1, **limits)
began, cpu = time.perf_counter(), time.process_time()
pieces = [vocabulary.encode(line, out_type=str) for line in lines]
results = translator.translate_batch(pieces, beam_size=int(beam), max_batch_size=int(batch), batch_type="examples", **limits)
texts = [vocabulary.decode(result.hypotheses[0]) for result in results]
seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
open(target, "w", encoding="utf8").write("".join(text + "\n" for text in texts))
print("%.3f %.3f %.0f" % (seconds, cpu, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))

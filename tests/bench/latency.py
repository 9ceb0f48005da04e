"""The time from a line written to a program to its answer: median and 95th percentile in ms, over the first N lines.

    python latency.py N FILE COMMAND...        the command answers each line of its standard input with a line
"""
import statistics
import subprocess
import sys
import time

n, path, command = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
lines = open(path, "rb").read().splitlines(keepends=True)[:n]
program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
times = []
for line in lines[:1] + lines:  # the first one waits for the model, too
    began = time.perf_counter()
    program.stdin.write(line)
    program.stdin.flush()
    program.stdout.readline()
    times.append(1000 * (time.perf_counter() - began))
program.stdin.close()
program.wait()
print("%.2f %.2f" % (statistics.median(times[1:]), sorted(times[1:])[int(0.95 * len(times[1:]))]))

"""Measures Debian's yaql over the expressions that come in, and says for each how long it takes and what it gives.

Reads JSON lines: {"document": ..., "seconds": s}, then {"kind", "name", "text"} for each expression, and answers each of these with one
of {"name", "ns", "result"} or {"name", "error"} before it reads the next.
"""
import json
import sys
import time

import yaql
from yaql.language import factory


def measure(function, seconds):
    """Calls the function until the time is over; returns the best mean of three rounds, in
    nanoseconds of processor time, and the last result."""
    result = function()
    best = None
    for _ in range(3):
        count, began = 0, time.process_time()
        while True:
            result = function()
            count += 1
            passed = time.process_time() - began
            if passed >= seconds / 3:
                break
        mean = passed / count * 1e9
        best = mean if best is None else min(best, mean)
    return best, result


def main():
    job = json.loads(sys.stdin.readline())
    engine = factory.YaqlFactory().create(options={"yaql.limitIterators": 10000, "yaql.memoryQuota": 16 << 20})
    context = yaql.create_context()
    for line in iter(sys.stdin.readline, ""):
        item = json.loads(line)
        out = {"name": item["name"]}
        try:
            if item["kind"] == "parse":
                out["ns"], _ = measure(lambda: engine(item["text"]), job["seconds"])
            else:
                data = job["document"] if item["kind"] == "records" else None
                expression = engine(item["text"])
                out["ns"], out["result"] = measure(
                    lambda: expression.evaluate(data=data, context=context.create_child_context()), job["seconds"])
        except Exception as problem:
            out["error"] = "%s: %s" % (type(problem).__name__, problem)
        print(json.dumps(out), flush=True)


main()

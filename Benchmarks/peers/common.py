"""What the peers in Python share: the text transform, and the measured JSON line."""

import json
import sys
import time


def reversed_words(text):
    """'a b c' becomes 'c b a'."""
    return " ".join(text.split(" ")[::-1])


def run(operations):
    """Runs 'SCRIPT OPERATION PATH' and prints the seconds of the work, without imports and process start."""
    if len(sys.argv) != 3 or sys.argv[1] not in operations:
        sys.exit(f"usage: {sys.argv[0]} {'|'.join(operations)} PATH")
    start = time.perf_counter()
    operations[sys.argv[1]](sys.argv[2])
    print(json.dumps({"operation": sys.argv[1], "s": time.perf_counter() - start}))

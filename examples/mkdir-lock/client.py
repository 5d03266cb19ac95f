"""A lock that scripts use: whoever makes the folder has it. The tutorial is docs/tutorials/python.md."""
import json
import os
import sys
import time


def acquire(path, ttl):
    try:
        os.mkdir(path)
        return {"ok": {}}
    except FileExistsError:
        pass
    try:
        if ttl and time.time() - os.stat(path).st_mtime > ttl:
            os.rmdir(path)  # its holder must be dead
    except FileNotFoundError:
        pass
    return {"busy": {}}


def release(path):
    try:
        os.rmdir(path)
        return {"ok": {}}
    except FileNotFoundError:
        return {"not_held": {}}


for line in sys.stdin:
    q = json.loads(line)
    if q["op"] == "cancel":
        continue
    elif q["op"] == "hello":
        folder = q["folder"]
        answer = {"ok": {"protocol": 1, "client": "mkdir-lock 1", "now": time.monotonic_ns()}}
    elif q["op"] == "acquire":
        answer = acquire(os.path.join(folder, q["key"] + ".lock"), q["ttl_ms"] / 1000)
    elif q["op"] == "release":
        answer = release(os.path.join(folder, q["key"] + ".lock"))
    else:
        answer = {"error": {"effect": "none", "text": "not supported: " + q["op"]}}
    print(json.dumps({"id": q["id"], **answer}), flush=True)

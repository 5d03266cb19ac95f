"""Locks of tooz, as its documentation uses them, for lockcheck. URL names the backend."""
import json
import os
import sys
import time
from importlib.metadata import version

from tooz import coordination

held = {}  # locks by attempt


def acquire(q):
    lock = coordinator.get_lock(q["key"].encode())
    if q["wait_ms"] == 0:
        acquired = lock.acquire(blocking=False)
    else:
        acquired = lock.acquire(timeout=q["wait_ms"] // 1000)
    if not acquired:
        return {"busy": {}}
    held[q["attempt"]] = lock
    return {"ok": {}}


def release(q):
    lock = held.pop(q["attempt"], None)
    if lock is None:
        return {"error": {"text": "this client does not have it"}}
    return {"ok": {}} if lock.release() else {"not_held": {}}


def hello(q):
    global coordinator
    url = os.environ["URL"].format(ttl=q["ttl_ms"] // 1000, **q["servers"][0])
    coordinator = coordination.get_coordinator(url, q["worker"].encode())
    coordinator.start(start_heart=True)
    return {"ok": {"protocol": 1, "client": "tooz " + version("tooz"), "now": time.monotonic_ns()}}


def unknown(q):
    return {"error": {"effect": "none", "text": "not supported: " + q["op"]}}


operations = {"hello": hello, "acquire": acquire, "release": release}

for line in sys.stdin:
    q = json.loads(line)
    if q["op"] == "cancel":
        continue
    try:
        answer = operations.get(q["op"], unknown)(q)
    except Exception as e:  # not ToozError alone: its etcd driver lets those of etcd3gw through
        answer = {"error": {"text": repr(e)}}
    print(json.dumps({"id": q["id"], **answer}), flush=True)

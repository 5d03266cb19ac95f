"""Holds two locks on one connection; to release the inner one frees everything of this owner (the kind of
DistributedLock #123)."""
import time
from table import RIGHT, Lock, connect, do, say

db = connect()
n, process = 0, time.time_ns()


def release(lock):
    if RIGHT:
        return lock.release()
    db.execute("DELETE FROM locks WHERE owner IN (?, ?)", (orders.owner, audit.owner))


while True:
    time.sleep(0.05)
    orders, audit = Lock(db, "orders", lease=30), Lock(db, "audit", lease=30)
    if not orders.acquire():
        continue
    say("acquired orders")
    if audit.acquire():
        say("acquired audit")
        time.sleep(0.05)
        say("releasing audit")
        release(audit)
    time.sleep(0.2)
    n += 1
    do(db, f"{process}-{n}")
    say("releasing orders")
    release(orders)

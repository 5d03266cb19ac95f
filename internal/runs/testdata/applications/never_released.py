"""An error path returns without a release (the kind of blnk #354): everybody waits until the lease is over."""
import time
from table import RIGHT, Lock, connect, do, say

db = connect()
n, process = 0, time.time_ns()


def section(lock):
    global n
    say("acquired ledger")
    n += 1
    do(db, f"{process}-{n}")
    if n % 2 == 0:
        raise ValueError("insufficient funds")
    say("releasing ledger")
    lock.release()


while True:
    time.sleep(0.05)
    lock = Lock(db, "ledger", lease=30)
    if not lock.acquire():
        continue
    try:
        section(lock)
    except ValueError:
        if RIGHT:
            say("releasing ledger")
            lock.release()

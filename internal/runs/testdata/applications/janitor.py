"""A janitor deletes what it takes for locks of the dead (the kind of sidekiq-unique-jobs #488)."""
import threading, time
from table import RIGHT, Lock, connect, do, say

n, process = 0, time.time_ns()


def janitor():
    db = connect()
    while True:
        time.sleep(0.1)
        if RIGHT:
            db.execute("DELETE FROM locks WHERE until < ?", (time.time(),))
        else:  # a job takes no time to speak of, so a lock that was taken 0.2 s ago is of no use
            db.execute("DELETE FROM locks WHERE until < ?", (time.time() + 29.8,))


threading.Thread(target=janitor, daemon=True).start()
db = connect()
while True:
    time.sleep(0.05)
    lock = Lock(db, "job", lease=30)
    if not lock.acquire():
        continue
    say("acquired job")
    time.sleep(0.5)
    n += 1
    do(db, f"{process}-{n}")
    say("releasing job")
    lock.release()

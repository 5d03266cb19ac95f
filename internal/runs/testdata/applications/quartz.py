"""A job scheduler that chooses the next job before it has the lock (the kind of Quartz #107)."""
import os, time
from table import RIGHT, Lock, connect, do, say

db = connect()


def next_job():
    """The first job of which nobody has noted that it ran; one is due each 100 ms."""
    done = db.execute("SELECT count(DISTINCT id) FROM done").fetchone()[0]
    return f"job-{done + 1}"


while True:
    time.sleep(0.1)
    job = next_job()
    lock = Lock(db, "scheduler", lease=float(os.environ.get("LEASE", "30")))
    if not lock.acquire():
        continue
    say("acquired scheduler")
    if RIGHT:
        job = next_job()
    time.sleep(0.05)
    do(db, job)
    say("releasing scheduler")
    lock.release()

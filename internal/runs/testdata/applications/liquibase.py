"""A migration tool that every replica runs as it starts. It lists what is missing before it waits for the lock (the
kind of Liquibase #2816)."""
import time
from table import RIGHT, Lock, connect, do, say

db = connect()


def missing():
    applied = {row[0] for row in db.execute("SELECT id FROM done")}
    return [f"change-{n}" for n in range(1, 21) if f"change-{n}" not in applied]


changes = missing()
time.sleep(0.5)  # it connects, reads its files, and so on
lock = Lock(db, "changelog", lease=30)
lock.acquire(wait=60)
say("acquired changelog")
if RIGHT:
    changes = missing()
for change in changes:
    do(db, change)
    time.sleep(0.02)
say("releasing changelog")
lock.release()

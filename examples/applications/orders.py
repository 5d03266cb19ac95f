"""The load of billing.py: customers order."""
import time
from billing import connect

db = connect()
while True:
    db.execute("INSERT INTO orders DEFAULT VALUES RETURNING job")
    print("accepted", *db.fetchone())
    time.sleep(0.3)

"""Bills every order. A lock in Redis is to make sure that one replica at a time does so."""
import os, time
import psycopg2, redis

RIGHT = os.environ.get("FORM") == "right"
INSERT = "INSERT INTO bills VALUES (%s)"


def connect():
    connection = psycopg2.connect(os.environ["DATABASE_URL"])
    connection.autocommit = True
    return connection.cursor()


def bill(db, job):
    time.sleep(0.1)  # adds up what the customer has to pay
    db.execute(INSERT, [job])
    if db.rowcount == 1:
        print("billed", job)


def bill_all(db):
    db.execute("SELECT job FROM orders EXCEPT SELECT job FROM bills ORDER BY job LIMIT 8")
    jobs = db.fetchall()
    time.sleep(0.2)  # looks up prices
    for (job,) in jobs:
        bill(db, job)


if __name__ == "__main__":
    db, locks = connect(), redis.Redis(host="redis")
    if RIGHT:
        INSERT += " ON CONFLICT DO NOTHING"
        db.execute("SELECT pg_advisory_xact_lock(1); CREATE UNIQUE INDEX IF NOT EXISTS once ON bills (job)")
    while True:
        time.sleep(1)  # until the next night
        try:
            with locks.lock("billing", timeout=3):
                print("acquired billing")
                bill_all(db)
                print("releasing billing")
        except redis.exceptions.LockError as lost:
            print("not released:", lost)

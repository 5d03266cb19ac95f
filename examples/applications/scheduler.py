"""Runs each job when it is due. Schedulers lock a row of a table, as Quartz does."""
import os, time
import psycopg2

RIGHT = os.environ.get("FORM") == "right"

connection = psycopg2.connect(os.environ["DATABASE_URL"])
db = connection.cursor()


def next_job():
    db.execute("SELECT job, next_fire FROM triggers WHERE next_fire <= now() ORDER BY next_fire, job LIMIT 1")
    return db.fetchone()


def run(job, fire):
    time.sleep(0.15)  # the job itself
    print(f"ran {job}@{fire:%T.%f}")
    db.execute("INSERT INTO runs VALUES (%s, %s)", [job, fire])
    db.execute("UPDATE triggers SET next_fire = %s + interval '1 second' WHERE job = %s", [fire, job])


while True:
    chosen = next_job()
    connection.commit()
    if chosen:
        db.execute("SELECT name FROM locks WHERE name = 'scheduler' FOR UPDATE")
        print("acquired scheduler")
        if RIGHT:
            chosen = next_job()
        if chosen:
            run(*chosen)
        print("releasing scheduler")
        connection.commit()
    else:
        time.sleep(0.05)

"""A lock table in SQLite, and what the applications of this folder share."""
import os, sqlite3, sys, time, uuid

RIGHT = os.environ.get("FORM") == "right"


def connect():
    db = sqlite3.connect(os.environ["LOCKCHECK_SHARED"] + "/data.db", timeout=20, isolation_level=None)
    db.execute("CREATE TABLE IF NOT EXISTS locks (name TEXT PRIMARY KEY, owner TEXT, until REAL)")
    db.execute("CREATE TABLE IF NOT EXISTS done (id TEXT, at REAL)")
    return db


def say(text):
    print(text, flush=True)


class Lock:
    """One lock of the table, with a lease."""

    def __init__(self, db, name, lease=3.0):
        self.db, self.name, self.lease, self.owner = db, name, lease, None

    def acquire(self, wait=10.0):
        owner, end = uuid.uuid4().hex, time.time() + wait
        while time.time() < end:
            taken = self.db.execute(
                "INSERT INTO locks VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, until = excluded.until WHERE until < ?",
                (self.name, owner, time.time() + self.lease, time.time()),
            ).rowcount
            if taken:
                self.owner = owner
                return True
            time.sleep(0.02)
        return False

    def release(self):
        if self.owner:
            self.db.execute("DELETE FROM locks WHERE name = ? AND owner = ?", (self.name, self.owner))
        self.owner = None


def do(db, id):
    """Does a piece of work that must be done once."""
    db.execute("INSERT INTO done VALUES (?, ?)", (id, time.time()))
    say(f"did {id}")


def answer(query, *values):
    """Prints the rows of a query, and exits as an invariant of an app file does."""
    rows = connect().execute(query, values).fetchall()
    for row in rows:
        print(*row, sep="\t")
    sys.exit(1 if rows else 0)


if sys.argv[1:] == ["twice"]:
    answer("SELECT id FROM done GROUP BY id HAVING count(*) > 1")
if sys.argv[1:] == ["idle"]:  # nothing was done for 3 seconds
    answer("SELECT max(at) FROM done HAVING max(at) < ?", time.time() - 3)

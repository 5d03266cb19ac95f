"""A counter in lockcheck's resource, which each replica reads and writes back larger by one."""
import fcntl, os, time, urllib.error, urllib.request

FORM = os.environ.get("FORM")
n, process = 0, time.time_ns()


def resource(method, key, body=None, **headers):
    """Sends a request, and returns status, version and value."""
    url = os.environ["LOCKCHECK_RESOURCE"] + "/" + key
    request = urllib.request.Request(url, None if body is None else body.encode(), {k.replace("_", "-"): v for k, v in headers.items()}, method=method)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, answer.headers["Version"], answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.headers["Version"], ""


def increment(lock):
    _, version, value = resource("GET", "counter")
    if FORM == "wrong":  # the lock is given back before the new value is stored
        fcntl.flock(lock, fcntl.LOCK_UN)
    time.sleep(0.01)
    headers = {"If_Match": f'"{version}"'} if FORM == "versions" else {}
    return resource("PUT", "counter", str(int(value or 0) + 1), **headers)[0] == 204


with open(os.environ.get("LOCKCHECK_SHARED", "/tmp") + "/lock", "w") as lock:
    while True:
        time.sleep(0.02)
        if FORM != "versions":
            fcntl.flock(lock, fcntl.LOCK_EX)
        if increment(lock):
            n += 1
            resource("POST", "done", f"{process}-{n}")
        if FORM != "versions":
            fcntl.flock(lock, fcntl.LOCK_UN)

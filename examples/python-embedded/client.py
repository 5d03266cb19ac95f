"""A lock client for lockcheck, of the lock service that lockcheck embeds. No library is needed."""
import http.client
import json
import socket
import sys
import time


class Connection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(path)


def call(method, q):
    connection = Connection("service")
    body = {"key": q["key"], "id": q["attempt"], "ttl_ns": q.get("ttl_ms", 0) * 1_000_000}
    connection.request("POST", "/" + method, json.dumps(body))
    return json.load(connection.getresponse())


for line in sys.stdin:
    q = json.loads(line)
    now = time.monotonic_ns()
    if q["op"] == "cancel":
        continue
    elif q["op"] == "hello":
        path = q["servers"][0]["socket"]
        answer = {"ok": {"protocol": 1, "client": "embedded 1.0", "now": now}}
    elif q["op"] == "acquire":
        r = call("acquire", q)
        until = now + q["ttl_ms"] * 1_000_000
        answer = {"ok": {"token": r["token"], "until": until}} if r["done"] else {"busy": {"holder": r["holder"]}}
    elif q["op"] in ("renew", "release"):
        answer = {"ok": {}} if call(q["op"], q)["done"] else {"not_held": {}}
    elif q["op"] == "holds":
        answer = {"ok": {"holds": call("holder", q)["done"]}}
    else:
        answer = {"error": {"effect": "none", "text": "not supported: " + q["op"]}}
    print(json.dumps({"id": q["id"], **answer}), flush=True)

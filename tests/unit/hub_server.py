"""A stub of the hub on loopback: data-set files with commits and hashes, and faults on demand."""

import hashlib
import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote

COMMIT = "1" * 40


class Hub:
    """What the stub serves: `files` by path; `faults` are taken one per request until empty.

    A fault is a status code, ("error", status, hub error code), "slow" (no answer before the
    next request comes) or "cut" (a body that ends half way).
    """

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.commit = COMMIT
        self.lacking: set[str] = set()  # revisions that there are not
        self.faults: dict[str, list] = {"HEAD": [], "GET": []}
        self.asked: list[tuple[str, str, str | None]] = []
        self.endpoint = ""
        self.lost_patience = threading.Event()

    def requests(self) -> Counter:
        """How many requests of each method came."""
        return Counter(method for method, _, _ in self.asked)


@contextmanager
def serve() -> Iterator[Hub]:
    """Run a stub while the block lasts."""
    hub = Hub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(hub))
    server.daemon_threads = True
    hub.endpoint = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(hub: Hub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self._answer(body=False)

        def do_GET(self) -> None:
            self._answer(body=True)

        def _answer(self, body: bool) -> None:
            hub.asked.append((self.command, self.path, self.headers.get("Range")))
            faults = hub.faults[self.command]
            fault = faults.pop(0) if faults else None
            if fault == "slow":
                hub.lost_patience.wait(300)
            hub.lost_patience.set()
            if isinstance(fault, int):
                return self._refuse(fault)
            if isinstance(fault, tuple):
                return self._refuse(*fault[1:])
            if self.path.startswith("/api/datasets/"):
                return self._tell(*self.path.partition("?")[0].split("/")[3:])
            repository, _, rest = self.path.partition("/resolve/")
            name = unquote(rest).split("/", 1)[-1] if "refs" not in rest else rest.split("/", 1)[1]
            if not repository.endswith("someone/data"):
                return self._refuse(404, "RepoNotFound")
            if name not in hub.files:
                return self._refuse(404, "EntryNotFound")
            return self._send(hub.files[name], body, cut=fault == "cut")

        def do_POST(self) -> None:
            """What is at some paths, as asked in a form or as JSON."""
            hub.asked.append((self.command, self.path, None))
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            asked = json.loads(body) if body.startswith("{") else parse_qs(body)
            found = [entry for entry in self._entries() if entry["path"] in asked["paths"]]
            self._send(json.dumps(found).encode(), body=True, cut=False)

        def _tell(self, owner: str, name: str, what: str, revision: str, *below: str) -> None:
            """The state of the repository, or its files and folders."""
            if (owner, name) != ("someone", "data"):
                return self._refuse(404, "RepoNotFound")
            if unquote(revision) in hub.lacking:
                return self._refuse(404, "RevisionNotFound")
            if what == "revision":
                told = {"id": "someone/data", "sha": hub.commit, "private": False, "tags": []}
                files = [{"rfilename": path} for path in hub.files]
                told |= {"gated": False, "downloads": 0, "likes": 0, "siblings": files}
                return self._send(json.dumps(told).encode(), body=True, cut=False)
            start = "".join(f"{part}/" for part in below)
            inside = [entry for entry in self._entries() if entry["path"].startswith(start)]
            return self._send(json.dumps(inside).encode(), body=True, cut=False)

        def _entries(self) -> list[dict]:
            """All files and folders of the repository."""
            parts = [path.split("/") for path in hub.files]
            folders = {"/".join(part[:i]) for part in parts for i in range(1, len(part))}
            entries: list[dict] = [{"type": "directory", "path": p, "oid": p} for p in folders]
            for path, content in hub.files.items():
                entries.append({"type": "file", "path": path, "oid": path, "size": len(content)})
            return entries

        def _send(self, content: bytes, body: bool, cut: bool) -> None:
            start = 0
            if body and self.headers.get("Range"):
                start = int(self.headers["Range"].removeprefix("bytes=").split("-")[0])
            rest = content[start:]
            self.send_response(206 if start else 200)
            self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
            self.send_header("X-Repo-Commit", hub.commit)
            self.send_header("Content-Length", str(len(rest)))
            if start:
                self.send_header(
                    "Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}"
                )
            self.end_headers()
            if body:
                self.wfile.write(rest[: len(rest) // 2] if cut else rest)
            if cut:
                self.close_connection = True

        def _refuse(self, status: int, code: str | None = None) -> None:
            self.send_response(status)
            if code:
                self.send_header("X-Error-Code", code)
                self.send_header("X-Error-Message", code)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    return Handler

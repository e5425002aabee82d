"""A headless Chromium driven through its debugging pipe: no package needed beside the browser."""

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
SWITCHES = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
    "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--disable-extensions", "--remote-debugging-pipe",
)  # fmt: skip
START = """
import fcntl, os, sys
given, taken = (fcntl.fcntl(int(fd), fcntl.F_DUPFD, 10) for fd in sys.argv[1:3])
os.dup2(given, 3)  # where the browser reads and writes
os.dup2(taken, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
PATIENCE = 300  # seconds for an answer on a busy machine
KEYS = {
    "Tab": 9, "Enter": 13, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40,
}  # fmt: skip


def browser() -> str | None:
    """Path of an installed Chromium, if there is one."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


needed = pytest.mark.skipif(browser() is None, reason="no Chromium is installed here")


class Page:
    """One tab; `errors` collects console errors, exceptions and failed or outside requests."""

    def __init__(self, folder):
        to_browser, from_browser = os.pipe(), os.pipe()
        given, taken = to_browser[0], from_browser[1]
        call = [browser(), *SWITCHES, f"--user-data-dir={folder}", "about:blank"]
        self.process = subprocess.Popen(
            [sys.executable, "-c", START, str(given), str(taken), *call],
            pass_fds=(given, taken), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(given)
        os.close(taken)
        self.input, self.output = os.fdopen(to_browser[1], "wb"), from_browser[0]
        self.count, self.buffer, self.session, self.errors, self.loaded = 0, b"", None, [], 0
        targets = self("Target.getTargets")["targetInfos"]
        target = next(t for t in targets if t["type"] == "page")["targetId"]
        self.session = self("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self(f"{domain}.enable")

    def __call__(self, method, **parameters):
        """Send a command and wait for its result; events on the way are noted."""
        self.count += 1
        message = {"id": self.count, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        self.input.write(json.dumps(message).encode() + b"\0")
        self.input.flush()
        while True:
            answer = self._next()
            if answer.get("id") == self.count:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def _next(self):
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.output], [], [], PATIENCE)
            chunk = os.read(self.output, 1 << 20) if ready else b""
            if not chunk:
                raise RuntimeError("the browser said nothing more")
            self.buffer += chunk
        line, _, self.buffer = self.buffer.partition(b"\0")
        message = json.loads(line)
        self._note(message.get("method"), message.get("params", {}))
        return message

    def _note(self, event, facts):
        if event == "Page.loadEventFired":
            self.loaded += 1
        elif event == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(facts["exceptionDetails"])[:500])
        elif event == "Runtime.consoleAPICalled" and facts["type"] in ("error", "warning"):
            self.errors.append(json.dumps(facts["args"])[:500])
        elif event == "Log.entryAdded" and facts["entry"]["level"] in ("error", "warning"):
            self.errors.append(facts["entry"]["text"])
        elif event == "Network.requestWillBeSent":
            address = facts["request"]["url"]
            if not address.startswith(("file:", "data:", "about:")):
                self.errors.append(f"asked the network for {address[:100]}")

    def open(self, path, width, height=900, dark=False, place="", media="", script=True):
        """Load a file at a width in CSS pixels, in light or dark, at a place such as "#main".

        media: "print" shows it as on paper; script: whether scripts run.
        """
        self("Emulation.setDeviceMetricsOverride", width=width, height=height,
             deviceScaleFactor=1, mobile=False)  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self("Emulation.setEmulatedMedia", media=media, features=[scheme])
        self("Emulation.setScriptExecutionDisabled", value=not script)
        for address in ("about:blank", path.resolve().as_uri() + place):  # never a mere jump
            before = self.loaded
            self("Page.navigate", url=address)
            while self.loaded == before:
                self._next()

    def run(self, script):
        """Value of a JavaScript expression."""
        result = self("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(json.dumps(result["exceptionDetails"])[:800])
        return result["result"].get("value")

    def wait(self, script):
        """Run a JavaScript expression until it is true."""
        end = time.monotonic() + PATIENCE
        while not self.run(script):
            if time.monotonic() > end:
                raise RuntimeError(f"not in {PATIENCE} s: {script}")
            time.sleep(0.02)

    def press(self, *keys):
        """Press and release keys one after the other, each one of KEYS."""
        for key in keys:
            text = {"text": "\r"} if key == "Enter" else {}
            for kind in ("keyDown", "keyUp"):
                self("Input.dispatchKeyEvent", type=kind, key=key, code=key,
                     windowsVirtualKeyCode=KEYS[key],
                     **(text if kind == "keyDown" else {}))  # fmt: skip

    def point(self, element, click=False):
        """Move the mouse to the middle of a JavaScript expression's element; perhaps click it."""
        x, y = self.run(
            f"(e => {{ e.scrollIntoView({{block: 'center', behavior: 'instant'}});"
            "const box = e.getBoundingClientRect();"
            f"return [box.x + box.width / 2, box.y + box.height / 2]; }})({element})"
        )
        for kind in ("mouseMoved", *(("mousePressed", "mouseReleased") if click else ())):
            button = {} if kind == "mouseMoved" else {"button": "left", "clickCount": 1}
            self("Input.dispatchMouseEvent", type=kind, x=x, y=y, **button)

    def screenshot(self, path, whole=False):
        """Save what is seen, or the whole page, as PNG."""
        taken = self("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(taken["data"]))

    def close(self):
        """End this browser."""
        try:
            self.session = None
            self("Browser.close")
        except (RuntimeError, OSError):
            pass
        self.process.wait(timeout=PATIENCE)

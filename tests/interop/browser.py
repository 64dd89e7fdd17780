"""Headless Chromium, driven through its DevTools protocol with the standard library alone."""

import base64
import json
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import tempfile
import time
import urllib.request


class _WebSocket:
    """The client side of RFC 6455, as far as DevTools needs it: text messages."""

    def __init__(self, host, port, path):
        self.socket = socket.create_connection((host, port), timeout=60)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall((f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\n"
                             f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
                             "Sec-WebSocket-Version: 13\r\n\r\n").encode())
        head = b""
        while b"\r\n\r\n" not in head:
            head += self._some(1)
        if b" 101 " not in head.split(b"\r\n")[0]:
            raise RuntimeError(f"no websocket: {head[:100]!r}")

    def _some(self, n):
        data = self.socket.recv(n)
        if not data:
            raise RuntimeError("the browser has closed the connection")
        return data

    def _exactly(self, n):
        data = b""
        while len(data) < n:
            data += self._some(n - len(data))
        return data

    def send(self, text):
        data = text.encode()
        head = b"\x81" + (bytes([0x80 | len(data)]) if len(data) < 126 else
                          b"\xfe" + struct.pack(">H", len(data)) if len(data) < 65536 else
                          b"\xff" + struct.pack(">Q", len(data)))
        mask = os.urandom(4)
        self.socket.sendall(head + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(data)))

    def receive(self):
        message = b""
        while True:
            first, second = self._exactly(2)
            length = second & 0x7F
            if length == 126:
                length = struct.unpack(">H", self._exactly(2))[0]
            elif length == 127:
                length = struct.unpack(">Q", self._exactly(8))[0]
            message += self._exactly(length)
            if first & 0x80:
                return message.decode(errors="replace")


class Browser:
    """A page; a context manager. Errors are exceptions that say what was asked for."""

    def __init__(self, program="chromium"):
        self.folder = tempfile.mkdtemp(prefix="millrace-chromium-")
        self.process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1400,900",
             "--remote-debugging-port=0", f"--user-data-dir={self.folder}", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.number = 0
        port_file = pathlib.Path(self.folder, "DevToolsActivePort")
        deadline = time.time() + 30
        while not port_file.exists() or "\n" not in port_file.read_text():
            if time.time() > deadline or self.process.poll() is not None:
                raise RuntimeError(f"{program} does not start")
            time.sleep(0.05)
        port = int(port_file.read_text().split("\n")[0])
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json", timeout=30) as reply:
            page = next(t for t in json.load(reply) if t["type"] == "page")
        path = page["webSocketDebuggerUrl"].split(f":{port}", 1)[1]
        self.web_socket = _WebSocket("127.0.0.1", port, path)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _call(self, method, **params):
        self.number += 1
        self.web_socket.send(json.dumps({"id": self.number, "method": method, "params": params}))
        while True:
            reply = json.loads(self.web_socket.receive())
            if reply.get("id") != self.number:
                continue  # an event
            if "error" in reply:
                raise RuntimeError(f"{method}: {reply['error']}")
            return reply["result"]

    def open(self, url):
        self._call("Page.navigate", url=url)

    def evaluate(self, script):
        result = self._call("Runtime.evaluate", expression=script, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{script}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait_for(self, script, seconds=60):
        """The value of `script` once it is true."""
        deadline = time.time() + seconds
        while True:
            try:
                value = self.evaluate(script)
            except RuntimeError:  # the page is not there yet
                value = None
            if value:
                return value
            if time.time() > deadline:
                raise RuntimeError(f"not within {seconds} s: {script}")
            time.sleep(0.2)


# All text of a page, shadow trees included.
ALL_TEXT = """(() => {
  const texts = [];
  const walk = node => {
    if (node.nodeType === Node.TEXT_NODE) texts.push(node.data);
    if (node.shadowRoot) walk(node.shadowRoot);
    for (const child of node.childNodes) walk(child);
  };
  walk(document.documentElement);
  return texts.join(' ');
})()"""


def click(text):
    """A script that clicks the element that is labelled so, and is true if there is one."""
    return """(() => {
      const find = root => {
        for (const e of root.querySelectorAll('*')) {
          if (/BUTTON/.test(e.tagName) && e.textContent.trim() === TEXT) { e.click(); return true; }
          if (e.shadowRoot && find(e.shadowRoot)) return true;
        }
        return false;
      };
      return find(document);
    })()""".replace("TEXT", json.dumps(text))

"""HTML pages that hold the player. Texts from outside are data in a JSON island, never markup."""

import base64
import hashlib
import json
from typing import Any, Final

_PAGE: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<link rel="icon" href="data:,">
<title>Fusescope</title>
{head}
</head>
<body>
<main id="player"></main>
{body}
</body>
</html>
"""
PAGE_STYLE: Final = "html,body{margin:0;padding:0}body{min-height:100vh}"
_SHELL: Final = """
const options = JSON.parse(document.getElementById("data").textContent);
const addressOf = (text) => URL.createObjectURL(new Blob([Uint8Array.from(atob(text), (c) => c.charCodeAt(0))]));
const files = options.runFiles;
for (const name of Object.keys(files)) files[name] = addressOf(files[name]);
const filesOf = (_, method, mode) => ({ run: files[method] || files[mode] });
window.fusescope = mount(document.getElementById("player"), { ...options, url: true, files: filesOf });
"""


def linked_page(script: str, style: str) -> str:
    """Returns a page that loads its script and style from beside it and may read files from there, and from nowhere else."""
    policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data: blob:; base-uri 'none'"
    body = f'<script type="module" src="{script}"></script>'
    return _PAGE.format(policy=policy, head=f'<link rel="stylesheet" href="{style}">', body=body)


def single_page(script: str, style: str, data: dict[str, Any]) -> str:
    """Returns a page that holds everything and may load nothing: it plays from a disk with no network."""
    code = f"(() => {{\n{script}{_SHELL}}})();"
    css = PAGE_STYLE + style
    policy = f"default-src 'none'; script-src '{_digest(code)}'; style-src '{_digest(css)}'; img-src data: blob:; base-uri 'none'"
    body = f'<script type="application/json" id="data">{json_island(data)}</script>\n<script>{code}</script>'
    return _PAGE.format(policy=policy, head=f"<style>{css}</style>", body=body)


def json_island(data: Any) -> str:
    """Returns JSON that can stand inside a script element: no tag can begin in it."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def _digest(text: str) -> str:
    """Returns the hash by which a policy allows this script or style and no other."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

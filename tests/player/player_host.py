"""A page that mounts the player twice the way Gradio mounts a component: a function of element, props and watch."""

import json
from collections.abc import Sequence
from pathlib import Path

from fake_runs import ALL_METHODS

from viz.player.assets import style
from viz.player.component import TEMPLATE, component_script
from viz.player.page import json_island

HOST = """<!doctype html><meta charset="utf-8"><body><div id="one">{template}</div><div id="two">{template}</div>
<style>{style}</style><script type="application/json" id="values">{values}</script>
<script>
const script = new Function("element", "props", "watch", {code});
const values = JSON.parse(document.getElementById("values").textContent);
window.hosts = ["one", "two"].map((id, i) => {{
  const host = {{ props: {{ value: values[i] }}, changed: null }};
  script(document.getElementById(id), host.props, (name, listener) => {{ host.changed = listener; }});
  host.player = window.fusescope;
  return host;
}});
window.put = (i, value) => {{ window.hosts[i].props.value = value; window.hosts[i].changed(); }};
</script>"""


def write_host(path: Path, values: Sequence[dict[str, str]]) -> str:
    """Writes the page with the values of its two components and returns its address."""
    code = json.dumps(component_script(ALL_METHODS)).replace("</", "<\\/")
    path.write_text(HOST.format(template=TEMPLATE, style=style(), values=json_island(values), code=code))
    return path.as_uri()

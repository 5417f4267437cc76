"""Calls the page's named endpoints with the `gradio_client` package (it comes with Gradio).

python assets/examples/gradio_endpoints.py       # a server at http://127.0.0.1:7860
"""

import os

from gradio_client import Client

url = os.environ.get("FUSESCOPE_URL", "http://127.0.0.1:7860")
password = os.environ.get("FUSESCOPE_KEY")
client = Client(url, auth=("visitor", password) if password else None, verbose=False)

answered = client.predict(
    question="Who designed the tidal gate?",
    passages="The tidal gate of Orsund was designed by Ilka Brandt.\n\nThe harbour has three piers.",
    api_name="/answer",
)
print("answer:", answered["answer"], "| first token after", round(answered["ttft_s"], 3), "s")

compared = client.predict("harbour-museum", "Which ship is the oldest?", 0.3, "full,qcfuse", api_name="/compare")
print("compare:", compared["verdict"])

replayed = client.predict(workload="balanced", policies="saecache", capacity="5 %", api_name="/replay")
print("replay:", {name: round(rates["hit_tokens"], 3) for name, rates in replayed["policies"].items()})

"""`/healthz` and `/metrics`: for whoever watches the server."""

from fastapi import Request
from fastapi.responses import JSONResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST

from engine.serving.door import Door
from engine.serving.metrics import Metrics


class WatchRoutes:
    """Tells how the server is. Health is open to all; metrics need the password where there is one."""

    def __init__(self, door: Door) -> None:
        self._door, self._metrics = door, Metrics(door.session)

    async def health(self, request: Request) -> Response:
        """Returns the state of the model: 200 where a request would be taken, 503 while it loads or where it failed to."""
        found = self._door.session.health()
        fields = {"status": found.state, "model": found.model, "message": found.line, "num_waiting": self._door.session.num_waiting}
        return JSONResponse(fields, 200 if found.state in ("ready", "idle") else 503, {"Cache-Control": "no-store"})

    async def metrics(self, request: Request) -> Response:
        """Returns the numbers in Prometheus' text format. Raises AccessDenied."""
        self._door.identify(request)
        return Response(self._metrics.text(), media_type=CONTENT_TYPE_LATEST)

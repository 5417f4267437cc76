"""At most one server at a time, kept for all tests that ask for the same one in turn: starting one takes most of a minute."""

from fusion_worlds import FusionWorld
from servers import TinyModels

POLICY = ("--radix-eviction-policy", "saecache")
PAGE, PAGES = 16, 48


class Running:
    """Starts what is asked for."""

    def __init__(self, tmp_path_factory) -> None:
        self._make_folder = tmp_path_factory.mktemp
        self._models = TinyModels(tmp_path_factory.mktemp("models"))
        self._name: str | None = None
        self._what: FusionWorld | None = None

    def world(self, family: str) -> FusionWorld:
        """Returns a tiny model in a server with both plugins, and in the built-in engine beside it."""
        return self._get(family, lambda folder: FusionWorld(self._models.path(family), folder, *POLICY))

    def small_cache(self) -> FusionWorld:
        """Returns a world whose server's cache holds a few conversations at most, under `saecache`; of the third family."""
        sizes = ("--page-size", str(PAGE), "--max-total-tokens", str(PAGE * PAGES), "--max-running-requests", "2")
        config = ("--radix-eviction-policy-config", '{"temperature": 0.25}')
        return self._get("small", lambda folder: FusionWorld(self._models.path("qwen2"), folder, *POLICY, *sizes, *config))

    def stop(self) -> None:
        """Ends the server that runs, if any."""
        if self._what is not None:
            self._what.server.stop()
        self._what = None

    def _get(self, name, start):
        if self._what is None or self._name != name:
            self.stop()
            self._name, self._what = name, start(self._make_folder(name))
        return self._what

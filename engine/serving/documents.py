"""`/v1/documents`: the caller's own documents and the shared ones; upload, list, search, delete."""

import asyncio
from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, File, Form, Request, UploadFile

from engine.library.types import DEFAULT_LIBRARY, SHARED, ChunkInfo, DocumentInfo
from engine.serving.bridge import flowing
from engine.serving.door import Door
from engine.serving.passages import search
from engine.serving.problems import WrongField
from engine.serving.schema import SearchBody

T = TypeVar("T")


class DocumentRoutes:
    """Keeps documents for whoever names a session."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self.router = APIRouter()
        add = self.router.add_api_route
        add("/documents", self.all, methods=["GET"])
        add("/documents", self.upload, methods=["POST"])
        add("/documents", self.delete_all, methods=["DELETE"])
        add("/documents/search", self.search, methods=["POST"])
        add("/documents/{document_id}", self.one, methods=["GET"])
        add("/documents/{document_id}", self.delete, methods=["DELETE"])

    async def all(self, request: Request, library: str | None = None) -> dict[str, Any]:
        """Lists the documents of a library, or of all that the caller sees."""
        owner = self._door.admit(request).owner or SHARED
        return {"object": "list", "data": [_document(info) for info in await self._ask(lambda: self._list(owner, library))]}

    async def one(self, request: Request, document_id: str) -> dict[str, Any]:
        """Returns a document with its chunks."""
        owner = self._door.admit(request).owner or SHARED

        def find() -> dict[str, Any]:
            books = self._door.session.library
            info = books.document(owner, document_id)
            return _document(info) | {"chunks": [_chunk(chunk) for chunk in books.chunks(owner, info.library, document_id)]}

        return await self._ask(find)

    async def upload(
        self, request: Request, file: Annotated[list[UploadFile], File()], library: Annotated[str, Form(max_length=200)] = DEFAULT_LIBRARY
    ) -> dict[str, Any]:
        """Takes a file in; its text can be searched on return, its KV is computed behind that. Raises WrongField for several."""
        client = self._door.admit(request)
        if len(file) != 1:
            raise WrongField("file", f"The form holds {len(file)} files; send each in a request of its own.")
        owner, data = client.keeper, await file[0].read()
        self._door.quotas.charge(client, "upload_bytes", len(data))
        name, last = file[0].filename or "", None
        async for event in flowing(
            lambda stopped: self._door.session.add_document(owner, library, name, data), request, self._door.executor
        ):
            last = event or last
        # A client that has gone reads no answer.
        return _document(last) if isinstance(last, DocumentInfo) else {}

    async def delete(self, request: Request, document_id: str) -> dict[str, Any]:
        """Deletes one of the caller's documents, with the stored KV that nobody else uses."""
        owner = self._door.admit(request).keeper
        await self._ask(lambda: self._door.session.library.remove(owner, document_id))
        return {"id": document_id, "object": "document", "deleted": True}

    async def delete_all(self, request: Request) -> dict[str, Any]:
        """Deletes all that the caller has."""
        owner = self._door.admit(request).keeper
        return {"object": "list", "deleted": True, "num_deleted": await self._ask(lambda: self._door.session.library.remove_owner(owner))}

    async def search(self, request: Request, body: SearchBody) -> dict[str, Any]:
        """Returns the chunks that fit a query best; as the content of a tool's message they are answered over."""
        owner = self._door.admit(request).owner
        found = await self._ask(lambda: search(self._door.session.library, owner, body.query, body.num, body.documents or (), body.library))
        return {
            "object": "list",
            "data": [{"id": c.chunk_id, "title": c.title, "text": c.text, "score": c.relevance} for c in found],
        }

    def _list(self, owner: str, library: str | None) -> list[DocumentInfo]:
        books = self._door.session.library
        names = [library] if library else [info.name for info in books.libraries(owner)]
        return [info for name in names for info in books.documents(owner, name)]

    async def _ask(self, look_up: Callable[[], T]) -> T:
        """Returns what the library answers, which may read the disk, without holding up the server's loop."""
        return await asyncio.get_running_loop().run_in_executor(self._door.executor, look_up)


def _document(info: DocumentInfo) -> dict[str, Any]:
    """Returns a document of JSON's types, its id under OpenAI's name for it."""
    fields = asdict(info)
    return {
        "id": fields.pop("document_id"),
        "object": "document",
        "bytes": fields.pop("size_bytes"),
        "filename": fields.pop("name"),
    } | fields


def _chunk(info: ChunkInfo) -> dict[str, Any]:
    return asdict(info) | {"id": info.chunk_id}

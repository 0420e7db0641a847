"""The page at ``/``, and that of the endpoints at ``/docs``: files, sent with headers that let them load nothing from
elsewhere."""

from __future__ import annotations

from importlib.resources import files

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from structgen.server.openapi import openapi

FILES = {
    "/": ("index.html", "text/html"),
    "/page.css": ("page.css", "text/css"),
    "/page.js": ("page.js", "text/javascript"),
    "/request.js": ("request.js", "text/javascript"),
    "/docs": ("docs.html", "text/html"),
    "/docs.css": ("docs.css", "text/css"),
    "/docs.js": ("docs.js", "text/javascript"),
}
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'",  # no text ever becomes markup
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-cache",
}


def page_routes() -> list[Route]:
    """The routes of the pages, and of the description that ``/docs`` shows."""
    described = Route("/openapi.json", _description, methods=["GET"])
    return [*(_route(path, name, kind) for path, (name, kind) in FILES.items()), described]


async def _description(request: Request) -> Response:
    return JSONResponse(openapi(str(request.scope.get("root_path", ""))), headers=HEADERS)


def _route(path: str, name: str, kind: str) -> Route:
    content = files("structgen.server").joinpath("page", name).read_bytes()

    async def send(_: Request) -> Response:
        return Response(content, media_type=kind, headers=HEADERS)

    return Route(path, send, methods=["GET"])

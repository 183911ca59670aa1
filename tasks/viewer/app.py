"""The pages as a web application (ASGI): addresses, headers, and what is said where nothing can be shown.

Every page is made whole on the server, and can be read without its script. Nothing may come from elsewhere, no page of
elsewhere may hold one of these, and what is data is text. Whom it answers is for whoever serves it to say.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import duckdb
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tasks.foundation.errors import ColloquyError, StoreError
from tasks.foundation.store.layout import Layout
from tasks.metrics.catalogue import METRICS
from tasks.report import numbers
from tasks.report.boards import BETTER
from tasks.viewer import addresses, cells, lists, overview, requests, rows, tables, talks, texts
from tasks.viewer.reading import BadAsk, Library, NotThere, Reading, known_table
from tasks.viewer.render import list_cut, read_script, read_style, render

log = logging.getLogger(__name__)

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",
}

Values = dict[str, Any]
Make = Callable[[Reading, Request], Values | str]
"""From a build and a request the values of a template, or the address to go on to."""


def make_app(layout: Layout) -> Starlette:
    """The pages over an artifacts folder."""
    library = Library(layout)

    def builds(request: Request) -> Response:
        with library.overview() as connection:
            found = overview.read_builds(connection)
        return _answer(request, "builds.html.j2", title="Builds", builds=found, root=str(layout.root), build=None)

    def of_build(template: str, make: Make) -> Callable[[Request], Response]:
        def endpoint(request: Request) -> Response:
            build = request.path_params["build"]
            with library.open(build) as reading:
                made = make(reading, request)
                if isinstance(made, str):
                    return RedirectResponse(made, 303)
                cited = str(request.url.include_query_params(commit=reading.state))
                return _answer(request, template, build=build, state=reading.state, cited=cited, **made)

        return endpoint

    pages: dict[str, tuple[str, Make]] = {
        "": ("build.html.j2", _build),
        "/find": ("", _find),
        "/id/{id}": ("", _of_id),
        "/tables": ("tables.html.j2", _tables),
        "/tables/{table}": ("table.html.j2", _table),
        "/tables/{table}/row": ("row.html.j2", _row),
        "/cell": ("cell.html.j2", _cell),
        "/lists/{name}": ("list.html.j2", _list),
        "/conversations/{id}": ("talk.html.j2", _talk(talks.read_conversation)),
        "/interactions/{id}": ("talk.html.j2", _talk(talks.read_interaction)),
        "/dialogues/{id}": ("talk.html.j2", _talk(talks.read_dialogue)),
        "/items/{id}": ("item.html.j2", _item),
        "/requests/{id}": ("request.html.j2", _request),
    }
    return Starlette(
        routes=[
            Route(addresses.HOME, builds),
            Route("/style.css", lambda request: Response(read_style(), media_type="text/css")),
            Route("/viewer.js", lambda request: Response(read_script(), media_type="text/javascript")),
            *(Route(f"/builds/{{build}}{path}", of_build(*page)) for path, page in pages.items()),
        ],
        middleware=[Middleware(StrictHeaders)],
        exception_handlers={
            HTTPException: _no_page,
            ColloquyError: _refuse,
            duckdb.Error: _refuse_query,
        },
    )


class StrictHeaders:
    """Every response says what a browser may do with it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_strictly(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
                message = {**message, "headers": [*message["headers"], *given]}
            await send(message)

        await self._app(scope, receive, send_strictly)


def _answer(request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
    usual = {"state": None, "cited": None, "asked_state": request.query_params.get("commit")}
    html = render(template, **{**usual, **values})
    return HTMLResponse(html.encode("utf-8", "replace"), status)


def _refuse(request: Request, error: Exception) -> Response:
    kinds = (
        (NotThere, 404, "Not there"),
        (BadAsk, 400, "That cannot be meant"),
        (StoreError, 503, "Cannot be read now"),
    )
    status, title = next(((code, said) for kind, code, said in kinds if isinstance(error, kind)), (500, "It failed"))
    return _answer(request, "error.html.j2", status, title=title, message=str(error), build=_build_of(request, error))


def _refuse_query(request: Request, error: Exception) -> Response:
    log.warning("%s: %s", request.url.path, error)
    said = f"DuckDB could not read it: {str(error).splitlines()[0]} Try again; `colloquy status` tells what is missing."
    return _answer(request, "error.html.j2", 503, title="Cannot be read now", message=said, build=None)


def _no_page(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    said = f"There is no page {request.url.path[:200]!r}. Every page is reached from the list of builds."
    title = "No such page" if status == 404 else str(getattr(error, "detail", "It failed"))
    return _answer(request, "error.html.j2", status, title=title, message=said, build=None)


def _build_of(request: Request, error: Exception) -> str | None:
    """The build of a page that was refused, if there is one of that name."""
    build = request.path_params.get("build")
    return None if build is None or str(error).startswith(f"build {build!r}") else build


def _build(reading: Reading, request: Request) -> Values:
    return {"title": f"Build {reading.build}", "page": overview.read_build(reading)}


def _find(reading: Reading, request: Request) -> str:
    wanted = request.query_params.get("id", "").strip()
    if not wanted:
        raise BadAsk("expected an id to go to, as scene_0123456789abcdef; found none")
    return addresses.request(reading.build, wanted) if len(wanted) == 64 else _go_to(reading, wanted)


def _of_id(reading: Reading, request: Request) -> str:
    return _go_to(reading, request.path_params["id"])


def _go_to(reading: Reading, content_id: str) -> str:
    return addresses.best(reading.build, *rows.find_by_id(reading, content_id))


def _tables(reading: Reading, request: Request) -> Values:
    return {"title": f"Tables of {reading.build}", "page": tables.count_tables(reading)}


def _table(reading: Reading, request: Request) -> Values:
    name, query = request.path_params["table"], dict(request.query_params)
    page = tables.read_page(reading, name, tables.Asked.of(query))

    def sorting(column: str) -> str:
        turned = f"-{column}" if page.asked.sort == column else column
        return addresses.table(reading.build, name, **{**query, "sort": turned, "page": None})

    return {"title": name, "page": page, "sorting": sorting, "address": _turning(request)}


def _turning(request: Request) -> Callable[[int], str]:
    """The address of another page of the same."""
    return lambda page: str(request.url.include_query_params(page=page).replace(scheme="", netloc=""))


def _row(reading: Reading, request: Request) -> Values:
    name = request.path_params["table"]
    key = {column: value for column, value in request.query_params.items() if column != "commit"}
    page = rows.read_row(reading, name, key)
    declared = known_table(name)
    fields = [
        (
            column,
            str(info.description),
            None if page.row[column] is None else _whole(page.row[column], column in declared.json_columns),
        )
        for column, info in declared.row.model_fields.items()
    ]
    told = " / ".join(texts.write(page.row[column]) for column in declared.key if page.row[column] is not None)
    return {"title": f"{numbers.words(name)} {texts.brief(told, 100)}", "page": page, "fields": fields}


def _whole(value: Any, is_json: bool) -> str:
    return texts.write_whole(value, is_json=is_json)


def _cell(reading: Reading, request: Request) -> Values:
    query = dict(request.query_params)
    number = tables.page_of(query)
    page = cells.read_cell(
        reading, {name: value for name, value in query.items() if name not in tables.RESERVED}, number
    )
    metric = METRICS[page.row["metric"]]
    shown = ("pool", "goal_type", "language", "target", "partner", "simulator", "sample")
    units = page.units or ()
    there = [
        name for name in shown if page.row.get(name) is None and any(one.unit.get(name) is not None for one in units)
    ]
    return {
        "title": f"{metric.label}: {numbers.number(page.row['value'], page.row['unit'])}",
        "page": page,
        "cut": list_cut(page.row),
        "scale": numbers.scale(page.row["unit"]),
        "better": BETTER[metric.better],
        "unit_columns": there,
        "number_of_page": number,
        "address": _turning(request),
    }


def _list(reading: Reading, request: Request) -> Values:
    page = lists.read_list(reading, request.path_params["name"], dict(request.query_params))
    told = ("conversation_id", "turn_index", "interaction_id", "item_id", "dialogue_id", "element")
    columns = [name for name in (page.rows[0] if page.rows else ()) if name not in told]
    return {"title": page.listed.title, "page": page, "columns": columns, "address": _turning(request)}


def _talk(read: Callable[[Reading, str], talks.TalkPage]) -> Make:
    def make(reading: Reading, request: Request) -> Values:
        page = read(reading, request.path_params["id"])
        return {"title": page.title, "page": page}

    return make


def _item(reading: Reading, request: Request) -> Values:
    sample = request.query_params.get("sample")
    if sample is not None and not sample.isdecimal():
        raise BadAsk(f"sample: expected a number from 0 on, found {sample[:40]!r}")
    target = request.query_params.get("target")
    page = talks.read_item(reading, request.path_params["id"], target, None if sample is None else int(sample))
    return {"title": f"Item {page.id}", "page": page}


def _request(reading: Reading, request: Request) -> Values:
    page = requests.read_request(reading, request.path_params["id"])
    return {"title": f"{page.calls[0]['stage']}: {page.calls[0]['purpose']}", "page": page}

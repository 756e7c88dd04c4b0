"""The requests to authorization servers: sent, and their answers checked before the SDK sees them.

The SDK's errors and log lines quote answers, and those may hold tokens and secrets; here they
become faults that hold none. A client of its own, so that no header of the MCP server goes along
and no answer is taken for one of its.
"""

from __future__ import annotations

import logging
from contextlib import aclosing
from types import TracebackType
from typing import Final, Self

import anyio
import httpx2
from mcp.client.auth import OAuthFlowError
from mcp.shared._httpx_utils import create_mcp_http_client, next_request_within_origin
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from pydantic import ValidationError

from toolcrib.sources.mcp.auth.declared import is_sendable
from toolcrib.sources.mcp.auth.oauth.fault import AuthFault, NoVerdict, error_code
from toolcrib.sources.mcp.auth.oauth.provider import Provider

__all__ = ["authorize", "refresh"]

TIMEOUT: Final = 20.0
"""Seconds for one request and the whole of its answer."""

LARGEST: Final = 1024 * 1024
"""Bytes of an answer; metadata and tokens are a few thousand."""

LONGEST_LIFE: Final = 10**12
"""Seconds. Nothing lives longer, and the end of what says so could not be computed."""

BUSY: Final = frozenset((429, *range(500, 600)))


async def authorize(
    provider: Provider, request: httpx2.Request, challenge: httpx2.Response
) -> None:
    """Has the SDK answer `challenge`, which refused `request`. Raises `AuthFault`."""
    flow = provider.async_auth_flow(request)
    async with _Exchange(provider) as exchange, aclosing(flow):
        await anext(flow)  # the request itself, which was sent already
        step = await flow.asend(challenge)
        while step is not request:
            step = await flow.asend(await exchange.send(step))


async def refresh(provider: Provider, request: httpx2.Request) -> None:
    """Renews the tokens of `provider` for `request`. Raises `AuthFault`."""
    version = request.headers.get(MCP_PROTOCOL_VERSION_HEADER)
    async with _Exchange(provider) as exchange:
        answer = await exchange.send(await provider.refresh_request(version))
        if answer.status_code != 200:
            raise NoVerdict(f"its authorization server answered HTTP {answer.status_code}")
        await provider.take_refreshed(answer)


class _Exchange:
    """The requests of one authorization. Whatever goes wrong inside becomes an `AuthFault`."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._http = create_mcp_http_client(timeout=httpx2.Timeout(TIMEOUT))
        self._busy = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        error: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        await self._http.aclose()
        if not isinstance(error, Exception):
            return
        fault = _fault(error)
        if self._busy and not fault.code:
            # The SDK went on without what that answer might have said: no wonder.
            fault = NoVerdict(f"its authorization server answered HTTP {self._busy}")
        if fault is not error:
            raise fault from None

    async def send(self, request: httpx2.Request) -> httpx2.Response:
        """The answer to a request of the SDK, checked."""
        self._provider.check(request)
        try:
            with anyio.fail_after(TIMEOUT):
                response = await _whole(await self._http.send(request, stream=True))
        except (httpx2.HTTPError, TimeoutError) as error:
            why = type(error).__name__
            raise NoVerdict(f"its authorization server cannot be reached ({why})") from error
        if request.method == "POST":
            _check(request, response)
        elif response.status_code in BUSY:
            self._busy = response.status_code
        return response


async def _whole(response: httpx2.Response) -> httpx2.Response:
    """The answer with its body. Raises `NoVerdict` for one without end."""
    body = bytearray()
    try:
        async for part in response.aiter_bytes():
            body += part
            if len(body) > LARGEST:
                raise NoVerdict(f"its authorization server sent more than {LARGEST} bytes")
    finally:
        await response.aclose()
    whole = httpx2.Response(response.status_code, content=bytes(body), request=response.request)
    whole.next_request = response.next_request
    return whole


def _check(request: httpx2.Request, response: httpx2.Response) -> None:
    """Raises for an answer to a token request or a registration that gives neither. Only an error
    in the words of OAuth judges: what stands in between says 404 as well."""
    status, is_token = response.status_code, "json" not in request.headers.get("content-type", "")
    what = "token" if is_token else "registration of this client"
    if status in (200, 201):
        if not (_is_token if is_token else _is_client)(response.content):
            raise NoVerdict(f"its authorization server answered with what is no {what}")
    elif next_request_within_origin(response) is None:
        code = _code(response)
        if status in BUSY or not code:
            raise NoVerdict(f"its authorization server answered HTTP {status}")
        raise AuthFault(f"its authorization server refused the {what}", code)


def _is_token(content: bytes) -> bool:
    try:
        token = OAuthToken.model_validate_json(content)
    except ValidationError:
        return False
    return is_sendable(token.access_token) and abs(token.expires_in or 0) <= LONGEST_LIFE


def _is_client(content: bytes) -> bool:
    try:
        OAuthClientInformationFull.model_validate_json(content)
    except ValidationError:
        return False
    return True


def _code(response: httpx2.Response) -> str:
    try:
        return error_code(response.json().get("error"))
    except (ValueError, AttributeError, RecursionError):
        return ""


def _fault(error: Exception) -> AuthFault:
    if isinstance(error, AuthFault):
        return error
    if isinstance(error, OAuthFlowError):
        return AuthFault(_line(str(error)))
    if isinstance(error, StopAsyncIteration):
        return AuthFault("the authorization ended without a token")
    # No real key, no real metadata, a person's own fault: the texts may hold secrets.
    return AuthFault(f"the authorization failed ({type(error).__name__})")


def _line(text: str) -> str:
    """A message of the SDK, which may quote what a server sent, as one harmless line."""
    return "".join(one if one.isprintable() else " " for one in text[:300])


def _is_ours_to_tell(record: logging.LogRecord) -> bool:
    return record.msg != "OAuth flow error"


# The SDK logs each failed flow with its traceback, whose texts quote what the authorization server
# sent. What went wrong is told by us, in one line.
logging.getLogger("mcp.client.auth.oauth2").addFilter(_is_ours_to_tell)

"""The requests to authorization servers: sent, and their answers checked before the SDK sees them.

The SDK's errors and log lines quote answers, and those may hold tokens and secrets; here they
become faults that hold none. A client of its own, so that no header of the MCP server goes along
and no answer is taken for one of its.
"""

from __future__ import annotations

import logging
from contextlib import aclosing

import httpx2
from mcp.client.auth import OAuthFlowError
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from pydantic import ValidationError

from toolcrib.sources.mcp.auth.fault import AuthFault, Unreachable, shown_code
from toolcrib.sources.mcp.auth.provider import Provider

__all__ = ["authorize", "refresh"]

TIMEOUT = 20.0
"""Seconds for each step of one request."""


async def authorize(
    provider: Provider, request: httpx2.Request, challenge: httpx2.Response
) -> None:
    """Has the SDK answer `challenge`, which refused `request`. Raises `AuthFault`."""
    flow = provider.async_auth_flow(request)
    try:
        async with aclosing(flow), _client() as http:
            await anext(flow)  # the request itself, which was sent already
            step = await flow.asend(challenge)
            while step is not request:
                step = await flow.asend(await _sent(http, step))
    except OAuthFlowError as error:
        raise AuthFault(_line(str(error))) from None
    except StopAsyncIteration:
        raise AuthFault("the authorization ended without a token") from None
    except (AuthFault, TimeoutError):
        raise
    except Exception as error:
        # No real key, no real metadata, a person's own fault: the texts may hold secrets.
        raise AuthFault(f"the authorization failed ({type(error).__name__})") from None


async def refresh(provider: Provider, request: httpx2.Request) -> None:
    """Renews the tokens of `provider` for `request`. Raises `AuthFault`."""
    version = request.headers.get(MCP_PROTOCOL_VERSION_HEADER)
    try:
        asking = await provider.refresh_request(version)
    except OAuthFlowError as error:
        raise AuthFault(_line(str(error))) from None
    async with _client() as http:
        answer = await _sent(http, asking)
    if answer.status_code != 200:
        raise AuthFault(f"its authorization server answered HTTP {answer.status_code}")
    await provider.take_refreshed(answer)


def _line(text: str) -> str:
    """A message of the SDK, which may quote what a server sent, as one harmless line."""
    return "".join(one if one.isprintable() else " " for one in text[:300])


def _client() -> httpx2.AsyncClient:
    return create_mcp_http_client(timeout=httpx2.Timeout(TIMEOUT))


async def _sent(http: httpx2.AsyncClient, request: httpx2.Request) -> httpx2.Response:
    try:
        response = await http.send(request)
    except httpx2.HTTPError as error:
        why = type(error).__name__
        raise Unreachable(f"its authorization server cannot be reached ({why})") from error
    if request.method == "POST":
        _check(request, response)
    return response


def _check(request: httpx2.Request, response: httpx2.Response) -> None:
    """Raises for an answer to a token request or a registration that gives neither."""
    is_token = "json" not in request.headers.get("content-type", "")
    what = "the token" if is_token else "the registration of this client"
    if response.status_code in (429, *range(500, 600)):
        raise Unreachable(f"its authorization server answered HTTP {response.status_code}")
    if response.status_code >= 400:
        raise AuthFault(f"its authorization server refused {what}{_error_code(response)}")
    if response.status_code in (200, 201):
        try:
            model = OAuthToken if is_token else OAuthClientInformationFull
            model.model_validate_json(response.content)
        except ValidationError:
            raise AuthFault(
                f"its authorization server answered with what is no {what.removeprefix('the ')}"
            ) from None


def _error_code(response: httpx2.Response) -> str:
    try:
        body = response.json()
        return shown_code(body.get("error"))
    except (ValueError, AttributeError, RecursionError):
        return f": HTTP {response.status_code}"


def _is_ours_to_tell(record: logging.LogRecord) -> bool:
    return record.msg != "OAuth flow error"


# The SDK logs each failed flow with its traceback, whose texts quote what the authorization server
# sent. What went wrong is told by us, in one line.
logging.getLogger("mcp.client.auth.oauth2").addFilter(_is_ours_to_tell)

"""What the settings of each resource mean, and what is refused, with its place."""

from __future__ import annotations

import importlib.util
import logging
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.deploy import Deployment, loads
from toolcrib.deploy.duration import parse_duration
from toolcrib.discovery.policy import Budget, Discovery, Dynamic
from toolcrib.errors import ConfigurationError
from toolcrib.middleware import DEFAULT_PART_BUDGET, ResultLimitSettings, Settings
from toolcrib.policy import Policy
from toolcrib.sources.mcp import Overrides
from toolcrib.sources.mcp.auth.declared import is_sendable
from toolcrib.sources.mcp.settings import ServerSettings

ASSEMBLY = """
resources:
  local: {{kind: tool.Source, impl: functions, settings: {{tools: ["textwrap:dedent"]}}}}
  tools:
    kind: tool.Assembly
    impl: {impl}
    deps: {{tool: local}}
    settings: {settings}
"""
SERVER = """
resources:
  mcp:
    kind: tool.Source
    impl: mcp
    settings:
      {more}
      servers:
        - {server}
"""


def settings_of(deployment: Deployment, name: str) -> Any:
    return next(one.settings for one in deployment.resources if one.name == name)


def assembly(settings: str, impl: str = "middleware", environ: dict[str, str] | None = None) -> Any:
    text = ASSEMBLY.format(impl=impl, settings=settings)
    return settings_of(loads(text, environ or {}, file="f.yaml"), "tools")


def mcp(
    server: str, more: str = "", environ: dict[str, str] | None = None, base: Path | None = None
) -> Any:
    text = SERVER.format(server=server, more=more)
    return settings_of(loads(text, environ or {}, file="f.yaml", base=base), "mcp")


def one_server(server: str, environ: dict[str, str] | None = None, base: Path | None = None) -> Any:
    (found,) = mcp(server, "", environ, base).servers
    return found


def refused(read: Any, *args: Any, **kwargs: Any) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        read(*args, **kwargs)
    return [str(problem) for problem in caught.value.problems]


# -- assemblies ---------------------------------------------------------------------------------


def test_A3_4_memory_knows_only_dynamic() -> None:
    assert assembly("{dynamic: {}}", "memory").dynamic == Dynamic()
    (fault,) = refused(assembly, "{middlewares: {recover: {enabled: true}}}", "memory")
    assert fault.startswith("f.yaml:8: resources.tools.settings.middlewares: unknown key")
    assert fault.endswith("known: dynamic")


def test_A3_4_middleware_knows_the_five_of_the_guide() -> None:
    found = assembly(
        "{middlewares: {recover: {enabled: true}, telemetry: {enabled: false},"
        " result_limit: {max: 100, marker: cut, part_budget_bytes: 0},"
        " timeout: {default: 1m30s}, concurrency: {limit: 8}, result_part_budget_bytes: 5}}"
    )
    assert found.middlewares == Settings(
        recover=True,
        telemetry=False,
        result_limit=ResultLimitSettings(100, "cut", 0),
        timeout=90.0,
        concurrency=8,
        result_part_budget_bytes=5,
    )


def test_A12_5_the_middleware_impl_bounds_parts_even_when_nothing_is_named() -> None:
    assert assembly("{}").middlewares.result_part_budget_bytes == DEFAULT_PART_BUDGET
    assert assembly("{}", "memory").middlewares is None


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ("{middlewares: {timeout: {default: not-a-duration}}}", "timeout.default: expected a dur"),
        ("{middlewares: {timeout: {default: 30}}}", "timeout.default: expected a duration"),
        ("{middlewares: {result_limit: {}}}", "result_limit: missing required key 'max'"),
        ("{middlewares: {result_limit: {max: 0}}}", "expected a whole number ≥ 1, got '0'"),
        ("{middlewares: {recover: {}}}", "recover: missing required key 'enabled'"),
        ("{middlewares: {retry: {}}}", "'retry' is not available in this version"),
        ("{policies: {x: {retry: 3}}}", "'retry' is not available in this version"),
        ("{policies: {x: {exposure: sometimes}}}", "one of always, direct, deferred, hidden"),
        ("{policies: {'': {}}}", "a blank key"),
        ("{dynamic: {exposures: {a: seldom}}}", "one of always, direct, deferred, hidden"),
        ("{dynamic: {exposures: {' ': direct}}}", "a blank key"),
        ("{dynamic: {default: x}}", "dynamic.default: expected one of"),
        ("{dynamic: {discovery: {idle_rounds: -1}}}", "expected a whole number ≥ 0"),
        ("{dynamic: }", "dynamic: expected a mapping, got nothing"),
        ("{receipts: {}}", "'receipts' is not available in this version"),
    ],
)
def test_A3_4_what_is_wrong_with_settings_is_said_at_its_place(settings: str, fault: str) -> None:
    (found,) = refused(assembly, settings)
    assert fault in found
    assert found.startswith("f.yaml:8: resources.tools.settings.")


@pytest.mark.parametrize(
    "settings",
    [
        "{dynamic: {exposures: {tool_search: deferred}}}",
        "{dynamic: {}, policies: {tool_search: {exposure: hidden}}}",
    ],
)
def test_A3_5_tool_search_must_stay_always(settings: str) -> None:
    (fault,) = refused(assembly, settings)
    assert "tool_search must stay always" in fault
    assert assembly(settings.replace("deferred", "always").replace("hidden", "always"))


def test_A12_values_that_lift_a_bound_are_accepted() -> None:
    chain = assembly(
        "{middlewares: {timeout: {default: ''}, concurrency: {limit: 0},"
        " result_part_budget_bytes: -1}}"
    ).middlewares
    assert (chain.timeout, chain.concurrency, chain.result_part_budget_bytes) == (None, 0, -1)
    assert assembly("{middlewares: {timeout: {default: -5s}}}").middlewares.timeout == -5.0


def test_A4_1_an_empty_default_is_deferred() -> None:
    assert assembly("{dynamic: {default: ''}}").dynamic.default == "deferred"


def test_A6_1_pool_caps_follow_the_budget_unless_set() -> None:
    found = assembly("{dynamic: {budget: {max_definitions: 64}, discovery: {max_bytes: 99}}}")
    assert found.dynamic.budget == Budget(max_definitions=64)
    assert found.dynamic.discovery == Discovery(max_bytes=99)
    assert found.dynamic.pool_caps.max_tools == 64


@pytest.mark.parametrize(
    ("keys", "rounds"),
    [
        ("selected_retention: 2", 2),
        ("recent_window: 3", 3),
        ("recent_window: 3, selected_retention: 2", 2),
        ("selected_retention: 2, discovery: {idle_rounds: 7}", 7),
        ("selected_retention: 0", 10),
    ],
)
def test_A6_1_deprecated_keys_only_seed_idle_rounds(
    keys: str, rounds: int, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "toolcrib.deploy"):
        found = assembly(f"{{dynamic: {{{keys}}}}}")
    assert found.dynamic.discovery.idle_rounds == rounds
    assert "f.yaml:8: resources.tools.settings.dynamic." in caplog.text
    assert "deprecated" in caplog.text


def test_policies_are_records_by_name_or_pattern() -> None:
    found = assembly(
        "{policies: {fs__*: {exposure: direct, timeout: 5s}, pay: {scopes: [a:b, c], timeout: 0s}}}"
    )
    assert found.policies == {
        "fs__*": Policy("direct", 5.0),
        "pay": Policy(timeout=0.0, scopes=frozenset({"a:b", "c"})),
    }


# -- scalars ------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["012", "0x1F", "0o17", "1_000", "1e3", "1.0", "'8'", "eight"])
def test_CF08_numbers_are_decimal(word: str) -> None:
    (fault,) = refused(assembly, f"{{middlewares: {{concurrency: {{limit: {word}}}}}}}")
    assert "expected a whole number, written in decimal, got" in fault


@pytest.mark.parametrize("word", ["yes", "on", "'false'", '"true"', "1", "~"])
def test_CF07_only_true_and_false_are_booleans(word: str) -> None:
    (fault,) = refused(assembly, f"{{middlewares: {{recover: {{enabled: {word}}}}}}}")
    assert "expected true or false, got" in fault


def test_a_reference_may_feed_a_number_or_a_boolean() -> None:
    text = "{middlewares: {recover: {enabled: ${env:ON}}, concurrency: {limit: ${env:N:-8}}}}"
    chain = assembly(text, environ={"ON": "false"}).middlewares
    assert (chain.recover, chain.concurrency) == (False, 8)
    faults = refused(assembly, text, environ={"ON": "hunter2", "N": "hunter2"})
    assert [fault.partition("got ")[2] for fault in faults] == [
        "the value of ${env:ON}",
        "the value of ${env:N}",
    ]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30.0),
        ("1m30s", 90.0),
        ("1.5h", 5400.0),
        ("250ms", 0.25),
        ("-2s", -2.0),
        ("0", 0.0),
        (".5s", 0.5),
        ("1µs", 1e-6),
        ("30", None),
        ("", None),
        ("s", None),
        ("1 s", None),
        ("1d", None),
        ("soon", None),
        ("-", None),
        ("9999999999h", None),
        ("1s" * 60, None),
    ],
)
def test_A12_6_durations_are_those_of_go(text: str, seconds: float | None) -> None:
    found = parse_duration(text)
    assert found == (pytest.approx(seconds) if seconds is not None else None)


# -- MCP servers --------------------------------------------------------------------------------

STDIO = "name: a, transport: stdio, command: run"
HTTP = "name: a, transport: http, url: 'https://x/y'"


def test_A9_1_every_key_of_a_server_arrives() -> None:
    found = one_server(
        "{name: a, transport: stdio, command: run, args: [-v, 1.10, NO], env: {A: 0755, y: on},"
        " cwd: /srv, prefix: '', resources: true, required: 'true', liveness: 1m}"
    )
    assert (found.name, found.transport, found.command) == ("a", "stdio", "run")
    assert found.args == ("-v", "1.10", "NO")
    assert found.env == {"A": "0755", "y": "on"}
    assert (found.cwd, found.prefix, found.resources, found.required) == ("/srv", "", True, True)
    assert found.liveness == 60.0
    http = one_server(f"{{{HTTP}, headers: {{A: b}}, http_timeout: 5s, liveness: off}}")
    assert (http.url, http.headers, http.http_timeout) == ("https://x/y", {"A": "b"}, 5.0)
    assert (http.liveness, http.prefix) == (0.0, None)


def test_what_is_decided_about_a_servers_tools_arrives() -> None:
    found = one_server(
        f"{{{STDIO}, tools: {{include: ['git_*', read], exclude: ['*_push'],"
        " rename: {git_log: history}, descriptions: {git_log: 'What happened.', read: ''}}}"
    )
    assert found.tools == Overrides(
        ("git_*", "read"),
        ("*_push",),
        {"git_log": "history"},
        {"git_log": "What happened.", "read": ""},
    )
    assert one_server(f"{{{STDIO}, tools: {{include: []}}}}").tools == Overrides(include=())
    assert one_server(f"{{{STDIO}, tools: {{}}}}").tools == Overrides()


def test_how_patiently_a_server_is_dealt_with_arrives() -> None:
    found = one_server(
        f"{{{HTTP}, prompts: true, per_session: 'true', settings: {{call_timeout: 90s,"
        " idle_timeout: 20s, reconnect_wait: 0s, list_quiet: 0s, list_longest: 2s, open_after: 3,"
        " open_pause: 1m, jitter: 0.25, max_sessions: 4, session_idle: 5m, log_level: error,"
        " ask_timeout: 1m, input_rounds: 3}}"
    )
    assert (found.prompts, found.per_session) == (True, True)
    assert found.settings == ServerSettings(
        call_timeout=90.0,
        idle_timeout=20.0,
        reconnect_wait=0.0,
        list_quiet=0.0,
        list_longest=2.0,
        open_after=3,
        open_pause=60.0,
        jitter=0.25,
        max_sessions=4,
        session_idle=300.0,
        log_level="error",
        ask_timeout=60.0,
        input_rounds=3,
    )
    assert one_server(f"{{{STDIO}}}").settings == ServerSettings()


@pytest.mark.parametrize(
    ("server", "fault"),
    [
        (f"{{{STDIO}, tools: [a]}}", "tools: expected a mapping, got a list"),
        (f"{{{STDIO}, tools: {{include: 'a*'}}}}", "tools.include: expected a list, got"),
        (f"{{{STDIO}, tools: {{include: [' ']}}}}", "include[0]: expected a text that is not"),
        (f"{{{STDIO}, tools: {{rename: {{a: c, b: c}}}}}}", "'a' and 'b' would both be 'c'"),
        (f"{{{STDIO}, tools: {{renames: {{}}}}}}", "unknown key 'renames', did you mean 'rename'"),
        (f"{{{STDIO}, settings: {{jitter: 2}}}}", "jitter: expected a fraction from 0 to 1"),
        (f"{{{STDIO}, settings: {{call_timeout: 0s}}}}", "expected a duration above 0"),
        (f"{{{STDIO}, settings: {{list_quiet: -1s}}}}", "expected a duration ≥ 0"),
        (f"{{{STDIO}, settings: {{open_after: 0}}}}", "expected a whole number ≥ 1"),
        (f"{{{STDIO}, settings: {{log_level: loud}}}}", "expected one of debug, info,"),
        ("{transport: stdio, command: x}", "servers[0]: missing required key 'name'"),
        ("{name: ' ', transport: stdio, command: x}", "name: expected a text that is not blank"),
        ("{name: ~, transport: stdio, command: x}", "name: expected a text, got nothing"),
        ("{name: a, command: x}", "servers[0]: missing required key 'transport'"),
        ("{name: a, transport: sse, url: 'http://x'}", "transport: expected one of stdio, http"),
        ("{name: a, transport: stdio}", "servers[0]: missing required key 'command'"),
        (f"{{{STDIO}, url: 'http://x'}}", "url: transport stdio takes no 'url'"),
        (f"{{{STDIO}, headers: {{}}}}", "headers: transport stdio takes no 'headers'"),
        ("{name: a, transport: http}", "servers[0]: missing required key 'url'"),
        (f"{{{HTTP}, command: x}}", "command: transport http takes no 'command'"),
        (f"{{{HTTP}, args: []}}", "args: transport http takes no 'args'"),
        (f"{{{HTTP}, env: {{}}}}", "env: transport http takes no 'env'"),
        (f"{{{HTTP}, http_timeout: 0s}}", "http_timeout: expected a duration above 0"),
        (f"{{{HTTP}, http_timeout: soon}}", "http_timeout: expected a duration"),
        ("{name: a, transport: http, url: x}", "url: expected an http:// or https:// address"),
        (f"{{{STDIO}, liveness: soon}}", "liveness: expected a duration above 0"),
        (f"{{{STDIO}, liveness: 0s}}", "liveness: expected a duration above 0"),
        (f"{{{STDIO}, liveness: -5s}}", "liveness: expected a duration above 0"),
        (f"{{{STDIO}, liveness: ''}}", "liveness: expected a duration above 0"),
        (f"{{{STDIO}, required: yes}}", "required: expected true or false"),
        (f"{{{STDIO}, timout: 5s}}", "timout: unknown key 'timout'"),
        (f"{{{STDIO}, comand: x}}", "unknown key 'comand', did you mean 'command'? known: name,"),
        (f"{{{STDIO}, oauth: {{}}}}", "'oauth' is not available in this version"),
        (f"{{{STDIO}, env: [A=b]}}", "env: expected a mapping, got a list"),
        (f"{{{STDIO}, args: -v}}", "args: expected a list, got '-v'"),
        (f"{{{STDIO}, args: [~]}}", "args[0]: expected a text, got nothing"),
        (f"{{{STDIO}, cwd: ~/x}}", "cwd: ~ is not expanded: write ${env:HOME} instead"),
        ("stdio", "servers[0]: expected a mapping, got 'stdio'"),
    ],
)
def test_A9_1_A9_2_what_is_wrong_with_a_server_is_said_at_its_place(
    server: str, fault: str
) -> None:
    (found,) = refused(mcp, server)
    assert fault in found
    assert found.startswith("f.yaml:9: resources.mcp.settings.servers[0]")


def test_A9_1_there_is_at_least_one_server_and_each_has_its_own_name() -> None:
    text = SERVER.format(more="", server=f"{{{STDIO}}}\n        - {{{STDIO}}}")
    (fault,) = refused(loads, text, {}, file="f.yaml")
    assert fault == (
        "f.yaml:10: resources.mcp.settings.servers[1].name: server name 'a' is taken by servers[0]"
    )
    empty = "resources: {mcp: {kind: tool.Source, impl: mcp, settings: {servers: []}}}"
    assert "expected at least 1, got none" in refused(loads, empty, {})[0]


def test_A9_2_the_source_may_set_the_interval_of_all() -> None:
    for server, liveness in [
        (mcp(f"{{{STDIO}}}", "liveness: 'off'"), 0.0),
        (mcp(f"{{{STDIO}}}", "liveness: 5s"), 5.0),
        (mcp(f"{{{STDIO}, liveness: 7s}}", "liveness: 5s"), 7.0),
        (mcp(f"{{{STDIO}}}"), None),
    ]:
        assert server.servers[0].liveness == liveness


def test_a_source_may_say_what_its_servers_can_ask() -> None:
    assert mcp(f"{{{STDIO}}}", "abilities: [elicit, roots]").abilities == {"elicit", "roots"}
    assert mcp(f"{{{STDIO}}}").abilities == frozenset()
    (fault,) = refused(mcp, f"{{{STDIO}}}", "abilities: [speak]")
    assert "abilities[0]: expected one of elicit, sample, roots, got 'speak'" in fault


@pytest.mark.parametrize("key", ["resources", "required"])
def test_A9_3_two_booleans_accept_strings(key: str) -> None:
    for word, value in {"true": True, "'true'": True, '"false"': False, "${env:X}": True}.items():
        found = one_server(f"{{{STDIO}, {key}: {word}}}", {"X": "true"})
        assert getattr(found, key) is value


def test_CF11_relative_paths_are_relative_to_the_file() -> None:
    def found(keys: str) -> Any:
        return one_server(f"{{name: a, transport: stdio, {keys}}}", base=Path("/a/b"))

    assert found("command: run, cwd: ./srv/").cwd == "/a/b/srv"
    assert found("command: run, cwd: ../data").cwd == "/a/b/../data"
    assert found("command: run, cwd: /srv").cwd == "/srv"
    assert found("command: run, cwd: '${base}'").cwd == "/a/b"
    assert found("command: run").command == "run"
    assert found("command: ./bin/run").command == "/a/b/bin/run"
    assert found("command: run, args: ['${base}/x', ./y]").args == ("/a/b/x", "./y")


@given(st.text(alphabet=st.characters(blacklist_characters="\0")))
def test_CF04_any_value_arrives_unchanged_wherever_a_text_may_stand(value: str) -> None:
    environ = {"X": value}
    stdio = one_server(
        "{name: a, transport: stdio, command: run, args: [${env:X}, '${env:X}', \"<${env:X}>\"],"
        " env: {A: ${env:X}, B: x${env:X}}, prefix: ${env:X}}",
        environ,
    )
    assert stdio.args == (value, value, f"<{value}>")
    assert stdio.env == {"A": value, "B": f"x{value}"}
    assert stdio.prefix == value
    if is_sendable(f"Bearer {value}"):
        http = one_server(f"{{{HTTP}, headers: {{A: Bearer ${{env:X}}}}}}", environ)
        assert http.headers == {"A": f"Bearer {value}"}
    found = assembly("{middlewares: {result_limit: {max: 9, marker: ${env:X}}}}", environ=environ)
    assert found.middlewares.result_limit.marker == value


def test_no_value_from_outside_is_ever_shown() -> None:
    secret = "hunter2hunter2"
    environ = {"S": secret}
    faults = refused(
        mcp,
        "{name: a, transport: ${env:S}, command: x, url: ${env:S}, liveness: ${env:S},"
        " required: ${env:S}, env: ${env:S}, args: ${env:S}, http_timeout: ${env:S}}",
        environ=environ,
    )
    assert len(faults) == 7
    assert secret not in "\n".join(faults)
    text = SERVER.format(more="", server=f"{{{STDIO}, env: {{A: ${{env:S}}}}, args: [${{env:S}}]}}")
    deployment = loads(text, environ)
    assert secret not in repr(deployment) + repr(deployment.resources)
    assert secret not in repr(settings_of(deployment, "mcp"))


def test_without_the_extra_the_file_is_refused_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "mcp" else find(name)
    )
    faults = refused(mcp, f"{{{STDIO}, comand: x}}")
    assert any("pip install 'toolcrib[mcp]'" in fault for fault in faults)
    assert any("comand" in fault for fault in faults)
    text = "resources: {mcp: {kind: tool.Source, impl: mcp, settings: {config: none.json}}}"
    (fault,) = refused(loads, text, {})
    assert "pip install 'toolcrib[mcp]'" in fault

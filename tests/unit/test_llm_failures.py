"""What a provider did, in our words, and without keys."""

from __future__ import annotations

import base64
import json
import traceback
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.foundation.errors import FAILURE_KINDS, ModelError, ModelUnavailable
from tasks.foundation.llm.failures import (
    Border,
    Gone,
    ProviderFailure,
    classify_failure,
    error_text,
    read_retry_after,
    unexpected_failure,
)
from tasks.foundation.llm.models import ModelSpec
from tasks.foundation.llm.providers.google_genai import GoogleProvider, map_finish
from tasks.foundation.llm.providers.openai_compatible import OpenAIProvider
from tasks.foundation.llm.redaction import SHOWN_CHARACTERS, brief, redact
from tests.unit.provider_rows import KEYS, Row, rows_of, seen

PROVIDERS: dict[str, type[Any]] = {"openai": OpenAIProvider, "google": GoogleProvider}
SAID = [row for provider in PROVIDERS for row in rows_of(provider) if not row.does]


@pytest.fixture(scope="module")
def providers() -> Iterator[dict[str, Any]]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("OPENAI_STUB", KEYS["openai"])
        patched.setenv("GOOGLE_STUB", KEYS["google"])
        yield {
            name: provider(ModelSpec("stub", name, "m", "f", api_key_env=f"{name.upper()}_STUB"))  # type: ignore[arg-type]
            for name, provider in PROVIDERS.items()
        }


def made_of(row: Row, provider: Any) -> Any:
    """What the border makes of the status and the body alone, without a server and an SDK."""
    if row.status == 200:
        try:
            return provider.read(row.content)
        except (ModelError, ModelUnavailable) as failure:
            return failure
    try:
        error = json.loads(row.content)
    except ValueError:
        error = row.content.decode()
    error = error[0] if isinstance(error, list) else error
    error = error.get("error", error) if isinstance(error, dict) else error
    if isinstance(provider, GoogleProvider):
        return provider.failure(row.status, error, row.headers)
    return classify_failure(
        row.status, error_text(error), retry_after_seconds=read_retry_after(row.headers), secrets=[provider._key]
    )


@pytest.mark.parametrize("row", SAID, ids=[f"{row.provider}: {row.name}" for row in SAID])
def test_what_a_provider_says_becomes_the_failure_of_the_table(row: Row, providers: dict[str, Any]) -> None:
    made = made_of(row, providers[row.provider])
    assert seen(made) == row.expected, str(made)
    assert KEYS[row.provider] not in repr(made)


def test_the_table_names_every_kind_that_a_provider_can_report() -> None:
    kinds = {row.kind for provider in (*PROVIDERS, "embedded") for row in rows_of(provider) if row.kind}
    by_the_engine = {"truncated", "unreadable", "invalid", "budget"}
    assert kinds == set(FAILURE_KINDS) - by_the_engine


def test_every_ending_that_the_gemini_library_knows_was_decided_on() -> None:
    from google.genai import types

    whole = {reason.value for reason in types.FinishReason if map_finish(reason.value) == "stop"}
    assert whole == {"STOP", "FINISH_REASON_UNSPECIFIED"}


# What an error says of itself


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ({"code": 400, "type": "t", "message": "m", "param": "p"}, "400 t m"),
        ({"error": {"message": "inner"}}, "inner"),
        ({"detail": [{"loc": ["a"], "msg": "Field required", "input": "secret"}]}, "Field required"),
        ({"message": "m", "metadata": {"raw": '{"error": {"message": "upstream"}}'}}, "m upstream"),
        ({"message": "m", "metadata": {"raw": "no JSON"}}, "m no JSON"),
        ("plain", "plain"),
        (None, ""),
        ({"message": {"nested": 1}}, ""),
        ([], ""),
    ],
)
def test_only_codes_and_sentences_of_an_error_are_heard(error: Any, words: str) -> None:
    assert error_text(error) == words


def test_a_long_sentence_is_heard_at_its_beginning() -> None:
    assert len(error_text({"message": "x" * 10_000})) <= 400


@given(st.recursive(st.none() | st.integers() | st.text(), lambda s: st.lists(s) | st.dictionaries(st.text(), s)))
def test_an_error_of_any_shape_is_some_failure(error: Any) -> None:
    for status in (200, 400, 429, 500):
        made = classify_failure(status, error_text(error))
        assert isinstance(made, ProviderFailure | ModelUnavailable)


def test_what_the_text_of_a_dialogue_says_never_stops_a_run() -> None:
    text = "Invalid API key. The model does not exist. insufficient_quota, said the content filter."
    made = classify_failure(400, error_text({"detail": [{"msg": "Field required", "input": {"content": text}}]}))
    assert isinstance(made, ProviderFailure) and made.kind == "refused"


# Waiting


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"retry-after": "1.5", "retry-after-ms": "250"}, 0.25),
        ({"x-ms-retry-after-ms": "1500"}, 1.5),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": ""}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_in_every_form(headers: dict[str, str], seconds: float | None) -> None:
    assert read_retry_after(headers) == seconds


def test_a_date_to_come_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasks.foundation.llm.failures.time.time", lambda: 1_700_000_000.0)
    assert read_retry_after({"retry-after": "Tue, 14 Nov 2023 22:13:50 GMT"}) == 30.0


@pytest.mark.parametrize(
    ("sentence", "seconds"),
    [
        ("Please try again in 20s.", 20.0),
        ("Please try again in 1m30.5s.", 90.5),
        ("please retry after 26 seconds", 26.0),
        ("Retrying in 120ms", 0.12),
        ("Please wait for 2 minutes", 120.0),
        ("Please try again in a moment", None),
        ("Please try again later", None),
    ],
)
def test_a_wait_is_read_from_a_sentence_where_no_header_has_it(sentence: str, seconds: float | None) -> None:
    made = classify_failure(429, sentence)
    assert isinstance(made, ProviderFailure) and made.retry_after_seconds == seconds


# Keys

HEX_KEY = "0123456789abcdef0123456789ABCDEF"
BODY = "abcDEF0123456789_abc-DEF"
SHAPED = [
    f"sk-{BODY}",
    f"sk-proj-{BODY}",
    f"sk-svcacct-{BODY}",
    f"sk-ant-api03-{BODY}",
    f"sk-or-v1-{BODY}",
    f"gsk_{BODY}",
    f"xai-{BODY}",
    f"nvapi-{BODY}",
    f"pplx-{BODY}",
    f"hf_{BODY}",
    f"r8_{BODY}",
    f"AIzaSy{BODY}",
    f"ya29.{BODY}",
    f"AQ.{BODY}",
    "AKIAABCDEF0123456789",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhYmNERUYifQ.abcDEF0123456789",
]


@pytest.mark.parametrize("key", SHAPED)
@pytest.mark.parametrize(
    "text", ["Incorrect API key provided: {}.", '{{"error": "{}"}}', "https://x/v1?a={}&b=1", "({})", "key={}", "'{}'"]
)
def test_anything_shaped_like_a_key_is_taken_out(key: str, text: str) -> None:
    safe = redact(text.format(key))
    assert "abc" not in safe.lower().replace("provided", "") and "[key]" in safe


@pytest.mark.parametrize(
    "text",
    [
        "Incorrect API key provided: sk-abcd****************wxyz",
        "Authorization: Bearer KEY",
        "{'authorization': 'Bearer KEY'}",
        '{"Authorization": "Basic KEY"}',
        "Headers({'api-key': 'KEY', 'accept': '*/*'})",
        '{"x-goog-api-key":"KEY"}',
        "x-api-key: KEY",
        "Ocp-Apim-Subscription-Key: KEY",
        "api_key=KEY",
        '"{\\"api_key\\":\\"KEY\\"}"',
        "https://x/v1?key=KEY&y=1",
        "https://x/v1?y=1&api-version=1&api_key=KEY",
        "https://x/v1?access_token=KEY",
        "http://user:KEY@host/v1",
    ],
)
def test_a_key_of_no_known_shape_is_taken_out_by_what_stands_before_it(text: str) -> None:
    safe = redact(text.replace("KEY", HEX_KEY))
    assert HEX_KEY[4:] not in safe and "abcd" not in safe and "[key]" in safe


@pytest.mark.parametrize("key", [*SHAPED, HEX_KEY, "hunter2-x", "p@ss/w\"or'd+=", "键钥密码锁匙"])
def test_a_known_key_is_taken_out_however_it_is_escaped(key: str) -> None:
    unicode = "".join(f"\\u{ord(sign):04x}" for sign in key)
    percent = "".join(f"%{ord(sign):02X}" for sign in key)
    html = "".join(f"&#{ord(sign)};" for sign in key)
    some = "".join(f"\\u{ord(sign):04X}" if place % 3 == 0 else sign for place, sign in enumerate(key))
    for spelt in (
        key,
        json.dumps(key)[1:-1],
        json.dumps(json.dumps(key))[3:-3],
        json.dumps(key).replace("/", "\\/")[1:-1],
        repr(key)[1:-1],
        unicode,
        percent,
        html,
        some,
        unicode.replace("\\", "\\\\"),
        f"{key[:4]}\n{key[4:]}",
        f"{key[:4]}\\n{key[4:]}",
    ):
        assert redact(f"the key <{spelt}> was refused", [key, None, ""]) == "the key <[key]> was refused", spelt


def test_a_shaped_key_that_nobody_told_us_of_does_not_survive_its_escapes() -> None:
    for spelt in (
        "sk\\u002dproj\\u002dabcDEF012",
        "sk-proj-abc\\u002dDEF012abcDEF",
        "sk%2Dproj%2DabcDEF012",
        "sk-abcDEF\\/012abc",
    ):
        assert "abc" not in redact(f'{{"k": "{spelt}"}}') and "DEF" not in redact(f'{{"k": "{spelt}"}}')


@pytest.mark.parametrize(
    "text",
    [
        "the risk-averse task-force asked a skilled model; sk-8 is a street",
        "Bearer authentication is required; no bearer token was sent",
        "a basic understanding of the situation",
        "API key: not set",
        "see https://example.org:8080/v1/chat?page=2&x=1",
        "ratio 3:4 at 12:30",
        "model gpt-4o-mini-2024-07-18 at hf-mirror",
    ],
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert redact(text) == text


def test_a_placeholder_is_no_secret() -> None:
    assert redact("x is not a key", ["x", "-", "EMP"]) == "x is not a key"


def test_a_brief_is_one_line_of_bounded_length_and_is_cut_after_its_keys_are_out() -> None:
    assert brief("a\n b" * 10_000).count("\n") == 0
    assert len(brief("x" * 10_000)) <= SHOWN_CHARACTERS + 2
    for before in range(SHOWN_CHARACTERS - 40, SHOWN_CHARACTERS):
        assert "0123" not in brief("-" * before + HEX_KEY, [HEX_KEY])


@given(st.text(), st.sampled_from(SHAPED), st.text())
def test_no_text_around_a_key_keeps_it(before: str, key: str, after: str) -> None:
    assert key not in redact(f"{before} {key} {after}")
    assert key not in redact(f"{before}{key}{after}", [key])


# Exceptions


class VendorError(Exception):
    """As the libraries' own: it holds the request and its headers."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.request = {"authorization": f"Bearer {KEYS['openai']}"}


async def test_nothing_leads_from_our_exception_back_to_the_vendors() -> None:
    async def fails() -> None:
        async with Border(lambda error: ProviderFailure("server", brief(error))):
            try:
                raise VendorError("first")
            except VendorError as first:
                raise VendorError(f"Bearer {KEYS['openai']}") from first

    with pytest.raises(ProviderFailure) as caught:
        await fails()
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    for locals_too in (False, True):
        shown = traceback.TracebackException.from_exception(caught.value, capture_locals=locals_too).format(chain=True)
        assert KEYS["openai"] not in "".join(shown)


@pytest.mark.parametrize("ours", [ModelUnavailable("no key"), ProviderFailure("timeout", "late"), Gone("job")])
async def test_our_own_exceptions_cross_the_border_as_they_are_and_leave_behind_what_led_to_them(
    ours: Exception,
) -> None:
    with pytest.raises(type(ours)) as caught:
        async with Border(unexpected_failure):
            try:
                raise KeyError("authorization")
            except KeyError:
                raise ours  # noqa: B904 - the chain is what is to be let go
    assert caught.value is ours and ours.__context__ is None


async def test_an_interruption_crosses_the_border_without_what_led_to_it() -> None:
    with pytest.raises(KeyboardInterrupt) as caught:
        async with Border(unexpected_failure):
            try:
                raise KeyError("authorization")
            except KeyError:
                raise KeyboardInterrupt  # noqa: B904
    assert caught.value.__context__ is None


def test_a_key_sent_as_a_password_in_base64_is_taken_out_of_its_header() -> None:
    header = base64.b64encode(f"user:{HEX_KEY}".encode()).decode()
    assert header[:8] not in redact(f"Authorization: Basic {header}")


def test_an_endpoint_that_takes_no_schema_is_told_apart_with_what_to_do() -> None:
    refused = classify_failure(400, "invalid_request_error This response_format type is unavailable now")
    assert "`structured: prompt`" in str(refused)
    assert "structured" not in str(classify_failure(400, "invalid_request_error n must be 1"))
    assert "structured" not in str(classify_failure(503, "response_format: busy"))

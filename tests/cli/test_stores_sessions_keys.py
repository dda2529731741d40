"""store, session, key; what --json prints; names that are not unique."""

from __future__ import annotations

import httpx2
import pytest

from tests.support.commands import Command
from tests.support.serving import Served
from tests.support.waiting import until


def test_a_stores_life(memstore: Command) -> None:
    """Create, show, change, archive, delete, each by name or id."""
    made = memstore.good(
        "store", "create", "Life", "--description", "d", "--metadata", "a=1", "--json"
    ).json
    assert (made["type"], made["name"], made["metadata"]) == ("memory_store", "Life", {"a": "1"})
    assert memstore.good("store", "show", "Life", "--json").json == made
    assert "0 of 10000" in memstore.good("store", "show", made["id"]).out
    arguments = ("--name", "Later", "--metadata", "b=2", "--remove-metadata", "a", "--json")
    changed = memstore.good("store", "update", "Life", *arguments).json
    assert (changed["name"], changed["metadata"]) == ("Later", {"b": "2"})
    assert memstore.good("store", "archive", "Later", "--json").json["archived_at"]
    assert made["id"] not in memstore.good("store", "list").out
    assert made["id"] in memstore.good("store", "list", "--archived").out
    assert "archived" in memstore.bad(5, "put", "Later", "/x", stdin="x")
    assert "--yes" in memstore.bad(5, "store", "delete", "Later")
    memstore.good("store", "delete", "Later", "--yes")
    memstore.bad(3, "store", "show", made["id"])


def test_an_ambiguous_name_lists_the_ids(memstore: Command) -> None:
    """Two stores of one name: exit 7 and both ids; a live one comes before an archived one."""
    one, other = (memstore.good("store", "create", "Twin").out.strip() for _ in range(2))
    sentence = memstore.bad(7, "ls", "Twin")
    assert one in sentence and other in sentence
    memstore.good("store", "archive", one)
    assert memstore.good("store", "show", "Twin", "--json").json["id"] == other


@pytest.mark.parametrize("name", ["", "x" * 256, "a\nb"])
def test_a_bad_name_is_invalid(memstore: Command, name: str) -> None:
    """Names break the rules with exit 7 and one sentence."""
    memstore.bad(7, "store", "create", name)


def test_json_prints_the_apis_own_objects(memstore: Command, service: Served, store: str) -> None:
    """Field by field what the API answers."""
    memstore.good("put", store, "/a", stdin="x")
    headers = {"x-api-key": service.admin_secret}
    with httpx2.Client(base_url=service.url, headers=headers) as http:
        found = memstore.good("store", "show", store, "--json").json
        url = f"/v1/memory_stores/{found['id']}"
        assert found == http.get(url).json()
        listed = http.get(f"{url}/memories").json()["data"]
        assert memstore.good("ls", store, "--json").json == {"data": listed}
        shown = http.get(f"{url}/memories/{listed[0]['id']}").json()
        assert memstore.good("show", store, "/a", "--json").json == shown
        versions = http.get(f"{url}/memory_versions").json()["data"]
        assert memstore.good("log", store, "--json").json == {"data": versions}


def test_a_sessions_life(memstore: Command, store: str) -> None:
    """Its token reads and writes what was attached, as attached, until the session ends."""
    reading = memstore.good("store", "create", f"{store} reading").out.strip()
    made = memstore.good(
        "session", "create", "--store", store, "--store", f"{reading}:ro", "--title", "t", "--json"
    ).json
    assert [one["access"] for one in made["resources"]] == ["read_write", "read_only"]
    assert made["token"] not in memstore.good("session", "show", made["id"]).out
    agent = memstore.but(MEMSTORE_API_KEY=made["token"])
    agent.good("put", store, "/a", stdin="x")
    agent.bad(5, "put", reading, "/a", stdin="x")
    (version,) = memstore.good("log", store, "--json").json["data"]
    assert version["created_by"] == {"type": "session_actor", "session_id": made["id"]}
    assert memstore.good("log", store, "--session", made["id"], "--json").json["data"] == [version]
    listed = memstore.good("session", "list", "--store", store, "--json").json["data"]
    assert [one["id"] for one in listed] == [made["id"]]
    assert memstore.good("session", "end", made["id"], "--json").json["status"] == "terminated"
    until(lambda: agent.run("ls", store).status == 5, "the token to stop working")
    assert made["id"] not in memstore.good("session", "list").out
    assert "ended" in memstore.good("session", "list", "--ended").out


def test_a_keys_life(memstore: Command, store: str) -> None:
    """A key does what its scopes allow until it is revoked; its secret is shown once."""
    made = memstore.good("key", "create", "--scope", "read", "--name", "ci", "--json").json
    assert made["scopes"] == ["read"] and made["key"]
    reader = memstore.but(MEMSTORE_API_KEY=made["key"])
    reader.good("ls", store)
    assert "write" in reader.bad(5, "put", store, "/a", stdin="x")
    listed = memstore.good("key", "list", "--json")
    assert made["id"] in listed.out and made["key"] not in listed.out
    assert memstore.good("key", "revoke", made["id"], "--json").json["revoked_at"]
    until(lambda: reader.run("ls", store).status == 5, "the key to stop working")
    memstore.bad(7, "key", "create", "--scope", "everything")
    memstore.bad(3, "key", "revoke", "apikey_nope")

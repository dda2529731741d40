"""The floor of the API: routes that do nothing, on the same server stack."""

from __future__ import annotations

from fastapi import FastAPI

app = FastAPI()


@app.get("/empty")
def read_nothing() -> dict[str, str]:
    return {"id": "nothing"}


@app.post("/empty")
def take_a_body(body: dict[str, str]) -> dict[str, str]:
    return {"path": body["path"]}

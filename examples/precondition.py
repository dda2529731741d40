"""Change a memory through the official SDK; see it in the mount; see a stale edit refused."""

import os
from pathlib import Path

from anthropic import Anthropic, ConflictError

client = Anthropic(base_url=os.environ["MEMSTORE_BASE_URL"], api_key=os.environ["MEMSTORE_API_KEY"])
store = next(s for s in client.beta.memory_stores.list() if s.name == "notes")
memories = client.beta.memory_stores.memories
memory = next(m for m in memories.list(store.id) if m.path == "/style.md")
based_on = {"type": "content_sha256", "content_sha256": memory.content_sha256}
edit = {"memory_store_id": store.id, "precondition": based_on}

memories.update(memory.id, content="Four spaces.\n", **edit)
print(Path("/mnt/memory/notes/style.md").read_text(), end="")

try:
    memories.update(memory.id, content="Two spaces.\n", **edit)
except ConflictError as error:
    print(error.type)

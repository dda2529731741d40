"""Every limit once. Sources: the SDK's field documentation and the platform's guide."""

CONTENT_BYTES = 102_400
PATH_BYTES = 1_024
PATH_SEGMENTS = 20
SEGMENT_BYTES = 255
"""A directory entry's limit (NAME_MAX); the API allows longer segments, a mount cannot show them."""

STORE_NAME_CHARS = 255
STORE_DESCRIPTION_CHARS = 1_024
METADATA_PAIRS = 16
METADATA_KEY_CHARS = 64
METADATA_VALUE_CHARS = 512

STORE_MEMORIES = 10_000
"""Default cap of live memories in a store; settable."""
STORE_BYTES = 104_857_600
"""Default cap of live content in a store, in bytes; settable."""

REJECTED_WRITES = 1_000
"""Open rejected writes a store keeps."""

PAGE_DEFAULT = 20
PAGE_MAX = 100
PAGE_MAX_FULL = 20

SESSION_STORES = 8
ATTACHMENT_INSTRUCTIONS_CHARS = 4_096

REQUEST_BYTES = 1_048_576
"""A whole request body: JSON escapes blow 100 KB of text up to six times its size."""
BATCH_CHANGES = 1_000
"""Changes in one batch."""
BATCH_REQUEST_BYTES = 16_777_216
"""The body of a batch: many small texts, or a directory rename."""

ROLLBACK_DIFF_BYTES = 4_194_304
"""Diffs, in characters altogether, after which a dry run of a rollback leaves the rest out."""

"""What may happen: authorise, check, write, record. One file a capability.

`Service` opens a database; `Service.backend_for(caller)` is the port in process.
"""

from memstore.service.backend import LocalBackend
from memstore.service.database import Service

__all__ = ["LocalBackend", "Service"]

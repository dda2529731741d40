"""Threads for the part of an answer that may block, and a deadline on each request.

A request has three states: waiting for a thread, running, answered. Whoever answers first (the
thread, the watchdog at the deadline, an interrupt) takes the request out of `_pending`; a later
answer is dropped. Running work is never cut off: the file system learns the true outcome even
when the caller was told EIO meanwhile.
"""

from __future__ import annotations

import errno
import logging
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from fuse_mount.kernel.channel import Channel
from fuse_mount.kernel.messages import error_reply

log = logging.getLogger(__name__)

Timeouts = tuple[int, int, int, int, int, int]
"""Seconds and nanoseconds for an entry, an attribute and a missing name."""
NO_TIMEOUTS: Timeouts = (0, 0, 0, 0, 0, 0)

Encode = Callable[[int, Any, Timeouts], bytes]
Refuse = Callable[[int, int, Timeouts], bytes]


def refuse(unique: int, code: int, _timeouts: Timeouts) -> bytes:
    """The plain refusal."""
    return error_reply(unique, code)


class Job:
    """One request's blocking rest. `unique` 0: answered already, nobody waits."""

    __slots__ = ("changes", "deadline", "droppable", "encode", "refuse", "run", "running", "unique")

    def __init__(
        self,
        unique: int,
        run: Callable[[], Any],
        encode: Encode,
        refuse: Refuse = refuse,
        *,
        droppable: bool = False,
        changes: int = 0,
    ) -> None:
        self.unique = unique
        self.run = run
        self.encode = encode
        self.refuse = refuse
        self.droppable = droppable
        """Whether it may be given up before it ran: it changes nothing."""
        self.changes = changes
        """`Channel.changes` when the request came."""
        self.running = False
        self.deadline = 0.0


class Workers:
    """A pool that starts its threads when work comes, at most `threads` beside overdue ones."""

    def __init__(
        self,
        channel: Channel,
        timeouts: Callable[[], Timeouts],
        *,
        threads: int = 8,
        deadline_s: float = 60.0,
    ) -> None:
        self._channel = channel
        self._timeouts = timeouts
        self._limit = threads
        self._deadline_s = deadline_s
        self._queue: SimpleQueue[Job | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._settled = threading.Condition(self._lock)
        self._pending: dict[int, Job] = {}  # in the order of their deadlines
        self.unfinished = 0  # jobs queued or running
        self._threads: list[threading.Thread] = []
        self._watch = threading.Condition(self._lock)
        self._watchdog: threading.Thread | None = None
        self._watchdog_idle = False
        self._stopped = False

    def submit(self, job: Job) -> None:
        """Run the job on a thread and send its answer."""
        job.deadline = time.monotonic() + self._deadline_s
        with self._lock:
            self.unfinished += 1
            if job.unique:
                self._pending[job.unique] = job
                self._wake_watchdog_locked()
            if self.unfinished > len(self._threads) and len(self._threads) < self._limit:
                self._start_thread_locked()
        self._queue.put(job)

    def interrupt(self, unique: int) -> bool:
        """FUSE_INTERRUPT: a droppable job that still waits for a thread ends with EINTR.

        Anything else runs on, for its outcome cannot be taken back; its answer comes in time.
        """
        with self._lock:
            job = self._pending.get(unique)
            if job is None or job.running or not job.droppable:
                return False
            del self._pending[unique]
        self._channel.send(error_reply(unique, errno.EINTR))
        return True

    def wait_idle(self, deadline_s: float) -> bool:
        """Wait until no job is queued or running; False when the time is over first."""
        end = time.monotonic() + deadline_s
        with self._lock:
            while self.unfinished:
                left = end - time.monotonic()
                if left <= 0 or not self._settled.wait(left):
                    return self.unfinished == 0
        return True

    def stop(self) -> None:
        """End idle threads; ones that still run something end after it, or with the process."""
        with self._lock:
            self._stopped = True
            count = len(self._threads)
            self._watch.notify_all()
        for _ in range(count):
            self._queue.put(None)

    def _start_thread_locked(self) -> None:
        thread = threading.Thread(target=self._work, name="fuse-worker", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _work(self) -> None:
        while (job := self._queue.get()) is not None:
            try:
                self._carry_out(job)
            finally:
                with self._lock:
                    self.unfinished -= 1
                    if not self.unfinished:
                        self._settled.notify_all()

    def _carry_out(self, job: Job) -> None:
        with self._lock:
            if job.unique and job.unique not in self._pending:
                if job.droppable:
                    return
                log.warning("request %d starts after its deadline", job.unique)
            job.running = True
        answer, code = None, 0
        try:
            answer = job.run()
        except OSError as error:
            code = error.errno or errno.EIO
        except Exception:
            log.exception("a request failed unexpectedly")
            code = errno.EIO
        if job.unique and self._claim(job):
            self._reply(job, answer, code)

    def _claim(self, job: Job) -> bool:
        with self._lock:
            return self._pending.pop(job.unique, None) is not None

    def _reply(self, job: Job, answer: object, code: int) -> None:
        channel = self._channel
        with channel.order:
            timeouts = self._timeouts() if channel.changes == job.changes else NO_TIMEOUTS
            try:
                if code:
                    message = job.refuse(job.unique, code, timeouts)
                else:
                    message = job.encode(job.unique, answer, timeouts)
            except Exception:
                log.exception("an answer could not be packed")
                message = error_reply(job.unique, errno.EIO)
            channel.send(message)

    # The watchdog

    def _wake_watchdog_locked(self) -> None:
        if self._watchdog is None:
            self._watchdog = threading.Thread(
                target=self._watch_deadlines, name="fuse-watchdog", daemon=True
            )
            self._watchdog.start()
        elif self._watchdog_idle:
            self._watch.notify()

    def _watch_deadlines(self) -> None:
        while True:
            with self._lock:
                overdue = self._next_overdue_locked()
            if overdue is None:
                return
            log.error("request %d is overdue: answered EIO, its work goes on", overdue.unique)
            self._channel.send(error_reply(overdue.unique, errno.EIO))

    def _next_overdue_locked(self) -> Job | None:
        """Wait for the next job past its deadline, take it out and return it; None at the end.

        It sleeps until the oldest deadline even when that job is answered meanwhile, so that
        ordinary traffic never wakes it.
        """
        while not self._stopped:
            if not self._pending:
                self._watchdog_idle = True
                self._watch.wait()
                self._watchdog_idle = False
                continue
            job = next(iter(self._pending.values()))
            left = job.deadline - time.monotonic()
            if left > 0:
                self._watch.wait(left)
                continue
            del self._pending[job.unique]
            if job.running and self._limit < 64:
                self._limit += 1  # its thread is lost for now: another may take its place
            return job
        return None

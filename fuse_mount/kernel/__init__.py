"""Linux: the FUSE protocol on `/dev/fuse`, without a library between.

    messages    layouts, opcodes, flags
    mounting    mount(2), fusermount3, an inherited descriptor; unmounting; stale mounts
    channel     one descriptor: replies, and the order between replies and invalidations
    session     the INIT handshake and the loop
    operations  one method a request: unpack, call the file system, pack
    workers     the part that may block, with a deadline on each request
    notify      what the kernel must forget

Which thread does what. One loop reads requests and answers from memory. Workers run each `Later`
and reply. The vfs's own threads invalidate inodes, a thread here invalidates names. A watchdog
answers what is overdue.

The order that keeps caches true. An answer that lets the kernel remember something must not
leave after the invalidation that takes it back. A change is applied first, then announced to the
notifier, which counts it. The loop computes and writes a reply under `Channel.order`; a notifier
passes through that lock before it writes, so every reply computed before the change is with the
kernel first. It does not hold the lock while it writes: an invalidation may wait for a page or a
directory that a request in the loop holds. A worker computes without the lock; it takes it to
write, and when the count moved since its request came, it allows the kernel to remember nothing.
"""

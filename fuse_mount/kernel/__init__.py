"""The Linux binding: the FUSE protocol on `/dev/fuse`, in Python."""

# The node's own programs: kubectl, etcdctl, calicoctl and the rest.
export PATH="/opt/burano/bin:$PATH"

# shellcheck shell=bash
# Ceph with one monitor, one manager and one store, which is a file: what Cinder's volumes are kept in. It needs nothing of the kernel, since QEMU speaks to it itself.

ceph_up() {
  mkdir -p /srv/data/ceph/{mon,mgr,osd}
  [[ -e /srv/data/ceph/fsid ]] || cat /proc/sys/kernel/random/uuid >/srv/data/ceph/fsid
  configure /srv/etc/ceph/ceph.conf <<END
[global]
fsid = $(</srv/data/ceph/fsid)
mon_host = [v2:127.0.0.1:3300,v1:127.0.0.1:6789]
public_network = 127.0.0.0/8
auth_cluster_required = none
auth_service_required = none
auth_client_required = none
run_dir = /srv/run
admin_socket = /srv/run/\$name.asok
log_file = /dev/null
mon_cluster_log_file = /dev/null
osd_pool_default_size = 1
osd_pool_default_min_size = 1
osd_crush_chooseleaf_type = 0
mon_allow_pool_size_one = true
mon_data_avail_crit = 1
mon_data_avail_warn = 2
mgr_initial_modules =
[osd]
bluestore_block_size = 21474836480
bluestore_cache_autotune = false
bluestore_cache_size = 67108864
osd_class_dir = /usr/lib/x86_64-linux-gnu/rados-classes
END
  local config=(--conf /srv/etc/ceph/ceph.conf)
  once ceph-monitor ceph-mon "${config[@]}" --mkfs --id a --fsid "$(</srv/data/ceph/fsid)" --mon-data /srv/data/ceph/mon --public-addr 127.0.0.1
  background ceph-mon ceph-mon "${config[@]}" --id a --mon-data /srv/data/ceph/mon --public-addr 127.0.0.1 --foreground
  await ceph-mon 300 ceph_says status
  background ceph-mgr ceph-mgr "${config[@]}" --id a --mgr-data /srv/data/ceph/mgr --foreground
  once ceph-new ceph_says osd new "$(</srv/data/ceph/fsid)" 0
  once ceph-store ceph-osd "${config[@]}" --id 0 --osd-data /srv/data/ceph/osd --mkfs --osd-uuid "$(</srv/data/ceph/fsid)"
  background ceph-osd ceph-osd "${config[@]}" --id 0 --osd-data /srv/data/ceph/osd --foreground
  await ceph-osd 300 ceph_has_store
  await ceph-mgr 300 ceph_has_manager
  local pool
  for pool in volumes east; do
    once "ceph-pool-$pool" ceph_says osd pool create "$pool" 8
    once "ceph-pool-$pool-ready" rbd "${config[@]}" pool init "$pool"
  done
}

ceph_says() { ceph --conf /srv/etc/ceph/ceph.conf --connect-timeout 10 "$@"; }
ceph_has_store() { ceph_says osd stat --format json | jq --exit-status '.num_up_osds == 1'; }
ceph_has_manager() { ceph_says mgr dump --format json | jq --exit-status .available; }

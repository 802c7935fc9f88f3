package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/sharedfilesystems/v2/shares"
	"github.com/stretchr/testify/require"
)

const claimOfManila = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: %s}
spec:
  accessModes: [ReadWriteMany]
  resources: {requests: {storage: 1Gi}}
`

// TestClaimsGetSharesOfManila has pods on two nodes use one share, as far as the mount, since no server exports it here. The share grows, a quota is full, and the cluster
// is deleted.
func TestClaimsGetSharesOfManila(t *testing.T) {
	soakOnly(t, "`make soak` runs this: controllers and broker of shares have tests of their own, and TestClaimsGetVolumesOfCinder has the same controllers in a cluster")
	l := start(t)
	l.relaunch(t, watchful...)
	demo := l.user(t, "burano-demo")
	found := inventory(t, demo)
	manila := demo.service(t, openstack.NewSharedFileSystemV2)
	manila.Microversion = "2.14"
	all := func() []shares.Share {
		t.Helper()
		pages, err := shares.ListDetail(manila, shares.ListOpts{}).AllPages(t.Context())
		require.NoError(t, err)
		list, err := shares.ExtractShares(pages)
		require.NoError(t, err)
		return list
	}
	require.Empty(t, all())
	s, _, log := l.scaled(t, demo, "nodeCount: 1", "nodeCount: 2", "name: scaling-cluster",
		"name: scaling-cluster\n    storageClasses: [{name: burano-manila, backend: manila, default: true, mountOptions: [retry=0]}]\n    enableRegistry: false\n    keepVolumes: false")
	require.Contains(t, log, "storage-controllers started")
	require.Contains(t, log, "storage-node started")
	c := s.cluster
	nodes := []string{"murano-kube-2", "murano-kube-3"}
	pod := func(name, claim, node string) {
		t.Helper()
		c.kubectl(t, strings.NewReplacer("claimName: kept", "claimName: "+claim, "restartPolicy: Never",
			"restartPolicy: Never\n  terminationGracePeriodSeconds: 1\n  nodeSelector: {kubernetes.io/hostname: "+node+"}").
			Replace(fmt.Sprintf(volumeUser, name, "{runAsUser: 1000, fsGroup: 2000}", "true")), "apply", "-f", "-")
	}
	gone := func() { t.Helper(); s.noVolumesLeft(t, func() int { return len(all()) }) }

	timed(t, "without a delegation nothing is made, and the claim and a finding say so", func() {
		c.kubectl(t, fmt.Sprintf(claimOfManila, "data"), "apply", "-f", "-")
		pod("first", "data", nodes[0])
		s.says(t, "PersistentVolumeClaim", "data", "has no standing delegation, without which Burano asks the cloud for no volumes: burano environment delegation set scaling")
		s.finds(t, "volumes-undelegated")
		require.Empty(t, all())
	})

	timed(t, "pods on two nodes have access to one share, which their nodes mount", func() {
		l.run(t, l.as("burano-demo"), "burano", "environment", "delegation", "set", "scaling")
		pod("second", "data", nodes[1])
		var share shares.Share
		l.eventually(t, 2*time.Minute, "both nodes have access", func() error {
			list := all()
			if len(list) != 1 {
				return fmt.Errorf("there are %d shares", len(list))
			}
			share = list[0]
			rights, err := shares.ListAccessRights(t.Context(), manila, share.ID).Extract()
			if err != nil {
				return err
			}
			if len(rights) != 2 {
				return fmt.Errorf("there are these rights: %v", rights)
			}
			for _, one := range rights {
				if address := share.Metadata["burano_node_"+nodes[0]]; one.AccessTo != address && one.AccessTo != share.Metadata["burano_node_"+nodes[1]] {
					return fmt.Errorf("%s is no node's: %v", one.AccessTo, share.Metadata)
				}
			}
			return nil
		})
		require.Equal(t, 1, share.Size)
		require.Equal(t, s.environment+"/"+s.clusterID(t), share.Metadata["burano_cluster"])
		require.Contains(t, share.Description, "Claim default/data of cluster scaling-cluster")
		locations, err := shares.ListExportLocations(t.Context(), manila, share.ID).Extract()
		require.NoError(t, err)
		for _, name := range []string{"first", "second"} { // the kernel of this machine may have no NFS, and the local cloud's shares have no server
			s.says(t, "Pod", name, "mount share "+share.ID)
			s.says(t, "Pod", name, "mount.nfs: ")
			s.says(t, "Pod", name, locations[0].Path)
		}
	})

	timed(t, "it grows", func() {
		c.kubectl(t, "", "patch", "pvc", "data", "-p", `{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}`)
		l.eventually(t, time.Minute, "the claim and Manila say so", func() error {
			if size := c.kubectl(t, "", "get", "pvc", "data", "-o", "jsonpath={.status.capacity.storage}"); size != "2Gi" || all()[0].Size != 2 {
				return fmt.Errorf("they have %s and %d GiB", size, all()[0].Size)
			}
			return nil
		})
	})

	timed(t, "a claim says which quota is full", func() {
		admin := l.user(t, "burano-admin").service(t, openstack.NewSharedFileSystemV2)
		limit := func(count int) {
			t.Helper()
			quota := map[string]any{"quota_set": map[string]any{"shares": count}}
			response, err := admin.Put(context.WithoutCancel(t.Context()), admin.ServiceURL("quota-sets", all()[0].ProjectID), quota, nil, &gophercloud.RequestOpts{OkCodes: []int{200}})
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
		}
		limit(1)
		defer limit(1000)
		c.kubectl(t, fmt.Sprintf(claimOfManila, "much"), "apply", "-f", "-")
		pod("much", "much", nodes[0])
		s.says(t, "PersistentVolumeClaim", "much", "ShareLimitExceeded: Maximum number of shares allowed (1)")
		c.kubectl(t, "", "delete", "pod", "much")
		c.kubectl(t, "", "delete", "pvc", "much")
	})

	timed(t, "a claim that is deleted takes its share with it, and the access of the nodes", func() {
		c.kubectl(t, "", "delete", "pod", "first", "second")
		c.kubectl(t, "", "delete", "pvc", "data")
		gone()
	})

	timed(t, "the shares of a cluster that is deleted go with it, as keepVolumes says", func() {
		c.kubectl(t, fmt.Sprintf(claimOfManila, "last"), "apply", "-f", "-")
		pod("last", "last", nodes[0])
		s.says(t, "Pod", "last", "mount.nfs: ")
		require.Len(t, all(), 1)
	})
	output := l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "scaling")
	t.Log(output)
	require.Empty(t, all())
	asBefore(t, demo, found)
}

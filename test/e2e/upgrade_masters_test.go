package e2e

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"
	"github.com/stretchr/testify/require"
)

// TestAClusterOfThreeMastersIsUpgraded upgrades a cluster with three masters to an image with a newer Kubernetes, and kills the server at steps of it. While the
// masters are replaced, one after another, ConfigMaps are written and requests go to the application through the gateway. No acknowledged ConfigMap is lost, no
// write fails twice, and no request fails. `make test-upgrade` makes the former image.
func TestAClusterOfThreeMastersIsUpgraded(t *testing.T) {
	former := formerImage(t)
	u := upgradeMasters(t, former, "")
	l, demo := u.lab, u.user
	before := u.version(t)
	plan := u.upgrade(t, "--image", "burano-node", "--plan")
	t.Logf("the plan:\n%s", plan)
	for i, node := range []string{"murano-kube-1 +master", "murano-kube-1-m2 +master", "murano-kube-1-m3 +master", "murano-kube-2 +minion", "murano-gateway-1 +gateway"} {
		require.Regexp(t, fmt.Sprintf(`(?m)^%d +%s +v1\.`, i+1, node), plan)
	}

	requests := u.load(t)
	w := u.write(t)
	w.more(t, 20)
	kills := []string{"end:murano-kube-1-r2: etcd member", "end:murano-kube-1: hand over"}
	l.stop(t)
	l.launch(t, "--kill-at-step", kills[0], "--max-deaths", strconv.Itoa(len(kills)))
	l.healthy(t)
	_, _ = l.try(l.as("burano-demo"), "burano", "cluster", "upgrade", "scaling", "--image", "burano-node") // the server may die before it has answered
	l.surviveKills(t, kills)
	l.eventually(t, 10*time.Minute, "the masters are replaced", func() error {
		shown := u.show(t)
		for done := 3; done <= 5; done++ {
			if strings.Contains(shown, fmt.Sprintf("%d of 5 nodes are done", done)) {
				return nil
			}
		}
		return fmt.Errorf("the cluster is so: %s", shown)
	})
	w.more(t, 20)
	w.end()
	requests.end()
	u.ends(t)
	t.Logf("%d ConfigMaps were written, %d of them in a second try, the slowest within %s; the application: %s", len(w.acknowledged), w.again, w.slowest, requests)
	require.Empty(t, w.failed, "requests that failed twice")
	u.cluster.noneFailed(t, requests.failed)

	u.master, u.further = "murano-kube-1-r2", []string{"murano-kube-1-m2-r2", "murano-kube-1-m3-r2"}
	u.cluster = l.clusterOf(t, demo, environmentNamed(t, demo, "scaling"))
	u.holds(t, []string{"murano-kube-2-r2"}, []string{"murano-gateway-1-r2"})
	require.Subset(t, strings.Fields(u.cluster.kubectl(t, "", "get", "configmaps", "-o", "jsonpath={.items[*].metadata.name}")), w.acknowledged, "what was acknowledged is there")
	u.precious(t)
	require.NotEqual(t, before, u.version(t))
	require.NotContains(t, u.show(t), "UPGRADE")
	bothReplicasAnswer(t, l, endpointOf(t, environmentNamed(t, demo, "scaling")))
	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "scaling")
	asBefore(t, demo, u.found)
}

// TestAClusterOfThreeMastersGoesBackWhoseCalicoIsInKubernetes upgrades such a cluster until its first master is done, and rolls back: no request fails, and a
// NetworkPolicy holds at all times. `make test-upgrade` makes the former image.
func TestAClusterOfThreeMastersGoesBackWhoseCalicoIsInKubernetes(t *testing.T) {
	former := formerImage(t)
	u := upgradeMasters(t, former, "    calicoDatastore: kubernetes\n")
	u.needsDefinitions(t)
	before := u.version(t)
	gateway := u.floating(t, "murano-gateway-1")["murano-gateway-1"]
	closePods(t, u.lab, u.cluster, gateway)
	closed := startLoadOf(t, net.JoinHostPort(gateway, closedPort), closedRate)
	requests := u.load(t)
	u.upgrade(t, "--image", "burano-node")
	u.lab.eventually(t, 10*time.Minute, "a master is done", func() error {
		if shown := u.show(t); !strings.Contains(shown, "1 of 5 nodes are done") {
			return fmt.Errorf("the cluster is so: %s", shown)
		}
		return nil
	})
	u.pause(t)
	u.ends(t)
	require.Regexp(t, `[12] of 5 nodes are done \(paused\)`, u.show(t))
	u.upgrade(t, "--back")
	u.ends(t)
	requests.end()
	closed.end()
	t.Logf("the application: %s", requests)
	u.cluster.noneFailed(t, requests.failed)
	require.Len(t, closed.failed, closed.fresh+closed.kept, "a NetworkPolicy held at all times: %s", closed)

	var masters []string
	for _, name := range inventory(t, u.user)["servers"] {
		if strings.HasPrefix(name, "murano-kube-1") {
			masters = append(masters, name)
		}
	}
	require.Len(t, masters, 3)
	u.master, u.further = masters[0], masters[1:]
	u.cluster = u.lab.clusterOf(t, u.user, environmentNamed(t, u.user, "scaling"))
	u.holds(t, []string{"murano-kube-2"}, []string{"murano-gateway-1"})
	for _, master := range masters {
		said, err := u.cluster.on(master, "/opt/burano/bin/kube-apiserver", "--version")
		require.NoError(t, err, said)
		require.Contains(t, said, before, master)
	}
	require.NotContains(t, u.show(t), "UPGRADE")
	u.precious(t)
	bothReplicasAnswer(t, u.lab, endpointOf(t, environmentNamed(t, u.user, "scaling")))
	openPods(t, u.lab, u.cluster, gateway)
	u.lab.run(t, u.lab.as("burano-demo"), "burano", "environment", "delete", "--yes", "scaling")
	asBefore(t, u.user, u.found)
}

// needsDefinitions removes the image's property for Calico's kinds: no upgrade to it begins.
func (u *upgrading) needsDefinitions(t *testing.T) {
	t.Helper()
	const property = "burano_calico_definitions"
	admin := u.lab.user(t, "burano-admin")
	glance, id := admin.service(t, openstack.NewImageV2), admin.imageNamed(t, "burano-node")
	image, err := images.Get(t.Context(), glance, id).Extract()
	require.NoError(t, err)
	change := func(op images.UpdateOp, value string) {
		t.Helper()
		_, err := images.Update(t.Context(), glance, id, images.UpdateOpts{images.UpdateImageProperty{Op: op, Name: property, Value: value}}).Extract()
		require.NoError(t, err)
	}
	change(images.RemoveOp, "")
	for _, flag := range []string{"--plan", "--follow"} {
		require.Contains(t, u.fails(t, "--image", "burano-node", flag), "image burano-node of node murano-kube-1 does not say that it has the definitions of Calico's kinds, which calicoDatastore: kubernetes needs")
	}
	require.NotContains(t, u.show(t), "UPGRADE")
	change(images.AddOp, image.Properties[property].(string))
}

// upgradeMasters deploys a cluster with three masters of a former image, and with further lines.
func upgradeMasters(t *testing.T, former, lines string) *upgrading {
	u := deployFormer(t, start(t, "faults"), former, "masters.yaml", lines, "name: masters\n", "name: scaling\n", "    nodeCount: 1", "    masterCount: 3\n    nodeCount: 1")
	u.further = []string{"murano-kube-1-m2", "murano-kube-1-m3"}
	u.holds(t, []string{"murano-kube-2"}, []string{"murano-gateway-1"})
	return u
}

// load sends requests through the only gateway.
func (u *upgrading) load(t *testing.T) *load {
	t.Helper()
	_, port, err := net.SplitHostPort(endpointOf(t, environmentNamed(t, u.user, "scaling")))
	require.NoError(t, err)
	return startLoad(t, net.JoinHostPort(u.floating(t, "murano-gateway-1")["murano-gateway-1"], port))
}

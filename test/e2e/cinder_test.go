package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/blockstorage/v3/quotasets"
	"github.com/gophercloud/gophercloud/v2/openstack/blockstorage/v3/snapshots"
	"github.com/gophercloud/gophercloud/v2/openstack/blockstorage/v3/volumes"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/stretchr/testify/require"
)

const claimOfCinder = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: %s}
spec:
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Gi}}
`

const snapshotOfClaim = `
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshot
metadata: {name: %s}
spec: {source: {persistentVolumeClaimName: %s}}
`

// claimMadeOf has a name, the claim's source, and a size.
const claimMadeOf = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: %s}
spec:
  accessModes: [ReadWriteOnce]
  dataSource: %s
  resources: {requests: {storage: %s}}
`

// moving is a pod that is made again on another node when its node goes, with the program of the tests, which serves
// and never ends.
const moving = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: moving}
spec:
  selector: {matchLabels: {app: moving}}
  serviceName: moving
  template:
    metadata: {labels: {app: moving}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: user
        image: registry.local/demo:1
        imagePullPolicy: IfNotPresent
        volumeMounts: [{name: data, mountPath: /data}]
      volumes:
      - {name: data, persistentVolumeClaim: {claimName: data}}
`

// TestClaimsGetVolumesOfCinder has pods on two nodes use one volume after the other. The volume grows, the server is away, and a quota is full. In `make soak`
// many claims come and go at once.
func TestClaimsGetVolumesOfCinder(t *testing.T) {
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		t.Skipf("servers' volumes are loop devices, which this machine has not: %v", err)
	}
	l := start(t)
	l.relaunch(t, watchful...)
	demo := l.user(t, "burano-demo")
	found := inventory(t, demo)
	cinder := demo.service(t, openstack.NewBlockStorageV3)
	all := func() []volumes.Volume {
		t.Helper()
		pages, err := volumes.List(cinder, volumes.ListOpts{}).AllPages(t.Context())
		require.NoError(t, err)
		list, err := volumes.ExtractVolumes(pages)
		require.NoError(t, err)
		return list
	}
	allSnapshots := func() []snapshots.Snapshot {
		t.Helper()
		pages, err := snapshots.List(cinder, snapshots.ListOpts{}).AllPages(t.Context())
		require.NoError(t, err)
		list, err := snapshots.ExtractSnapshots(pages)
		require.NoError(t, err)
		return list
	}
	require.Empty(t, all())
	l.run(t, l.as("burano-demo"), "burano", "package", "import", "test/packages/io.burano.demo.Hello")
	text, err := os.ReadFile("testdata/scaling.yaml")
	require.NoError(t, err)
	model := strings.NewReplacer("nodeCount: 1", "nodeCount: 2", "name: scaling-cluster",
		"name: scaling-cluster\n    storageClasses: [{name: burano-cinder, backend: cinder, default: true}]\n    enableRegistry: false\n    keepVolumes: false").Replace(string(text))
	file := filepath.Join(t.TempDir(), "cinder.yaml")
	lacks := func(text string, pairs ...string) { // the preview refuses an edit, and nothing is made
		t.Helper()
		require.NoError(t, os.WriteFile(file, []byte(strings.NewReplacer(pairs...).Replace(model)), 0o600))
		output, err := l.try(l.as("burano-demo"), "burano", "deploy", file, "--dry-run")
		require.Error(t, err, output)
		require.Contains(t, output, text)
	}
	const unknownType = `storage class burano-cinder: the project sees no volume type with the name or id "marble": there are `
	lacks(unknownType, "backend: cinder,", "backend: cinder, type: marble,")
	require.NoError(t, os.WriteFile(file, []byte(model), 0o600))
	log := l.run(t, l.as("burano-demo"), "burano", "deploy", file, "--follow")
	require.Contains(t, log, "storage-controllers started")
	require.Contains(t, log, "storage-node started")
	l.deleteIfFailed(t, "scaling")
	lacks(strings.Replace(unknownType, "burano-cinder", "fast", 1), "storageClasses: [", "storageClasses: [{name: fast, backend: cinder, type: marble}, ")
	environment := environmentNamed(t, demo, "scaling")
	s := &scaling{lab: l, user: demo, cluster: l.clusterOf(t, demo, environment), environment: environment["id"].(string)}
	c := s.cluster
	const nonRoot = "{runAsUser: 1000, runAsGroup: 1000, fsGroup: 2000, runAsNonRoot: true}"
	pod := func(name, claim, node, script string) {
		t.Helper()
		where := "terminationGracePeriodSeconds: 1"
		if node != "" {
			where += "\n  nodeSelector: {kubernetes.io/hostname: " + node + "}"
		}
		c.kubectl(t, strings.NewReplacer("claimName: kept", "claimName: "+claim, "restartPolicy: Never", "restartPolicy: Never\n  "+where).
			Replace(fmt.Sprintf(volumeUser, name, nonRoot, script)), "apply", "-f", "-")
	}
	becomes := func(name, phase string) {
		t.Helper()
		l.eventually(t, 3*time.Minute, "pod "+name+" is "+phase, func() error {
			if now := c.kubectl(t, "", "get", "pod", name, "-o", "jsonpath={.status.phase}"); now != phase {
				return fmt.Errorf("it is %s: %s", now, c.kubectl(t, "", "describe", "pod", name))
			}
			return nil
		})
	}
	run := func(name, claim, node, script string) {
		t.Helper()
		began := time.Now()
		pod(name, claim, node, script)
		becomes(name, "Succeeded")
		c.kubectl(t, "", "delete", "pod", name)
		t.Logf("pod %s ended after %.1f s", name, time.Since(began).Seconds())
	}
	told := func(claim, text string) { t.Helper(); s.says(t, "PersistentVolumeClaim", claim, text) }
	gone := func() { t.Helper(); s.noVolumesLeft(t, func() int { return len(all()) }) }

	timed(t, "without a delegation nothing is made, and the claim and a finding say so", func() {
		c.kubectl(t, fmt.Sprintf(claimOfCinder, "data"), "apply", "-f", "-")
		pod("writer", "data", "murano-kube-2", "echo kept > /data/file; ls -ln /data")
		told("data", "has no standing delegation, without which Burano asks the cloud for no volumes: burano environment delegation set scaling")
		s.finds(t, "volumes-undelegated")
		require.Empty(t, all())
	})

	timed(t, "a pod writes, and one on another node reads it", func() {
		began := time.Now()
		l.run(t, l.as("burano-demo"), "burano", "environment", "delegation", "set", "scaling")
		becomes("writer", "Succeeded")
		t.Logf("the volume was used %.1f s after the delegation was there", time.Since(began).Seconds())
		c.kubectl(t, "", "delete", "pod", "writer")
		list := all()
		require.Len(t, list, 1)
		require.Equal(t, 1, list[0].Size)
		require.Equal(t, s.environment+"/"+s.clusterID(t), list[0].Metadata["burano_cluster"])
		require.Contains(t, list[0].Description, "Claim default/data of cluster scaling-cluster")
		run("reader", "data", "murano-kube-3", "[[ $(</data/file) == kept ]]; echo more > /data/more")
	})

	timed(t, "it grows", func() {
		c.kubectl(t, "", "patch", "pvc", "data", "-p", `{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}`)
		l.eventually(t, time.Minute, "Cinder says so", func() error {
			if list := all(); list[0].Size != 2 {
				return fmt.Errorf("it has %d GiB", list[0].Size)
			}
			return nil
		})
		run("larger", "data", "murano-kube-2", "[[ $(</data/file) == kept ]]; [[ $(</data/more) == more ]]; (( $(df --output=size -k /data | tail -1) > 1900000 ))")
		l.eventually(t, time.Minute, "the claim says so", func() error {
			if size := c.kubectl(t, "", "get", "pvc", "data", "-o", "jsonpath={.status.capacity.storage}"); size != "2Gi" {
				return fmt.Errorf("it has %s", size)
			}
			return nil
		})
	})

	timed(t, "while the server is away what runs goes on, and nothing new is made", func() {
		pod("running", "data", "murano-kube-3", "while :; do date +%s > /data/now; sleep 1; done")
		becomes("running", "Running")
		l.stop(t)
		c.kubectl(t, fmt.Sprintf(claimOfCinder, "later"), "apply", "-f", "-")
		pod("waiting", "later", "murano-kube-3", "echo later > /data/file")
		told("later", "no Burano server is connected to the cluster")
		becomes("running", "Running")
		l.launch(t, watchful...)
		l.healthy(t)
		becomes("waiting", "Succeeded")
		becomes("running", "Running")
		c.kubectl(t, "", "delete", "pod", "waiting", "running")
		c.kubectl(t, "", "delete", "pvc", "later")
	})

	timed(t, "a claim says which quota is full", func() {
		admin := l.user(t, "burano-admin").service(t, openstack.NewBlockStorageV3)
		limit := func(count int) {
			t.Helper()
			_, err := quotasets.Update(t.Context(), admin, all()[0].TenantID, quotasets.UpdateOpts{Volumes: gophercloud.IntToPointer(count)}).Extract()
			require.NoError(t, err)
		}
		limit(1)
		defer limit(1000)
		c.kubectl(t, fmt.Sprintf(claimOfCinder, "much"), "apply", "-f", "-")
		pod("much", "much", "", "true")
		told("much", "exceeded for quota 'volumes'")
		c.kubectl(t, "", "delete", "pod", "much")
		c.kubectl(t, "", "delete", "pvc", "much")
	})

	snapshot := func(name, claim string) {
		t.Helper()
		c.kubectl(t, fmt.Sprintf(snapshotOfClaim, name, claim), "apply", "-f", "-")
		c.kubectl(t, "", "wait", "volumesnapshot", name, "--for=jsonpath={.status.readyToUse}=true", "--timeout=120s")
	}
	timed(t, "a claim has a snapshot while a pod uses it, and others are made of the snapshot and of the claim", func() {
		pod("holder", "data", "murano-kube-2", "while :; do sleep 1; done")
		becomes("holder", "Running")
		began := time.Now()
		snapshot("before", "data")
		t.Logf("the snapshot was there after %.1f s", time.Since(began).Seconds())
		require.Len(t, allSnapshots(), 1)
		require.Equal(t, s.environment+"/"+s.clusterID(t), allSnapshots()[0].Metadata["burano_cluster"])
		c.kubectl(t, "", "delete", "pod", "holder")
		run("changer", "data", "murano-kube-2", "echo changed > /data/file")
		const ofSnapshot, ofClaim = "{apiGroup: snapshot.storage.k8s.io, kind: VolumeSnapshot, name: before}", "{kind: PersistentVolumeClaim, name: data}"
		c.kubectl(t, fmt.Sprintf(claimMadeOf, "restored", ofSnapshot, "3Gi")+"---"+fmt.Sprintf(claimMadeOf, "copied", ofClaim, "1500Mi")+"---"+fmt.Sprintf(claimMadeOf, "small", ofSnapshot, "1Gi"), "apply", "-f", "-")
		run("restored", "restored", "murano-kube-3", "[[ $(</data/file) == kept ]]; (( $(df --output=size -k /data | tail -1) > 2900000 ))")
		run("copied", "copied", "murano-kube-3", "[[ $(</data/file) == changed ]]")
		pod("small", "small", "", "true")
		told("small", "VolumeSnapshot before, of which the volume is to be made: it has 2Gi, and a volume of 1Gi is asked for: ask for as much at least")
		c.kubectl(t, "", "delete", "pod", "small")
		c.kubectl(t, "", "delete", "pvc", "restored", "copied", "small")
	})

	timed(t, "a node that is removed gives its volume to the next one, and so does one whose server is off", func() {
		c.kubectl(t, moving, "apply", "-f", "-")
		of := func() string {
			return c.kubectl(t, "", "get", "pod", "-l", "app=moving", "--field-selector", "status.phase=Running", "-o", "jsonpath={.items[*].spec.nodeName}")
		}
		var node string
		l.eventually(t, 2*time.Minute, "it runs", func() error {
			if node = of(); node == "" {
				return fmt.Errorf("it does not run: %s", c.kubectl(t, "", "describe", "pods", "-l", "app=moving"))
			}
			return nil
		})
		began := time.Now()
		s.act(t, "scaling-cluster", "replaceNode", map[string]any{"node": node})
		l.eventually(t, 2*time.Minute, "it runs elsewhere", func() error {
			if now := of(); now == "" || now == node {
				return fmt.Errorf("it runs on %q", now)
			}
			return nil
		})
		t.Logf("%s was replaced, with a pod with a volume, in %.1f s", node, time.Since(began).Seconds())

		s.find(t)
		l.eventually(t, time.Minute, "it runs", func() error {
			if node = of(); node == "" {
				return fmt.Errorf("it does not run: %s", c.kubectl(t, "", "describe", "pods", "-l", "app=moving"))
			}
			return nil
		})
		require.NoError(t, servers.Stop(t.Context(), demo.nova(t), c.servers[node]).ExtractErr())
		s.becomes(t, c.servers[node], "SHUTOFF")
		began = time.Now()
		l.eventually(t, time.Minute, "it runs elsewhere", func() error {
			if now := of(); now == "" || now == node {
				return fmt.Errorf("it runs on %q: %s", now, c.kubectl(t, "", "get", "pods,volumeattachments,nodes"))
			}
			return nil
		})
		t.Logf("%.1f s after the server of %s was off, its pod with a volume ran elsewhere", time.Since(began).Seconds(), node)
		s.finds(t, "server-stopped", "node-out-of-service")
		require.NoError(t, servers.Start(t.Context(), demo.nova(t), c.servers[node]).ExtractErr())
		s.finds(t)
		require.NotContains(t, c.kubectl(t, "", "get", "node", node, "-o", "jsonpath={.spec.taints}"), "out-of-service")
		c.kubectl(t, "", "delete", "statefulset", "moving")
		l.eventually(t, time.Minute, "one volume is left", func() error {
			if list := all(); len(list) != 1 {
				return fmt.Errorf("there are %v", list)
			}
			return nil
		})
	})

	timed(t, "a claim that is deleted while a pod uses it goes when the pod has gone", func() {
		c.kubectl(t, fmt.Sprintf(claimOfCinder, "used"), "apply", "-f", "-")
		pod("user", "used", "", "while :; do date +%s > /data/now; sleep 1; done")
		becomes("user", "Running")
		c.kubectl(t, "", "delete", "pvc", "used", "--wait=false")
		require.NotEmpty(t, c.kubectl(t, "", "get", "pvc", "used", "-o", "jsonpath={.metadata.deletionTimestamp}"))
		c.kubectl(t, "", "exec", "user", "--", "bash", "-c", "echo on > /data/still && sync /data/still")
		require.Len(t, all(), 2)
		c.kubectl(t, "", "delete", "pod", "user")
		l.eventually(t, 2*time.Minute, "its volume is gone", func() error {
			if list := all(); len(list) != 1 {
				return fmt.Errorf("there are %v", list)
			}
			return nil
		})
	})

	timed(t, "a claim that is deleted takes its volume with it, once that has no snapshot any more", func() {
		c.kubectl(t, "", "delete", "pvc", "data")
		l.eventually(t, time.Minute, "its volume says what is in the way", func() error {
			events := c.kubectl(t, "", "get", "events", "--field-selector", "involvedObject.kind=PersistentVolume", "-o", "jsonpath={.items[*].message}")
			if !strings.Contains(events, "has snapshots still, and is deleted when these are") {
				return fmt.Errorf("they say: %s", events)
			}
			return nil
		})
		require.Len(t, all(), 1)
		c.kubectl(t, "", "delete", "volumesnapshot", "before")
		gone()
		require.Empty(t, allSnapshots())
	})

	if soaking() {
		timed(t, "many come and go at once, with the server killed meanwhile", func() {
			const many = 100
			var claims strings.Builder
			for i := range many {
				claims.WriteString("---" + fmt.Sprintf(claimOfCinder, fmt.Sprintf("many-%d", i)))
			}
			c.kubectl(t, claims.String(), "apply", "-f", "-")
			for i := range many {
				pod(fmt.Sprintf("many-%d", i), fmt.Sprintf("many-%d", i), "", "true")
			}
			l.eventually(t, time.Minute, "some volumes are there", func() error {
				if len(all()) < 3 {
					return fmt.Errorf("there are %d", len(all()))
				}
				return nil
			})
			require.NoError(t, l.server.Process.Kill())
			require.Error(t, l.server.Wait())
			l.launch(t, watchful...)
			l.healthy(t)
			for i := range many {
				becomes(fmt.Sprintf("many-%d", i), "Succeeded")
			}
			names := map[string]bool{}
			for _, one := range all() {
				require.False(t, names[one.Name], "%s was made twice", one.Name)
				names[one.Name] = true
			}
			require.Len(t, names, many)
			c.kubectl(t, "", "delete", "pod", "--field-selector", "status.phase=Succeeded")
			c.kubectl(t, "", "delete", "pvc", "--all")
			gone()
		})
	}

	timed(t, "the volumes of a cluster that is deleted go with it, as keepVolumes says", func() {
		c.kubectl(t, fmt.Sprintf(claimOfCinder, "last"), "apply", "-f", "-")
		run("last", "last", "", "true")
		snapshot("last", "last")
		require.Len(t, all(), 1)
	})
	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "scaling")
	require.Empty(t, all())
	require.Empty(t, allSnapshots())
	asBefore(t, demo, found)
}

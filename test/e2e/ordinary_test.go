package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/stretchr/testify/require"
)

// ordinaryEdit is an edit of the file, or something that happens between two deployments. Its preview, the preview's exit code and the outcome are in
// testdata/ordinary, under its name.
type ordinaryEdit struct {
	name    string
	short   bool             // is a part of make test
	pairs   []string         // texts of the file and their successors
	do      func(*testing.T) // happens before the preview
	moves   map[string]place // where the markers are afterwards; the zero place stands for a volume without its application
	consent string           // without it the deployment is refused
	renames bool             // the cluster, so that its kubeconfig is another
	refused bool             // the deployment is refused, and the edit is undone
}

const (
	shell       = "    entryPoint: [/usr/bin/bash, -euc]\n    commands: ['trap \"exit 0\" TERM; while true; do sleep 1 & wait $!; done']\n    volumes:\n" // volumes follow
	ofPages     = "    host: shop\n" + shell
	deployments = `{type: com.mirantis.docker.kubernetes.KubernetesPod, id: bank}` + "\n    name: bank\n    kubernetesCluster: cluster\n    replicas: 1"
	front       = `{type: com.mirantis.docker.kubernetes.KubernetesPod, id: front}` + "\n    name: front\n    kubernetesCluster: cluster\n    replicas: 1"
	ofHost      = `      /usr: {"?": {type: com.mirantis.docker.DockerHostVolume}, path: /usr}
      /lib: {"?": {type: com.mirantis.docker.DockerHostVolume}, path: /usr/lib}
      /lib64: {"?": {type: com.mirantis.docker.DockerHostVolume}, path: /usr/lib64}
`
	ofStore    = `      /data: {"?": {type: com.mirantis.docker.DockerPersistentVolume}, size: 10Mi}` + "\n"
	lastMinion = `      - "?": {type: com.mirantis.docker.kubernetes.KubernetesMinionNode}
        instance: {"?": {type: io.murano.resources.LinuxMuranoInstance}, name: murano-kube-3, flavor: m1.medium, image: burano-node, assignFloatingIp: true}
`
	otherNetworks = `defaultNetworks:
  environment: {"?": {type: io.murano.resources.NeutronNetwork}, name: of-another-kind}
  flat: null

`
	group = `    minionGroups:
      - "?": {type: com.mirantis.docker.kubernetes.KubernetesMinionGroup}
        name: workers
        maximum: 2
`
	vault = `  - "?": {type: com.mirantis.docker.kubernetes.KubernetesPod, id: vault}
    name: vault
    kubernetesCluster: cluster
    replicas: 1
    securityContext: {fsGroup: 2000}

  - "?": {type: com.example.docker.DockerApp}
    name: box
    image: registry.local/demo:1
    host: vault
` + shell + `      /gold: {"?": {type: com.mirantis.docker.DockerPersistentVolume}, size: 1Gi, storageClass: burano-cinder}
` + ofHost
	further = `  - "?": {type: com.mirantis.docker.kubernetes.KubernetesPod, id: later}
    name: later
    kubernetesCluster: cluster
    replicas: 1
`
)

// markVault writes the marker of the vault.
func (o *ordinary) markVault(t *testing.T) {
	o.markers["gold"] = place{"vault", "/gold"}
	output, err := o.cluster.inNewestPod(t, "vault", "echo gold > /gold/marker && sync")
	require.NoError(t, err, output)
}

// delegate lets Burano make volumes of Cinder for claims.
func (o *ordinary) delegate(t *testing.T) {
	output, code := o.burano(t, "environment", "delegation", "set", "ordinary")
	require.Zero(t, code, output)
}

// emptyVault deletes the vault's claim and its volume in Cinder, and revokes the delegation, with which the keeper would repair servers.
func (o *ordinary) emptyVault(t *testing.T) {
	volume := o.cluster.kubectl(t, "", "get", "pvc", "vault-box--gold", "-o", "jsonpath={.spec.volumeName}")
	o.cluster.kubectl(t, "", "delete", "pvc", "vault-box--gold")
	o.cluster.kubectl(t, "", "wait", "--for=delete", "pv/"+volume, "--timeout=3m")
	output, code := o.burano(t, "environment", "delegation", "revoke", "ordinary")
	require.Zero(t, code, output)
}

// edits are in the order in which they are made: each begins with the file of the one before.
func (o *ordinary) edits() []ordinaryEdit {
	return []ordinaryEdit{
		{name: "the same file", short: true},
		{name: "the order of lists and applications", short: true, do: o.reorder},
		{name: "another id of a pod", short: true, pairs: []string{", id: store}", ", id: shop}", "host: store", "host: shop"}},
		{name: "a renamed pod and a renamed application", short: true, pairs: []string{"    name: store\n", "    name: shop\n", "name: pages\n", "name: leaves\n"},
			moves: map[string]place{"pages": {"shop", "/data"}}},
		{name: "two pods that exchange their names", pairs: []string{"    name: shop\n", "    name: bank\n", "    name: bank\n", "    name: shop\n"}, refused: true},
		{name: "another path of a volume", short: true, pairs: []string{"      /log: {", "      /var/log: {"}, moves: map[string]place{"log": {"bank", "/var/log"}}},
		{name: "a size without a value", pairs: []string{"size: 12Mi", "size: null"}, refused: true},
		{name: "a smaller claim", short: true, pairs: []string{"size: 10Mi", "size: 5Mi"}},
		{name: "the former size", short: true, pairs: []string{"size: 5Mi", "size: 10Mi"}},
		{name: "a larger claim whose volume does not grow", pairs: []string{"size: 10Mi", "size: 20Mi"}, refused: true},
		{name: "no volume", short: true, pairs: []string{ofStore, ""}, consent: "shop", moves: map[string]place{"pages": {}}},
		{name: "the volume again", short: true, pairs: []string{ofPages, ofPages + ofStore}, moves: map[string]place{"pages": {"shop", "/data"}}},
		{name: "volumes without an entry", pairs: []string{ofPages + ofStore + ofHost, "    host: shop\n    volumes: {}\n"}, consent: "shop", moves: map[string]place{"pages": {}}},
		{name: "the volumes again", pairs: []string{"    host: shop\n    volumes: {}\n", ofPages + ofStore + ofHost}, moves: map[string]place{"pages": {"shop", "/data"}}},
		{name: "a stateful set instead of a deployment", pairs: []string{deployments, deployments + "\n    workload: statefulSet"}, consent: "bank", moves: map[string]place{"ledger": {}, "log": {}}},
		{name: "a deployment again", pairs: []string{"\n    workload: statefulSet", ""}, consent: "bank", moves: map[string]place{"ledger": {"bank", "/data"}, "log": {"bank", "/var/log"}}},

		{name: "another variable", short: true, pairs: []string{`env: "MODE=calm"`, `env: "MODE=swift, LEVEL=2"`}},
		{name: "a secret variable", pairs: []string{`    env: "MODE=swift, LEVEL=2"`, `    env: "MODE=swift"` + "\n" + `    secretEnv: "KEY=quiet"`}},
		{name: "another secret", pairs: []string{"KEY=quiet", "KEY=silent"}},
		{name: "a label", pairs: []string{front, front + "\n    labels: tier=web"}},
		{name: "an annotation", pairs: []string{front, front + "\n    annotations: {owner: shop}"}},
		{name: "two replicas", pairs: []string{front, strings.Replace(front, "replicas: 1", "replicas: 2", 1)}},
		{name: "one replica", pairs: []string{strings.Replace(front, "replicas: 1", "replicas: 2", 1), front}},
		{name: "another strategy", pairs: []string{front, front + "\n    updateStrategy: recreate"}},
		{name: "a grace period", pairs: []string{front, front + "\n    terminationGracePeriod: 5"}},
		{name: "a selector of nodes", pairs: []string{front, front + "\n    nodeSelector: {kubernetes.io/os: linux}"}},
		{name: "resources", pairs: []string{`    ports: "8080"` + "\n", `    ports: "8080"` + "\n    resources: {requests: {memory: 8Mi}}\n"}},
		{name: "another command", pairs: []string{"resources: {requests: {memory: 8Mi}}\n    entryPoint: [/usr/bin/bash, -euc]", "resources: {requests: {memory: 8Mi}}\n    entryPoint: [/usr/bin/bash, -uc]"}},
		{name: "a further port", pairs: []string{`ports: "8080"`, `ports: "8080, 8443"`}},
		{name: "a port fewer", pairs: []string{`ports: "8080, 8443"`, `ports: "8080"`}},
		{name: "a port that is published twice", pairs: []string{`ports: "81:8081"`, `ports: "81:8081, 82:8081"`}},
		{name: "and once", pairs: []string{`ports: "81:8081, 82:8081"`, `ports: "81:8081"`}},
		{name: "an application that is not published", pairs: []string{`ports: "81:8081"`, `ports: "81:8081"` + "\n    publish: false"}},

		{name: "an unknown key", short: true, pairs: []string{front, strings.Replace(front, "replicas: 1", "replicaz: 1", 1)}, refused: true},
		{name: "an unknown key of the cluster", pairs: []string{"    nodeCount: 1", "    networking: flannel\n    nodeCount: 1"}, refused: true},
		{name: "an unknown flavor", short: true, pairs: []string{"name: murano-gateway-1, flavor: m1.medium", "name: murano-gateway-1, flavor: m1.vast"}, refused: true},
		{name: "an unknown image", pairs: []string{"name: murano-gateway-1, flavor: m1.medium, image: burano-node", "name: murano-gateway-1, flavor: m1.medium, image: of-another-year"}, refused: true},
		{name: "an unknown zone", pairs: []string{"name: murano-gateway-1,", "name: murano-gateway-1, availabilityZone: atlantis,"}, refused: true},
		{name: "an unknown key pair", pairs: []string{"name: murano-gateway-1,", "name: murano-gateway-1, keyname: lost,"}, refused: true},
		{name: "an unknown class of storage", short: true, pairs: []string{"size: 10Mi", "size: 10Mi, storageClass: golden"}, refused: true},
		{name: "a value of another type", pairs: []string{front, strings.Replace(front, "replicas: 1", "replicas: many", 1)}, refused: true},
		{name: "an object that is not there", pairs: []string{"host: front", "host: back"}, refused: true},
		{name: "an id that is used twice", pairs: []string{", id: front}", ", id: bank}"}, refused: true},
		{name: "a name that is used twice", pairs: []string{"    name: front\n", "    name: bank\n"}, refused: true},
		{name: "a mark in the place of a secret", pairs: []string{"KEY=silent", "*** SANITIZED ***"}},
		{name: "the secret again", pairs: []string{"*** SANITIZED ***", "KEY=silent"}},

		{name: "other default networks", pairs: []string{"applications:\n", otherNetworks + "applications:\n"}, refused: true},
		{name: "a refused edit of a node that is undone", do: o.undo},
		{name: "a refused edit that is discarded", do: o.discardRefused},
		{name: "a draft that is discarded", do: o.discardDraft},

		{name: "a property of the cluster", pairs: []string{"    nodeCount: 1", "    autoRepair: true\n    nodeCount: 1"}},
		{name: "another name of the cluster", pairs: []string{"name: ordinary-cluster", "name: ordinary-others"}, renames: true},
		{name: "a further class of storage", pairs: []string{"storageClasses: [", "storageClasses: [{name: burano-other, backend: local}, "}},
		{name: "a class of storage whose volumes grow", do: o.delegate, pairs: []string{"storageClasses: [", "storageClasses: [{name: burano-cinder, backend: cinder}, "}},
		{name: "an application with such a volume", pairs: []string{"applications:\n", "applications:\n" + vault}},
		{name: "a larger claim", do: o.markVault, pairs: []string{"size: 1Gi", "size: 2Gi"}},
		{name: "the former file after a larger claim", pairs: []string{"size: 2Gi", "size: 1Gi"}},
		{name: "an application fewer that has a claim", do: func(*testing.T) { delete(o.markers, "gold") }, pairs: []string{vault, ""}, consent: "vault"},
		{name: "a further application", do: o.emptyVault, pairs: []string{"applications:\n", "applications:\n" + further}},
		{name: "an application fewer", pairs: []string{further, ""}},
		{name: "a workload that was scaled by kubectl", short: true, do: o.kubectl("scale", "deployment/bank", "--replicas=0")},
		{name: "a label that was removed by kubectl", do: o.kubectl("label", "deployment/front", "tier-")},
		{name: "a Service that was deleted by kubectl", do: o.kubectl("delete", "service", "front-sheets")},
		{name: "the former order of the minions", pairs: []string{"name: murano-kube-2,", "name: murano-kube-3,", "name: murano-kube-3,", "name: murano-kube-2,"}},
		{name: "a further minion", pairs: []string{"    nodeCount: 1", "    nodeCount: 2", lastMinion, lastMinion + strings.ReplaceAll(lastMinion, "murano-kube-3", "murano-kube-4")}},
		{name: "another order of more minions", pairs: []string{"name: murano-kube-2,", "name: murano-kube-4,", "name: murano-kube-4,", "name: murano-kube-2,"}},
		{name: "a minion fewer", pairs: []string{"    nodeCount: 2", "    nodeCount: 1"}},
		{name: "a minion fewer in the list", pairs: []string{strings.ReplaceAll(lastMinion, "murano-kube-3", "murano-kube-4"), ""}},
		{name: "a new group of minions", pairs: []string{"    storageClasses: [", group + "    storageClasses: ["}},
		{name: "a group of minions fewer", pairs: []string{group, ""}},
		{name: "a server that is off", do: o.stop("murano-gateway-1")},
		{name: "a server that is gone", do: o.remove("murano-gateway-1")},
	}
}

// reorder puts the applications above the cluster, and the last minion before the first.
func (o *ordinary) reorder(t *testing.T) {
	head, applications, _ := strings.Cut(o.model, "applications:\n")
	cut := strings.Index(applications, `  - "?": {type: com.mirantis.docker.kubernetes.KubernetesPod`)
	o.model = head + "applications:\n" + applications[cut:] + "\n" + applications[:cut]
	o.edit(t, "name: murano-kube-2,", "name: murano-kube-3,", "name: murano-kube-3,", "name: murano-kube-2,")
}

// kubectl changes an object of the cluster.
func (o *ordinary) kubectl(args ...string) func(*testing.T) {
	return func(t *testing.T) { o.cluster.kubectl(t, "", args...) }
}

// refuse deploys a file whose gateway has an unknown flavor, and puts the file back.
func (o *ordinary) refuse(t *testing.T) {
	model := o.model
	o.edit(t, "name: murano-gateway-1, flavor: m1.medium", "name: murano-gateway-1, flavor: m1.vast")
	output, code := o.burano(t, "deploy", o.file, "--follow")
	require.Equal(t, 1, code, output)
	o.model = model
	o.write(t)
}

// undo deploys a file that is refused, and then the former one twice: nothing is replaced by it.
func (o *ordinary) undo(t *testing.T) {
	before := o.observe(t)
	o.refuse(t)
	o.deploys(t)
	require.Empty(t, outcome(before, o.observe(t)))
}

// discardRefused discards an edit that was refused: the client has left nothing of it.
func (o *ordinary) discardRefused(t *testing.T) {
	o.refuse(t)
	output, code := o.burano(t, "environment", "discard", "ordinary")
	require.Zero(t, code, output)
	require.Contains(t, output, "there is no draft of yours, and no refused edit")
}

// discardDraft discards a draft without applications.
func (o *ordinary) discardDraft(t *testing.T) {
	path := "/v1/environments/" + environmentNamed(t, o.demo, "ordinary")["id"].(string)
	session := o.demo.must(t, http.MethodPost, path+"/configure", nil)["id"].(string)
	put := o.demo.call(t, http.MethodPut, path+"/services", []any{}, "X-Configuration-Session", session)
	require.Equal(t, http.StatusOK, put.Status, string(put.Body))
	output, code := o.burano(t, "session", "preview", "ordinary", session)
	require.Equal(t, 1, code, output)
	require.Contains(t, output, "cluster ordinary-cluster (")
	output, code = o.burano(t, "environment", "discard", "ordinary")
	require.Zero(t, code, output)
	require.Contains(t, output, "drafts discarded: 1")
	output, code = o.burano(t, "session", "list", "ordinary")
	require.Zero(t, code, output)
	require.NotContains(t, output, session)
}

// stop stops a server in Nova, and waits until it is off.
func (o *ordinary) stop(name string) func(*testing.T) {
	return func(t *testing.T) {
		nova, id := o.demo.nova(t), o.cluster.servers[name]
		require.NoError(t, servers.Stop(t.Context(), nova, id).ExtractErr())
		o.lab.eventually(t, time.Minute, name+" is off", func() error {
			server, err := servers.Get(t.Context(), nova, id).Extract()
			if err == nil && server.Status != "SHUTOFF" {
				err = fmt.Errorf("it is %s", server.Status)
			}
			return err
		})
	}
}

// remove deletes a server in Nova, and waits until it is gone.
func (o *ordinary) remove(name string) func(*testing.T) {
	return func(t *testing.T) {
		nova, id := o.demo.nova(t), o.cluster.servers[name]
		require.NoError(t, servers.Delete(t.Context(), nova, id).ExtractErr())
		o.lab.eventually(t, time.Minute, name+" is gone", func() error {
			if _, err := servers.Get(t.Context(), nova, id).Extract(); err == nil {
				return fmt.Errorf("it is there")
			}
			return nil
		})
	}
}

// TestOrdinaryEditsLoseNoData deploys a file again and again with edits that people make, each with its preview first. Every change that the preview announces
// happens, and no other. Servers and the content of volumes outlive all edits, and an edit that would leave a volume without its application needs consent.
func TestOrdinaryEditsLoseNoData(t *testing.T) {
	l := start(t)
	o := newOrdinary(t, l)
	found := inventory(t, o.demo)
	preview, code := o.burano(t, "deploy", o.file, "--dry-run")
	require.Equal(t, 2, code, preview)
	require.Equal(t, found, inventory(t, o.demo), "a preview of a new environment makes nothing")
	o.sameAsFile(t, "a new environment", stable(preview))
	o.deploys(t)
	o.cluster = l.clusterOf(t, o.demo, environmentNamed(t, o.demo, "ordinary"))
	o.mark(t)

	for _, one := range o.edits() {
		if one.short || o.isWhole {
			t.Run(one.name, func(t *testing.T) { o.make(t, one) })
		}
	}
	for marker, at := range o.markers {
		require.NotEmpty(t, at, "%s has its application again", marker)
	}
	o.keeps(t)
	if o.isWhole {
		t.Run("back to the first state", o.back)
	}

	output, code := o.burano(t, "environment", "delete", "ordinary")
	require.Equal(t, 1, code, "nobody agreed")
	require.Contains(t, output, "- cluster ordinary-cluster (")
	if !o.isWhole { // a longer past leaves further claims
		o.sameAsFile(t, "the deletion", stable(output))
	}
	o.keeps(t)
	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--allow-destroy", "ordinary-cluster", "ordinary")
	asBefore(t, o.demo, found)
}

func (o *ordinary) deploys(t *testing.T, flags ...string) {
	t.Helper()
	output, code := o.burano(t, append([]string{"deploy", o.file, "--follow"}, flags...)...)
	require.Zero(t, code, output)
}

// make makes one edit.
func (o *ordinary) make(t *testing.T, edit ordinaryEdit) {
	model := o.model
	if edit.do != nil {
		edit.do(t)
	}
	o.edit(t, edit.pairs...)
	before := o.observe(t)
	preview, code := o.burano(t, "deploy", o.file, "--dry-run")
	t.Log(preview)
	if edit.refused {
		defer func() { o.model = model; o.write(t) }()
	}
	if edit.refused || edit.consent != "" {
		require.Equal(t, 1, code, preview)
		output, code := o.burano(t, "deploy", o.file, "--follow")
		require.Equal(t, 1, code, output)
		require.Empty(t, outcome(before, o.observe(t)), "a refusal changes nothing")
		require.Equal(t, "ready", environmentNamed(t, o.demo, "ordinary")["status"])
		o.keeps(t)
		preview += "\nthe deployment:\n" + output
	}
	happened := "nothing"
	if !edit.refused {
		var flags []string
		if edit.consent != "" {
			flags = []string{"--allow-destroy", edit.consent}
		}
		o.deploys(t, flags...)
		if edit.renames {
			o.cluster = o.lab.clusterOf(o.whole, o.demo, environmentNamed(t, o.demo, "ordinary")) // its kubeconfig outlives this part
		}
		for marker, at := range edit.moves {
			o.markers[marker] = at
		}
		lines := outcome(before, o.observe(t))
		happened = strings.Join(lines, "\n")
		require.Equal(t, announced(preview), lines, "the preview is the plan:\n%s", preview)
		o.keeps(t)
		again, code := o.burano(t, "deploy", o.file, "--dry-run")
		require.Zero(t, code, "nothing is left to do: %s", again)
	}
	o.sameAsFile(t, edit.name, fmt.Sprintf("%s\nexit code %d\n\nthe outcome:\n%s\n", stable(preview), code, stable(happened)))
}

// back deploys the first state again.
func (o *ordinary) back(t *testing.T) {
	before := o.observe(t)
	preview, code := o.burano(t, "environment", "rollback", "ordinary", "1", "--dry-run")
	require.Equal(t, 2, code, preview)
	output, code := o.burano(t, "environment", "rollback", "ordinary", "1", "--follow")
	require.Zero(t, code, output)
	o.markers = map[string]place{"pages": {"store", "/data"}, "ledger": {"bank", "/data"}, "log": {"bank", "/log"}}
	o.cluster = o.lab.clusterOf(o.whole, o.demo, environmentNamed(t, o.demo, "ordinary")) // its name was another
	require.Equal(t, announced(preview), outcome(before, o.observe(t)), preview)
	o.keeps(t)
}

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/services"
	"github.com/gophercloud/gophercloud/v2/openstack/orchestration/v1/stacks"
	"github.com/stretchr/testify/require"
)

// The settings of the server in these tests: timeouts of minutes are seconds here.
var impatient = []string{"--ssh-patience", "40s"}

// TestNodesThatFailAreReportedAndHealed lets servers of one environment fail as servers do: the deployment ends with a report that names
// the place, the step and the cause, and deploying again heals it.
func TestNodesThatFailAreReportedAndHealed(t *testing.T) {
	l := start(t)
	demo := l.user(t, "burano-demo")
	found := inventory(t, demo)
	l.run(t, l.as("burano-demo"), "burano", "package", "import", "test/packages/io.burano.demo.Hello")
	l.deleteIfFailed(t, "scaling")
	s := &scaling{lab: l, user: demo}
	for _, one := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"servers that find no host", s.serversFindNoHost},
		{"servers that stay in BUILD", s.serversStayInBuild},
		{"a node that never answers, and one whose disk is full", s.silentAndFull},
		{"a node that reboots in the middle of a step", s.rebootsInAStep},
		{"a node that stops in the middle of a step", s.stopsInAStep},
		{"a refused key, and a changed host key", s.keysRefused},
		{"a master that lost the data of its etcd member", inSoak(s.masterLosesEtcd, "nodes/etcd has a member lose its data, and TestAnyMasterCanBeLost has masters replaced")},
		{"pods that do not go", s.podsThatDoNotGo},
		{"a node that is dead for good", s.deadForGood},
		{"a removal while other nodes are missing", inSoak(s.othersMissing, "it stops most of a cluster; the case before it removes a node that is dead")},
	} {
		began := time.Now()
		if !t.Run(one.name, one.run) {
			return
		}
		t.Logf("%s: %.1f s", one.name, time.Since(began).Seconds())
	}
	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "scaling")
	asBefore(t, demo, found)
}

// inSoak makes a case one that `make soak` alone runs.
func inSoak(run func(*testing.T), why string) func(*testing.T) {
	return func(t *testing.T) {
		soakOnly(t, "`make soak` runs this: "+why)
		run(t)
	}
}

// relaunch stops the server and starts it with other flags.
func (l *lab) relaunch(t *testing.T, flags ...string) {
	t.Helper()
	l.stop(t)
	l.launch(t, flags...)
	l.healthy(t)
}

// deploy deploys the environment as it is once more; it returns the log's lines by level when it has ended.
func (s *scaling) deploy(t *testing.T) map[string][]string {
	t.Helper()
	return s.end(t, s.beginDeploy(t))
}

// beginDeploy returns the id of the deployment.
func (s *scaling) beginDeploy(t *testing.T) string {
	t.Helper()
	path := "/v1/environments/" + s.environment
	session := s.user.must(t, http.MethodPost, path+"/configure", nil)["id"].(string)
	s.user.must(t, http.MethodPost, path+"/sessions/"+session+"/deploy", nil)
	return s.user.must(t, http.MethodGet, path+"/deployments", nil)["deployments"].([]any)[0].(map[string]any)["id"].(string)
}

// end waits for the end of a deployment or action and returns its log's lines by level; the wait is limited.
func (s *scaling) end(t *testing.T, task string) map[string][]string {
	t.Helper()
	path := "/v1/environments/" + s.environment
	s.lab.eventually(t, 5*time.Minute, "the deployment ends", func() error {
		if status := s.user.must(t, http.MethodGet, path, nil)["status"]; status == "deploying" {
			return fmt.Errorf("it is %s", status)
		}
		return nil
	})
	lines := map[string][]string{}
	for _, one := range s.user.must(t, http.MethodGet, path+"/deployments/"+task, nil)["reports"].([]any) {
		report := one.(map[string]any)
		lines[report["level"].(string)] = append(lines[report["level"].(string)], report["text"].(string))
	}
	return lines
}

// failed demands that a deployment failed and returns the text of its reports of level error.
func failed(t *testing.T, lines map[string][]string) string {
	t.Helper()
	require.NotEmptyf(t, lines["error"], "it failed: %v", lines)
	text := strings.Join(lines["error"], "\n")
	t.Logf("the report:\n%s", text)
	return text
}

// healed demands that a deployment did not fail.
func healed(t *testing.T, lines map[string][]string) {
	t.Helper()
	require.Emptyf(t, lines["error"], "all of the log: %v", lines)
}

// find records the existing servers.
func (s *scaling) find(t *testing.T) {
	t.Helper()
	pages, err := servers.List(s.user.nova(t), nil).AllPages(t.Context())
	require.NoError(t, err)
	all, err := servers.ExtractServers(pages)
	require.NoError(t, err)
	if s.cluster == nil {
		s.cluster = &cluster{lab: s.lab, servers: map[string]string{}}
	}
	clear(s.cluster.servers)
	for _, server := range all {
		s.cluster.servers[server.Name] = server.ID
	}
}

// running waits until a server runs, and accepts logins.
func (s *scaling) running(t *testing.T, name string) {
	t.Helper()
	s.lab.eventually(t, time.Minute, name+" runs", func() error {
		s.find(t)
		if _, err := s.cluster.on(name, "systemctl", "is-active", "ssh"); err != nil {
			return fmt.Errorf("it has no sshd yet: %w", err)
		}
		return nil
	})
}

// in runs commands in a server, which must succeed.
func (s *scaling) in(t *testing.T, server, commands string) string {
	t.Helper()
	output, err := s.cluster.on(server, "/bin/bash", "-euc", commands)
	require.NoErrorf(t, err, "%s on %s: %s", commands, server, output)
	return output
}

// begun waits until a step of the deployment has begun.
func (s *scaling) begun(t *testing.T, task, step string) {
	t.Helper()
	s.lab.eventually(t, 2*time.Minute, step+" begins", func() error {
		if names := stepsOf(t, s.user, task); !slices.Contains(names, step) {
			return fmt.Errorf("so far there are %v", names)
		}
		return nil
	})
}

// compute changes the cloud's compute service, as its operator does.
func (s *scaling) compute(t *testing.T, change map[string]any) {
	t.Helper()
	nova := s.lab.user(t, "burano-admin").nova(t)
	nova.Microversion = "2.53"
	pages, err := services.List(nova, nil).AllPages(t.Context())
	require.NoError(t, err)
	all, err := services.ExtractServices(pages)
	require.NoError(t, err)
	require.Len(t, all, 1)
	_, err = nova.Put(t.Context(), nova.ServiceURL("os-services", all[0].ID), change, nil, &gophercloud.RequestOpts{OkCodes: []int{http.StatusOK}})
	require.NoError(t, err)
}

func (s *scaling) serversFindNoHost(t *testing.T) {
	s.compute(t, map[string]any{"status": "disabled", "disabled_reason": "maintenance"})
	output, err := s.lab.try(s.lab.as("burano-demo"), "burano", "deploy", "test/e2e/testdata/scaling.yaml", "--follow")
	require.Error(t, err, output)
	s.environment = environmentNamed(t, s.user, "scaling")["id"].(string)
	text := failed(t, s.end(t, lastDeployment(t, s.user, "scaling")))
	require.Regexp(t, `server murano-(kube|gateway)-\d: `, text, "whichever Nova was asked for first")
	require.Contains(t, text, "No valid host was found")
	s.compute(t, map[string]any{"status": "enabled"})
}

func (s *scaling) serversStayInBuild(t *testing.T) {
	s.lab.relaunch(t, "--server-patience", "10s")
	s.compute(t, map[string]any{"forced_down": true})
	text := failed(t, s.deploy(t))
	require.Contains(t, text, "the servers were not ready within 10s (burano serve --server-patience)")
	for _, name := range []string{"murano-kube-1", "murano-kube-2", "murano-gateway-1"} {
		require.Contains(t, text, "server "+name+", which is BUILD in Nova (spawning)")
	}
	name := "burano-" + s.environment
	stack, err := stacks.Find(t.Context(), s.user.heat(t), name).Extract()
	require.NoError(t, err)
	require.Equal(t, 1, stack.Timeout, "Heat gives up too, so that a later update replaces what never comes")
	s.compute(t, map[string]any{"forced_down": false})
	s.lab.relaunch(t, impatient...)
}

// silentAndFull closes the SSH port of one node, and fills the file system on which another is to keep its etcd member.
func (s *scaling) silentAndFull(t *testing.T) {
	for _, name := range []string{"murano-kube-2", "murano-gateway-1"} {
		s.running(t, name)
	}
	s.in(t, "murano-kube-2", "nft 'add table inet test; add chain inet test in { type filter hook input priority -300; }; add rule inet test in tcp dport 22 drop'")
	s.in(t, "murano-gateway-1", "mount -t tmpfs -o size=2m full /var/lib/etcd; head -c 2m /dev/zero >/var/lib/etcd/zeros || true")
	lines := s.deploy(t)
	text := failed(t, lines)
	require.Regexp(t, `murano-kube-2: connect: connect to murano-kube-2: no sshd answered within 40s; tried`, text)
	require.Regexp(t, `(?s)murano-kube-2: connect: .*the last lines of its console:\n.*murano-kube-2`, text)
	require.Regexp(t, `murano-gateway-1: etcd join: `, text)
	require.Regexp(t, `(?s)last lines of the journal on murano-gateway-1:\netcd .*no space left on device`, text)
	require.Contains(t, text, "the file system /var/lib/etcd of murano-gateway-1 is full")
	require.NotContains(t, text, "murano-kube-1: ", "the others are not to blame")
}

// rebootsInAStep undoes the faults of silentAndFull, and reboots a node while the deployment works on it.
func (s *scaling) rebootsInAStep(t *testing.T) {
	s.in(t, "murano-kube-2", "nft delete table inet test")
	s.in(t, "murano-gateway-1", "systemctl stop etcd; umount /var/lib/etcd")
	const slow = "/etc/systemd/system/containerd.service.d/slow.conf" // so that the node reboots within a script
	s.in(t, "murano-kube-2", "mkdir -p /etc/systemd/system/containerd.service.d; printf '[Service]\\nExecStartPre=/bin/sleep 5\\n' >"+slow+"; systemctl daemon-reload")
	task := s.beginDeploy(t)
	s.begun(t, task, "murano-kube-2: container runtime")
	require.NoError(t, servers.Reboot(t.Context(), s.user.nova(t), s.cluster.servers["murano-kube-2"], servers.RebootOpts{Type: servers.SoftReboot}).ExtractErr())
	lines := s.end(t, task)
	healed(t, lines)
	require.Regexp(t, `murano-kube-2: the connection was lost during ".*" \(.*\); the step is repeated, try 2 of 3`, strings.Join(lines["info"], "\n"))
	s.signIn(t)
	s.holds(t, []string{"murano-kube-2"}, []string{"murano-gateway-1"})
}

// signIn gets a kubeconfig for this test.
func (s *scaling) signIn(t *testing.T) {
	t.Helper()
	s.cluster = s.lab.clusterOf(t, s.user, environmentNamed(t, s.user, "scaling"))
}

// stopsInAStep stops a new node while it joins. Calling the action again starts it and goes on.
func (s *scaling) stopsInAStep(t *testing.T) {
	s.signIn(t)
	task := s.begin(t, "scaling-cluster", "scaleNodesUp", map[string]any{})
	s.begun(t, task, "murano-kube-3: files")
	s.find(t)
	require.NoError(t, servers.Stop(t.Context(), s.user.nova(t), s.cluster.servers["murano-kube-3"]).ExtractErr())
	text := failed(t, s.end(t, task))
	require.Regexp(t, `murano-kube-3: [a-z ]+: `, text)
	require.Contains(t, text, "the server does not run, and no sshd answered", "nobody waits for it")
	require.Contains(t, text, "its server "+s.cluster.servers["murano-kube-3"]+" is SHUTOFF in Nova: deploy again to have it mended")
	require.NotContains(t, text, "murano-kube-2: ")
	require.Empty(t, s.act(t, "scaling-cluster", "scaleNodesUp", map[string]any{})["error"])
	s.holds(t, []string{"murano-kube-2", "murano-kube-3"}, []string{"murano-gateway-1"})
}

// memberOf returns the id of a server's etcd member.
func (s *scaling) memberOf(t *testing.T, server string) (id string) {
	t.Helper()
	var list struct {
		Members []struct {
			ID   json.Number
			Name string
		}
	}
	s.etcd(t, &list, "member", "list")
	for _, member := range list.Members {
		if member.Name == server {
			id = member.ID.String()
		}
	}
	require.NotEmptyf(t, id, "%s has a member among %v", server, list)
	return id
}

// keysRefused makes one node refuse our key and another one present a new host key. The first is rebuilt, the other replaced, and
// both join again.
func (s *scaling) keysRefused(t *testing.T) {
	s.signIn(t)
	s.in(t, "murano-kube-3", "rm /root/.ssh/authorized_keys")
	s.in(t, "murano-gateway-1", "rm /etc/ssh/ssh_host_ed25519_key*; ssh-keygen -q -t ed25519 -N '' -f /etc/ssh/ssh_host_ed25519_key; systemctl restart ssh")
	member := s.memberOf(t, "murano-gateway-1")
	text := failed(t, s.deploy(t))
	require.Regexp(t, `murano-kube-3: connect: connect to murano-kube-3: .* refuses the key SHA256:\S+ for root: `, text)
	require.Regexp(t, `murano-gateway-1: connect: connect to murano-gateway-1: SECURITY: the host key that .* shows has changed\. Expected was SHA256:\S+, shown was SHA256:`, text)
	require.Contains(t, text, "rebuild it or delete it in Nova and deploy again")

	nova := s.user.nova(t)
	kept := s.cluster.servers["murano-kube-3"]
	server, err := servers.Get(t.Context(), nova, kept).Extract()
	require.NoError(t, err)
	_, err = servers.Rebuild(t.Context(), nova, kept, servers.RebuildOpts{ImageRef: server.Image["id"].(string)}).Extract()
	require.NoError(t, err)
	former := s.cluster.servers["murano-gateway-1"]
	s.deleteServer(t, "murano-gateway-1")
	s.becomes(t, kept, "ACTIVE")
	lines := s.deploy(t)
	healed(t, lines)
	log := strings.Join(lines["info"], "\n")
	require.Contains(t, log, "murano-gateway-1 ("+former+") is gone from Nova: a new one takes its place")
	require.Contains(t, log, "murano-gateway-1: its server is a new one")
	before, after, found := strings.Cut(log, "etcd member murano-gateway-1, whose data are gone, was removed")
	require.True(t, found, log)
	require.NotContains(t, before, "murano-gateway-1: votes in etcd", "the dead member goes before the new one joins")
	require.Contains(t, after, "murano-gateway-1: votes in etcd")
	s.holds(t, []string{"murano-kube-2", "murano-kube-3"}, []string{"murano-gateway-1"})
	require.NotEqual(t, member, s.memberOf(t, "murano-gateway-1"))
	require.Equal(t, kept, s.cluster.servers["murano-kube-3"], "a rebuilt server keeps its id")
}

// masterLosesEtcd deletes all that the master's member has stored: it joins the others again, and nothing is lost.
func (s *scaling) masterLosesEtcd(t *testing.T) {
	s.signIn(t)
	uid := func() string {
		return s.cluster.kubectl(t, "", "get", "deployment", "web", "-o", "jsonpath={.metadata.uid}")
	}
	before, member := uid(), s.memberOf(t, "murano-kube-1")
	s.in(t, "murano-kube-1", "systemctl stop etcd; rm -rf /var/lib/etcd/data")
	lines := s.deploy(t)
	healed(t, lines)
	require.Contains(t, strings.Join(lines["info"], "\n"), "etcd member murano-kube-1, whose data are gone, was removed")
	s.holds(t, []string{"murano-kube-2", "murano-kube-3"}, []string{"murano-gateway-1"})
	require.Equal(t, before, uid(), "the API server serves what it served before")
	require.NotEqual(t, member, s.memberOf(t, "murano-kube-1"))
	healed(t, s.deploy(t))
}

// podsThatDoNotGo tries to remove a node with a pod that a disruption budget keeps.
func (s *scaling) podsThatDoNotGo(t *testing.T) {
	s.lab.relaunch(t, "--drain-patience", "10s")
	s.signIn(t)
	s.cluster.kubectl(t, `
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: stay}
spec: {minAvailable: 1, selector: {matchLabels: {app: stay}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: stay}
spec:
  selector: {matchLabels: {app: stay}}
  template:
    metadata: {labels: {app: stay}}
    spec:
      containers: [{name: demo, image: "registry.local/demo:1", imagePullPolicy: IfNotPresent}]
`, "apply", "-f", "-")
	s.cluster.kubectl(t, "", "wait", "--for=condition=Available", "deployment/stay", "--timeout=60s")
	node := s.cluster.kubectl(t, "", "get", "pods", "-l", "app=stay", "-o", "jsonpath={.items[0].spec.nodeName}")
	pod := s.cluster.kubectl(t, "", "get", "pods", "-l", "app=stay", "-o", "jsonpath={.items[0].metadata.name}")
	text := failed(t, s.end(t, s.begin(t, "scaling-cluster", "scaleNodesDown", map[string]any{"node": node})))
	require.Contains(t, text, node+": drain: ")
	require.Regexp(t, `did not end within 10s: these pods are still there: .*default/`+pod+` \(Cannot evict pod as it would violate the pod's disruption budget`, text)
	require.Contains(t, text, "Nothing was changed. Have these pods go")
	require.Contains(t, text, "burano serve --drain-patience")
	require.Empty(t, s.cluster.kubectl(t, "", "get", "node", node, "-o", "jsonpath={.spec.unschedulable}{.metadata.annotations.burano\\.io/leaving}"))
	s.holds(t, []string{"murano-kube-2", "murano-kube-3"}, []string{"murano-gateway-1"})
	s.cluster.kubectl(t, "", "delete", "deployment/stay", "pdb/stay")
	s.lab.relaunch(t, impatient...)
}

// deadForGood switches off a node with a vote in etcd and removes it: its member is removed before another one joins in its place.
func (s *scaling) deadForGood(t *testing.T) {
	s.signIn(t)
	s.memberOf(t, "murano-kube-2")
	output, err := exec.Command("runc", "--root", filepath.Join(s.lab.cloud, "hypervisor", "runc"), "kill", "blc-"+s.cluster.servers["murano-kube-2"], "KILL").CombinedOutput()
	require.NoError(t, err, string(output))
	log := strings.Join(s.act(t, "scaling-cluster", "scaleNodesDown", map[string]any{"node": "murano-kube-2"})["info"], "\n")
	before, after, found := strings.Cut(log, "etcd member murano-kube-2, which is dead, was removed")
	require.True(t, found, log)
	require.NotContains(t, before, "votes in etcd")
	require.Contains(t, after, "murano-kube-3: votes in etcd")
	s.holds(t, []string{"murano-kube-3"}, []string{"murano-gateway-1"})
	s.act(t, "scaling-cluster", "scaleNodesUp", map[string]any{})
	s.holds(t, []string{"murano-kube-3", "murano-kube-4"}, []string{"murano-gateway-1"})
}

// othersMissing removes a node while another one is off and a third is gone from Nova: the second is started, the third made again. But
// the last node that can take pods is not removed.
func (s *scaling) othersMissing(t *testing.T) {
	require.Empty(t, s.act(t, "scaling-cluster", "scaleNodesUp", map[string]any{})["error"])
	s.signIn(t)
	former, gateway := s.cluster.servers["murano-kube-4"], s.cluster.servers["murano-gateway-1"]
	require.NoError(t, servers.Stop(t.Context(), s.user.nova(t), gateway).ExtractErr())
	s.deleteServer(t, "murano-kube-4")
	s.becomes(t, gateway, "SHUTOFF")
	log := strings.Join(s.act(t, "scaling-cluster", "scaleNodesDown", map[string]any{"node": "murano-kube-3"})["info"], "\n")
	require.Contains(t, log, "Server murano-gateway-1 is off: it is started")
	require.Contains(t, log, "Removing murano-kube-3, murano-kube-4")
	require.Contains(t, log, "murano-kube-4 ("+former+") is gone from Nova: a new one takes its place")
	s.holds(t, []string{"murano-kube-2", "murano-kube-4"}, []string{"murano-gateway-1"})

	s.deleteServer(t, "murano-kube-2")
	text := failed(t, s.end(t, s.begin(t, "scaling-cluster", "scaleNodesDown", map[string]any{"node": "murano-kube-4"})))
	require.Contains(t, text, "murano-kube-4 cannot be removed: of the nodes that are to stay Nova does not know murano-kube-2 any more")
	healed(t, s.deploy(t))
	s.holds(t, []string{"murano-kube-2", "murano-kube-4"}, []string{"murano-gateway-1"})
}

// becomes waits until Nova reports this status of a server.
func (s *scaling) becomes(t *testing.T, id, status string) {
	t.Helper()
	s.lab.eventually(t, time.Minute, id+" becomes "+status, func() error {
		server, err := servers.Get(t.Context(), s.user.nova(t), id).Extract()
		if err != nil || server.Status != status {
			return fmt.Errorf("%v %v", server, err)
		}
		return nil
	})
}

// deleteServer deletes a server in Nova behind Heat's back, and waits until it is gone.
func (s *scaling) deleteServer(t *testing.T, name string) {
	t.Helper()
	require.NoError(t, servers.Delete(t.Context(), s.user.nova(t), s.cluster.servers[name]).ExtractErr())
	s.lab.eventually(t, time.Minute, name+" is gone", func() error {
		if s.find(t); s.cluster.servers[name] != "" {
			return fmt.Errorf("there is %s", s.cluster.servers[name])
		}
		return nil
	})
}

package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// TestAPairOfMastersLosesNoWrite has a cluster of two masters, which share an address, with a minion that votes in etcd beside them. Each master in turn is killed like by a
// loss of power, while clients write through the address and through a gateway, at least 1,000 times in all. The address moves away from a master by swact. Then the cluster
// gets a third master, and goes back to two and to one, while they write on.
func TestAPairOfMastersLosesNoWrite(t *testing.T) {
	l := start(t)
	demo := l.user(t, "burano-demo")
	found := inventory(t, demo)
	l.run(t, l.as("burano-demo"), "burano", "package", "import", "test/packages/io.burano.demo.Hello")
	l.deleteIfFailed(t, "masters")
	text, err := os.ReadFile("testdata/masters.yaml")
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "masters.yaml")
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(text), "    nodeCount: 1", "    masterCount: 2\n    etcdNodes: masters\n    apiAddress: {\"?\": {type: io.murano.SharedIp, id: ofmasters}, assignFloatingIp: true}\n    nodeCount: 1", 1)), 0o600))
	preview := l.run(t, l.as("burano-demo"), "burano", "deploy", file, "--dry-run")
	require.Contains(t, preview, "murano-kube-2 votes in etcd beside its two masters")
	l.run(t, l.as("burano-demo"), "burano", "deploy", file, "--follow")
	environment := environmentNamed(t, demo, "masters")
	s := &scaling{lab: l, user: demo, cluster: l.clusterOf(t, demo, environment), environment: environment["id"].(string), further: []string{"murano-kube-1-m2"}, voting: 3}
	minions, gateways := []string{"murano-kube-2"}, []string{"murano-gateway-1"}
	holds := func(third string) {
		t.Helper()
		s.holds(t, minions, gateways)
		if third != "" {
			require.ElementsMatch(t, []string{"murano-kube-1", "murano-kube-1-m2", third}, s.memberNames(t))
		}
	}
	holds("murano-kube-2")
	require.Regexp(t, `murano-kube-2 +minion .* healthy `, l.run(t, l.as("burano-demo"), "burano", "cluster", "show", "masters"))
	require.NotContains(t, l.run(t, l.as("burano-demo"), "burano", "deploy", file, "--dry-run"), "votes in etcd", "nothing changes")

	own, floating := s.addressOf(t, s.clusterID(t), "api_address")
	kubeconfig, err := clientcmd.LoadFromFile(s.cluster.kubeconfig)
	require.NoError(t, err)
	require.Equal(t, "https://"+net.JoinHostPort(floating, "6443"), kubeconfig.Clusters["scaling-cluster"].Server)
	output, err := outputOf(exec.Command("curl", "--silent", "--show-error", "--output", "/dev/null", "--cacert", s.authority(t, kubeconfig), "https://"+net.JoinHostPort(floating, "6443")+"/version"))
	require.NoError(t, err, "the certificate names the address: %s", output)
	require.Contains(t, l.run(t, l.as("burano-demo"), "burano", "cluster", "show", "masters"), floating)

	through := map[string]*writers{"the address": s.writeFrom(t, "address", 4, ""), "the gateway": s.writeFrom(t, "gateway", 4, gateways[0])}
	more := func(what string, count int) {
		t.Helper()
		for path, w := range through {
			w.more(t, count)
			t.Logf("%s: through %s %s", what, path, w.away())
		}
	}
	from := func() {
		for _, w := range through {
			w.from()
		}
	}
	masters := []string{"murano-kube-1", "murano-kube-1-m2"}
	for range masters {
		from()
		more("nothing happens", 20)
		before, holder := s.leaders(t), s.holder(t, own, masters...)
		require.NotEmpty(t, holder)
		from()
		output, err := exec.Command("runc", "--root", filepath.Join(l.cloud, "hypervisor", "runc"), "kill", "blc-"+s.cluster.servers[holder], "KILL").CombinedOutput()
		require.NoError(t, err, string(output))
		more(fmt.Sprintf("%s is killed, which has the address and led %v", holder, before), 250)
		require.NoError(t, servers.Reboot(t.Context(), demo.nova(t), s.cluster.servers[holder], servers.RebootOpts{Type: servers.HardReboot}).ExtractErr())
		l.eventually(t, time.Minute, "both masters serve again", s.allMembersAnswer)
		require.NotEqual(t, holder, s.holder(t, own, masters...), "the address stays where it is")
	}
	from()
	for range masters {
		holder, before := s.holder(t, own, masters...), s.leaders(t)
		log := l.run(t, l.as("burano-demo"), "burano", "node", "swact", "masters", holder, "--follow")
		require.Contains(t, log, "another master has the address "+own+" now")
		now := s.holder(t, own, masters...)
		require.NotEmpty(t, now)
		require.NotEqual(t, holder, now)
		for what, leader := range s.leaders(t) {
			if before[what] == holder { // else the lead of a killed program may only now have ended
				require.NotEqual(t, holder, leader, what)
			}
		}
	}
	more("swact of each master", 20)
	from()
	scale := func(count int, further []string, third string) {
		t.Helper()
		s.act(t, "scaling-cluster", "scale", map[string]any{"group": "masters", "count": count})
		if s.further = further; count > 1 {
			holds(third)
			require.NoError(t, s.allMembersAnswer())
		}
		require.NotEmpty(t, s.holder(t, own, append([]string{s.masterName()}, s.further...)...))
	}
	scale(3, []string{"murano-kube-1-m2", "murano-kube-1-m3"}, "murano-kube-1-m3")
	scale(2, []string{"murano-kube-1-m2"}, "murano-kube-2")
	more("from two masters to three and back", 20)
	total := 0
	written := strings.Fields(s.ended(t, through))
	for path, w := range through {
		acknowledged, again := w.all()
		require.Empty(t, w.failures, "writes through %s that failed in every try", path)
		lost := slices.DeleteFunc(slices.Clone(acknowledged), func(one string) bool { return slices.Contains(written, one) })
		require.Empty(t, lost, "acknowledged writes that are lost")
		t.Logf("%d writes through %s were acknowledged, %d of them after the first try (%d tries at most), %d are lost", len(acknowledged), path, again, w.tries, len(lost))
		total += len(acknowledged)
	}
	require.GreaterOrEqual(t, total, 1000)

	s.voting = 0
	scale(1, nil, "")
	s.cluster = l.clusterOf(t, demo, environment)
	s.holds(t, minions, gateways)
	require.NotContains(t, s.memberNames(t), "murano-kube-1-m2")
	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "masters")
	asBefore(t, demo, found)
}

// ended ends the writers, and returns the written ConfigMaps.
func (s *scaling) ended(t *testing.T, all map[string]*writers) string {
	t.Helper()
	for _, w := range all {
		w.end()
	}
	return s.cluster.kubectl(t, "", "get", "configmaps", "-o", "jsonpath={range .items[*]}{.metadata.name}={.data.number} {end}")
}

// authority is a file with the authority of a kubeconfig.
func (s *scaling) authority(t *testing.T, kubeconfig *clientcmdapi.Config) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ca.crt")
	require.NoError(t, os.WriteFile(file, kubeconfig.Clusters["scaling-cluster"].CertificateAuthorityData, 0o600))
	return file
}

// memberNames are the nodes that have a member of etcd.
func (s *scaling) memberNames(t *testing.T) (names []string) {
	t.Helper()
	var members struct{ Members []struct{ Name string } }
	s.etcd(t, &members, "member", "list")
	for _, one := range members.Members {
		names = append(names, one.Name)
	}
	return names
}

// writers are clients that write through the API all the time, each over a connection of its own. A write that fails is tried again.
type writers struct {
	stop  context.CancelFunc
	group sync.WaitGroup

	mutex        sync.Mutex
	acknowledged []string // NAME=NUMBER
	failures     []string
	again, tries int               // writes that needed more than one try, and the most tries of a write
	last         map[int]time.Time // by client: its last acknowledged write
	longest      time.Duration     // between two of a client
	latest       time.Time         // the last acknowledged write of any client
	silence      time.Duration     // between two of all clients
}

// mostTries is how often a client tries to write. A write that reaches etcd while it has lost its leader has no answer for seven seconds, so the second try may fail, too.
const mostTries = 4

// writeFrom has clients write ConfigMaps whose names begin with a word, by a context of the kubeconfig, "" for its current one.
func (s *scaling) writeFrom(t *testing.T, word string, clients int, kubeContext string) *writers {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	w := &writers{stop: stop, last: map[int]time.Time{}, latest: time.Now()}
	t.Cleanup(w.end)
	for number := range clients {
		config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(&clientcmd.ClientConfigLoadingRules{ExplicitPath: s.cluster.kubeconfig}, &clientcmd.ConfigOverrides{CurrentContext: kubeContext}).ClientConfig()
		require.NoError(t, err)
		config.Timeout, config.QPS = 20*time.Second, -1
		config.Dial = (&net.Dialer{Timeout: 10 * time.Second}).DialContext // a connection of its own
		client, err := kubernetes.NewForConfig(config)
		require.NoError(t, err)
		w.last[number] = time.Now()
		w.group.Go(func() { w.write(ctx, client, word, number) })
	}
	return w
}

func (w *writers) write(ctx context.Context, client kubernetes.Interface, word string, number int) {
	for count := 0; ctx.Err() == nil; count++ {
		name, data := fmt.Sprintf("%s-%d-%d", word, number, count), fmt.Sprint(number*1_000_000+count)
		create := func() error { // to its end, so that all writes have an answer
			_, err := client.CoreV1().ConfigMaps("default").Create(context.WithoutCancel(ctx), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"number": data}}, metav1.CreateOptions{})
			return err
		}
		began := time.Now()
		err := create()
		tries := 1
		for failed := err; err != nil && tries < mostTries; tries++ { // as clients of Kubernetes do
			<-time.After(retryAfter)
			if err = create(); apierrors.IsAlreadyExists(err) {
				err = nil
			} else if err != nil {
				failed = fmt.Errorf("%w, then after %s: %w", failed, time.Since(began).Round(time.Millisecond), err)
				err = failed
			}
		}
		w.mutex.Lock()
		now := time.Now()
		if err == nil {
			w.acknowledged = append(w.acknowledged, name+"="+data)
			w.longest, w.last[number] = max(w.longest, now.Sub(w.last[number])), now
			if tries > 1 {
				w.again++
			}
			w.tries = max(w.tries, tries)
			w.silence, w.latest = max(w.silence, now.Sub(w.latest)), now
		} else {
			w.failures = append(w.failures, began.Format("15:04:05.000 ")+name+": "+err.Error())
		}
		w.mutex.Unlock()
	}
}

// more waits until so many more writes are acknowledged, and one of each client.
func (w *writers) more(t *testing.T, count int) {
	t.Helper()
	began, deadline := time.Now(), time.Now().Add(2*time.Minute)
	before, _ := w.all()
	for {
		now, _ := w.all()
		w.mutex.Lock()
		each := true
		for _, at := range w.last {
			each = each && at.After(began)
		}
		failures := slices.Clone(w.failures)
		w.mutex.Unlock()
		if each && len(now) >= len(before)+count {
			return
		}
		require.True(t, time.Now().Before(deadline), "only %d of %d were written: %v", len(now)-len(before), count, failures)
		time.Sleep(20 * time.Millisecond)
	}
}

// from begins to measure for how long no write is acknowledged.
func (w *writers) from() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.longest, w.silence = 0, 0
}

// away is for how long no write was acknowledged since from.
func (w *writers) away() string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return fmt.Sprintf("no write was acknowledged for %s at most, and none of one client for %s", w.silence.Round(time.Millisecond), w.longest.Round(time.Millisecond))
}

// all are the acknowledged writes, and how many of them needed more than one try.
func (w *writers) all() (acknowledged []string, again int) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return slices.Clone(w.acknowledged), w.again
}

func (w *writers) end() {
	w.stop()
	w.group.Wait()
}

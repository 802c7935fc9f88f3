package kube

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestANodeThatTakesNoPodsIsRegisteredOnceAndKeepsWhatOthersSet(t *testing.T) {
	ctx, client, now := t.Context(), fake.NewClientset(), time.Date(2026, 11, 26, 11, 0, 0, 0, time.UTC)
	node := Node{Name: "murano-gateway-1", Address: netip.MustParseAddr("10.0.0.4"), Six: netip.MustParseAddr("fd00::4")}
	register := func() *corev1.Node {
		t.Helper()
		require.NoError(t, registerPodless(ctx, client, node, "gateway", now))
		found, err := client.CoreV1().Nodes().Get(ctx, node.Name, metav1.GetOptions{})
		require.NoError(t, err)
		return found
	}
	made := register()
	require.True(t, Podless(made))
	require.Equal(t, "gateway", made.Labels[PodlessLabel])
	for _, none := range []string{corev1.LabelOSStable, corev1.LabelHostname} {
		require.NotContains(t, made.Labels, none, "DaemonSets ask for it")
	}
	require.Equal(t, []string{"burano.io/podless:NoExecute", "burano.io/podless:NoSchedule"}, taintsOf(t, client, node.Name))
	require.True(t, made.Status.Allocatable.Pods().IsZero())
	require.Contains(t, made.Status.Allocatable, corev1.ResourcePods)
	require.Equal(t, []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.4"}, {Type: corev1.NodeInternalIP, Address: "fd00::4"}, {Type: corev1.NodeHostName, Address: node.Name}}, made.Status.Addresses)
	require.Equal(t, corev1.ConditionTrue, made.Status.Conditions[0].Status)

	client.ClearActions()
	require.Equal(t, made, register())
	for _, action := range client.Actions() {
		require.Equal(t, "get", action.GetVerb(), "nothing is to be changed")
	}

	made.Annotations["projectcalico.org/IPv4Address"] = "10.0.0.4/24"
	made.Status.Conditions[0].Status = corev1.ConditionUnknown // it has not been heard of
	_, err := client.CoreV1().Nodes().Update(ctx, made, metav1.UpdateOptions{})
	require.NoError(t, err)
	node.Address = netip.MustParseAddr("10.0.0.9")
	again := register()
	require.Equal(t, "10.0.0.9", again.Status.Addresses[0].Address)
	require.Equal(t, "10.0.0.4/24", again.Annotations["projectcalico.org/IPv4Address"])
	require.Equal(t, corev1.ConditionUnknown, again.Status.Conditions[0].Status, "the node itself says that it lives")
}

func TestMinionsAreRegisteredBeforeTheirKubeletsWhereTheNetworkNeedsIt(t *testing.T) {
	ctx, client := t.Context(), fake.NewClientset()
	require.NoError(t, applySettings(ctx, client, "a", Settings{}, false))
	require.NoError(t, applySettings(ctx, client, "b", Settings{}, true))
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
	require.Equal(t, "b", list.Items[0].Name)
	require.Empty(t, list.Items[0].Annotations)
}

func TestANodeWithoutAKubeletRenewsItsLeaseAndSaysThatItIsReadyWhereThatIsDoubted(t *testing.T) {
	for ready, status := range map[string]bool{"True": false, "Unknown": true} {
		folder := t.TempDir()
		said := filepath.Join(folder, "said")
		write := func(name, text string) {
			require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte("#!/bin/bash\n"+text+"\n"), 0o755))
		}
		write("sleep", `echo "sleep $1" >>"$SAID"; kill -s KILL "$PPID"`)
		write("curl", fmt.Sprintf(`for last; do :; done
if [[ $* == *PATCH* ]]; then echo "$last $(jq --compact-output '[.kind, .metadata.name, .metadata.ownerReferences[0].uid, .spec.leaseDurationSeconds, (.status.conditions // [])[0].status]')" >>"$SAID"; exit; fi
echo '{"metadata": {"name": "gateway", "uid": "u"}, "status": {"conditions": [{"type": "Ready", "status": "%s"}]}}'`, ready))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		command := exec.CommandContext(ctx, "bash", "scripts/node-lease.sh")
		command.Env = append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"), "SAID="+said, "NODE=gateway", "API=https://api", "AUTHORITY=a", "CERTIFICATE=c", "KEY=k")
		out, err := command.CombinedOutput()
		require.ErrorContains(t, err, "killed", string(out))
		text, err := os.ReadFile(said)
		require.NoError(t, err)
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		require.Equal(t, `https://api/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/gateway?fieldManager=burano-node&force=true ["Lease","gateway","u",40,null]`, lines[0])
		require.Equal(t, "sleep 10", lines[len(lines)-1])
		if status {
			require.Equal(t, `https://api/api/v1/nodes/gateway/status [null,null,null,null,"True"]`, lines[1])
		}
		require.Len(t, lines, map[bool]int{false: 2, true: 3}[status])
	}
}

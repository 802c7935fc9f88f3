package nodes

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	xssh "golang.org/x/crypto/ssh"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/burano/burano/nodes/access"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/nodes/ssh"
)

// A minion may be a machine that no cloud made: a person has set it up with the content of a node image and lets Burano in over SSH. It joins like any
// other minion. When it leaves, Burano removes all that made it a node: the machine itself stays.

// stepMachine is the name of the step that makes sure that such a machine can be a node.
const stepMachine = "machine"

const (
	// LabelExternal is the label of Kubernetes nodes that are such machines.
	LabelExternal = "burano.io/external"
	// leavePath is the script on a machine that removes the node, for a person whose cluster is gone.
	leavePath = "/opt/burano/lib/leave"
	// leaveLimit is how long that may take.
	leaveLimit = 75 * time.Second
	sshPort    = 22
	// OldestKubelet is how many minor versions older than the API server a kubelet may be (https://kubernetes.io/releases/version-skew-policy/).
	OldestKubelet = 3
)

//go:embed scripts/machine.sh
var machineScript string

//go:embed scripts/leave.sh
var leaveScript string

// Endpoint is where the sshd of a node listens.
func (n Node) Endpoint() string { return netip.AddrPortFrom(n.Address, n.sshPort()).String() }

func (n Node) sshPort() uint16 {
	if n.Machine == nil {
		return sshPort
	}
	return cmp.Or(n.Machine.Port, sshPort)
}

// SSHKey is the line of authorized_keys by which a machine lets this cluster's Burano in.
func (c *servers) SSHKey(ctx context.Context) (string, error) { return c.connections.Public(ctx) }

// OwnerOf is how a machine notes the cluster whose node it is.
func OwnerOf(ctx context.Context, keys *access.Keys, cluster string) (string, error) {
	own, err := keys.Own(ctx)
	if err != nil {
		return "", err
	}
	return cluster + " " + xssh.FingerprintSHA256(own.PublicKey()), nil
}

// LookAtThisMachine finds out, as root, why the machine of this program cannot be a node of that owner's cluster with that address: each problem is a
// sentence. It changes nothing. The needs of the cluster's own network are checked at the deployment.
func LookAtThisMachine(ctx context.Context, owner string, address netip.Addr) (problems []string, err error) {
	command := exec.CommandContext(ctx, "/bin/bash", "-c", machineScript)
	command.Env = append(os.Environ(), "OWNER="+owner, "ADDRESS="+address.String(), "NETWORK=any", "LEAVE="+leavePath, "LOOK=yes")
	var said bytes.Buffer
	command.Stderr = &said
	err = command.Run()
	for line := range strings.Lines(said.String()) {
		problems = append(problems, strings.TrimSpace(line))
	}
	var ended *exec.ExitError
	if errors.As(err, &ended) && len(problems) > 0 {
		return problems, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look at this machine: %w", err)
	}
	return nil, nil
}

// arrivalSteps reach the nodes.
type arrivalSteps struct{ *deployment }

func (d arrivalSteps) steps() []step {
	machines := only(d.present(), func(node Node) bool { return node.Machine != nil })
	return []step{
		{name: stepConnect, on: d.present(), run: d.connect},
		{name: stepMachine, on: machines, after: here(stepConnect), run: d.takeMachine},
	}
}

// takeMachine makes sure that a machine has the parts of a node and no other owner. It records the owner, and writes the script that removes the node.
func (d arrivalSteps) takeMachine(ctx context.Context, node Node) error {
	owner, err := OwnerOf(ctx, &d.cluster.connections.Keys, d.cluster.config.Name)
	if err != nil {
		return err
	}
	network := cmp.Or(d.cluster.config.Network, Calico)
	also := d.design.driver.Units().Parts
	if d.design.runtime == kube.Docker {
		also = slices.Concat(also, kube.DockerParts)
	}
	said, err := d.script(ctx, node, "look at the machine", machineScript, map[string]string{"ADDRESS": node.Address.String(), "NETWORK": string(network), "ALSO": strings.Join(also, " "), "LEAVE": leavePath,
		"OWNER": owner})
	if err != nil {
		return fmt.Errorf("the machine cannot be a node of cluster %s: %w", d.cluster.config.Name, err)
	}
	if err := d.suits(ctx, strings.TrimSpace(said)); err != nil {
		return err
	}
	client, err := d.cluster.connect(ctx, node)
	if err != nil {
		return err
	}
	return client.Upload(ctx, []ssh.File{{Path: leavePath, Content: []byte(leaveScript), Mode: 0o755}})
}

// suits is true if a kubelet of that version may serve this cluster's API server.
func (d arrivalSteps) suits(ctx context.Context, kubelet string) error {
	said, err := d.script(ctx, d.lead, "ask for the version of Kubernetes", kubernetesVersionScript, nil)
	if err != nil {
		return err
	}
	return skewOf(kubelet, strings.TrimSpace(said))
}

func skewOf(kubelet, api string) error {
	its, err := version.ParseGeneric(kubelet)
	if err != nil {
		return fmt.Errorf("the machine's kubelet says that it is %q, which is no version: %w", kubelet, err)
	}
	wanted, err := version.ParseGeneric(api)
	if err != nil {
		return fmt.Errorf("the master's Kubernetes says that it is %q, which is no version: %w", api, err)
	}
	if its.Major() != wanted.Major() || its.Minor() > wanted.Minor() || its.Minor()+OldestKubelet < wanted.Minor() {
		return fmt.Errorf("the machine has Kubernetes %s, and the cluster's API server %s: a kubelet is not newer, and at most %d minor versions older. "+
			"Give the machine the content of the node image that the cluster has", kubelet, api, OldestKubelet)
	}
	return nil
}

// leaveMachine takes the node from a machine. One that does not answer is not waited for.
func (c *servers) leaveMachine(ctx context.Context, node Node) {
	ctx, cancel := context.WithTimeout(ctx, leaveLimit)
	defer cancel()
	if _, err := c.script(ctx, node.Name, ssh.Script{Name: "leave the machine", Body: leaveScript}); err != nil {
		c.config.Report(context.WithoutCancel(ctx), node.Name, fmt.Sprintf("what made it a node could not be taken from the machine %s, which is not waited for: %v. "+
			"When it runs again, run %s there as root", node.Endpoint(), err, leavePath))
		return
	}
	c.config.Report(ctx, node.Name, "the machine is no node any more: what runs on it was stopped, and Burano's files were removed; its key in authorized_keys is yours to remove")
}

// LeaveMachines takes the nodes from all machines, for a cluster that ends. Their servers may be gone already.
func (c *servers) LeaveMachines(ctx context.Context) {
	var all sync.WaitGroup
	for _, node := range c.config.Nodes {
		if node.Machine != nil {
			all.Go(func() { c.leaveMachine(ctx, node) })
		}
	}
	all.Wait()
}

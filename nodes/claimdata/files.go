// Package claimdata reads and writes the content of the claims of a cluster, on the nodes where their volumes are mounted, for every back-end alike.
package claimdata

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/burano/burano/internal/door"
	"github.com/burano/burano/nodes/ssh"
)

//go:embed scripts/hold.sh
var holdScript string

//go:embed scripts/read.sh
var readScript string

//go:embed scripts/fill.sh
var fillScript string

const (
	// HoldLimit is for how long pods are frozen at most: liveness probes of Kubernetes' defaults end a container after three that fail, ten seconds apart.
	HoldLimit = 25 * time.Second
	// folder is where copies are on a node until they are read.
	folder = "/var/lib/burano/backup"
	// mostSaid is how many bytes a node reports of its copies.
	mostSaid = 1 << 20
)

// Nodes runs commands on the nodes of a cluster (nodes.Cluster).
type Nodes interface {
	Stream(ctx context.Context, node string, job ssh.Job) error
}

// Volume is the volume of a claim where it is mounted.
type Volume struct {
	ID   string // its PersistentVolume
	Node string
	Path string
}

// Pod writes to volumes.
type Pod struct{ UID, Node string }

// Copies are the files of volumes at one moment, on their nodes. Drop removes them.
type Copies struct {
	nodes   Nodes
	run     string
	volumes []Volume
	pods    []Pod
	// Bytes are the sizes of the copies, by the ids of their volumes.
	Bytes map[string]int64
	// Held is for how long pods were frozen.
	Held time.Duration
}

// Step runs a part of the work, and makes its name and its end known. A server that dies is found to have died there.
type Step func(ctx context.Context, name string, do func(ctx context.Context) error) error

// Copy copies the files of volumes while all pods that write to them are frozen, on all nodes at the same time. The copies are of one moment, and have every write that
// a process has made until then. The pods go on when it returns, and after HoldLimit in any case, also when the server dies. run names the copies; copies of former
// runs are removed from these nodes.
func Copy(ctx context.Context, nodes Nodes, run string, volumes []Volume, pods []Pod, step Step) (*Copies, error) {
	copies := &Copies{nodes: nodes, run: run, volumes: volumes, pods: pods, Bytes: map[string]int64{}}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all []*holding
	for _, node := range copies.nodeNames() {
		all = append(all, hold(ctx, nodes, node, run, volumes, pods))
	}
	err := step(ctx, "freeze pods", func(context.Context) error {
		return together(all, func(one *holding) error { return one.until("held") })
	})
	began := time.Now()
	if err == nil {
		err = step(ctx, "copy claims", func(context.Context) error {
			return together(all, func(one *holding) error {
				one.tell("copy")
				return one.until("complete")
			})
		})
	}
	copies.Held = time.Since(began)
	ended := together(all, func(one *holding) error { return one.release(err == nil) })
	if err = errors.Join(err, ended); err != nil {
		return nil, errors.Join(err, copies.Drop(context.WithoutCancel(ctx)))
	}
	for _, one := range all {
		for id, bytes := range one.bytes {
			copies.Bytes[id] = bytes
		}
	}
	return copies, nil
}

func (c *Copies) nodeNames() (names []string) {
	for _, one := range c.volumes {
		names = append(names, one.Node)
	}
	for _, one := range c.pods {
		names = append(names, one.Node)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Read writes the copy of a volume as a tar archive.
func (c *Copies) Read(ctx context.Context, volume string, to io.Writer) error {
	i := slices.IndexFunc(c.volumes, func(one Volume) bool { return one.ID == volume })
	if i < 0 {
		return fmt.Errorf("there is no copy of volume %s", volume)
	}
	if err := c.nodes.Stream(ctx, c.volumes[i].Node, ssh.Job{Name: "read the copy of a volume", Script: readScript, Args: []string{path(c.run) + "/" + volume}, Stdout: to}); err != nil {
		return fmt.Errorf("read the copy of volume %s on %s: %w", volume, c.volumes[i].Node, err)
	}
	return nil
}

// Drop removes the copies.
func (c *Copies) Drop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var failures []error
	for _, node := range c.nodeNames() {
		if err := c.nodes.Stream(ctx, node, ssh.Job{Name: "remove copies of volumes", Script: `rm -rf -- "$1"`, Args: []string{path(c.run)}}); err != nil {
			failures = append(failures, fmt.Errorf("remove the copies of volumes on %s: %w", node, err))
		}
	}
	return errors.Join(failures...)
}

// Clean ends and removes the remains of runs whose server died: frozen pods go on, and copies and pods that have volumes mounted are removed, on all nodes of the cluster that are ready.
func Clean(ctx context.Context, client kubernetes.Interface, nodes Nodes) error {
	failures := []error{RemoveHolders(ctx, client)}
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return errors.Join(append(failures, fmt.Errorf("list the nodes: %w", err))...)
	}
	for _, node := range list.Items {
		ready := slices.ContainsFunc(node.Status.Conditions, func(one corev1.NodeCondition) bool {
			return one.Type == corev1.NodeReady && one.Status == corev1.ConditionTrue
		})
		if !ready { // it runs no pods, and is made anew or comes back
			continue
		}
		if err := nodes.Stream(ctx, node.Name, ssh.Job{Name: "end former copying of volumes", Script: holdScript, Args: []string{path("none"), "0"}}); err != nil {
			failures = append(failures, fmt.Errorf("end the copying of volumes on %s: %w", node.Name, err))
		}
	}
	return errors.Join(failures...)
}

func path(run string) string { return folder + "/" + run }

// Fill replaces the files of a volume that no pod uses by the files of an archive, as Read writes it.
func Fill(ctx context.Context, nodes Nodes, volume Volume, from io.Reader) error {
	if err := nodes.Stream(ctx, volume.Node, ssh.Job{Name: "fill a volume", Script: fillScript, Args: []string{volume.Path}, Input: from}); err != nil {
		return fmt.Errorf("fill volume %s on %s: %w", volume.ID, volume.Node, err)
	}
	return nil
}

// holding is a run of the script on a node, whose pods are frozen.
type holding struct {
	node  string
	input *io.PipeWriter
	lines *bufio.Scanner
	bytes map[string]int64
	ended chan error
}

func hold(ctx context.Context, nodes Nodes, node, run string, volumes []Volume, pods []Pod) *holding {
	input, tell := io.Pipe()
	said, output := io.Pipe()
	h := &holding{node: node, input: tell, lines: bufio.NewScanner(said), bytes: map[string]int64{}, ended: make(chan error, 1)}
	args := []string{path(run), strconv.Itoa(int(HoldLimit / time.Second))}
	for _, one := range pods {
		if one.Node == node {
			args = append(args, "pod:"+one.UID)
		}
	}
	for _, one := range volumes {
		if one.Node == node {
			args = append(args, "volume:"+one.ID+":"+one.Path)
		}
	}
	go func() {
		err := nodes.Stream(ctx, node, ssh.Job{Name: "copy volumes", Script: holdScript, Args: args, Input: input, Stdout: door.Writer(output, mostSaid, "what the node says of its copies")})
		output.CloseWithError(io.EOF)
		input.Close()
		h.ended <- err
	}()
	return h
}

// tell writes a line to the script. An error of it is left to the script's end, which has the cause.
func (h *holding) tell(word string) { _, _ = io.WriteString(h.input, word+"\n") }

// until reads the script's lines until one is the word.
func (h *holding) until(word string) error {
	for h.lines.Scan() {
		line := h.lines.Text()
		if line == word {
			return nil
		}
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "copied" {
			size, err := strconv.ParseInt(fields[2], 10, 64)
			if err != nil {
				return fmt.Errorf("node %s says that a copy has %q bytes", h.node, fields[2])
			}
			h.bytes[fields[1]] = size
		}
	}
	err := <-h.ended
	h.ended <- err
	if err == nil {
		err = errors.New("the script ended early")
	}
	return fmt.Errorf("copy the volumes on %s: %w", h.node, err)
}

// release lets the pods go on, and waits until the script has ended. After an earlier failure it returns no error.
func (h *holding) release(well bool) error {
	if well {
		h.tell("release")
	}
	h.input.Close()
	for h.lines.Scan() {
	}
	err := <-h.ended
	if err != nil && well {
		return fmt.Errorf("have the pods on %s go on: %w", h.node, err)
	}
	return nil
}

// together runs do for all at the same time.
func together(all []*holding, do func(*holding) error) error {
	errs := make([]error, len(all))
	var running sync.WaitGroup
	for i, one := range all {
		running.Go(func() { errs[i] = do(one) })
	}
	running.Wait()
	return errors.Join(errs...)
}

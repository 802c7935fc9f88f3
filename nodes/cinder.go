package nodes

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/burano/burano/internal/wait"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/nodes/ssh"
)

// A Burano server makes, attaches and deletes Cinder's volumes and Manila's shares: it has the credentials for the cloud. The controllers on the masters
// have none. The leader of the controllers listens on a socket; the server connects to it over SSH, and the controllers send their requests on that
// connection.

const (
	// The controllers' first line to a server (images/modules/storage/storage-controllers/link.go).
	lineServes = "burano-storage 1 serve"
	lineHeld   = "burano-storage 1 held"
	// linePatience is how long that line may take.
	linePatience = 10 * time.Second
	// detachPatience is how long the volumes of a node without pods may take to be detached.
	detachPatience = 2 * time.Minute
)

// ErrVolumesHeld is the error when another server already answers a cluster's requests for its volumes.
var ErrVolumesHeld = errors.New("another Burano server answers what the cluster asks for its volumes")

// HasStorage is true if the cluster with this vault has, or may have, volumes of one of these back-ends.
func HasStorage(ctx context.Context, vault Vault, of ...kube.Storage) (bool, error) {
	record, err := loadStorage(ctx, vault)
	return slices.ContainsFunc(of, func(one kube.Storage) bool { return slices.Contains(record.Backends, one) }), err
}

// VolumeLine connects to the controllers of a cluster with volumes of Cinder or shares of Manila. The caller answers CSI calls (gRPC) on the connection
// until it ends. The error is ErrVolumesHeld if another server does already.
func (c *kubernetesAPI) VolumeLine(ctx context.Context) (net.Conn, error) {
	var failures []error
	for _, master := range c.masters() {
		conn, err := c.volumeLine(ctx, master)
		if err == nil || errors.Is(err, ErrVolumesHeld) {
			return conn, err
		}
		failures = append(failures, fmt.Errorf("%s: %w", master.Name, err))
	}
	return nil, fmt.Errorf("the controllers of volumes (%s) answer on no master: %w", kube.StorageUnit, errors.Join(failures...))
}

func (c *kubernetesAPI) volumeLine(ctx context.Context, master Node) (net.Conn, error) {
	client, err := c.connect(ctx, master)
	if err != nil {
		return nil, err
	}
	conn, err := client.DialContext(ctx, "unix", kube.StorageSocket)
	if err != nil {
		return nil, err
	}
	if err := greeted(conn, lineServes, lineHeld); err != nil {
		if errors.Is(err, errHeld) {
			err = ErrVolumesHeld
		}
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// errHeld is the error when another server has the place at a program on a master.
var errHeld = errors.New("another Burano server answers")

// greeted reads the first line of a program on a master to a server, and not a byte more. The error is errHeld where another server is there.
func greeted(conn net.Conn, serves, held string) error {
	if err := conn.SetReadDeadline(time.Now().Add(linePatience)); err != nil {
		return err
	}
	var line strings.Builder
	for letter := make([]byte, 1); ; {
		if _, err := io.ReadFull(conn, letter); err != nil {
			return fmt.Errorf("it sends nothing: %w", err)
		}
		if letter[0] == '\n' || line.Len() > len(serves) {
			break
		}
		line.Write(letter)
	}
	switch line.String() {
	case serves:
		return conn.SetReadDeadline(time.Time{})
	case held:
		return errHeld
	}
	return fmt.Errorf("it sends %q, which this version of Burano does not understand", line.String())
}

// OutOfService tells Kubernetes which nodes' servers are certainly off (kube.OutOfService). It returns the names of the marked nodes.
func (c *kubernetesAPI) OutOfService(ctx context.Context, off []string) (marked []string, err error) {
	config, err := c.Kubernetes(ctx)
	if err != nil {
		return nil, err
	}
	return kube.OutOfService(ctx, config, off)
}

// awaitDetached waits until the volumes of a node without pods are detached from its server. Then the server may be deleted, and the volumes are attached
// elsewhere at once. Volumes that stay attached are reported; the deletion of the server detaches them as well.
func (c *kubernetesAPI) awaitDetached(ctx context.Context, api *rest.Config, node Node) error {
	if c.config.Server(ctx, node.Name).Down { // no kubelet is there to unmount them
		return nil
	}
	var left []string
	err := wait.Every(pollEvery).For(detachPatience).Until(ctx, func(ctx context.Context) (err error) {
		if left, err = kube.Attached(ctx, api, node.Name, kube.Cinder, kube.Manila); err != nil {
			return wait.Again(err)
		}
		if len(left) > 0 {
			return wait.Again(fmt.Errorf("these volumes are attached to %s: %s", node.Name, some(left)))
		}
		return nil
	})
	var expired *wait.Expired
	if errors.As(err, &expired) && ctx.Err() == nil {
		c.config.Report(ctx, node.Name, fmt.Sprintf("its volumes were not detached within %s, and are with the deletion of its server: %v", detachPatience, expired.Last))
		return nil
	}
	return err
}

//go:embed scripts/volume-mounts.sh
var volumeMountsScript string

// MountsVolume asks a node over SSH whether anything on it uses the disk of a volume of Cinder, given by its id.
func MountsVolume(ctx context.Context, c *Cluster, node, volume string) (bool, error) {
	out, err := c.script(ctx, node, ssh.Script{Name: "look whether a volume is mounted", Body: volumeMountsScript, Env: map[string]string{"VOLUME": volume}})
	if err != nil {
		return false, fmt.Errorf("look whether node %s uses volume %s: %w", node, volume, err)
	}
	return strings.TrimSpace(out) != "free", nil
}

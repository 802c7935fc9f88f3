package nodes

import (
	"context"
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
)

// Volumes of Cinder, and shares of Manila, are made, attached and deleted by a Burano server, which has what the cloud wants to see. The controllers on the masters have nothing: the one that
// leads listens on a socket, to which the server comes over SSH, and asks on the connection that the server has made.

const (
	// What the controllers say to a server that comes (images/modules/storage/storage-controllers/link.go).
	lineServes = "burano-storage 1 serve"
	lineHeld   = "burano-storage 1 held"
	// linePatience is how long they may take to say so.
	linePatience = 10 * time.Second
	// detachPatience is how long the volumes of a node without pods may take to be detached.
	detachPatience = 2 * time.Minute
)

// ErrVolumesHeld says that another server answers what a cluster asks for its volumes.
var ErrVolumesHeld = errors.New("another Burano server answers what the cluster asks for its volumes")

// HasStorage tells whether the cluster whose vault it is has, or may have, volumes of one of these back-ends.
func HasStorage(ctx context.Context, vault Vault, of ...kube.Storage) (bool, error) {
	record, err := loadStorage(ctx, vault)
	return slices.ContainsFunc(of, func(one kube.Storage) bool { return slices.Contains(record.Backends, one) }), err
}

// VolumeLine connects to the controllers of a cluster with volumes of Cinder or shares of Manila. Whoever has the connection answers CSI calls (gRPC) on it until it ends. ErrVolumesHeld says
// that another one does already.
func (c *Cluster) VolumeLine(ctx context.Context) (net.Conn, error) {
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

func (c *Cluster) volumeLine(ctx context.Context, master Node) (net.Conn, error) {
	client, err := c.connect(ctx, master)
	if err != nil {
		return nil, err
	}
	conn, err := client.DialContext(ctx, "unix", kube.StorageSocket)
	if err != nil {
		return nil, err
	}
	if err := greeted(conn); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// greeted reads what the controllers say first, and not a byte of what follows.
func greeted(conn net.Conn) error {
	if err := conn.SetReadDeadline(time.Now().Add(linePatience)); err != nil {
		return err
	}
	var line strings.Builder
	for letter := make([]byte, 1); ; {
		if _, err := io.ReadFull(conn, letter); err != nil {
			return fmt.Errorf("they say nothing: %w", err)
		}
		if letter[0] == '\n' || line.Len() > len(lineServes) {
			break
		}
		line.Write(letter)
	}
	switch line.String() {
	case lineServes:
		return conn.SetReadDeadline(time.Time{})
	case lineHeld:
		return ErrVolumesHeld
	}
	return fmt.Errorf("they say %q, which this version of Burano does not understand", line.String())
}

// OutOfService tells Kubernetes which nodes' servers are known to be off (kube.OutOfService). It returns the names of those that are marked.
func (c *Cluster) OutOfService(ctx context.Context, off []string) (marked []string, err error) {
	config, err := c.Kubernetes(ctx)
	if err != nil {
		return nil, err
	}
	return kube.OutOfService(ctx, config, off)
}

// awaitDetached waits until the volumes of a node, which has no pods any more, are detached from its server: that may be deleted then, and they are attached elsewhere at
// once. What does not come to that is told, and waits for the deletion of the server, which detaches them as well.
func (c *Cluster) awaitDetached(ctx context.Context, api *rest.Config, node Node) error {
	if c.config.Server(ctx, node.Name).Down { // there is nobody who could unmount them
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

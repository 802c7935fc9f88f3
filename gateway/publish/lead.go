package publish

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/burano/burano/gateway/route"
	"github.com/burano/burano/internal/wait"
)

const (
	leaderPrefix = route.Prefix + "leader"
	// leaderTTL is how many seconds after its last sign of life a leader is one no more.
	leaderTTL = 5
	// A leader looks every readyPause whether the API server that it asks is ready, and gives its place up after so many times that it is not.
	readyPause = time.Second
	readyTries = 3
	// farewell is how long giving the place up may take; it ends by itself then.
	farewell = 3 * time.Second
)

// Lead is Run for one of several publishers, of which one leads and the others wait. Each uses an API server of its own; one whose API server is not ready
// does not lead. name identifies the leader. It returns nil when the context ends.
func Lead(ctx context.Context, c Config, name string) error {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	client, err := kubernetes.NewForConfig(rest.CopyConfig(c.Kubernetes))
	if err != nil {
		return fmt.Errorf("publish: use the Kubernetes API: %w", err)
	}
	ready := func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, readyPause)
		defer cancel()
		return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	}
	for ctx.Err() == nil {
		// Its only end is the context's.
		_ = wait.Every(readyPause).Until(ctx, func(ctx context.Context) error {
			if err := ready(ctx); err != nil {
				return wait.Again(err)
			}
			return nil
		})
		if ctx.Err() != nil {
			break
		}
		if err := lead(ctx, c, name, ready); err != nil && ctx.Err() == nil {
			c.Logger.Warn("publishes no more, and stands for it again", "error", err)
			_ = wait.Pause(ctx, readyPause)
		}
	}
	return nil
}

var (
	errNoAPI      = errors.New("the API server that it asks is not ready")
	errSuperseded = errors.New("etcd has not heard of it in time")
)

// lead waits until it leads, and publishes as long as it does.
func lead(ctx context.Context, c Config, name string, ready func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	session, err := concurrency.NewSession(c.Etcd, concurrency.WithTTL(leaderTTL), concurrency.WithContext(ctx))
	if err != nil {
		return fmt.Errorf("begin a session with etcd: %w", err)
	}
	election := concurrency.NewElection(session, leaderPrefix)
	defer func() {
		last, stop := context.WithTimeout(context.WithoutCancel(ctx), farewell)
		defer stop()
		_, _ = c.Etcd.Revoke(last, session.Lease()) // else it ends by itself
	}()
	go func() {
		select {
		case <-session.Done():
			cancel(errSuperseded)
		case <-ctx.Done():
		}
	}()
	if err := election.Campaign(ctx, name); err != nil {
		return fmt.Errorf("stand for publishing: %w", err)
	}
	c.Logger.Info("publishes", "name", name)
	go func() {
		failed := 0
		for wait.Pause(ctx, readyPause) == nil {
			if failed++; ready(ctx) == nil {
				failed = 0
			}
			if failed >= readyTries {
				cancel(errNoAPI)
			}
		}
	}()
	c.Guard = func() []clientv3.Cmp {
		return []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(election.Key()), "=", election.Rev())}
	}
	err = Run(ctx, c)
	if err == nil {
		err = context.Cause(ctx)
	}
	return err
}

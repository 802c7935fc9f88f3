package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// One master at a time works on a release: the holder of its Lease. On a master it is one program at a time, by the lock of helm-release.sh. So a Lease
// with the name of this master belongs to a program that has ended, and is taken over at once. The Lease of another master that has died is free after
// leaseDuration.
const (
	leaseNamespace = metav1.NamespaceSystem
	leaseDuration  = 90 * time.Second
	leaseRenewal   = 75 * time.Second // so long may the API server be away
	leaseRetry     = 2 * time.Second
)

var (
	errBusy = errors.New("somebody else works on the release")
	errLost = errors.New("the lock of the release was lost: the API server did not answer for " + leaseRenewal.String())
)

func leaseName(namespace, release string) string { return "burano-helm." + namespace + "." + release }

// locked runs while no other master works on the release, and waits so long for that. Its context ends when the lock is lost.
func (r *releases) locked(patience time.Duration, run func(ctx context.Context) error) error {
	client, err := r.config.KubernetesClientSet()
	if err != nil {
		return fmt.Errorf("reach the cluster: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	return hold(client, leaseName(r.asked.Namespace, r.asked.Name), host, patience, run)
}

func hold(client kubernetes.Interface, name, holder string, patience time.Duration, run func(ctx context.Context) error) error {
	lease := &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: leaseNamespace, Name: name},
		Client:     client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: holder},
	}
	ctx, release := context.WithCancel(context.Background())
	began, ended := make(chan context.Context, 1), make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lease, LeaseDuration: leaseDuration, RenewDeadline: leaseRenewal, RetryPeriod: leaseRetry, ReleaseOnCancel: true, Name: name,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(ctx context.Context) { began <- ctx }, OnStoppedLeading: func() {}},
	})
	if err != nil {
		release()
		return err
	}
	go func() {
		defer close(ended)
		elector.Run(ctx)
	}()
	defer func() {
		release()
		<-ended
	}()
	select {
	case held := <-began:
		watched, stop := context.WithCancelCause(context.Background())
		defer stop(nil)
		defer context.AfterFunc(held, func() { stop(errLost) })()
		return run(watched)
	case <-time.After(patience):
		if other := elector.GetLeader(); other != "" {
			return fmt.Errorf("%w, on master %s", errBusy, other)
		}
		return errBusy
	}
}

// forget deletes the lock of a deleted release. A lock that cannot be deleted does no harm.
func (r *releases) forget() {
	if client, err := r.config.KubernetesClientSet(); err == nil {
		_ = client.CoordinationV1().Leases(leaseNamespace).Delete(context.Background(), leaseName(r.asked.Namespace, r.asked.Name), metav1.DeleteOptions{})
	}
}

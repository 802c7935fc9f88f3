// Command storage-controllers makes and removes the volumes of a cluster's claims. It runs on masters, of which one leads.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// leaseName is the leader's lease, in the namespace kube-system.
const leaseName = "burano-storage"

// resync is how often objects are looked at that have not changed.
const resync = 10 * time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "storage-controllers:", err)
		os.Exit(1)
	}
}

// part is the work for one back-end.
type part func(ctx context.Context, config *rest.Config, client kubernetes.Interface, factory informers.SharedInformerFactory) error

func run(ctx context.Context, arguments []string) error {
	var kubeconfig, elect, cinder, manila string
	var local bool
	flags := flag.NewFlagSet("storage-controllers", flag.ContinueOnError)
	klog.InitFlags(flags)
	flags.StringVar(&kubeconfig, "kubeconfig", "", "file of the access to the API server, whose certificate nodes are shown, too")
	flags.StringVar(&elect, "elect", "", "name under which it stands for leader, where there are several; empty for the only one")
	flags.BoolVar(&local, "local", false, "whether claims get directories of nodes")
	flags.StringVar(&cinder, "cinder", "", "socket where the Burano server comes that has claims get volumes of Cinder; without it none do")
	flags.StringVar(&manila, "manila", "", "socket where the Burano server comes that has claims get shares of Manila, the same as for volumes of Cinder; without it none do")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("read the access to the API server: %w", err)
	}
	config.QPS, config.Burst, config.UserAgent = 50, 100, "burano-storage"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	var parts []part
	if local {
		parts = append(parts, provideLocal)
	}
	if socket := cmp.Or(cinder, manila); socket != "" {
		link, err := newLink()
		if err != nil {
			return err
		}
		defer link.client.Close()
		parts = append(parts, func(ctx context.Context, _ *rest.Config, _ kubernetes.Interface, _ informers.SharedInformerFactory) error {
			return link.listen(ctx, socket)
		})
		if cinder != "" {
			parts = append(parts, provideCinder(link))
		}
		if manila != "" {
			parts = append(parts, provideManila(link))
		}
	}
	if len(parts) == 0 {
		return errors.New("there is nothing to do: say --local, --cinder SOCKET, or --manila SOCKET")
	}
	work := func(ctx context.Context) error { return workOn(ctx, config, client, parts) }
	if elect == "" {
		return work(ctx)
	}
	return lead(ctx, client, elect, work)
}

// workOn runs parts until the first of them ends.
func workOn(ctx context.Context, config *rest.Config, client kubernetes.Interface, parts []part) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	factory := informers.NewSharedInformerFactory(client, resync)
	ended := make(chan error, len(parts))
	for _, part := range parts {
		go func() { ended <- part(ctx, config, client, factory) }()
	}
	return <-ended
}

// lead runs work while it leads, and ends with that: it is started again, and is a candidate again.
func lead(ctx context.Context, client kubernetes.Interface, name string, work func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	worked := make(chan error, 1)
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{LeaseMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: leaseName}, Client: client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: name}},
		LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				worked <- work(ctx)
				cancel()
			},
			OnStoppedLeading: func() {},
		},
	})
	select {
	case err := <-worked:
		return err
	default:
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errors.New("it leads no more")
}

// Command storage-node serves the volumes of one node: it is the node's part of the CSI drivers of Burano, registered at the kubelet. It asks neither the
// cloud nor Kubernetes for anything, and has no credential of either.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"k8s.io/mount-utils"
	"k8s.io/utils/exec"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "storage-node:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string) error {
	var node, zone, kubelet, local string
	var cinder, manila bool
	var control controlConfig
	flags := flag.NewFlagSet("storage-node", flag.ContinueOnError)
	flags.StringVar(&node, "node", "", "name of the Kubernetes node")
	flags.StringVar(&zone, "zone", "", "availability zone of its server, for volumes of Cinder that are made where their pods run")
	flags.StringVar(&kubelet, "kubelet", "/var/lib/kubelet", "folder of the kubelet")
	flags.StringVar(&local, "local", "", "folder of local volumes; without it there are none")
	flags.BoolVar(&cinder, "cinder", false, "whether volumes of Cinder are attached to this node")
	flags.BoolVar(&manila, "manila", false, "whether shares of Manila are mounted on this node")
	flags.StringVar(&control.Listen, "listen", "", "address and port where the controllers have local volumes made and removed")
	flags.StringVar(&control.Certificate, "certificate", "", "file of the certificate that it shows them")
	flags.StringVar(&control.Key, "key", "", "file of its key")
	flags.StringVar(&control.Authority, "authority", "", "file of the authority that has issued theirs")
	flags.StringVar(&control.Client, "client", "", "common name of their certificate")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if node == "" || flags.NArg() > 0 {
		return errors.New("say which node it is: --node NAME, and nothing but flags")
	}
	mounter := mount.NewSafeFormatAndMount(mount.New(""), exec.New())
	var servers []func(context.Context) error
	if local != "" {
		volumes, err := openLocal(local, mounter)
		if err != nil {
			return err
		}
		servers = append(servers,
			driver{localDriver, newLocalNode(node, volumes)}.serve(kubelet),
			control.serve(volumes))
	}
	if cinder {
		servers = append(servers, driver{cinderDriver, newCinderNode(node, zone, mounter)}.serve(kubelet))
	}
	if manila {
		servers = append(servers, driver{manilaDriver, newManilaNode(node, mounter)}.serve(kubelet))
	}
	if len(servers) == 0 {
		return errors.New("there is nothing to serve: say --local FOLDER, --cinder, or --manila")
	}
	slog.Info("serving volumes", "node", node, "local", local, "cinder", cinder, "manila", manila)
	return all(ctx, servers)
}

// all runs servers until the first of them ends.
func all(ctx context.Context, servers []func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, len(servers))
	for _, serve := range servers {
		go func() { ended <- serve(ctx) }()
	}
	err := <-ended
	cancel()
	for range servers[1:] {
		<-ended
	}
	return err
}

// pluginSocket is where the kubelet calls a driver.
func pluginSocket(kubelet, driver string) string {
	return filepath.Join(kubelet, "plugins", driver, "csi.sock")
}

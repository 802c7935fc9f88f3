// Program flanneld connects a node to the pods of all nodes: Flannel's VXLAN over etcd, and nothing else of Flannel.
//
// Flannel's own program cannot be built without cgo (its UDP backend) and carries the backends of several clouds. This one
// takes the parts that are needed as a library. The rules that masquerade are left to the node's unit.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/flannel-io/flannel/pkg/backend"
	"github.com/flannel-io/flannel/pkg/backend/vxlan"
	"github.com/flannel-io/flannel/pkg/ip"
	etcdsubnet "github.com/flannel-io/flannel/pkg/subnet/etcd"
	"k8s.io/klog/v2"
)

type options struct {
	etcd       etcdsubnet.EtcdConfig
	address    string
	subnetFile string
}

func main() {
	var o options
	endpoint := flag.String("etcd-endpoint", "https://127.0.0.1:2379", "where etcd answers")
	flag.StringVar(&o.etcd.CAFile, "etcd-cafile", "", "certificate of etcd's authority")
	flag.StringVar(&o.etcd.Certfile, "etcd-certfile", "", "certificate to show to etcd")
	flag.StringVar(&o.etcd.Keyfile, "etcd-keyfile", "", "its key")
	flag.StringVar(&o.etcd.Prefix, "etcd-prefix", "/coreos.com/network", "where etcd keeps the network's configuration and leases")
	flag.StringVar(&o.address, "address", "", "the node's address, at which the other nodes reach it")
	flag.StringVar(&o.subnetFile, "subnet-file", "/run/flannel/subnet.env", "where to write what the CNI plugin must know")
	flag.Parse()
	o.etcd.Endpoints = []string{*endpoint}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "flanneld:", err)
		os.Exit(1)
	}
}

// run connects the node and keeps it connected until ctx ends. Tunnel and routes stay when it returns, so that pods do not
// notice a restart.
func run(ctx context.Context, o options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	external, err := interfaceOf(o.address)
	if err != nil {
		return err
	}
	previous, err := previousSubnet(o.subnetFile)
	if err != nil {
		klog.Warningf("the subnet of the last run is not known, another one may be taken: %v", err)
	}
	local, err := etcdsubnet.NewLocalManager(ctx, &o.etcd, previous, ip.IP6Net{}, int(renewMargin.Minutes()))
	if err != nil {
		return fmt.Errorf("connect to etcd: %w", err)
	}
	leases, err := newManager(local, o.etcd)
	if err != nil {
		return err
	}
	defer leases.close()
	config, err := leases.GetNetworkConfig(ctx)
	if err != nil {
		return fmt.Errorf("read the network's configuration from %s/config: %w", o.etcd.Prefix, err)
	}
	if config.BackendType != "vxlan" {
		return fmt.Errorf("%s/config asks for the backend %q: this program has only vxlan", o.etcd.Prefix, config.BackendType)
	}
	tunnel, err := vxlan.New(leases, external)
	if err != nil {
		return err
	}
	network, err := tunnel.RegisterNetwork(ctx, &sync.WaitGroup{}, config)
	if err != nil {
		return fmt.Errorf("join the network: %w", err)
	}
	lease := network.Lease()
	if err := leases.HandleSubnetFile(o.subnetFile, config, true, lease.Subnet, lease.IPv6Subnet, network.MTU()); err != nil {
		return fmt.Errorf("write %s: %w", o.subnetFile, err)
	}
	go network.Run(ctx)
	if _, err := daemon.SdNotify(false, daemon.SdNotifyReady); err != nil {
		return fmt.Errorf("tell systemd that the node is connected: %w", err)
	}
	klog.Infof("pods of this node are in %s, MTU %d", lease.Subnet, network.MTU())
	// The library's goroutines are not waited for: they may sit in a pause between two attempts, and have nothing to save.
	return leases.keep(ctx, lease)
}

// interfaceOf finds the interface that has an address.
func interfaceOf(address string) (*backend.ExternalInterface, error) {
	wanted := net.ParseIP(address).To4()
	if wanted == nil {
		return nil, fmt.Errorf("-address is %q, which is no IPv4 address", address)
	}
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("list the interfaces: %w", err)
	}
	for _, candidate := range interfaces {
		addresses, err := candidate.Addrs()
		if err != nil {
			return nil, fmt.Errorf("list the addresses of %s: %w", candidate.Name, err)
		}
		for _, has := range addresses {
			if network, ok := has.(*net.IPNet); ok && network.IP.Equal(wanted) {
				return &backend.ExternalInterface{Iface: &candidate, IfaceName: candidate.Name, IfaceAddr: wanted, ExtAddr: wanted}, nil
			}
		}
	}
	return nil, fmt.Errorf("no interface has the address %s", address)
}

// previousSubnet reads from the file of the last run which subnet the node's pods are in. Without a file it is empty.
func previousSubnet(path string) (ip.IP4Net, error) {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return ip.IP4Net{}, nil
	} else if err != nil {
		return ip.IP4Net{}, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if text, found := strings.CutPrefix(lines.Text(), "FLANNEL_SUBNET="); found {
			_, subnet, err := net.ParseCIDR(text)
			if err != nil || subnet.IP.To4() == nil {
				return ip.IP4Net{}, fmt.Errorf("%s: FLANNEL_SUBNET is %q, which is no IPv4 network", path, text)
			}
			return ip.FromIPNet(subnet), nil
		}
	}
	return ip.IP4Net{}, errors.Join(lines.Err(), fmt.Errorf("%s has no FLANNEL_SUBNET", path))
}

package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"time"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/burano/burano/gateway"
	"github.com/burano/burano/gateway/haproxy"
	"github.com/burano/burano/gateway/publish"
)

// etcdFlags say how a daemon on a node reaches the cluster's etcd: through the forwarder on the node itself.
type etcdFlags struct {
	endpoint, authority, certificate, key string
}

func (f *etcdFlags) add(command *cobra.Command) {
	command.Flags().StringVar(&f.endpoint, "etcd", "127.0.0.1:2379", "host and port of etcd")
	command.Flags().StringVar(&f.authority, "etcd-ca", "", "file with etcd's certificate authority (PEM)")
	command.Flags().StringVar(&f.certificate, "etcd-cert", "", "file with the client certificate (PEM); its common name is the etcd user")
	command.Flags().StringVar(&f.key, "etcd-key", "", "file with the key of the client certificate (PEM)")
	for _, name := range []string{"etcd-ca", "etcd-cert", "etcd-key"} {
		cobra.CheckErr(command.MarkFlagRequired(name))
	}
}

func (f *etcdFlags) connect() (*clientv3.Client, error) {
	certificate, err := tls.LoadX509KeyPair(f.certificate, f.key)
	if err != nil {
		return nil, fmt.Errorf("read the etcd client certificate: %w", err)
	}
	pem, err := os.ReadFile(f.authority)
	if err != nil {
		return nil, fmt.Errorf("read etcd's certificate authority: %w", err)
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate", f.authority)
	}
	return clientv3.New(clientv3.Config{
		Endpoints:            []string{"https://" + f.endpoint},
		TLS:                  &tls.Config{Certificates: []tls.Certificate{certificate}, RootCAs: authorities, MinVersion: tls.VersionTLS12},
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: 5 * time.Second,
	})
}

func publishCommand() *cobra.Command {
	var etcd etcdFlags
	var kubeconfig string
	command := &cobra.Command{
		Use:   "publish",
		Short: "Keep the routes in etcd in step with the cluster's Services (runs on masters)",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			kubernetes, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
			if err != nil {
				return fmt.Errorf("read the kubeconfig %s: %w", kubeconfig, err)
			}
			client, err := etcd.connect()
			if err != nil {
				return err
			}
			err = publish.Run(command.Context(), publish.Config{Kubernetes: kubernetes, Etcd: client, Logger: slog.Default()})
			return errors.Join(err, client.Close())
		},
	}
	etcd.add(command)
	command.Flags().StringVar(&kubeconfig, "kubeconfig", "/etc/kubernetes/publisher.conf", "kubeconfig for the Kubernetes API")
	return command
}

func gatewayCommand() *cobra.Command {
	var etcd etcdFlags
	var config string
	var internal []string
	command := &cobra.Command{
		Use:   "gateway",
		Short: "Keep HAProxy and the published ports in step with the routes in etcd (runs on gateways)",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			var prefixes []netip.Prefix
			for _, text := range internal {
				prefix, err := netip.ParsePrefix(text)
				if err != nil {
					return fmt.Errorf("--internal %s: %w", text, err)
				}
				prefixes = append(prefixes, prefix)
			}
			client, err := etcd.connect()
			if err != nil {
				return err
			}
			err = gateway.Run(command.Context(), gateway.Config{Etcd: client, HAProxy: haproxy.Config{ConfigFile: config}, Internal: prefixes, Logger: slog.Default()})
			return errors.Join(err, client.Close())
		},
	}
	etcd.add(command)
	command.Flags().StringVar(&config, "haproxy-config", "/etc/haproxy/haproxy.cfg", "HAProxy's configuration file, which this daemon writes")
	command.Flags().StringSliceVar(&internal, "internal", nil, "networks of the cluster, whose traffic is all let in (CIDRs)")
	return command
}

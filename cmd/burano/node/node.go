// Package node has the programs that Burano runs on the nodes of clusters.
package node

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/burano/burano/cmd/burano/cli"
	"github.com/burano/burano/cmd/burano/process"
	"github.com/burano/burano/gateway"
	"github.com/burano/burano/gateway/haproxy"
	"github.com/burano/burano/gateway/outward"
	"github.com/burano/burano/gateway/publish"
	"github.com/burano/burano/gateway/route"
	"github.com/burano/burano/gateway/traffic"
	"github.com/burano/burano/internal/door"
	"github.com/burano/burano/nodes/etcd"
	"github.com/burano/burano/nodes/etcd/restore"
	"github.com/burano/burano/nodes/signin/webhook"
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

// PublishCommand is burano publish.
func PublishCommand() *cobra.Command {
	var store etcdFlags
	var kubeconfig, name string
	command := &cobra.Command{
		Use:   "publish",
		Short: "Keep the routes in etcd in step with the cluster's Services and Ingresses (runs on masters)",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			kubernetes, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
			if err != nil {
				return fmt.Errorf("read the kubeconfig %s: %w", kubeconfig, err)
			}
			client, err := store.connect()
			if err != nil {
				return err
			}
			config := publish.Config{Kubernetes: kubernetes, Etcd: client, Logger: slog.Default()}
			if name != "" {
				err = publish.Lead(command.Context(), config, name)
			} else {
				err = publish.Run(command.Context(), config)
			}
			return errors.Join(err, client.Close())
		},
	}
	store.add(command)
	command.Flags().StringVar(&kubeconfig, "kubeconfig", "/etc/kubernetes/publisher.conf", "kubeconfig for the Kubernetes API")
	command.Flags().StringVar(&name, "elect", "", "publish only while leading, under this name: for one of several masters")
	return command
}

// ForwardCommand is burano forward.
func ForwardCommand() *cobra.Command {
	var hosts []string
	var on served
	command := &cobra.Command{
		Use:   "forward",
		Short: "Forward nodes without access to the outside to registries (runs on masters)",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			listener, config, err := on.open(command.Context())
			if err != nil {
				return err
			}
			return outward.Run(command.Context(), outward.Config{Listener: listener, TLS: config, Client: on.client, Hosts: hosts, Closed: outward.Own(), Logger: slog.Default()})
		},
	}
	on.add(command)
	command.Flags().StringSliceVar(&hosts, "hosts", nil, "allowed hosts, each with a port or without, and domains with a leading dot")
	return command
}

// AuthenticateCommand is burano authenticate.
func AuthenticateCommand() *cobra.Command {
	var socket string
	var on served
	command := &cobra.Command{
		Use:   "authenticate",
		Short: "Answer the API server whose a token of Keystone is, by asking Burano's server (runs on masters)",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			listener, config, err := on.open(command.Context())
			if err != nil {
				return err
			}
			return webhook.Run(command.Context(), webhook.Config{Listener: listener, TLS: config, Client: on.client, Socket: socket, Logger: slog.Default()})
		},
	}
	on.add(command)
	command.Flags().StringVar(&socket, "socket", webhook.Socket, "socket to which Burano's server comes")
	return command
}

// served are the flags of a program that serves clients with certificates.
type served struct{ listen, certificate, key, authority, client string }

func (s *served) add(command *cobra.Command) {
	command.Flags().StringVar(&s.listen, "listen", "", "address and port")
	command.Flags().StringVar(&s.certificate, "cert", "", "file with the certificate that is shown (PEM)")
	command.Flags().StringVar(&s.key, "key", "", "file with its key (PEM)")
	command.Flags().StringVar(&s.authority, "client-ca", "", "file with the authorities of clients' certificates (PEM)")
	command.Flags().StringVar(&s.client, "client", "", "the common name of clients' certificates")
	for _, name := range []string{"listen", "cert", "key", "client-ca", "client"} {
		cobra.CheckErr(command.MarkFlagRequired(name))
	}
}

// open listens, and reads what clients and program show each other.
func (s *served) open(ctx context.Context) (net.Listener, *tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(s.certificate, s.key)
	if err != nil {
		return nil, nil, fmt.Errorf("read the certificate: %w", err)
	}
	pem, err := os.ReadFile(s.authority)
	if err != nil {
		return nil, nil, fmt.Errorf("read the authority of clients: %w", err)
	}
	clients := x509.NewCertPool()
	if !clients.AppendCertsFromPEM(pem) {
		return nil, nil, fmt.Errorf("%s holds no certificate", s.authority)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.listen)
	if err != nil {
		return nil, nil, err
	}
	return listener, &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: clients, MinVersion: tls.VersionTLS12}, nil
}

// GatewayCommand is burano gateway.
func GatewayCommand() *cobra.Command {
	var store etcdFlags
	var config string
	var internal, ssh []string
	var open []uint
	var metrics, name, key string
	var six bool
	command := &cobra.Command{
		Use:   "gateway",
		Short: "Keep HAProxy and the published ports in step with the routes in etcd (runs on gateways)",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			networks, err := prefixes("internal", internal)
			if err != nil {
				return err
			}
			from, err := prefixes("ssh-from", ssh)
			if err != nil {
				return err
			}
			ports := make([]uint16, len(open))
			for i, port := range open {
				if ports[i] = uint16(port); port == 0 || uint(ports[i]) != port {
					return fmt.Errorf("--open %d: ports are 1 to 65535", port)
				}
			}
			var told netip.AddrPort
			if metrics != "" {
				if told, err = netip.ParseAddrPort(metrics); err != nil {
					return fmt.Errorf("--metrics %s: %w", metrics, err)
				}
			}
			listeners := haproxy.Config{ConfigFile: config, MaxConnections: process.ConnectionsWithin(process.UsableMemory(os.DirFS("/")))}
			if six {
				listeners.Bind6 = netip.IPv6Unspecified()
			}
			client, err := store.connect()
			if err != nil {
				return err
			}
			err = gateway.Run(command.Context(), gateway.Config{Etcd: client, Name: name, SealKey: key, HAProxy: listeners, Internal: networks, AllowSSH: from, Open: ports,
				Metrics: told, StatusSocket: route.StatusSocket, Logger: slog.Default()})
			return errors.Join(err, client.Close())
		},
	}
	store.add(command)
	command.Flags().StringVar(&config, "haproxy-config", "/etc/haproxy/haproxy.cfg", "HAProxy's configuration file, which this daemon writes")
	command.Flags().StringSliceVar(&internal, "internal", nil, "networks of the cluster, whose traffic is all admitted (CIDRs)")
	command.Flags().BoolVar(&six, "ipv6", false, "listen on addresses of IPv6 too")
	command.Flags().StringSliceVar(&ssh, "ssh-from", nil, "ranges from which SSH is admitted (CIDRs); default: all")
	command.Flags().UintSliceVar(&open, "open", nil, "ports of the node itself that are let in from everywhere")
	command.Flags().StringVar(&name, "name", "", "name of this node, under which certificates are sealed for it; without it HTTPS has none")
	command.Flags().StringVar(&key, "seal-key", gateway.SealKey, "file with the key for which certificates are sealed; it is created when missing")
	command.Flags().StringVar(&metrics, "metrics", "", "host and port of its metrics, which only the cluster's networks reach")
	command.AddCommand(gatewayStatusCommand())
	return command
}

// gatewayStatusCommand is for whoever is logged in to a gateway; "burano cluster traffic" shows all gateways of a cluster.
func gatewayStatusCommand() *cobra.Command {
	var print cli.Output
	var socket string
	command := &cobra.Command{
		Use:   "status",
		Short: "Show the routes that the gateway on this node serves; the exit code is 0 when it serves all of its routes",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			found, err := gateway.AskStatus(command.Context(), socket)
			if err != nil {
				return err
			}
			err = print.Print(command.OutOrStdout(), found, func(table *tabwriter.Writer) {
				fmt.Fprintln(table, "PORT\tSERVICE\tSERVED\tOPEN\tTOTAL\tDENIED\tBACKENDS UP")
				for _, port := range found.Ports {
					number := strconv.Itoa(int(port.Number))
					if port.Protocol != "" {
						number += "/" + port.Protocol
					}
					if port.Listener == nil {
						fmt.Fprintf(table, "%s\t%s\tno\t\t\t\t\n", number, port.Service)
						continue
					}
					up := 0
					for _, backend := range port.Listener.Backends {
						if backend.State == traffic.Up {
							up++
						}
					}
					fmt.Fprintf(table, "%s\t%s\tyes\t%d\t%d\t%d\t%d of %d\n", number, port.Service, port.Listener.Connections, port.Listener.ConnectionsTotal,
						port.Listener.Denied, up, len(port.Listener.Backends))
				}
			})
			return errors.Join(err, gatewayProblems(found))
		},
	}
	print.AddFlag(command)
	command.Flags().StringVar(&socket, "socket", route.StatusSocket, "the daemon's socket")
	return command
}

// gatewayProblems is an error that lists the duties that a gateway does not perform.
func gatewayProblems(found gateway.Status) error {
	var problems []error
	if !found.Etcd {
		problems = append(problems, errors.New("etcd does not answer: what is served stays as it is"))
	}
	if found.Trouble != "" {
		problems = append(problems, errors.New(found.Trouble))
	}
	for _, port := range found.Ports {
		if port.Problem != "" {
			problems = append(problems, fmt.Errorf("port %d of %s is not served: %s", port.Number, port.Service, port.Problem))
		}
	}
	return errors.Join(problems...)
}

func prefixes(flag string, texts []string) ([]netip.Prefix, error) {
	list := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		var err error
		if list[i], err = netip.ParsePrefix(text); err != nil {
			return nil, fmt.Errorf("--%s %s: %w", flag, text, err)
		}
	}
	return list, nil
}

// EtcdCommand opens snapshots and data of etcd, each time in a process of its own: a damaged file may end it.
func EtcdCommand() *cobra.Command {
	command := &cobra.Command{Use: "etcd", Short: "Open snapshots and data of etcd (runs on masters, and beside the server)"}
	print := func(command *cobra.Command, value any, err error) error {
		if err != nil {
			return err
		}
		return json.NewEncoder(command.OutOrStdout()).Encode(value)
	}
	var scratch, token string
	var node etcd.Node
	check := &cobra.Command{
		Use: "check [SNAPSHOT]", Short: "Test whether a snapshot can be restored", Args: cobra.MaximumNArgs(1),
		Long: `Check tests whether a snapshot can be restored, and prints its revision, its keys, its size and its hash.

The server runs it without an argument. Then it reads names of snapshots from its standard input, a line each, and answers each with a line of
JSON. It ends at the first damaged snapshot, and when its input ends, also while it checks one.`,
		RunE: func(command *cobra.Command, args []string) error {
			if len(args) == 0 {
				return checkEach(command.Context(), command.InOrStdin(), command.OutOrStdout(), scratch)
			}
			checked, err := restore.Check(command.Context(), args[0], scratch)
			return print(command, checked, err)
		},
	}
	begin := &cobra.Command{
		Use: "restore SNAPSHOT DATA", Short: "Create the data of a member, the first one of a new cluster, from a snapshot", Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error { return restore.Member(args[0], args[1], node, token) },
	}
	begin.Flags().StringVar(&node.Name, "name", "", "name of the member's node")
	begin.Flags().TextVar(&node.Address, "address", netip.Addr{}, "address of the member's node")
	begin.Flags().StringVar(&token, "token", "", "text from which the new cluster's id is computed")
	position := &cobra.Command{
		Use: "position DATA", Short: "Print the last entry of a member", Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			found, err := restore.PositionOf(args[0])
			return print(command, found, err)
		},
	}
	export := &cobra.Command{
		Use: "export DATA SNAPSHOT", Short: "Write a snapshot of a member that does not run", Args: cobra.ExactArgs(2),
		RunE: func(command *cobra.Command, args []string) error {
			return restore.Export(command.Context(), args[0], args[1], scratch)
		},
	}
	for _, one := range []*cobra.Command{check, export} {
		one.Flags().StringVar(&scratch, "scratch", "", "folder for temporary files; default: the system's")
	}
	command.AddCommand(check, begin, position, export)
	return command
}

// The limits of a process that checks snapshots: of its memory, in which etcd has an index of all keys, and of the processor's time for all of them.
const (
	checkMemory    = 2 << 30
	checkProcessor = 10 * time.Minute
)

// checkEach checks the snapshots whose names come in, until one cannot be restored. It ends with the input at once: whoever asks is gone, and nobody
// waits for an answer.
func checkEach(ctx context.Context, in io.Reader, out io.Writer, scratch string) error {
	// It reads data from a tenant's machines.
	if err := door.Confine(checkMemory, checkProcessor); err != nil {
		return err
	}
	block := process.Ballast(process.LeastBallast)
	defer runtime.KeepAlive(block)
	names, ended := make(chan string), make(chan error, 2)
	go func() {
		lines := bufio.NewScanner(in)
		for lines.Scan() {
			names <- lines.Text()
		}
		ended <- lines.Err()
	}()
	go func() {
		answers := json.NewEncoder(out)
		for name := range names {
			checked, err := restore.Check(ctx, name, scratch)
			if err == nil {
				err = answers.Encode(checked)
			}
			if err != nil {
				ended <- err
				return
			}
		}
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/burano/burano/cmd/burano/cli"
	"github.com/burano/burano/internal/wait"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/join"
	"github.com/burano/burano/web/client"
)

func nodeTokenCommand(connection *cli.Connection) *cobra.Command {
	command := &cobra.Command{Use: "token", Short: "Tokens with which machines that are no servers of the cloud join a cluster"}
	command.AddCommand(nodeTokenCreateCommand(connection), nodeTokenListCommand(connection), nodeTokenDeleteCommand(connection))
	return command
}

func nodeTokenCreateCommand(connection *cli.Connection) *cobra.Command {
	var life time.Duration
	var server string
	var print cli.Output
	command := &cobra.Command{
		Use:   "create ENVIRONMENT [CLUSTER]",
		Short: "Make a token with which one machine joins, and print the command for the machine",
		Long: `Create makes a token with which one machine becomes a node of the cluster, once. It prints the command that root runs on the machine, which must have the
content of a node image and the program burano. The machine joins on your behalf: Burano gets a trust from you for it, which ends with the token.

The command contains the server's address, from burano's own configuration or from --server. Where no public authority has signed the server's certificate, it
contains a pin of it.`,
		Example: `  burano node token create demo --ttl 30m
  burano node token create demo --server https://burano.example.org:8082`,
		Args: cobra.RangeArgs(1, 2),
		RunE: connection.OnCluster(func(command *cobra.Command, api *client.Client, environment client.Environment, cluster string) error {
			ctx, warn := command.Context(), command.ErrOrStderr()
			at := strings.TrimSuffix(strings.TrimSuffix(cmp.Or(server, api.URL()), "/"), "/v1")
			pin, err := api.Pin(ctx, at)
			if err != nil {
				return err
			}
			made, err := api.Clusters().CreateJoinToken(ctx, environment.ID, cluster, life)
			if err != nil {
				return err
			}
			if print.Form != "table" {
				return print.Print(command.OutOrStdout(), made, nil)
			}
			words := []string{"burano node join", "--server", at, "--token", made.Token}
			if pin != "" {
				words = append(words, "--pin", pin)
			}
			fmt.Fprintln(command.OutOrStdout(), strings.Join(words, " "))
			fmt.Fprintf(warn, "Run this as root on the machine, once, until %s. Whoever has it can make a machine a node of the cluster.\n", made.Expires.Local().Format(time.DateTime))
			return warnOfServer(warn, at)
		}),
	}
	print.AddFlag(command)
	command.Flags().DurationVar(&life, "ttl", time.Hour, "how long the token can be used; 168h at most")
	command.Flags().StringVar(&server, "server", "", "address of the Burano server as the machine reaches it (default: as this command does)")
	return command
}

// warnOfServer warns of a server's address that a machine cannot use.
func warnOfServer(to io.Writer, address string) error {
	parsed, err := url.Parse(address)
	if err != nil {
		return fmt.Errorf("--server %s: %w", address, err)
	}
	host := parsed.Hostname()
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsLoopback() || host == "localhost" {
		fmt.Fprintf(to, "%s is an address of this machine only: give the one by which the other machine reaches the server by --server.\n", address)
	}
	if parsed.Scheme != "https" {
		fmt.Fprintf(to, "%s is not encrypted: who listens on the way can use the token, or answer in the server's place.\n", address)
	}
	return nil
}

func nodeTokenListCommand(connection *cli.Connection) *cobra.Command {
	var print cli.Output
	command := &cobra.Command{
		Use:   "list ENVIRONMENT [CLUSTER]",
		Short: "List the tokens of a cluster with the machines that have used them; ended ones are deleted after a day",
		Args:  cobra.RangeArgs(1, 2),
		RunE: connection.OnCluster(func(command *cobra.Command, api *client.Client, environment client.Environment, cluster string) error {
			list, err := api.Clusters().JoinTokens(command.Context(), environment.ID, cluster)
			if err != nil {
				return err
			}
			return print.Print(command.OutOrStdout(), list, func(table *tabwriter.Writer) {
				fmt.Fprintln(table, "ID\tSTATE\tMADE BY\tEXPIRES\tNODE\tADDRESS\tTASK")
				for _, one := range list {
					fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", one.ID, one.State, one.Owner, one.Expires.Local().Format(time.DateTime), one.Node, one.Address, one.TaskID)
				}
			})
		}),
	}
	print.AddFlag(command)
	return command
}

func nodeTokenDeleteCommand(connection *cli.Connection) *cobra.Command {
	var cluster string
	command := &cobra.Command{
		Use:   "delete ENVIRONMENT ID",
		Short: "Revoke a token; a machine that already joins with it continues",
		Args:  cobra.ExactArgs(2),
		RunE: connection.OnEnvironment(func(command *cobra.Command, api *client.Client, environment client.Environment, args []string) error {
			id, err := environment.ClusterID(cluster)
			if err != nil {
				return err
			}
			if err := api.Clusters().DeleteJoinToken(command.Context(), environment.ID, id, args[0]); err != nil {
				return err
			}
			fmt.Fprintf(command.OutOrStdout(), "%s: deleted\n", args[0])
			return nil
		}),
	}
	command.Flags().StringVar(&cluster, "cluster", "", "name or id of the cluster, where the environment has several")
	return command
}

// machineOptions are the user's options for the machine that is to join.
type machineOptions struct {
	server, token, pin string
	name, address      string
	user               string
	port               uint16
}

func nodeJoinCommand() *cobra.Command {
	var options machineOptions
	command := &cobra.Command{
		Use:   "join --server URL --token TOKEN",
		Short: "Make this machine a node of the cluster of a token (run as root on the machine)",
		Long: `Root runs join, as burano node token create prints it, on a machine with the content of a node image. It checks the machine, and reports all faults
before anything is changed. Then it adds the server's key to authorized_keys of --user, lets the server join the machine over SSH, and shows the progress until the node is
ready. When it fails, the same command can be run again on this machine until the token expires.`,
		Example: `  burano node join --server https://burano.example.org:8082 --token 0f3c….ABCD… --pin sha256:9d2e…
  burano node join --server https://burano.example.org:8082 --token 0f3c….ABCD… --address 198.51.100.7 --name lab-1`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return options.join(command.Context(), command.OutOrStdout())
		},
	}
	flags := command.Flags()
	flags.StringVar(&options.server, "server", "", "address of the Burano server")
	flags.StringVar(&options.token, "token", "", "the token")
	flags.StringVar(&options.pin, "pin", "", "SHA-256 of the public key of the server's certificate, where no public authority has signed it")
	flags.StringVar(&options.address, "address", "", "the machine's own address, at which the server and the other nodes reach it (default: the address from which it reaches the server)")
	flags.StringVar(&options.name, "name", "", "name of the node (default: the machine's name)")
	flags.StringVar(&options.user, "user", "root", "user of the server's login: root, or a user that becomes root by sudo without a password")
	flags.Uint16Var(&options.port, "port", 22, "port of the machine's sshd")
	cobra.CheckErr(command.MarkFlagRequired("server"))
	cobra.CheckErr(command.MarkFlagRequired("token"))
	return command
}

// notReady is the error of a machine that cannot join yet.
type notReady struct{ problems []string }

func (n *notReady) Error() string {
	return "this machine cannot be a node yet, and nothing was changed on it:\n  - " + strings.Join(n.problems, "\n  - ")
}

func (o machineOptions) join(ctx context.Context, out io.Writer) error {
	if os.Geteuid() != 0 {
		return errors.New("a machine is made a node by root: run this command with sudo")
	}
	transport, err := client.Pinned(o.pin)
	if err != nil {
		return fmt.Errorf("--pin: %w", err)
	}
	server := client.NewJoiner(o.server, o.token, transport)
	machine, login, err := o.look(ctx)
	if err != nil {
		return err
	}
	joining, err := server.Redeem(ctx, machine)
	if err != nil {
		return err
	}
	problems, err := nodes.LookAtThisMachine(ctx, joining.Owner, netip.MustParseAddr(machine.Address))
	if err != nil {
		return err
	}
	if len(problems) > 0 {
		return &notReady{problems}
	}
	added, err := login.Authorize(joining.PublicKey, "burano: logs in to node "+joining.Node+" of cluster "+joining.Cluster)
	if err != nil {
		return fmt.Errorf("let Burano's key in: %w", err)
	}
	if added {
		fmt.Fprintf(out, "The key of cluster %s is let in as %s from now on (%s).\n", joining.Cluster, o.user, login.File)
	}
	fmt.Fprintf(out, "%s joins cluster %s at %s, port %d.\n", joining.Node, joining.Cluster, machine.Address, machine.Port)
	if err := startJoin(ctx, server, out); err != nil {
		return err
	}
	return followJoin(ctx, server, joining, out)
}

// look reads the facts of this machine that the server needs, and finds reasons why the server could not log in.
func (o machineOptions) look(ctx context.Context) (machine client.Machine, login join.Login, err error) {
	machine = client.Machine{Name: o.name, Port: int(o.port), User: o.user}
	if machine.Name == "" {
		full, err := os.Hostname()
		if err != nil {
			return machine, login, fmt.Errorf("find out this machine's name: %w. Give one by --name", err)
		}
		short, _, _ := strings.Cut(full, ".")
		machine.Name = strings.ToLower(short)
	}
	at, err := url.Parse(o.server)
	if err != nil || at.Host == "" {
		return machine, login, fmt.Errorf("--server %s: it is no address such as https://burano.example.org:8082", o.server)
	}
	var own netip.Addr
	if o.address != "" {
		own, err = netip.ParseAddr(o.address)
	} else {
		own, err = join.OwnAddress(ctx, net.JoinHostPort(at.Hostname(), cmp.Or(at.Port(), map[string]string{"http": "80"}[at.Scheme], "443")))
	}
	if err != nil {
		return machine, login, err
	}
	machine.Address = own.String()
	login, problems, err := join.LookUp(ctx, o.user, own)
	if err != nil {
		return machine, login, err
	}
	machine.HostKey, err = join.HostKey(ctx, netip.AddrPortFrom(own, o.port))
	if err != nil {
		problems = append(problems, err.Error())
	}
	if len(problems) > 0 {
		return machine, login, &notReady{problems}
	}
	return machine, login, nil
}

const (
	joinPause    = 2 * time.Second
	joinPatience = time.Hour // for other tasks of the environment
	awayPatience = 10 * time.Minute
)

// passing tells whether an error of the server may go by itself: it is away, restarts, or has too much to do.
func passing(err error) bool {
	var refused *client.Refusal
	return !errors.As(err, &refused) || refused.Status == http.StatusTooManyRequests || refused.Status >= http.StatusInternalServerError
}

// startJoin makes the server begin, after other tasks of the environment.
func startJoin(ctx context.Context, server *client.Joiner, out io.Writer) error {
	told := false
	return wait.Every(joinPause).For(joinPatience).Until(ctx, func(ctx context.Context) error {
		err := server.Start(ctx)
		if client.IsStatus(err, http.StatusConflict) {
			if !told {
				fmt.Fprintf(out, "It waits: %v\n", err)
			}
			told = true
			return wait.Again(err)
		}
		if err != nil && passing(err) {
			return wait.Again(err)
		}
		return err
	})
}

// followJoin prints reports until the node is ready, or the join has failed.
func followJoin(ctx context.Context, server *client.Joiner, joining client.Joining, out io.Writer) error {
	after, last := int64(0), ""
	for {
		var progress client.JoinProgress
		err := wait.Every(joinPause).For(awayPatience).Until(ctx, func(ctx context.Context) (err error) {
			if progress, err = server.Progress(ctx, after); err != nil && passing(err) {
				return wait.Again(err)
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("ask how far the machine is, which the server goes on with: %w", err)
		}
		after = progress.Last
		for _, line := range progress.Reports {
			fmt.Fprintf(out, "%s  %-7s  %s\n", line.Created, line.Level, line.Text)
			if line.Level == "error" {
				last = line.Text
			}
		}
		switch progress.State {
		case "joined":
			_, err := fmt.Fprintf(out, "%s is a node of cluster %s.\n", joining.Node, joining.Cluster)
			return err
		case "failed":
			return fmt.Errorf("%s did not join cluster %s: %s. When that is mended, run the same command again, until the token expires", joining.Node, joining.Cluster,
				cmp.Or(last, "the deployment failed for what is not this machine's, and its log says why to who may see the environment (burano deployment list)"))
		}
		if err := wait.Pause(ctx, joinPause); err != nil {
			return err
		}
	}
}

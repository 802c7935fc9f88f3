// Command burano is all of Burano: the server, the two daemons that run on a cluster's nodes, the client, and the image builder.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/cmd/burano/author"
	"github.com/burano/burano/cmd/burano/cli"
	"github.com/burano/burano/cmd/burano/client"
	"github.com/burano/burano/cmd/burano/cluster"
	"github.com/burano/burano/cmd/burano/node"
	"github.com/burano/burano/cmd/burano/operator"
	"github.com/burano/burano/cmd/burano/server"
	"github.com/burano/burano/internal/door"
	"github.com/burano/burano/internal/version"
)

func main() {
	if args := os.Args[1:]; door.IsChild(args) {
		os.Exit(door.ServeChild(args, catalog.ChildWork()))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := command().ExecuteContext(ctx)
	if errors.Is(err, cli.ErrWouldChange) {
		os.Exit(exitWouldChange)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "burano:", err)
		os.Exit(1)
	}
}

// exitWouldChange is the exit code of a preview of something that would change, as `terraform plan -detailed-exitcode` has it.
const exitWouldChange = 2

// command returns the tree of commands.
func command() *cobra.Command {
	root := &cobra.Command{
		Use:   "burano",
		Short: "An application catalog and VM orchestrator for OpenStack",
		Long: `Burano deploys applications from a catalog on an OpenStack cloud: it creates servers through Heat and Nova, configures
them over SSH (as a Kubernetes cluster first of all), and publishes their applications through gateways.

Client commands sign in to Keystone with clouds.yaml (OS_CLOUD or --os-cloud names the entry) or with the OS_* variables,
and find the server through the service catalog (type application-catalog), BURANO_URL or --url.`,
		Version:       version.Text(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddGroup(
		&cobra.Group{ID: "client", Title: "For users:"},
		&cobra.Group{ID: "author", Title: "For authors of packages:"},
		&cobra.Group{ID: "server", Title: "For operators:"},
		&cobra.Group{ID: "node", Title: "Run by Burano on the nodes of a cluster:"},
	)
	connection := &cli.Connection{}
	connection.AddFlags(root)
	for _, add := range []struct {
		group   string
		command *cobra.Command
	}{
		{"client", author.PackageCommand(connection)},
		{"client", client.CategoryCommand(connection)},
		{"client", client.QuotaCommand(connection)},
		{"client", client.ProjectCommand(connection)},
		{"client", author.BundleCommand(connection)},
		{"client", client.EnvironmentCommand(connection)},
		{"client", client.SessionCommand(connection)},
		{"client", client.TemplateCommand(connection)},
		{"client", client.DeployCommand(connection)},
		{"client", client.ApplyCommand(connection)},
		{"client", client.DeploymentCommand(connection)},
		{"client", client.ActionCommand(connection)},
		{"client", cluster.Command(connection)},
		{"client", cluster.NodeCommand(connection)},
		{"client", client.EnvironmentBackupCommand(connection)},
		{"client", client.FindingCommand(connection)},
		{"client", client.ClassCommand(connection)},
		{"author", author.YAQLCommand()},
		{"server", server.Command(operator.Examine)},
		{"server", server.BrokerCommand(connection)},
		{"server", operator.SetupCommand(connection)},
		{"server", operator.DoctorCommand()},
		{"server", operator.DatabaseCommand()},
		{"server", operator.AuditCommand(connection)},
		{"server", operator.DebugCommand(connection)},
		{"server", operator.ImageCommand(connection)},
		{"server", operator.IngressCommand()},
		{"node", node.PublishCommand()},
		{"node", node.ForwardCommand()},
		{"node", node.AuthenticateCommand()},
		{"node", node.GatewayCommand()},
		{"node", node.EtcdCommand()},
		{"server", operator.ReleaseFilesCommand()},
		{"client", versionCommand(connection)},
	} {
		add.command.GroupID = add.group
		root.AddCommand(add.command)
	}
	return root
}

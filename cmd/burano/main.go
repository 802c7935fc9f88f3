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
	if errors.Is(err, errWouldChange) {
		os.Exit(exitWouldChange)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "burano:", err)
		os.Exit(1)
	}
}

// exitWouldChange is the exit code of a preview of something that would change, as `terraform plan -detailed-exitcode` has it.
const exitWouldChange = 2

// errWouldChange ends a preview that has been printed. It is no failure, and nothing is said of it.
var errWouldChange = errors.New("something would change")

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
	connection := &connection{}
	connection.addFlags(root)
	for _, add := range []struct {
		group   string
		command *cobra.Command
	}{
		{"client", packageCommand(connection)},
		{"client", categoryCommand(connection)},
		{"client", quotaCommand(connection)},
		{"client", projectCommand(connection)},
		{"client", bundleCommand(connection)},
		{"client", environmentCommand(connection)},
		{"client", sessionCommand(connection)},
		{"client", templateCommand(connection)},
		{"client", deployCommand(connection)},
		{"client", applyCommand(connection)},
		{"client", deploymentCommand(connection)},
		{"client", actionCommand(connection)},
		{"client", clusterCommand(connection)},
		{"client", nodeCommand(connection)},
		{"client", environmentBackupCommand(connection)},
		{"client", findingCommand(connection)},
		{"client", classCommand(connection)},
		{"author", yaqlCommand()},
		{"server", serveCommand(connection)},
		{"server", brokerCommand(connection)},
		{"server", setupCommand(connection)},
		{"server", doctorCommand()},
		{"server", databaseCommand()},
		{"server", auditCommand(connection)},
		{"server", imageCommand(connection)},
		{"node", publishCommand()},
		{"node", forwardCommand()},
		{"node", gatewayCommand()},
		{"node", etcdCommand()},
		{"server", releaseFilesCommand()},
		{"client", versionCommand(connection)},
	} {
		add.command.GroupID = add.group
		root.AddCommand(add.command)
	}
	return root
}

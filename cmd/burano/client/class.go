package client

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/burano/burano/cmd/burano/cli"
	"github.com/burano/burano/web/client"
)

// ClassCommand is burano class.
func ClassCommand(connection *cli.Connection) *cobra.Command {
	command := &cobra.Command{Use: "class", Short: "Classes of the catalog's packages"}
	command.AddCommand(classListCommand(connection), classSchemaCommand(connection), classActionsCommand(connection), classCallCommand(connection))
	return command
}

// classOptions say which of several classes of one name is meant.
type classOptions struct{ pack, version string }

func (o *classOptions) addFlags(command *cobra.Command) {
	command.Flags().StringVar(&o.pack, "package", "", "full name of the package that the class is in")
	command.Flags().StringVar(&o.version, "class-version", "", "version of the class, or a range of versions such as >=1.2")
}

func (o *classOptions) class(name string) client.Class {
	return client.Class{Name: name, Package: o.pack, Version: o.version}
}

func classListCommand(connection *cli.Connection) *cobra.Command {
	var extends string
	var print cli.Output
	command := &cobra.Command{
		Use:   "list",
		Short: "List the classes of packages that the project may use",
		Args:  cobra.NoArgs,
		RunE: connection.SignedIn(func(command *cobra.Command, api *client.Client, _ []string) error {
			classes, err := api.Classes().List(command.Context(), extends)
			if err != nil {
				return err
			}
			return print.Print(command.OutOrStdout(), classes, func(table *tabwriter.Writer) {
				fmt.Fprintln(table, "CLASS\tEXTENDS\tPACKAGE\tVERSION")
				for _, one := range classes {
					fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", one.Name, strings.Join(one.Parents, ", "), one.Package.FullName, one.Package.Version)
				}
			})
		}),
	}
	command.Flags().StringVar(&extends, "extends", "", "only this class and its direct and indirect subclasses")
	print.AddFlag(command)
	return command
}

func classSchemaCommand(connection *cli.Connection) *cobra.Command {
	var options classOptions
	command := &cobra.Command{
		Use:   "schema CLASS [METHOD…]",
		Short: "Print the JSON schemas of a class: of its objects in a model, and of the arguments of its model builders",
		Args:  cobra.MinimumNArgs(1),
		RunE: connection.SignedIn(func(command *cobra.Command, api *client.Client, args []string) error {
			schemas, err := api.Classes().Schemas(command.Context(), options.class(args[0]), args[1:]...)
			if err != nil {
				return err
			}
			return cli.WriteJSON(command.OutOrStdout(), schemas)
		}),
	}
	options.addFlags(command)
	return command
}

func classActionsCommand(connection *cli.Connection) *cobra.Command {
	var options classOptions
	var print cli.Output
	command := &cobra.Command{
		Use:   "actions CLASS",
		Short: "List the public methods of a class with their arguments",
		Args:  cobra.ExactArgs(1),
		RunE: connection.SignedIn(func(command *cobra.Command, api *client.Client, args []string) error {
			actions, err := api.Classes().Actions(command.Context(), options.class(args[0]))
			if err != nil {
				return err
			}
			return print.Print(command.OutOrStdout(), actions, func(table *tabwriter.Writer) {
				for i, action := range actions {
					if i > 0 {
						fmt.Fprintln(table)
					}
					actionTable(table, action)
				}
			})
		}),
	}
	options.addFlags(command)
	print.AddFlag(command)
	return command
}

func classCallCommand(connection *cli.Connection) *cobra.Command {
	var options classOptions
	var pairs []string
	command := &cobra.Command{
		Use:   "call CLASS METHOD",
		Short: "Call a static method that is an action, and print its result as JSON",
		Args:  cobra.ExactArgs(2),
		RunE: func(command *cobra.Command, args []string) error {
			arguments, err := actionArguments(pairs)
			if err != nil {
				return err
			}
			api, err := connection.Connect(command.Context())
			if err != nil {
				return err
			}
			result, err := api.Classes().CallStatic(command.Context(), options.class(args[0]), args[1], arguments)
			if err != nil {
				return err
			}
			return cli.WriteJSON(command.OutOrStdout(), result)
		},
	}
	options.addFlags(command)
	command.Flags().StringArrayVar(&pairs, "arg", nil, "an argument as name=value, as in burano action call (repeatable)")
	return command
}

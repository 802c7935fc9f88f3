package main

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"
)

func classCommand(connection *connection) *cobra.Command {
	command := &cobra.Command{Use: "class", Short: "Classes of the catalog's packages"}
	command.AddCommand(classSchemaCommand(connection), classCallCommand(connection))
	return command
}

// classOptions say which of several classes of one name is meant.
type classOptions struct{ pack, version string }

func (o *classOptions) addFlags(command *cobra.Command) {
	command.Flags().StringVar(&o.pack, "package", "", "full name of the package that the class is in")
	command.Flags().StringVar(&o.version, "class-version", "", "version of the class, or a range of versions such as >=1.2")
}

func classSchemaCommand(connection *connection) *cobra.Command {
	var options classOptions
	command := &cobra.Command{
		Use:   "schema CLASS [METHOD…]",
		Short: "Print the JSON schemas of what a model gives an object of a class, and of its model builders' arguments",
		Args:  cobra.MinimumNArgs(1),
		RunE: connection.signedIn(func(command *cobra.Command, client *client, args []string) error {
			path := "/v1/schemas/" + url.PathEscape(args[0])
			if len(args) > 1 {
				path += "/" + url.PathEscape(strings.Join(args[1:], ","))
			}
			query := url.Values{}
			if options.pack != "" {
				query.Set("packageName", options.pack)
			}
			if options.version != "" {
				query.Set("classVersion", options.version)
			}
			var schemas json.RawMessage
			if err := client.call(command.Context(), http.MethodGet, path+"?"+query.Encode(), nil, &schemas); err != nil {
				return err
			}
			return writeJSON(command.OutOrStdout(), schemas)
		}),
	}
	options.addFlags(command)
	return command
}

func classCallCommand(connection *connection) *cobra.Command {
	var options classOptions
	var pairs []string
	command := &cobra.Command{
		Use:   "call CLASS METHOD",
		Short: "Call a static method that is an action, and print what it returns as JSON",
		Args:  cobra.ExactArgs(2),
		RunE: func(command *cobra.Command, args []string) error {
			arguments, err := actionArguments(pairs)
			if err != nil {
				return err
			}
			client, err := connection.connect(command.Context())
			if err != nil {
				return err
			}
			body := map[string]any{"className": args[0], "methodName": args[1], "parameters": arguments}
			if options.pack != "" {
				body["packageName"] = options.pack
			}
			if options.version != "" {
				body["classVersion"] = options.version
			}
			var result json.RawMessage
			if err := client.call(command.Context(), http.MethodPost, "/v1/actions", body, &result); err != nil {
				return err
			}
			if result == nil {
				result = json.RawMessage("null")
			}
			return writeJSON(command.OutOrStdout(), result)
		},
	}
	options.addFlags(command)
	command.Flags().StringArrayVar(&pairs, "arg", nil, "an argument as name=value, as in `burano action call`; may be given several times")
	return command
}

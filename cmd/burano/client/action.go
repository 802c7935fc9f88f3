package client

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/burano/burano/cmd/burano/cli"
	"github.com/burano/burano/web/client"
)

// ActionCommand is burano action.
func ActionCommand(connection *cli.Connection) *cobra.Command {
	command := &cobra.Command{Use: "action", Short: "Actions of deployed objects: scale, restart, …"}
	command.AddCommand(actionListCommand(connection), actionShowCommand(connection), actionCallCommand(connection), actionResultCommand(connection))
	return command
}

func actionListCommand(connection *cli.Connection) *cobra.Command {
	var print cli.Output
	command := &cobra.Command{
		Use:   "list ENVIRONMENT",
		Short: "List the actions of the deployed objects of an environment",
		Args:  cobra.ExactArgs(1),
		RunE: connection.OnEnvironment(func(command *cobra.Command, api *client.Client, environment client.Environment, _ []string) error {
			rows := environment.Actions()
			return print.Print(command.OutOrStdout(), rows, func(table *tabwriter.Writer) {
				fmt.Fprintln(table, "OBJECT\tID\tACTION\tTITLE\tENABLED\tDESCRIPTION")
				for _, one := range rows {
					fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%t\t%s\n", one.Name, one.Object, one.Action, one.Title, one.Enabled, cmp.Or(deprecation(one.Deprecated), one.Description))
				}
			})
		}),
	}
	print.AddFlag(command)
	return command
}

// deprecation is the mark of a deprecated action; "" for another one.
func deprecation(instead string) string {
	if instead == "" {
		return ""
	}
	return "deprecated: " + instead
}

func actionShowCommand(connection *cli.Connection) *cobra.Command {
	var print cli.Output
	command := &cobra.Command{
		Use:   "show ENVIRONMENT OBJECT ACTION",
		Short: "Describe an action of a deployed object and its arguments",
		Args:  cobra.ExactArgs(3),
		RunE: connection.OnEnvironment(func(command *cobra.Command, api *client.Client, environment client.Environment, args []string) error {
			action, err := environment.Action(args[0], args[1])
			if err != nil {
				return err
			}
			all, err := api.Classes().Actions(command.Context(), client.ClassOfType(action.Type))
			if err != nil {
				return err
			}
			i := slices.IndexFunc(all, func(one client.ClassAction) bool { return one.Name == action.Action })
			if i < 0 {
				return fmt.Errorf("class %s has no action %s any more", action.Type, action.Action)
			}
			return print.Print(command.OutOrStdout(), all[i], func(table *tabwriter.Writer) { actionTable(table, all[i]) })
		}),
	}
	print.AddFlag(command)
	return command
}

// actionTable shows an action, and its arguments in the order in which they are written.
func actionTable(table *tabwriter.Writer, action client.ClassAction) {
	cli.Properties([2]any{"Action", action.Name}, [2]any{"Title", action.Title}, [2]any{"Description", action.Description})(table)
	if action.Deprecated != "" {
		fmt.Fprintf(table, "Deprecated\t%s\n", action.Deprecated)
	}
	if action.Confirm != "" {
		fmt.Fprintf(table, "Attention\t%s\n", action.Confirm)
	}
	arguments, _ := action.Arguments["properties"].(map[string]any)
	required, _ := action.Arguments["required"].([]any)
	if len(arguments) == 0 {
		return
	}
	fmt.Fprintln(table, "\nARGUMENT\tTYPE\tDEFAULT\tDESCRIPTION")
	schema := func(name string) map[string]any { found, _ := arguments[name].(map[string]any); return found }
	index := func(name string) float64 { found, _ := schema(name)["formIndex"].(float64); return found }
	for _, name := range slices.SortedFunc(maps.Keys(arguments), func(a, b string) int { return cmp.Or(cmp.Compare(index(a), index(b)), cmp.Compare(a, b)) }) {
		one := schema(name)
		initial := ""
		switch value, has := one["default"]; {
		case has:
			text, _ := json.Marshal(value) // it came as JSON
			initial = string(text)
		case slices.Contains(required, any(name)):
			initial = "(required)"
		}
		description, _ := one["description"].(string)
		title, _ := one["title"].(string)
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", name, argumentType(one), initial, cmp.Or(description, title))
	}
}

// argumentType describes the values that a schema admits.
func argumentType(schema map[string]any) string {
	if choices, ok := schema["enum"].([]any); ok {
		return "one of " + strings.Trim(fmt.Sprint(choices), "[]")
	}
	kinds := []string{}
	switch kind := schema["type"].(type) {
	case string:
		kinds = append(kinds, kind)
	case []any:
		for _, one := range kind {
			kinds = append(kinds, fmt.Sprint(one))
		}
	default:
		return "any"
	}
	for i, kind := range kinds {
		if class, ok := schema["muranoType"].(string); ok && kind == "muranoObject" {
			kinds[i] = "id of a " + class
		}
	}
	return strings.Join(kinds, " or ")
}

func actionResultCommand(connection *cli.Connection) *cobra.Command {
	return &cobra.Command{
		Use:   "result ENVIRONMENT TASK",
		Short: "Print the result of an action as JSON; the exit code is 0 when the action succeeded",
		Args:  cobra.ExactArgs(2),
		RunE: connection.OnEnvironment(func(command *cobra.Command, api *client.Client, environment client.Environment, args []string) error {
			return cli.PrintResult(command.Context(), api, environment.ID, args[0], command.OutOrStdout(), true)
		}),
	}
}

func actionCallCommand(connection *cli.Connection) *cobra.Command {
	var watch bool
	var pairs []string
	command := &cobra.Command{
		Use:   "call ENVIRONMENT OBJECT ACTION",
		Short: "Run an action of a deployed object",
		Long: `Call runs an action of an object, named by its name or id. An argument's value is read as JSON when it is JSON (a number, true, null,
a list, "quoted text"), else as text.`,
		Example: `  burano action call demo demo-cluster scaleNodesUp --follow
  burano action call demo demo-cluster scaleNodesDown --arg node=murano-kube-2 --follow`,
		Args: cobra.ExactArgs(3),
		RunE: func(command *cobra.Command, args []string) error {
			arguments, err := actionArguments(pairs)
			if err != nil {
				return err
			}
			api, err := connection.Connect(command.Context())
			if err != nil {
				return err
			}
			environment, err := api.Environments().Get(command.Context(), args[0])
			if err != nil {
				return err
			}
			action, err := environment.Action(args[1], args[2])
			if err != nil {
				return err
			}
			task, err := api.Actions().Call(command.Context(), environment.ID, action.ID, arguments)
			if err != nil {
				return err
			}
			fmt.Fprintf(command.OutOrStdout(), "%s of %s runs (task %s)\n", action.Action, action.Name, task)
			if action.Deprecated != "" {
				fmt.Fprintf(command.ErrOrStderr(), "%s is deprecated: %s\n", action.Action, action.Deprecated)
			}
			if !watch {
				return nil
			}
			followed := cli.Follow(command.Context(), api, task, command.OutOrStdout())
			return errors.Join(followed, cli.PrintResult(command.Context(), api, environment.ID, task, command.OutOrStdout(), false))
		},
	}
	command.Flags().BoolVarP(&watch, "follow", "f", false, "show the action's reports as they come, and its result; the exit code is 0 when the action succeeded")
	command.Flags().StringArrayVar(&pairs, "arg", nil, "an argument as name=value (repeatable)")
	return command
}

// actionArguments reads name=value pairs.
func actionArguments(pairs []string) (map[string]any, error) {
	arguments := map[string]any{}
	for _, pair := range pairs {
		name, text, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("--arg %q is no argument: write name=value", pair)
		}
		if _, twice := arguments[name]; twice {
			return nil, fmt.Errorf("--arg %s is given twice", name)
		}
		var value any
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.UseNumber()
		if err := decoder.Decode(&value); err != nil || decoder.Decode(new(any)) != io.EOF {
			value = text
		}
		arguments[name] = value
	}
	return arguments, nil
}

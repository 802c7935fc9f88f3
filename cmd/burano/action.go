package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

func actionCommand(connection *connection) *cobra.Command {
	command := &cobra.Command{Use: "action", Short: "What deployed objects can do: scale, restart, …"}
	command.AddCommand(actionListCommand(connection), actionCallCommand(connection), actionResultCommand(connection))
	return command
}

// offered is an action that an object of an environment offers.
type offered struct {
	ID          string `json:"id" yaml:"id"`         // of the action, as the API wants it
	Object      string `json:"object" yaml:"object"` // its id
	Name        string `json:"name" yaml:"name"`     // of the object
	Action      string `json:"action" yaml:"action"`
	Title       string `json:"title" yaml:"title"`
	Description string `json:"description" yaml:"description"`
	Enabled     bool   `json:"enabled" yaml:"enabled"`
}

func actionListCommand(connection *connection) *cobra.Command {
	var print output
	command := &cobra.Command{
		Use:   "list ENVIRONMENT",
		Short: "List what the deployed objects of an environment can do",
		Args:  cobra.ExactArgs(1),
		RunE: connection.onEnvironment(func(command *cobra.Command, client *client, environment environmentRow, _ []string) error {
			rows := environment.actions()
			return print.print(command.OutOrStdout(), rows, func(table *tabwriter.Writer) {
				fmt.Fprintln(table, "OBJECT\tID\tACTION\tTITLE\tENABLED\tDESCRIPTION")
				for _, one := range rows {
					fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%t\t%s\n", one.Name, one.Object, one.Action, one.Title, one.Enabled, one.Description)
				}
			})
		}),
	}
	print.addFlag(command)
	return command
}

func actionResultCommand(connection *connection) *cobra.Command {
	return &cobra.Command{
		Use:   "result ENVIRONMENT TASK",
		Short: "Print what an action returned, as JSON; the exit code tells whether it went well",
		Args:  cobra.ExactArgs(2),
		RunE: connection.onEnvironment(func(command *cobra.Command, client *client, environment environmentRow, args []string) error {
			return client.actionResult(command.Context(), "/v1/environments/"+environment.ID+"/actions/"+args[0], command.OutOrStdout(), true)
		}),
	}
}

func actionCallCommand(connection *connection) *cobra.Command {
	var follow bool
	var pairs []string
	command := &cobra.Command{
		Use:   "call ENVIRONMENT OBJECT ACTION",
		Short: "Have a deployed object do something",
		Long: `Call runs an action of an object, named by its name or id. An argument's value is read as JSON where it is JSON (numbers, true,
null, lists, "quoted text"), and as text elsewhere.`,
		Example: `  burano action call demo demo-cluster scaleNodesUp --follow
  burano action call demo demo-cluster scaleNodesDown --arg node=murano-kube-2 --follow`,
		Args: cobra.ExactArgs(3),
		RunE: func(command *cobra.Command, args []string) error {
			arguments, err := actionArguments(pairs)
			if err != nil {
				return err
			}
			client, err := connection.connect(command.Context())
			if err != nil {
				return err
			}
			environment, err := client.environment(command.Context(), args[0])
			if err != nil {
				return err
			}
			action, err := environment.action(args[1], args[2])
			if err != nil {
				return err
			}
			path := "/v1/environments/" + environment.ID + "/actions/"
			var started struct {
				Task string `json:"task_id"`
			}
			if err := client.call(command.Context(), http.MethodPost, path+action.ID, arguments, &started); err != nil {
				return err
			}
			fmt.Fprintf(command.OutOrStdout(), "%s of %s runs (task %s)\n", action.Action, action.Name, started.Task)
			if !follow {
				return nil
			}
			followed := client.followDeployment(command.Context(), started.Task, command.OutOrStdout())
			return errors.Join(followed, client.actionResult(command.Context(), path+started.Task, command.OutOrStdout(), false))
		},
	}
	command.Flags().BoolVarP(&follow, "follow", "f", false, "show the action's reports as they come and its result; the exit code tells how it ended")
	command.Flags().StringArrayVar(&pairs, "arg", nil, "an argument as name=value; may be given several times")
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

// actionResult prints what an action returned. When only that is asked for, nothing is printed as null, and an action that failed or
// still runs is an error.
func (c *client) actionResult(ctx context.Context, path string, output io.Writer, asked bool) error {
	var result struct {
		IsException *bool           `json:"isException"` // nil while it runs
		Result      json.RawMessage `json:"result"`
	}
	if err := c.call(ctx, http.MethodGet, path, nil, &result); err != nil {
		return err
	}
	switch {
	case result.IsException == nil && asked:
		return errors.New("the action has not ended yet")
	case result.IsException != nil && *result.IsException && asked:
		var thrown struct {
			Message string `json:"message"`
		}
		if json.Unmarshal(result.Result, &thrown) != nil || thrown.Message == "" {
			thrown.Message = string(result.Result)
		}
		return fmt.Errorf("the action failed: %s", thrown.Message)
	case result.IsException == nil || *result.IsException || string(result.Result) == "null" && !asked:
		return nil
	}
	return writeJSON(output, result.Result)
}

// actions lists what the objects of the environment offer, in the order of the model.
func (e environmentRow) actions() []offered {
	all := []offered{}
	var walk func(value any)
	walk = func(value any) {
		switch value := value.(type) {
		case map[string]any:
			header, _ := value["?"].(map[string]any)
			actions, _ := header["_actions"].(map[string]any)
			object, _ := header["id"].(string)
			name, _ := value["name"].(string)
			if name == "" {
				name, _ = header["name"].(string)
			}
			for _, id := range slices.Sorted(maps.Keys(actions)) {
				described, _ := actions[id].(map[string]any)
				one := offered{ID: id, Object: object, Name: name, Enabled: true}
				one.Action, _ = described["name"].(string)
				one.Title, _ = described["title"].(string)
				one.Description, _ = described["description"].(string)
				if enabled, ok := described["enabled"].(bool); ok {
					one.Enabled = enabled
				}
				all = append(all, one)
			}
			for _, key := range slices.Sorted(maps.Keys(value)) {
				if key != "?" {
					walk(value[key])
				}
			}
		case []any:
			for _, element := range value {
				walk(element)
			}
		}
	}
	for _, service := range e.Services {
		walk(service)
	}
	return all
}

// action finds the action of that name of the object of that name or id.
func (e environmentRow) action(object, name string) (offered, error) {
	var found []offered
	var others []string
	for _, one := range e.actions() {
		if one.Object != object && one.Name != object {
			continue
		}
		if one.Action == name {
			found = append(found, one)
		}
		others = append(others, one.Action)
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return offered{}, fmt.Errorf("several objects of environment %s are called %s: give the id of the one you mean (burano action list %s)", e.Name, object, e.Name)
	case len(others) > 0:
		return offered{}, fmt.Errorf("%s has no action %s; it has %s", object, name, strings.Join(others, ", "))
	}
	return offered{}, fmt.Errorf("environment %s has no object %s with actions: `burano action list %s` shows those it has (actions are known after the first deployment)", e.Name, object, e.Name)
}

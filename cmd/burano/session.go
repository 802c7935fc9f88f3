package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// sessionRow is a session as the API tells it.
type sessionRow struct {
	ID      string `json:"id" yaml:"id"`
	State   string `json:"state" yaml:"state"`
	Version int64  `json:"version" yaml:"version"`
	Created string `json:"created" yaml:"created"`
	Updated string `json:"updated" yaml:"updated"`
}

// change is an object that a deployment would add, change or remove.
type change struct {
	Change     string   `json:"change"`
	ID         string   `json:"id"`
	Type       string   `json:"type"`
	Name       string   `json:"name"`
	Path       string   `json:"path"`
	Properties []string `json:"properties"`
}

// preview is what a deployment would do.
type preview struct {
	Changes  []change `json:"changes"`
	Problems []struct {
		Path    string `json:"path"`
		Class   string `json:"class"`
		Message string `json:"message"`
	} `json:"problems"`
}

// print lists changes with a sign each, as diff does, and then what is wrong.
func (p preview) print(table *tabwriter.Writer) {
	signs := map[string]string{"added": "+", "changed": "~", "removed": "-"}
	for _, one := range p.Changes {
		path := one.Path
		if path == "" {
			path = "the environment"
		}
		fmt.Fprintf(table, "%s %s\t%s\t%s\t%s\n", signs[one.Change], path, one.Type, one.Name, strings.Join(one.Properties, ", "))
	}
	if len(p.Changes) == 0 {
		fmt.Fprintln(table, "nothing would be added, changed or removed")
	}
	for _, one := range p.Problems {
		fmt.Fprintf(table, "! %s\t%s\t%s\t\n", one.Path, one.Class, one.Message)
	}
}

// err is an error when the deployment would fail at once.
func (p preview) err() error {
	if len(p.Problems) == 0 {
		return nil
	}
	return fmt.Errorf("it could not be deployed: %d things are wrong with it", len(p.Problems))
}

func sessionCommand(connection *connection) *cobra.Command {
	command := &cobra.Command{Use: "session", Short: "Sessions: drafts of an environment"}
	for _, add := range []struct {
		use, short, method, path string
		args                     int
	}{
		{"create ENVIRONMENT", "Open a session, which drafts changes of the environment", http.MethodPost, "/configure", 1},
		{"show ENVIRONMENT SESSION", "Show a session", http.MethodGet, "/sessions/", 2},
		{"delete ENVIRONMENT SESSION", "Throw a draft away", http.MethodDelete, "/sessions/", 2},
		{"deploy ENVIRONMENT SESSION", "Deploy a draft", http.MethodPost, "/sessions/%s/deploy", 2},
	} {
		var print output
		var follow bool
		one := &cobra.Command{
			Use: add.use, Short: add.short, Args: cobra.ExactArgs(add.args),
			RunE: connection.onEnvironment(func(command *cobra.Command, client *client, environment environmentRow, args []string) error {
				path := add.path
				switch {
				case strings.Contains(path, "%s"):
					path = fmt.Sprintf(path, args[0])
				case add.args == 2:
					path += args[0]
				}
				var answer json.RawMessage
				if err := client.call(command.Context(), add.method, "/v1/environments/"+environment.ID+path, nil, &answer); err != nil {
					return err
				}
				out := command.OutOrStdout()
				switch command.Name() {
				case "deploy":
					fmt.Fprintf(out, "environment %s (%s) is being deployed\n", environment.Name, environment.ID)
					if follow {
						return client.follow(command.Context(), environment.ID, out)
					}
					return nil
				case "delete":
					fmt.Fprintf(out, "%s: deleted\n", args[0])
					return nil
				}
				var row sessionRow
				if err := json.Unmarshal(answer, &row); err != nil {
					return err
				}
				return print.print(out, row, properties([2]any{"ID", row.ID}, [2]any{"State", row.State}, [2]any{"Version", row.Version},
					[2]any{"Created", row.Created}, [2]any{"Updated", row.Updated}))
			}),
		}
		if one.Name() == "deploy" {
			one.Flags().BoolVarP(&follow, "follow", "f", false, "show the deployment's reports as they come; the exit code tells how it ended")
		} else if one.Name() != "delete" {
			print.addFlag(one)
		}
		command.AddCommand(one)
	}
	command.AddCommand(sessionPreviewCommand(connection))
	return command
}

func sessionPreviewCommand(connection *connection) *cobra.Command {
	var print output
	command := &cobra.Command{
		Use:   "preview ENVIRONMENT SESSION",
		Short: "Show what the deployment of a draft would do",
		Args:  cobra.ExactArgs(2),
		RunE: connection.onEnvironment(func(command *cobra.Command, client *client, environment environmentRow, args []string) error {
			var answer preview
			if err := client.call(command.Context(), http.MethodGet, "/burano/v1/environments/"+environment.ID+"/sessions/"+args[0]+"/preview", nil, &answer); err != nil {
				return err
			}
			if err := print.print(command.OutOrStdout(), answer, answer.print); err != nil {
				return err
			}
			return answer.err()
		}),
	}
	print.addFlag(command)
	return command
}

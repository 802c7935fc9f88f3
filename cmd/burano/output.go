package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
)

// output is how a command prints what it was asked for.
type output struct{ form string }

func (o *output) addFlag(command *cobra.Command) {
	command.Flags().StringVarP(&o.form, "output", "o", "table", "output format: table, json or yaml")
	_ = command.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"table", "json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
}

// print writes the value as JSON or YAML, or calls table. The value is what the API has answered.
func (o *output) print(to io.Writer, value any, table func(*tabwriter.Writer)) error {
	switch o.form {
	case "table":
		writer := tabwriter.NewWriter(to, 0, 4, 2, ' ', 0)
		table(writer)
		return writer.Flush()
	case "json":
		return writeJSON(to, value)
	case "yaml":
		encoder := yaml.NewEncoder(to)
		encoder.SetIndent(2)
		if err := encoder.Encode(value); err != nil {
			return err
		}
		return encoder.Close()
	}
	return fmt.Errorf("--output is table, json or yaml, not %q", o.form)
}

// writeJSON writes a value for people to read.
func writeJSON(to io.Writer, value any) error {
	encoder := json.NewEncoder(to)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

// properties is the table of one thing: a line for each field.
func properties(fields ...[2]any) func(*tabwriter.Writer) {
	return func(table *tabwriter.Writer) {
		for _, field := range fields {
			value := field[1]
			if list, ok := value.([]string); ok {
				value = strings.Join(list, ", ")
			}
			fmt.Fprintf(table, "%s\t%s\n", field[0], strings.Join(strings.Fields(fmt.Sprint(value)), " "))
		}
	}
}

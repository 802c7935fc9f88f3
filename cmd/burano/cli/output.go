package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
)

// Output is the form in which a command prints its result.
type Output struct{ Form string }

// AddFlag adds the flag --output.
func (o *Output) AddFlag(command *cobra.Command) {
	command.Flags().StringVarP(&o.Form, "output", "o", "table", "output format: table, json or yaml")
	_ = command.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"table", "json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
}

// Print writes the value as JSON or YAML, or calls table. The value is the answer of the API.
func (o *Output) Print(to io.Writer, value any, table func(*tabwriter.Writer)) error {
	switch o.Form {
	case "table":
		writer := tabwriter.NewWriter(to, 0, 4, 2, ' ', 0)
		table(writer)
		return writer.Flush()
	case "json":
		return WriteJSON(to, value)
	case "yaml":
		encoder := yaml.NewEncoder(to)
		encoder.SetIndent(2)
		if err := encoder.Encode(value); err != nil {
			return err
		}
		return encoder.Close()
	}
	return fmt.Errorf("--output is table, json or yaml, not %q", o.Form)
}

// WriteJSON writes a value for people to read.
func WriteJSON(to io.Writer, value any) error {
	encoder := json.NewEncoder(to)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

// Properties is the table of one thing: a line for each field.
func Properties(fields ...[2]any) func(*tabwriter.Writer) {
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

// longCell is how many characters of a text a cell of a table has.
const longCell = 160

// InOneLine is a text of several lines, such as a journal, in a cell of a table: its first line that is not empty, and the number of lines.
// --output json has the whole text.
func InOneLine(text string) string {
	lines := slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool { return strings.TrimSpace(line) == "" })
	if len(lines) == 0 {
		return ""
	}
	first := []rune(strings.Join(strings.Fields(lines[0]), " "))
	if len(first) > longCell {
		first = append(first[:longCell], '…')
	}
	if len(lines) == 1 {
		return string(first)
	}
	return fmt.Sprintf("%s (and %d more lines: --output json)", string(first), len(lines)-1)
}

// ErrWouldChange ends a preview that has been printed. It is no failure, and nothing is said of it.
var ErrWouldChange = errors.New("something would change")

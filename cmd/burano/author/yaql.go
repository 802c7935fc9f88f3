package author

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/burano/burano/catalog/yaql"
)

// YAQLCommand is burano yaql.
func YAQLCommand() *cobra.Command {
	var data, output string
	var legacy bool
	command := &cobra.Command{
		Use:   "yaql EXPR",
		Short: "Evaluate a YAQL expression over JSON or YAML data",
		Long:  `Yaql evaluates a YAQL expression. In it $ is the data of --data, or null without that. Errors are shown with a mark below their place.`,
		Example: `  burano yaql '1 + 2 * 3'
  burano yaql '$.services.where($.port < 1024).name' --data model.json
  kubectl get pods -o json | burano yaql '$.items.metadata.name' --data -`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			if output != "json" && output != "compact" && output != "raw" {
				return fmt.Errorf("--output is json (indented), compact (JSON in one line) or raw (texts without quotes), not %q", output)
			}
			document, err := readData(data, command.InOrStdin())
			if err != nil {
				return err
			}
			functions, parse := yaql.Standard(), yaql.Parse
			if legacy {
				functions, parse = yaql.Legacy(), yaql.ParseLegacy
			}
			expression, err := parse(args[0])
			if err != nil {
				return pointed(err)
			}
			value, err := expression.Evaluate(command.Context(), yaql.NewScope(functions, document, yaql.Limits{}))
			if err != nil {
				return pointed(err)
			}
			return writeValue(command.OutOrStdout(), value, output)
		},
	}
	command.Flags().StringVarP(&data, "data", "d", "", `file with the JSON or YAML data of $, "-" for standard input`)
	command.Flags().BoolVar(&legacy, "legacy", false, "use YAQL 0.2, the version of packages of format 1.0 and 1.1 and of forms, with its tuples (1 => 2)")
	command.Flags().StringVarP(&output, "output", "o", "json", "json (indented), compact (JSON in one line) or raw (texts without quotes)")
	return command
}

// readData reads JSON or YAML of a file, "-" for in; "" is null.
func readData(path string, in io.Reader) (any, error) {
	var text []byte
	var err error
	switch path {
	case "":
		return nil, nil
	case "-":
		path = "standard input"
		text, err = io.ReadAll(in)
	default:
		text, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, fmt.Errorf("read data: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) == nil && !decoder.More() {
		return yaql.FromJSON(value), nil
	}
	if err := yaml.Unmarshal(text, &value); err != nil {
		return nil, fmt.Errorf("%s is neither JSON nor YAML: %w", path, err)
	}
	return fromYAML(value), nil
}

// fromYAML gives data the forms that the language knows.
func fromYAML(value any) any {
	switch v := value.(type) {
	case int:
		return int64(v)
	case []any:
		for n := range v {
			v[n] = fromYAML(v[n])
		}
	case map[string]any:
		for key := range v {
			v[key] = fromYAML(v[key])
		}
	case map[any]any: // keys that are no texts
		entries := make([]yaql.Entry, 0, len(v))
		for key, item := range v {
			entries = append(entries, yaql.Entry{Key: key, Value: fromYAML(item)})
		}
		return yaql.NewDict(entries...)
	}
	return value
}

func writeValue(out io.Writer, value any, output string) error {
	value = yaql.JSON(yaql.Plain(value))
	if text, ok := value.(string); ok && output == "raw" {
		_, err := fmt.Fprintln(out, text)
		return err
	}
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	if output == "json" {
		encoder.SetIndent("", "  ")
	}
	return encoder.Encode(value)
}

// pointed shows an error of an expression with the line it is in and a mark below the place.
func pointed(err error) error {
	var syntax *yaql.SyntaxError
	var failed *yaql.Error
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("%w\n%s", err, caret(syntax.Source, syntax.Offset))
	case errors.As(err, &failed) && failed.Source != "":
		return fmt.Errorf("%s: %s\n%s", failed.Name, failed.Message, caret(failed.Source, failed.Offset))
	}
	return err
}

// caret is the line of the source that the offset (in bytes) is in, and below it a mark.
func caret(source string, offset int) string {
	offset = min(offset, len(source))
	begin := strings.LastIndexByte(source[:offset], '\n') + 1
	line, _, _ := strings.Cut(source[begin:], "\n")
	var pad strings.Builder
	for before := source[begin:offset]; before != ""; {
		r, size := utf8.DecodeRuneInString(before)
		before = before[size:]
		if r != '\t' {
			r = ' '
		}
		pad.WriteRune(r)
	}
	return "  " + line + "\n  " + pad.String() + "^"
}

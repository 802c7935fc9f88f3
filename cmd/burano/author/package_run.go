package author

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/catalog/scenario"
)

func packageRunCommand() *cobra.Command {
	var beside []string
	var steps, configs string
	command := &cobra.Command{
		Use:   "run --packages PATH… --steps FILE",
		Short: "Run a scenario over packages: load models, call methods, write models",
		Long: `Run reads steps, one JSON object a line, and prints a line of JSON for each:

  {"load": model}                                  a root object, or {"Objects": …, "ObjectsCopy": …, "Attributes": […]}
  {"call": method, "on": "root" or an object's id, "args": […], "kwargs": {…}}
  {"call": method, "on_class": class, …}           a static method
  {"serialize": true}                              the model as it is now

A line has "result", or "exception" with "names", "message" and "stackTrace", and "traces": the values that code gave to the function
trace(value) during the step. Each load begins anew. Methods in Go that need a cloud do not exist: a call of one is an
exception. The exit code is 0 for all results of the steps, as long as they can be read.`,
		Example: `  burano package run --packages ./io.example.App --steps steps.jsonl
  echo '{"call": "version", "on_class": "io.example.App"}' | burano package run --packages . --steps -`,
		RunE: func(command *cobra.Command, more []string) error {
			packages, err := shelf(command.Context(), append(beside, more...))
			if err != nil {
				return err
			}
			var in io.Reader = command.InOrStdin()
			if steps != "-" {
				file, err := os.Open(steps)
				if err != nil {
					return fmt.Errorf("read the steps: %w", err)
				}
				defer file.Close()
				in = file
			}
			var options []muranopl.Option
			if configs != "" {
				options = append(options, muranopl.WithConfigs(os.DirFS(configs)))
			}
			return scenario.Run(command.Context(), packages, in, command.OutOrStdout(), options...)
		},
	}
	command.Flags().StringSliceVar(&beside, "packages", nil, "package, or folder of packages (repeatable); Burano's own packages are always known")
	command.Flags().StringVar(&steps, "steps", "", `file with the steps, "-" for standard input`)
	command.Flags().StringVar(&configs, "class-configs", "", "folder of files CLASS.yaml or CLASS-VERSION.yaml (or .json) with values of properties, as of burano serve")
	_ = command.MarkFlagRequired("steps")
	return command
}

package author

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/burano/burano/catalog/muranopl"
)

func packageSchemaCommand() *cobra.Command {
	var beside, methods []string
	command := &cobra.Command{
		Use:   "schema PATH CLASS",
		Short: "Print the JSON schemas of a class: of its objects in a model, and of its model builders",
		Long: `Schema prints JSON schemas as the API's /v1/schemas does: an object with the schema of the class under the key "", and the schemas of its model builders'
arguments under their names. A model builder is a public static method with the metadata io.murano.metadata.ModelBuilder. PATH is the
package, or a folder of packages, that the class is in.`,
		Example: `  burano package schema ./io.example.App io.example.App
  burano package schema ./io.example.App io.example.App --method fromTemplate`,
		Args: cobra.ExactArgs(2),
		RunE: func(command *cobra.Command, args []string) error {
			packages, err := shelf(command.Context(), append(args[:1:1], beside...))
			if err != nil {
				return err
			}
			class, err := muranopl.NewClasses(packages).Class(command.Context(), args[1], "")
			if err != nil {
				return err
			}
			schemas := class.Schemas(command.Context(), methods...)
			for _, method := range methods {
				if schemas[method] == nil {
					return fmt.Errorf("class %s has no model builder %s: one is a public static method with the metadata io.murano.metadata.ModelBuilder", class.Name, method)
				}
			}
			encoder := json.NewEncoder(command.OutOrStdout())
			encoder.SetEscapeHTML(false)
			encoder.SetIndent("", "  ")
			return encoder.Encode(schemas)
		},
	}
	command.Flags().StringArrayVar(&methods, "method", nil, "only the schema of this model builder (repeatable)")
	command.Flags().StringArrayVar(&beside, "packages", nil, "package, or folder of packages, that the class requires (repeatable)")
	return command
}

package author

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/catalog/packagetest"
)

func packageTestCommand() *cobra.Command {
	var beside []string
	var filter string
	command := &cobra.Command{
		Use:   "test PATH…",
		Short: "Run the tests of packages: the methods test… of classes that extend io.murano.test.TestFixture",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, paths []string) error {
			others, err := shelf(command.Context(), beside)
			if err != nil {
				return err
			}
			passed, failed := 0, 0
			for _, path := range paths {
				pkg, err := readPackage(command.Context(), path)
				if err != nil {
					return fmt.Errorf("%s: %w", path, err)
				}
				err = packagetest.Run(command.Context(), pkg, others, filter, func(result packagetest.Result) {
					if result.Err == nil {
						passed++
						fmt.Fprintf(command.OutOrStdout(), "ok    %s\n", result.Name)
						return
					}
					failed++
					text := result.Err.Error()
					var exception *muranopl.Exception
					if errors.As(result.Err, &exception) {
						text += "\n" + exception.Traceback()
					}
					fmt.Fprintf(command.OutOrStdout(), "FAIL  %s\n      %s\n", result.Name, strings.ReplaceAll(text, "\n", "\n      "))
				})
				if err != nil {
					return fmt.Errorf("%s: %w", path, err)
				}
			}
			fmt.Fprintf(command.OutOrStdout(), "%d passed, %d failed\n", passed, failed)
			switch {
			case failed > 0:
				return fmt.Errorf("%d tests failed", failed)
			case passed == 0:
				return errors.New("there are no such tests")
			}
			return nil
		},
	}
	command.Flags().StringArrayVar(&beside, "packages", nil, "package, or folder of packages, that the tested ones require (repeatable)")
	command.Flags().StringVar(&filter, "filter", "", "run only tests whose class and method contain this")
	return command
}

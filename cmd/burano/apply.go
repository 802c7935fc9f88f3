package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/burano/burano/web/client"
)

// applyOptions are the flags of apply.
type applyOptions struct {
	files        []string
	dryRun       bool
	wait         bool
	allowDestroy []string
	repository   string
}

func applyCommand(connection *connection) *cobra.Command {
	var options applyOptions
	command := &cobra.Command{
		Use:   "apply -f FILE…",
		Short: "Make quotas, packages, templates and environments what files describe",
		Long: `Apply reads documents of YAML files, shows of each what differs from what is there, and then makes it so: quotas first, then packages,
templates and environments, which are deployed. Applying unchanged files again changes nothing. Nothing is begun when a document is wrong.
What no document names, and fields that a document leaves out, stay as they are.

  kind: Quota
  project: 7c1f…            # its id; default: your own project; only administrators may
  limits: {environments: 10, packages: unlimited}
  ---
  kind: Package
  path: ./io.example.App    # a folder or a zip, seen from the file, or a URL
  public: false
  enabled: true
  categories: [Web]
  tags: [ours]              # besides those of its manifest
  ---
  kind: Template
  name: small
  public: false
  description: one server
  applications: […]         # as in an environment
  ---
  kind: Environment         # and every document without a kind, so a file of burano deploy
  name: demo
  applications: […]

Packages that one requires, and that the catalog does not have, are uploaded too; they are looked for beside it and in the repository.`,
		Example: `  burano apply -f platform.yaml --dry-run
  burano apply -f folder/ --wait
  generate | burano apply -f -`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			documents, err := client.ReadDocuments(options.files, command.InOrStdin())
			if err != nil {
				return err
			}
			api, err := connection.connect(command.Context())
			if err != nil {
				return err
			}
			return apply(command.Context(), api, documents, options, command.OutOrStdout())
		},
	}
	flags := command.Flags()
	flags.StringArrayVarP(&options.files, "file", "f", nil, "a file, a folder of files *.yaml, or - for standard input; more than once for more than one")
	_ = command.MarkFlagRequired("file")
	flags.BoolVar(&options.dryRun, "dry-run", false, "only show what would be added and changed")
	flags.BoolVar(&options.wait, "wait", false, "wait for the deployments and show their reports; the exit code is 0 when all succeeded")
	flags.StringSliceVar(&options.allowDestroy, "allow-destroy", nil, allowDestroyUsage)
	addRepositoryFlag(command, &options.repository)
	return command
}

// apply shows what documents change, and changes it.
func apply(ctx context.Context, api *client.Client, documents []client.Document, options applyOptions, out io.Writer) error {
	if options.wait && !options.dryRun {
		for _, one := range documents {
			if one.Environment == nil {
				continue
			}
			if err := followOthers(ctx, api, one.Name, out); err != nil {
				return err
			}
		}
	}
	plans, err := api.Plan(ctx, client.NewFinder(options.repository), documents, options.allowDestroy...)
	if err != nil {
		return err
	}
	count := map[string]int{}
	for _, one := range plans {
		count[one.Change]++
		if err := printPlanned(out, one); err != nil {
			return err
		}
	}
	verb := ""
	if options.dryRun {
		verb = "would be "
	}
	fmt.Fprintf(out, "%d %sadded, %d %schanged, %d as described\n", count["added"], verb, count["changed"], verb, count[""])
	if options.dryRun {
		return nil
	}
	var deployed []*client.Planned
	for _, one := range plans {
		if err := one.Apply(ctx); err != nil {
			return err
		}
		if one.Kind == client.KindEnvironment && one.Change != "" {
			fmt.Fprintf(out, "environment %s (%s) is being deployed\n", one.Name, one.EnvironmentID)
			deployed = append(deployed, one)
		}
	}
	if !options.wait {
		return nil
	}
	var failed []error
	for _, one := range deployed {
		if err := followNewest(ctx, api, one.EnvironmentID, out); err != nil {
			failed = append(failed, fmt.Errorf("environment %s: %w", one.Name, err))
		}
	}
	return errors.Join(failed...)
}

// printPlanned prints a thing with a sign, as diff does, and below it what would be other than it is.
func printPlanned(out io.Writer, planned *client.Planned) error {
	sign := map[string]string{"added": "+", "changed": "~", "": "="}[planned.Change]
	fmt.Fprintf(out, "%s %s %s\n", sign, planned.Kind, planned.Name)
	for _, value := range planned.Values {
		fmt.Fprintf(out, "    %s: %s → %s\n", value.Name, shortJSON(value.Before), shortJSON(value.After))
	}
	if planned.Preview == nil || planned.Change == "" {
		return nil
	}
	table := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	previewTable(*planned.Preview)(table)
	return table.Flush()
}

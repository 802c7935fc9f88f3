package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/burano/burano/cmd/burano/cli"
	"github.com/burano/burano/web/client"
)

// applyOptions are the flags of apply.
type applyOptions struct {
	files        []string
	dryRun       bool
	wait         bool
	allowDestroy []string
	repository   string
	label        string
	prune        bool
	yes          bool
}

// ApplyCommand is burano apply.
func ApplyCommand(connection *cli.Connection) *cobra.Command {
	var options applyOptions
	command := &cobra.Command{
		Use:   "apply -f FILE…",
		Short: "Apply quotas, packages, templates and environments from files",
		Long: `Apply reads documents of YAML files, shows the differences of each from its present state, and applies them: quotas first, then packages,
templates and environments, which are deployed. Applying unchanged files again changes nothing. Nothing is begun when a document is wrong.
Objects that no document names, and fields that a document omits, stay as they are.

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

Required packages that the catalog does not have are uploaded too, from the folder of the package or from the repository.

With --label the server remembers the applied packages, templates and environments under this label. --prune deletes objects of the label
that no document describes any more, and nothing else: it shows them, and deletes them with --yes only.

With --dry-run nothing is made or stored, also of new environments. ` + exitCodesOfPreviews,
		Example: `  burano apply -f platform.yaml --dry-run
  burano apply -f folder/ --wait
  burano apply -f folder/ --label platform --prune --yes
  generate | burano apply -f -`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if options.prune && options.label == "" {
				return errors.New("--prune deletes what was applied under a label: name it with --label")
			}
			documents, err := client.ReadDocuments(options.files, command.InOrStdin())
			if err != nil {
				return err
			}
			api, err := connection.Connect(command.Context())
			if err != nil {
				return err
			}
			return apply(command.Context(), api, documents, options, command.OutOrStdout())
		},
	}
	flags := command.Flags()
	flags.StringArrayVarP(&options.files, "file", "f", nil, "a file, a folder of files *.yaml, or - for standard input (repeatable)")
	_ = command.MarkFlagRequired("file")
	flags.BoolVar(&options.dryRun, "dry-run", false, "only show the additions and changes")
	flags.BoolVar(&options.wait, "wait", false, "wait for the deployments and show their reports; the exit code is 0 when all succeeded")
	flags.StringSliceVar(&options.allowDestroy, "allow-destroy", nil, allowDestroyUsage)
	cli.AddRepositoryFlag(command, &options.repository)
	flags.StringVar(&options.label, "label", "", "remember the applied objects under this label")
	flags.BoolVar(&options.prune, "prune", false, "delete objects of the label that no file describes any more; only with --yes")
	flags.BoolVar(&options.yes, "yes", false, "delete the objects that --prune shows")
	return command
}

// apply shows the changes of documents, and applies them.
func apply(ctx context.Context, api *client.Client, documents []client.Document, options applyOptions, out io.Writer) error {
	if options.wait && !options.dryRun {
		for _, one := range documents {
			if one.Environment == nil {
				continue
			}
			if err := cli.FollowOthers(ctx, api, one.Name, out); err != nil {
				return err
			}
		}
	}
	plans, err := api.Documents().Plan(ctx, client.NewFinder(options.repository), documents, options.allowDestroy...)
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
	former, left, err := labelled(ctx, api, options.label, plans)
	if err != nil {
		return err
	}
	for _, one := range left {
		if options.prune {
			fmt.Fprintf(out, "- %s %s\n", one.Kind, one.Name)
		} else {
			fmt.Fprintf(out, "  %s %s was applied under %s and is no longer described: it stays (--prune)\n", one.Kind, one.Name, options.label)
		}
	}
	verb := ""
	if options.dryRun {
		verb = "would be "
	}
	fmt.Fprintf(out, "%d %sadded, %d %schanged, %d as described\n", count["added"], verb, count["changed"], verb, count[""])
	if options.dryRun {
		if count["added"]+count["changed"] > 0 || options.prune && len(left) > 0 {
			return cli.ErrWouldChange
		}
		return nil
	}
	if options.prune && len(left) > 0 && !options.yes {
		return fmt.Errorf("nothing is done: %d things would be deleted, with everything that is in them; --yes says that they may", len(left))
	}
	var deployed []*client.Planned
	for _, one := range plans {
		if err := one.Apply(ctx); err != nil {
			return errors.Join(err, remember(ctx, api, options.label, former, plans))
		}
		if one.Kind == client.KindEnvironment && one.Change != "" {
			fmt.Fprintf(out, "environment %s (%s) is being deployed\n", one.Name, one.EnvironmentID)
			deployed = append(deployed, one)
		}
	}
	if err := remember(ctx, api, options.label, former, plans); err != nil {
		return err
	}
	if options.prune && len(left) > 0 {
		err := api.Documents().Prune(ctx, left, func(one client.Applied) {
			former = slices.DeleteFunc(former, func(other client.Applied) bool { return other == one })
			fmt.Fprintf(out, "%s %s: deleted\n", one.Kind, one.Name)
		})
		if err := errors.Join(err, remember(ctx, api, options.label, former, plans)); err != nil {
			return err
		}
	}
	if !options.wait {
		return nil
	}
	var failed []error
	for _, one := range deployed {
		if err := cli.FollowNewest(ctx, api, one.EnvironmentID, out); err != nil {
			failed = append(failed, fmt.Errorf("environment %s: %w", one.Name, err))
		}
	}
	return errors.Join(failed...)
}

// labelled lists what there is under a label, and what of it no plan is about. Without a label that is nothing.
func labelled(ctx context.Context, api *client.Client, label string, plans []*client.Planned) (former, left []client.Applied, err error) {
	if label == "" {
		return nil, nil, nil
	}
	if former, err = api.Documents().Applied(ctx, label); err != nil {
		return nil, nil, err
	}
	if former, err = api.Documents().Existing(ctx, former); err != nil {
		return nil, nil, err
	}
	left = slices.DeleteFunc(slices.Clone(former), func(one client.Applied) bool {
		return slices.ContainsFunc(plans, func(p *client.Planned) bool { return p.Kind == one.Kind && p.Name == one.Name })
	})
	return former, left, nil
}

// remember writes the former objects and the objects that plans have made under a label, also after an interruption.
func remember(ctx context.Context, api *client.Client, label string, former []client.Applied, plans []*client.Planned) error {
	if label == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	made, err := api.Documents().Made(ctx, plans)
	if err != nil {
		return err
	}
	return api.Documents().SetApplied(ctx, label, append(made, former...))
}

// printPlanned prints an object with a sign, as diff does, and its differences below it.
func printPlanned(out io.Writer, planned *client.Planned) error {
	sign := map[string]string{"added": "+", "changed": "~", "": "="}[planned.Change]
	fmt.Fprintf(out, "%s %s %s\n", sign, planned.Kind, planned.Name)
	for _, value := range planned.Values {
		fmt.Fprintf(out, "    %s: %s → %s\n", value.Name, shortJSON(value.Before), shortJSON(value.After))
	}
	if planned.Preview == nil || planned.Change == "" {
		return nil
	}
	return writePreview(out, *planned.Preview)
}

package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/burano/burano/cmd/burano/cli"
	"github.com/burano/burano/internal/door"
	"github.com/burano/burano/internal/envelope"
	"github.com/burano/burano/web/client"
)

func environmentExportCommand(connection *cli.Connection) *cobra.Command {
	var recipient, output string
	var state int64
	command := &cobra.Command{
		Use:   "export NAME|ID",
		Short: "Write an environment, or a former state of it, as a file for burano deploy",
		Long: `Export writes the deployed model of an environment as a file for burano deploy and burano environment import. Objects keep their ids, so that the file
changes nothing in the environment of origin.

The file has *** SANITIZED *** in place of secrets. In the environment of origin this keeps the present secret. Elsewhere it is refused until you write the
secret. With --recipient, the public key of burano environment key, the file has the secrets, sealed for that key. It has no data of volumes.`,
		Args: cobra.ExactArgs(1),
		RunE: connection.OnEnvironment(func(command *cobra.Command, api *client.Client, found client.Environment, _ []string) error {
			file, err := api.Files().Export(command.Context(), found.ID, state, recipient)
			if err != nil {
				return err
			}
			text, err := file.YAML(exportComment(file, state))
			if err != nil {
				return err
			}
			if output == "" || output == "-" {
				_, err = command.OutOrStdout().Write(text)
				return err
			}
			return os.WriteFile(output, text, 0o600)
		}),
	}
	command.Flags().StringVar(&recipient, "recipient", "", "public key (age1…) for which secrets are sealed")
	command.Flags().Int64Var(&state, "state", 0, "number of a former state (burano environment history)")
	command.Flags().StringVarP(&output, "file", "o", "", "file to write; without it standard output")
	return command
}

// exportComment is the head of an exported file.
func exportComment(file client.EnvironmentFile, state int64) string {
	text := "Environment " + file.Name
	if state > 0 {
		text += fmt.Sprintf(", state %d", state)
	}
	leftOut, sealed := file.Unread()
	if len(leftOut) > 0 {
		text += "\nSecrets are left out:\n  " + strings.Join(leftOut, "\n  ")
	}
	if len(sealed) > 0 {
		text += fmt.Sprintf("\nSecrets are sealed: %d. burano environment import --key KEYFILE opens them", len(sealed))
	}
	return text
}

// maxKeyFile bounds a file with a key.
const maxKeyFile = 64 << 10

func readKey(path string) (envelope.Key, error) {
	file, err := os.Open(path)
	if err != nil {
		return envelope.Key{}, err
	}
	defer file.Close()
	text, err := door.ReadAll(file, maxKeyFile, "a file with a key")
	if err != nil {
		return envelope.Key{}, fmt.Errorf("%s: %w", path, err)
	}
	key, err := envelope.ParseKey(string(text))
	if err != nil {
		return envelope.Key{}, fmt.Errorf("%s: %w", path, err)
	}
	return key, nil
}

func environmentKeyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "key FILE",
		Short: "Make a key for secrets in exported environments",
		Long: `Key creates a key of age (https://age-encryption.org) in FILE, or reads an existing one, and prints the public key for burano environment export
--recipient. The file opens all secrets that are sealed for this public key.`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			file, err := os.OpenFile(args[0], os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
			if errors.Is(err, os.ErrExist) {
				key, err := readKey(args[0])
				if err != nil {
					return err
				}
				fmt.Fprintln(command.OutOrStdout(), key.Recipient())
				return nil
			}
			if err != nil {
				return err
			}
			key, err := envelope.NewKey()
			if err == nil {
				_, err = io.WriteString(file, key.String())
			}
			if err = errors.Join(err, file.Close()); err != nil {
				return err
			}
			fmt.Fprintln(command.OutOrStdout(), key.Recipient())
			return nil
		},
	}
}

// opened is a file whose sealed secrets are opened.
func opened(file client.EnvironmentFile, key envelope.Key) (client.EnvironmentFile, error) {
	applications := make([]map[string]any, len(file.Applications))
	for i, one := range file.Applications {
		value, err := key.Open(one)
		if err != nil {
			return file, fmt.Errorf("applications[%d]%w", i, err)
		}
		applications[i], _ = value.(map[string]any)
	}
	file.Applications = applications
	if len(file.Metadata) > 0 {
		metadata, err := key.Open(file.Metadata)
		if err != nil {
			return file, fmt.Errorf("metadata%w", err)
		}
		file.Metadata, _ = metadata.(map[string]any)
	}
	return file, nil
}

// placing is how a file becomes an environment.
type placing struct {
	name, region   string
	dryRun, follow bool
	allowDestroy   []string
}

func (p *placing) addFlags(command *cobra.Command) {
	command.Flags().StringVar(&p.region, "region", "", "region of the cloud in which a new environment is made")
	command.Flags().BoolVar(&p.dryRun, "dry-run", false, "only show the preview")
	command.Flags().BoolVarP(&p.follow, "follow", "f", false, "show the deployment's reports as they come; the exit code is 0 when it succeeded")
}

// placed is a file as it is deployed.
func (p placing) placed(file client.EnvironmentFile) client.EnvironmentFile {
	file.Name, file.Region = cmp.Or(p.name, file.Name), cmp.Or(p.region, file.Region)
	return file
}

// place deploys a file.
func (p placing) place(ctx context.Context, api *client.Client, file client.EnvironmentFile, out io.Writer) error {
	file = p.placed(file)
	if err := hasPackages(ctx, api, file); err != nil {
		return err
	}
	_, err := api.Environments().Get(ctx, file.Name)
	isNew := client.IsStatus(err, http.StatusNotFound)
	if err != nil && !isNew {
		return err
	}
	if leftOut, _ := file.Unread(); isNew && len(leftOut) > 0 {
		return fmt.Errorf("environment %s is new, and secrets were left out of the file: write them in the places of *** SANITIZED ***, or export with --recipient: %s",
			file.Name, strings.Join(leftOut, ", "))
	}
	if p.dryRun {
		return printPreview(ctx, api, file, p.allowDestroy, out)
	}
	id, err := api.Files().Deploy(ctx, file, p.allowDestroy...)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "environment %s (%s) is being deployed\n", file.Name, id)
	if !p.follow {
		return nil
	}
	return cli.FollowNewest(ctx, api, id, out)
}

// hasPackages returns an error where the catalog lacks packages of a file.
func hasPackages(ctx context.Context, api *client.Client, file client.EnvironmentFile) error {
	missing, err := api.Files().Missing(ctx, file)
	if err == nil && len(missing) > 0 {
		err = fmt.Errorf("environment %s: the catalog does not have the packages %s: import them first (burano package import)", file.Name, strings.Join(missing, ", "))
	}
	return err
}

func environmentImportCommand(connection *cli.Connection) *cobra.Command {
	var keyFile string
	var how placing
	command := &cobra.Command{
		Use:   "import FILE",
		Short: "Deploy an exported environment",
		Long: `Import deploys a file of burano environment export, as burano deploy does, and opens the secrets that are sealed for a key. It changes an existing environment
of the name, or creates one.

` + exitCodesOfRollback,
		Args: cobra.ExactArgs(1),
		RunE: connection.SignedIn(func(command *cobra.Command, api *client.Client, args []string) error {
			file, err := client.ReadEnvironmentFile(args[0])
			if err != nil {
				return err
			}
			if keyFile != "" {
				key, err := readKey(keyFile)
				if err != nil {
					return err
				}
				if file, err = opened(file, key); err != nil {
					return fmt.Errorf("%s: %w", args[0], err)
				}
			}
			return how.place(command.Context(), api, file, command.OutOrStdout())
		}),
	}
	command.Flags().StringVar(&keyFile, "key", "", "file with the key for which secrets are sealed")
	command.Flags().StringVar(&how.name, "name", "", "name of the environment; default: the name in the file")
	how.addFlags(command)
	command.Flags().StringSliceVar(&how.allowDestroy, "allow-destroy", nil, allowDestroyUsage)
	return command
}

// target is where a copy of an environment is made.
type target struct{ cloud, url string }

func (t *target) addFlags(command *cobra.Command) {
	command.Flags().StringVar(&t.cloud, "to-cloud", "", "entry of clouds.yaml: the project, region or cloud of the copy; default: the same project")
	command.Flags().StringVar(&t.url, "to-url", "", "address of the Burano server there; default: from its service catalog")
}

// connect signs in where the copy is made.
func (t target) connect(ctx context.Context, here *client.Client) (*client.Client, error) {
	if t.cloud == "" {
		return here, nil
	}
	there, err := client.Connect(ctx, t.cloud, t.url)
	if err != nil {
		return nil, fmt.Errorf("sign in with %s: %w", t.cloud, err)
	}
	return there, nil
}

// copyOf exports an environment with its secrets, for a key that is forgotten with this process, and gives its objects new ids.
func copyOf(ctx context.Context, api *client.Client, environment client.Environment, state int64) (client.EnvironmentFile, error) {
	key, err := envelope.NewKey()
	if err != nil {
		return client.EnvironmentFile{}, err
	}
	file, err := api.Files().Export(ctx, environment.ID, state, key.Recipient())
	if err == nil {
		file, err = opened(file, key)
	}
	if err == nil {
		file, err = api.Files().Renewed(ctx, file)
	}
	return file, err
}

func environmentCloneCommand(connection *cli.Connection) *cobra.Command {
	var how placing
	var to target
	var data dataCopy
	var state int64
	command := &cobra.Command{
		Use:   "clone NAME|ID NEW-NAME",
		Short: "Deploy a copy of an environment under another name, here or in another project, region or cloud",
		Long: `Clone deploys the applications of an environment, with their secrets, as a new environment. Each object gets a new id, and its own servers, networks and
certificates. The original stays as it is. Claims begin empty. With --data they have the files of the original's claims, as of one moment: a backup is
made and restored, so that objects keep their ids, and removed when the clone has its files. Pods that use claims are frozen meanwhile, for at most 25
seconds. The command first lists the copied claims; without --yes it ends there.

` + exitCodesOfRollback,
		Args: cobra.ExactArgs(2),
		RunE: connection.OnEnvironment(func(command *cobra.Command, api *client.Client, found client.Environment, args []string) error {
			ctx := command.Context()
			there, err := to.connect(ctx, api)
			if err != nil {
				return err
			}
			how.name = args[0]
			return cloneTo(ctx, api, there, found, state, how, data, command.OutOrStdout())
		}),
	}
	command.Flags().Int64Var(&state, "state", 0, "number of a former state to copy (burano environment history)")
	how.addFlags(command)
	to.addFlags(command)
	data.addFlags(command)
	command.MarkFlagsMutuallyExclusive("state", "data")
	return command
}

func cloneTo(ctx context.Context, here, there *client.Client, found client.Environment, state int64, how placing, data dataCopy, out io.Writer) error {
	if _, err := there.Environments().Get(ctx, how.name); !client.IsStatus(err, http.StatusNotFound) {
		return cmp.Or(err, fmt.Errorf("there is an environment %s already: a copy is always new, so give it another name", how.name))
	}
	file, err := copyOf(ctx, here, found, state)
	if err != nil {
		return err
	}
	if data.wanted {
		return data.clone(ctx, here, there, found, file, how, out)
	}
	if claims := withClaims(file); len(claims) > 0 {
		fmt.Fprintf(out, "> the data of volumes is not copied without --data, and begins empty: %s\n", strings.Join(claims, ", "))
	}
	return how.place(ctx, there, file, out)
}

func environmentMoveCommand(connection *cli.Connection) *cobra.Command {
	var how placing
	var to target
	var data dataCopy
	command := &cobra.Command{
		Use:   "move NAME|ID --to-cloud ENTRY",
		Short: "Deploy a copy of an environment in another project, region or cloud, and list the remaining steps",
		Long: `Move deploys a copy of an environment under its name elsewhere. OpenStack cannot transfer servers between projects (Nova has no such call). So the copy gets
servers, addresses and certificates of its own, and the data of volumes stays, unless --data copies it. The original stays until you delete it. The command prints this
notice before it makes anything.

` + exitCodesOfRollback,
		Args: cobra.ExactArgs(1),
		RunE: connection.OnEnvironment(func(command *cobra.Command, api *client.Client, found client.Environment, _ []string) error {
			ctx, out := command.Context(), command.OutOrStdout()
			there, err := to.connect(ctx, api)
			if err != nil {
				return err
			}
			how.name = cmp.Or(how.name, found.Name)
			fmt.Fprintf(out, "> OpenStack cannot transfer servers between projects: environment %s is deployed anew there, with other servers, addresses and certificates\n", how.name)
			fmt.Fprintf(out, "> environment %s stays here as it is. Delete it when the copy replaces it: burano environment delete %s\n", found.Name, found.Name)
			return cloneTo(ctx, api, there, found, 0, how, data, out)
		}),
	}
	command.Flags().StringVar(&how.name, "name", "", "name of the copy; default: the name of the environment")
	how.addFlags(command)
	to.addFlags(command)
	data.addFlags(command)
	_ = command.MarkFlagRequired("to-cloud")
	return command
}

// withClaims are the paths of objects with volumes in a file.
func withClaims(file client.EnvironmentFile) (paths []string) {
	for i, one := range file.Applications {
		paths = append(paths, volumesIn(fmt.Sprintf("applications[%d]", i), one)...)
	}
	return paths
}

func volumesIn(path string, value any) (paths []string) {
	switch v := value.(type) {
	case map[string]any:
		if name, is := v["name"].(string); is && v["?"] != nil {
			path = name
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			switch volumes := v[key].(type) {
			case map[string]any, []any:
				if key == "volumes" && reflect.ValueOf(volumes).Len() > 0 {
					paths = append(paths, path)
				} else {
					paths = append(paths, volumesIn(path, volumes)...)
				}
			}
		}
	case []any:
		for i, inner := range v {
			paths = append(paths, volumesIn(fmt.Sprintf("%s[%d]", path, i), inner)...)
		}
	}
	return paths
}

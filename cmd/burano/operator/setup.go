package operator

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/config/clouds"
	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/burano/burano/cmd/burano/cli"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator/registration"
	"github.com/burano/burano/web/client"
)

// serviceEntry is the entry of the clouds.yaml that setup writes.
const serviceEntry = "burano-service"

// SetupCommand is burano setup.
func SetupCommand(connection *cli.Connection) *cobra.Command {
	var print cli.Output
	var domain, passwordFile, entryFile string
	wanted := registration.Wanted{}
	command := &cobra.Command{
		Use:   "setup",
		Short: "Register Burano in Keystone: service user, roles, service and endpoints",
		Long: `Setup signs in as an administrator of the cloud and creates missing objects. These are the service user with the roles admin and service in the service
project and, with --url (the server's address for clients), the service application-catalog with its endpoints. It lists created and existing
objects; run again it has nothing to do. --dry-run only lists them.

A new service user needs a password. With --password-file it is read from a file (- is standard input). With --write setup writes a new password into a file clouds.yaml,
in the entry burano-service, for the server (OS_CLIENT_CONFIG_FILE and os-cloud). When the file
exists, setup reads the password from it.`,
		Example: `  OS_CLOUD=admin burano setup --url https://burano.example.com:8082 --write /etc/burano/clouds.yaml`,
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) (err error) {
			ctx := command.Context()
			provider, endpoint, err := client.SignIn(ctx, connection.Cloud)
			if err != nil {
				return err
			}
			keystone, err := openstack.NewIdentityV3(provider, endpoint)
			if err != nil {
				return fmt.Errorf("find Keystone v3 in the service catalog: %w", err)
			}
			if wanted.DomainID, err = registration.DomainID(ctx, keystone, domain); err != nil {
				return err
			}
			wanted.URL = strings.TrimSuffix(connection.URL, "/")
			if wanted.Region == "" {
				wanted.Region = endpoint.Region
			}
			wanted.TakesSignIns = func(ctx context.Context, userID, password string) (bool, error) {
				return registration.SignsIn(ctx, provider, userID, password)
			}
			wrote := false
			if wanted.Password, wrote, err = servicePassword(command.InOrStdin(), passwordFile, entryFile, provider.IdentityEndpoint, wanted); err != nil {
				return err
			}
			steps, err := registration.Register(ctx, keystone, wanted)
			if wrote {
				steps = append([]registration.Step{{What: "file " + entryFile, Done: registration.Made}}, steps...)
			}
			return errors.Join(print.Print(command.OutOrStdout(), steps, func(table *tabwriter.Writer) { printSteps(table, steps, wanted.OnlyLook, err) }), err)
		},
	}
	flags := command.Flags()
	flags.StringVar(&domain, "domain", "default", "domain of the service user and its project, by name or id")
	flags.StringVar(&wanted.Project, "project", "service", "project of the service user")
	flags.StringVar(&wanted.User, "user", "burano", "name of the service user")
	flags.StringVar(&passwordFile, "password-file", "", "file with the service user's password; - is standard input")
	flags.StringVar(&entryFile, "write", "", "clouds.yaml to write for the server, where there is none yet, with a new password")
	flags.BoolVar(&wanted.ResetPassword, "reset-password", false, "replace the password of an existing service user by the given one")
	flags.StringVar(&wanted.Region, "region", "", "region of the endpoints (default: the region of the credentials)")
	flags.BoolVar(&wanted.ReplaceURL, "replace", false, "change existing endpoints, such as Murano's, to --url")
	flags.BoolVar(&wanted.OnlyLook, "dry-run", false, "only list the changes")
	command.MarkFlagsMutuallyExclusive("password-file", "write")
	print.AddFlag(command)
	return command
}

func printSteps(table *tabwriter.Writer, steps []registration.Step, onlyLook bool, err error) {
	changes := 0
	for _, step := range steps {
		done := string(step.Done)
		if step.Done != registration.IsThere {
			changes++
			if onlyLook {
				done = "would be " + done
			}
		}
		fmt.Fprintf(table, "%s\t%s\n", done, step.What)
	}
	if changes == 0 && err == nil {
		fmt.Fprintln(table, "nothing to do")
	}
}

// servicePassword is the password of the service user: of the file, or of the entry, which is written with a new one where it is not there. It is
// written before the user is made, so that a run that is cut off loses no password.
func servicePassword(input io.Reader, file, entry, keystone string, wanted registration.Wanted) (password string, wrote bool, err error) {
	switch {
	case file == "-":
		text, err := io.ReadAll(input)
		return strings.TrimRight(string(text), "\r\n"), false, err
	case file != "":
		text, err := os.ReadFile(file)
		return strings.TrimRight(string(text), "\r\n"), false, err
	case entry == "":
		return "", false, nil
	}
	if _, err := os.Stat(entry); err == nil {
		options, _, _, err := clouds.Parse(clouds.WithLocations(entry), clouds.WithCloudName(serviceEntry))
		if err != nil {
			return "", false, fmt.Errorf("%s is there already: read its entry %s: %w", entry, serviceEntry, err)
		}
		if options.Username != wanted.User {
			return "", false, fault.New(fault.Conflict, "%s is there already, and its entry %s is of the user %s: name another file, or that user", entry, serviceEntry, options.Username)
		}
		return options.Password, false, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", false, err
	}
	password = rand.Text()
	if wanted.OnlyLook {
		return password, true, nil
	}
	return password, true, writeEntry(entry, keystone, password, wanted)
}

// writeEntry writes a clouds.yaml that only its owner can read.
func writeEntry(path, keystone, password string, wanted registration.Wanted) error {
	type values = map[string]any
	entry := values{"auth": values{"auth_url": keystone, "username": wanted.User, "password": password, "project_name": wanted.Project,
		"user_domain_id": wanted.DomainID, "project_domain_id": wanted.DomainID}, "auth_type": "password", "identity_api_version": 3}
	if wanted.Region != "" {
		entry["region_name"] = wanted.Region
	}
	text, err := yaml.Marshal(values{"clouds": values{serviceEntry: entry}})
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write the entry of the service user: %w", err)
	}
	_, err = file.Write(text)
	return errors.Join(err, file.Sync(), file.Close())
}

package operator

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	glance "github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"
	"github.com/spf13/cobra"

	"github.com/burano/burano/cmd/burano/cli"
	"github.com/burano/burano/cmd/burano/server"
	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/orchestrator/direct"
	"github.com/burano/burano/orchestrator/doctor"
	driver "github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/secret"
	"github.com/burano/burano/orchestrator/store"
	"github.com/burano/burano/web/client"
)

// DoctorCommand is burano doctor.
func DoctorCommand() *cobra.Command {
	var print cli.Output
	var as string
	var boot doctor.Boot
	options := &server.Options{}
	flags := options.Flags()
	command := &cobra.Command{
		Use:   "doctor",
		Short: "Check the server's settings and the cloud, and name faults and remedies",
		Long: `Doctor reads the settings as the server does (flags, environment, the file of --config) and checks the server's surroundings. It checks the
folder of the state, keys and database, the certificate, the clocks, Keystone, the service user and its roles, and trusts. It also checks the cloud's services,
external networks, flavors and images of nodes. It makes a trust and an application credential, which it deletes, and changes nothing else. It runs beside a server
or before the first one is started.

--as names the entry of clouds.yaml of a future user: then the trust is this user's, and the quotas of the user's project are checked.

--boot names an image. Doctor creates a server from it in a network of its own, with a floating IP, as deployments do; it logs in and deletes all of it.
That takes minutes, and shows whether servers can be reached from here.

Each line is ok, warning or failed, with its remedy. The exit code is 1 when a check has failed.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if boot.Flavor != "" && boot.Image == "" {
				return errors.New("--boot-flavor names a flavor for a server: name its image by --boot, too")
			}
			lines := []doctor.Line{{Check: "settings", State: doctor.Failed, Remedy: "mend the setting; `burano serve --print-config` shows all of them"}}
			if settings, err := options.Resolve(flags); err != nil {
				lines[0].Text = err.Error()
			} else {
				lines = examine(command.Context(), options, as, boot)
				for _, place := range settings.Former() {
					lines = append(lines, doctor.Line{Check: "settings", State: doctor.Warning, Text: place + " has no effect any more", Remedy: "remove it: the next release refuses it"})
				}
			}
			failed := 0
			for _, line := range lines {
				if line.State == doctor.Failed {
					failed++
				}
			}
			if err := print.Print(command.OutOrStdout(), lines, func(table *tabwriter.Writer) {
				for _, line := range lines {
					fmt.Fprintf(table, "%s\t%s\t%s\n", line.State, line.Check, line.Text)
					if line.Remedy != "" {
						fmt.Fprintf(table, "\t\t  to do: %s\n", line.Remedy)
					}
				}
			}); err != nil {
				return err
			}
			if err := command.Context().Err(); err != nil {
				return err
			}
			if failed > 0 {
				return fmt.Errorf("%d of %d checks failed", failed, len(lines))
			}
			return nil
		},
	}
	for _, name := range []string{server.ConfigFlag, server.CloudFlag, "state", "database", "tls-cert", "tls-key", "external-network", "networks", "orchestration", "trust-roles"} {
		command.Flags().AddFlag(flags.Lookup(name))
	}
	command.Flags().StringVar(&as, "as", "", "entry of clouds.yaml of a user who deploys")
	command.Flags().StringVar(&boot.Image, "boot", "", "image, by name or id, of a test server that doctor creates, logs in to and deletes")
	command.Flags().StringVar(&boot.Flavor, "boot-flavor", "", "flavor of the test server, by name or id (default: the smallest that fits its image)")
	command.Flags().DurationVar(&boot.Patience, "boot-patience", 10*time.Minute, "time limit for the creation of the test server, and then for its answer")
	print.AddFlag(command)
	return command
}

// Examine examines a server that runs.
func Examine(ctx context.Context, options *server.Options) []doctor.Line {
	return examine(ctx, options, "", doctor.Boot{})
}

// examine checks this machine, and then the cloud. The settings are valid.
func examine(ctx context.Context, options *server.Options, as string, boot doctor.Boot) []doctor.Line {
	lines := []doctor.Line{{Check: "settings", State: doctor.OK, Text: "they can be used"}, certificateLine(options, time.Now()), keyLine(options), databaseLine(ctx, options)}

	service, err := credentialsOf(options.Cloud)
	if err != nil {
		return append(lines, doctor.Line{Check: "service user", State: doctor.Failed, Text: err.Error(), Remedy: "`burano setup` makes the user and writes such an entry"})
	}
	config := doctor.Config{Service: service, TrustRoles: options.Roles, Orchestration: driver.Orchestration(options.Stacks), ExternalNetwork: options.External,
		Image: nodeImageLines, Now: time.Now}
	if as != "" {
		user, err := credentialsOf(as)
		if err != nil {
			return append(lines, doctor.Line{Check: "user", State: doctor.Failed, Text: err.Error(), Remedy: "name an entry of clouds.yaml by --as"})
		}
		config.User = &user
	}
	if boot.Image != "" {
		config.Boot = boot
		if config.Boot.Networks, err = netip.ParsePrefix(options.Networks); err != nil {
			return append(lines, doctor.Line{Check: "settings", State: doctor.Failed, Text: err.Error(), Remedy: "name a range in the setting networks"})
		}
		direct, remove, err := scratchStacks(ctx)
		if err != nil {
			return append(lines, doctor.Line{Check: "a server", State: doctor.Failed, Text: err.Error(), Remedy: "see whether there is room in " + os.TempDir()})
		}
		defer remove()
		config.Direct = direct
	}
	return append(lines, doctor.Cloud(ctx, config)...)
}

// scratchStacks makes stacks without Heat and keeps what is known of them in a database that the second function deletes: they are gone by then.
func scratchStacks(ctx context.Context) (func(driver.Clients) driver.Stacks, func(), error) {
	folder, err := os.MkdirTemp("", "burano-doctor-")
	if err != nil {
		return nil, nil, err
	}
	db, err := database.Open(filepath.Join(folder, "stacks.db"))
	var rows *store.Store
	if err == nil {
		rows, err = store.New(ctx, db, time.Now)
	}
	remove := func() {
		if db != nil {
			if handle, err := db.DB(); err == nil {
				_ = handle.Close()
			}
		}
		_ = os.RemoveAll(folder)
	}
	if err != nil {
		remove()
		return nil, nil, err
	}
	return direct.New(rows.Stacks()).In, remove, nil
}

func credentialsOf(cloud string) (doctor.Credentials, error) {
	own, err := client.OwnCredentials(cloud)
	return doctor.Credentials{Options: own.Auth, Endpoint: own.Endpoint, TLS: own.TLS}, err
}

// certificateSoon is how long before its end a certificate is complained of.
const certificateSoon = 14 * 24 * time.Hour

func certificateLine(options *server.Options, now time.Time) doctor.Line {
	line := doctor.Line{Check: "TLS", State: doctor.OK}
	if options.TLSCert == "" {
		line.Text = "plain HTTP at " + options.Listen
		if host, _, err := net.SplitHostPort(options.Listen); err == nil && host != "localhost" && !net.ParseIP(host).IsLoopback() {
			line.State, line.Remedy = doctor.Warning, "set tls-cert and tls-key, or listen on loopback behind a proxy that terminates TLS"
		}
		return line
	}
	pair, err := tls.LoadX509KeyPair(options.TLSCert, options.TLSKey)
	var leaf *x509.Certificate
	if err == nil {
		leaf, err = x509.ParseCertificate(pair.Certificate[0])
	}
	const renew = "put a renewed certificate into its place; the server takes it without a restart"
	switch {
	case err != nil:
		line.State, line.Text, line.Remedy = doctor.Failed, err.Error(), "name a PEM certificate with its chain (tls-cert) and its key (tls-key), which this user may read"
	case now.After(leaf.NotAfter):
		line.State, line.Text, line.Remedy = doctor.Failed, fmt.Sprintf("the certificate has ended on %s", leaf.NotAfter.Format(time.DateOnly)), renew
	case now.Add(certificateSoon).After(leaf.NotAfter):
		line.State, line.Text, line.Remedy = doctor.Warning, fmt.Sprintf("the certificate ends on %s", leaf.NotAfter.Format(time.DateOnly)), renew
	default:
		line.Text = fmt.Sprintf("certificate of %s, until %s", strings.Join(append(leaf.DNSNames, addressesOf(leaf)...), ", "), leaf.NotAfter.Format(time.DateOnly))
	}
	return line
}

func addressesOf(leaf *x509.Certificate) (list []string) {
	for _, address := range leaf.IPAddresses {
		list = append(list, address.String())
	}
	return list
}

// keyLine looks at the keys of the secrets. Without them a database's secrets are lost.
func keyLine(options *server.Options) doctor.Line {
	line := doctor.Line{Check: "key file", State: doctor.OK}
	path := options.KeyFile()
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		line.Text = path + " is made at the first start"
		if options.Database != "" {
			line.Text += "; of several servers copy the first one's"
		}
		return line
	case err != nil:
		line.State, line.Text, line.Remedy = doctor.Failed, err.Error(), "run this as the server's user, who must be able to read it"
		return line
	}
	if _, err := secret.OpenExisting(path); err != nil {
		line.State, line.Text, line.Remedy = doctor.Failed, err.Error(), "put back the key file from the backup: without it no secret of the database can be read"
		return line
	}
	line.Text = path + "; keep a copy of it apart from the database's backups"
	if info.Mode().Perm()&0o077 != 0 {
		line.State, line.Text, line.Remedy = doctor.Warning, fmt.Sprintf("others may read %s (%s)", path, info.Mode().Perm()), "chmod 600 "+path
	}
	return line
}

func databaseLine(ctx context.Context, options *server.Options) (line doctor.Line) {
	line = doctor.Line{Check: "database", State: doctor.OK}
	where := "PostgreSQL"
	if options.Database == "" {
		where = options.SQLite()
		if _, err := os.Stat(where); errors.Is(err, fs.ErrNotExist) {
			line.Text = where + " is made at the first start"
			return line
		}
	}
	fail := func(err error) doctor.Line {
		return doctor.Line{Check: "database", State: doctor.Failed, Text: err.Error(), Remedy: "check the setting database (address, user, password) and that the database answers; of SQLite, who may write " + options.State}
	}
	db, err := options.OpenDatabase(ctx)
	if err != nil {
		return fail(err)
	}
	defer func() {
		if err := database.Close(db); err != nil && line.State == doctor.OK {
			line = fail(err)
		}
	}()
	line.Text = where + ", as this program needs it"
	for _, schema := range server.Schemas() {
		have, want, err := schema.Version(ctx, db)
		switch {
		case err != nil:
			return fail(err)
		case database.Compatible(have, want) != nil:
			line.State, line.Text, line.Remedy = doctor.Failed, fmt.Sprintf("a newer Burano has brought %s to version %d, and this one knows %d", where, have, want), "install that version of Burano"
			return line
		case have < want:
			line.Text = where + ", which the server brings up to date when it starts"
		}
	}
	return line
}

// nodeImageLines are the lines of `burano image check` about an image.
func nodeImageLines(ctx context.Context, provider *gophercloud.ProviderClient, endpoint gophercloud.EndpointOpts, id string) ([]doctor.Line, error) {
	client, err := openstack.NewImageV2(provider, endpoint)
	if err != nil {
		return nil, fmt.Errorf("find Glance in the service catalog: %w", err)
	}
	image, err := glance.Get(ctx, client, id).Extract()
	if err != nil {
		return nil, fmt.Errorf("look at image %s: %w", id, err)
	}
	kind, err := formInGlance(ctx, client, *image)
	if err != nil {
		return nil, err
	}
	var lines []doctor.Line
	for _, lack := range imageLacks(*image, kind) {
		state := doctor.Warning
		if lack.grave {
			state = doctor.Failed
		}
		lines = append(lines, doctor.Line{State: state, Text: lack.what, Remedy: lack.remedy})
	}
	return lines, nil
}

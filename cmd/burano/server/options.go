package server

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/catalog/charts"
	catalogstore "github.com/burano/burano/catalog/store"
	"github.com/burano/burano/internal/quota"
	"github.com/burano/burano/internal/requestid"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/network"
	"github.com/burano/burano/orchestrator"
	"github.com/burano/burano/orchestrator/engine"
	"github.com/burano/burano/orchestrator/keeper"
	"github.com/burano/burano/orchestrator/lease"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/store"
	"github.com/burano/burano/web/api"
	"github.com/burano/burano/web/auth"
)

// coreLibrary is the package that has the classes of environments.
const coreLibrary = "io.murano"

// MinLease is the shortest lease that a server keeps in everyday life.
const MinLease = 3 * time.Second

// scratchBytes is room for two snapshots of a store of etcd that is full, at the same time.
const scratchBytes = 16 << 30

// snapshotBytes is how many bytes the snapshots of a project's clusters take at most, unless a setting says otherwise: some dozens of
// those of clusters of everyday size.
const snapshotBytes = 1 << 30

const (
	stateBytes   = 64 << 20         // of the compressed models of an environment's states
	stopPatience = 10 * time.Second // for the requests of a server that stops
	// auditRows is how many audit events of one project, and of all unknown callers, stay. An event has at most some kilobytes.
	auditRows = 200_000
)

// Options are the settings of the server.
type Options struct {
	print    bool
	Cloud    string
	Registry *prometheus.Registry // of the metrics; nil: one of its own

	Listen        string
	proxies       []string
	websso        []string
	keystone      string // Keystone for browsers
	signInIdle    time.Duration
	signInTime    time.Duration
	TLSCert       string
	TLSKey        string
	metricsListen string
	profiles      bool
	stopDelay     time.Duration
	stopPatience  time.Duration
	limits        api.Limits
	quotas        map[string]*int64 // by resource

	State    string
	Database string
	policy   string
	Roles    []string

	projectRoles []string

	configs  string
	embedded []string
	page     int // packages
	charts   []string
	logins   string // file with those of charts
	Stacks   string // who makes them

	auditLog  string
	auditKeep time.Duration

	keep              store.Retention
	undelete          time.Duration
	snapshotContainer string
	scratchSpace      int64

	logFormat string
	logLevel  slog.Level

	workers   int
	taskTime  time.Duration
	steps     int64
	memory    int64
	Lease     time.Duration
	maxDeaths int

	keeperInterval     time.Duration
	keeperRepairs      int
	keeperHibernations int
	tests              testSwitches
	Networks           string
	External           string
	dns                []string
	sshFrom            []string
	machineNetworks    []string

	outagePatience time.Duration
	serverPatience time.Duration
	sshPatience    time.Duration
	stepPatience   time.Duration
	drainPatience  time.Duration
}

// Flags are all settings of the server; their help texts are their documentation.
func (o *Options) Flags() *pflag.FlagSet {
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	flags.SortFlags = false
	o.limits, o.keep.StateBytes, o.stopPatience = api.DefaultLimits, stateBytes, stopPatience
	for _, name := range removed {
		flags.String(name, "", "a setting of a former release")
		_ = flags.MarkHidden(name)
	}
	flags.String(ConfigFlag, "", "YAML file of settings (BURANO_CONFIG)")
	flags.BoolVar(&o.print, printFlag, false, "print all settings and their sources, passwords masked, and exit")

	flags.StringVar(&o.Listen, "listen", "127.0.0.1:8082", "address and port to listen on")
	flags.StringVar(&o.TLSCert, "tls-cert", "", "PEM file of the server certificate and its chain; without it the server speaks plain HTTP. A renewed file is loaded without a restart")
	flags.StringVar(&o.TLSKey, "tls-key", "", "PEM file of the certificate's key")
	flags.StringSliceVar(&o.proxies, "trusted-proxies", nil, "addresses or ranges of proxies whose headers are trusted: X-Forwarded-For for the caller, and X-Forwarded-Proto: https for TLS, which makes cookies Secure")
	flags.StringSliceVar(&o.websso, "websso", []string{}, "sign-ins by Keystone's federation that the dashboard offers: NAME=PROTOCOL, such as Company=openid, or NAME=IDENTITY_PROVIDER/PROTOCOL")
	flags.StringVar(&o.keystone, "websso-keystone", "", "address of Keystone for browsers, which ends in /v3 (default: the address that this server uses)")
	flags.DurationVar(&o.signInIdle, "sign-in-idle", time.Hour, "how long a browser stays signed in without a request")
	flags.DurationVar(&o.signInTime, "sign-in-time", 12*time.Hour, "how long a browser stays signed in at most; never longer than its Keystone token lasts")
	flags.StringVar(&o.metricsListen, "metrics-listen", "", "address and port for /metrics, in plain HTTP; without it they are at --listen, without a token")
	flags.BoolVar(&o.profiles, "profiles", false, "administrators may take profiles of the server's processors and memory (burano debug profile)")
	flags.Int64Var(&o.limits.Body, "max-body", api.DefaultLimits.Body, "bytes of a request's body; a larger one is answered with 413; a package has at most 5 MiB, a JSON body 8 MiB")
	flags.DurationVar(&o.limits.Time, "request-time", api.DefaultLimits.Time, "how long a request may take: a slower body is answered with 408, longer work with 503; streams of events have no limit")
	flags.IntVar(&o.limits.Requests, "max-requests", api.DefaultLimits.Requests, "simultaneous requests of known callers; one more is answered with 503. Twice as many may send their bodies or read their answers meanwhile")
	flags.IntVar(&o.limits.Streams, "max-streams", api.DefaultLimits.Streams, "streams of events at the same time; one more is answered with 503")
	o.quotas = map[string]*int64{}
	for _, q := range []struct {
		resource, what string
		limit          int64
	}{{store.QuotaEnvironments, "environments", 1000}, {store.QuotaSessions, "open sessions", 2000}, {store.QuotaTemplates, "environment templates", 1000},
		{catalogstore.QuotaPackages, "uploaded packages", 500}, {quota.Bytes, "bytes of uploaded packages", 1 << 30},
		{store.QuotaSnapshotBytes, "bytes of snapshots of clusters, compressed and sealed,", snapshotBytes}} {
		o.quotas[q.resource] = flags.Int64("quota-"+strings.ReplaceAll(q.resource, "_", "-"), q.limit,
			q.what+" that a project may have, unless an administrator sets another quota (burano quota set); -1: no limit")
	}
	flags.DurationVar(&o.stopDelay, "stop-delay", 0, "how long a stopped server still takes requests while /readyz answers 503, so that a balancer stops sending them; its tasks are given back at once. 0s: it takes none")

	flags.StringVar(&o.Cloud, CloudFlag, "", "entry of clouds.yaml with the service user's credentials; without it the OS_* variables are read")
	flags.StringVar(&o.State, "state", "/var/lib/burano", "folder of the database and of the keys of its secrets")
	flags.StringVar(&o.Database, "database", "", "PostgreSQL database, as a URL or a list of keywords, for several servers; without it the database is SQLite below --state")
	flags.StringVar(&o.policy, "policy", "", "YAML file of rules in oslo.policy's syntax, which replace the defaults of the same names")
	flags.StringSliceVar(&o.Roles, "trust-roles", orchestrator.DefaultTrustRoles, "roles of a task in the cloud, as far as its submitter has them in the project, with the roles that they imply; add heat_stack_owner where Heat demands it")
	flags.StringSliceVar(&o.projectRoles, "project-role", orchestrator.DefaultProjectRoles, "roles that a project gives the service user when it lets Burano work in it with a role of its own (burano project enable); add heat_stack_owner where Heat demands it")
	flags.StringVar(&o.Stacks, "orchestration", string(openstack.Auto), "maker of stacks: auto (Heat, and Burano itself by Nova, Neutron and Cinder where the service catalog has no Heat), heat or direct (Burano itself). An existing stack stays with its maker")
	flags.StringVar(&o.configs, "class-configs", "", "folder of files CLASS.yaml or CLASS-VERSION.yaml (or .json) with values of properties of usage Config and defaults of others, like Murano's class_configs; read at each use")
	flags.StringSliceVar(&o.embedded, "embedded-packages", nil, "names of Burano's own packages to offer, io.murano among them; default: all of them")
	flags.IntVar(&o.page, "package-page", catalog.DefaultPage, fmt.Sprintf("packages of one page of GET /v1/catalog/packages where the request has no limit (Murano's limit_param_default), at most %d", catalog.MaxPage))
	flags.StringSliceVar(&o.charts, "chart-sources", []string{}, "allowed registries and repositories of Helm charts that packages only refer to: oci://registry.example.org/charts or https://charts.example.org, each with all paths below; the server fetches charts when a package is imported; default: none")
	flags.StringVar(&o.logins, "chart-credentials", "", "file with logins for chart-sources that require a password, in the form of Docker's config.json ({\"auths\": {\"registry.example.org\": {\"username\": …, \"password\": …}}}), which only the server's user can read; read at each use. All users who may import packages get the charts there")

	flags.StringVar(&o.auditLog, "audit-log", "", "file to which each audit event is appended as a line of JSON in CADF's words: calls that change something, sign-ins, refusals, downloads of kubeconfigs; - is standard error; without it no file is written")
	flags.DurationVar(&o.auditKeep, "audit-time", 30*24*time.Hour, "how long audit events stay in the database, for burano audit list; 0s: none are stored")

	newest := fmt.Sprintf("; the %d newest deployments of each environment stay with their reports", store.KeptDeployments)
	flags.DurationVar(&o.keep.Deployments, "keep-deployments", 0, "how long ended deployments stay, such as 2160h; 0s: for ever"+newest)
	flags.DurationVar(&o.keep.Reports, "keep-reports", 0, "how long the reports of ended deployments stay; 0s: as long as the deployments"+newest)
	flags.DurationVar(&o.keep.Sessions, "keep-sessions", 0, "how long deployed sessions stay; 0s: for ever; drafts and the newest session of each environment stay")
	flags.DurationVar(&o.keep.Statistics, "keep-statistics", 0, "how long statistics stay of deleted applications and servers, and of API servers that no longer report; 0s: for ever")
	flags.DurationVar(&o.keep.Snapshots, "keep-snapshots", 7*24*time.Hour, "how long snapshots of clusters of deleted environments stay; 0s: for ever")
	flags.DurationVar(&o.undelete, "undelete-period", 7*24*time.Hour, "how long deleted environments stay, so that they can be restored; 0s: they are removed at once")
	flags.Int64Var(&o.keep.States, "keep-states", 100, "states of each environment that stay for burano environment history; the oldest go first, the newest stays; 0: any number")

	flags.StringVar(&o.snapshotContainer, "snapshot-container", "", "name of a container in the object store (Swift) of each environment's project, in which snapshots of clusters are stored, sealed; created when it is missing. Without it, and where there is no object store, they are in the database")
	flags.Int64Var(&o.scratchSpace, "scratch-space", scratchBytes, "bytes of temporary files in the state folder: snapshots of clusters that are opened (three times their size, and 192 MiB) and container images between Glance and nodes. A project has half of it at most, and 512 MiB of the disk stay free. A task that needs more waits up to 5 minutes for it")

	flags.StringVar(&o.logFormat, "log-format", "text", "format of the log: text or json")
	flags.TextVar(&o.logLevel, "log-level", slog.LevelInfo, "lowest level that is logged: DEBUG, INFO, WARN or ERROR")

	flags.StringVar(&o.Networks, "networks", "10.20.0.0/16", "range from which each environment gets a /24; it must not overlap the ranges of pods and Services, by default "+network.DefaultAddressing().Pods.String()+" and "+network.DefaultAddressing().Services.String()+" (podRange and serviceRange of a cluster)")
	flags.StringVar(&o.External, "external-network", "", "name or id of the external network of routers and floating IPs, for environments that name none; default: the cloud's first. An environment keeps its external network")
	flags.StringSliceVar(&o.dns, "dns-servers", []string{}, "addresses of the DNS servers of new networks that name none; default: the cloud's")
	flags.StringSliceVar(&o.sshFrom, "ssh-from", []string{}, "ranges from which clusters' security groups and gateways admit SSH: the addresses of Burano's servers, as the cloud sees them; default: all")
	flags.StringSliceVar(&o.machineNetworks, "machine-networks", []string{}, "ranges of machines beside the cloud that may join clusters (docs/nodes.md, \"Machines beside the cloud\"): the server connects to addresses there that users give; default: none")
	flags.DurationVar(&o.Lease, "lease", lease.Default, "how long a server may be silent before another one takes its deployments over; the same on all servers, at least 3s")
	flags.IntVar(&o.workers, "workers", engine.DefaultWorkers, "deployments and actions that a server runs at the same time; a project gets a further one only while more places are free than it uses, so at most half of them")
	flags.DurationVar(&o.taskTime, "task-time-limit", engine.DefaultTaskTime, "how long a deployment or action may run; then it ends as failed, and can be tried again")
	flags.Int64Var(&o.steps, "muranopl-steps", engine.DefaultCode.Steps, "steps that the code of one deployment, action or static action may take: instructions and evaluated nodes of expressions")
	flags.Int64Var(&o.memory, "muranopl-memory", engine.DefaultCode.Memory, "bytes of values that the code of one deployment, action or static action may hold at a time, approximately")
	flags.IntVar(&o.maxDeaths, "max-deaths", engine.DefaultMaxDeaths, "servers of Burano that may die over a deployment or action while they run nothing else and complete no step of it, before it fails")
	flags.DurationVar(&o.keeperInterval, "keeper-interval", time.Minute, "interval of the checks of each deployed environment: nodes and members of clusters, and servers where there is a standing delegation; faults are checked four times as often; 0s: never")
	flags.IntVar(&o.keeperRepairs, "keeper-repairs", keeper.DefaultRepairs, "simultaneous repairs on all servers, of clusters with autoRepair; 0: none")
	flags.IntVar(&o.keeperHibernations, "keeper-hibernations", keeper.DefaultHibernations, "environments that all servers hibernate and wake at the same time by schedules; others wait for their turn; 0: schedules are not carried out")
	flags.DurationVar(&o.outagePatience, "outage-patience", openstack.DefaultOutagePatience, "how long a service of the cloud may be unavailable (refused connections, 429, 5xx) while a deployment or action needs it; the patience of a step pauses meanwhile")
	flags.DurationVar(&o.serverPatience, "server-patience", 15*time.Minute, "how long the servers of a change may take until all of them are ACTIVE")
	flags.DurationVar(&o.sshPatience, "ssh-patience", 3*time.Minute, "how long a server that is ACTIVE may take until it answers on SSH")
	flags.DurationVar(&o.stepPatience, "step-patience", nodes.DefaultStepPatience, "how long one step of a node may take; the longest is the start of an API server on a slow disk")
	flags.DurationVar(&o.drainPatience, "drain-patience", nodes.DefaultDrainPatience, "how long the pods of a removed node may take to go, their grace periods and disruption budgets included")
	o.tests.flags(flags)
	return flags
}

// sole tells whether no other server uses the database: the lock of the state folder keeps others away from SQLite.
func (o *Options) sole() bool { return o.Database == "" }

// check refuses values that cannot be meant, before anything is begun.
func (o *Options) check(s *settings) error {
	for name, address := range map[string]string{"listen": o.Listen, "metrics-listen": o.metricsListen} {
		if _, _, err := net.SplitHostPort(address); err != nil && (address != "" || name == "listen") {
			return s.wrong(name, "%q is no address with a port, such as 127.0.0.1:8082: %w", address, err)
		}
	}
	for name, value := range map[string]time.Duration{"request-time": o.limits.Time, "sign-in-idle": o.signInIdle, "sign-in-time": o.signInTime,
		"outage-patience": o.outagePatience, "server-patience": o.serverPatience, "ssh-patience": o.sshPatience, "step-patience": o.stepPatience, "drain-patience": o.drainPatience,
		"task-time-limit": o.taskTime} {
		if value <= 0 {
			return s.wrong(name, "%s is no time to wait; it must be more than 0s", value)
		}
	}
	for name, value := range map[string]int64{"max-body": o.limits.Body, "max-requests": int64(o.limits.Requests), "max-streams": int64(o.limits.Streams),
		"workers": int64(o.workers), "muranopl-steps": o.steps, "muranopl-memory": o.memory, "max-deaths": int64(o.maxDeaths), "scratch-space": o.scratchSpace} {
		if value <= 0 {
			return s.wrong(name, "%d must be more than 0", value)
		}
	}
	for name, value := range map[string]time.Duration{"stop-delay": o.stopDelay, "audit-time": o.auditKeep, "keep-deployments": o.keep.Deployments, "keep-reports": o.keep.Reports,
		"keep-sessions": o.keep.Sessions, "keeper-interval": o.keeperInterval, "keep-statistics": o.keep.Statistics, "keep-snapshots": o.keep.Snapshots, "undelete-period": o.undelete} {
		if value < 0 {
			return s.wrong(name, "%s must not be less than 0s", value)
		}
	}
	for name, value := range map[string]int64{"keep-states": o.keep.States, "keeper-repairs": int64(o.keeperRepairs), "keeper-hibernations": int64(o.keeperHibernations)} {
		if value < 0 {
			return s.wrong(name, "%d must not be less than 0", value)
		}
	}
	if !regexp.MustCompile(`^[A-Za-z0-9._-]{0,256}$`).MatchString(o.snapshotContainer) {
		return s.wrong("snapshot-container", "%q is no name that every object store takes: letters, digits, dots, dashes and underscores", o.snapshotContainer)
	}
	for resource, limit := range o.quotas {
		if *limit < quota.Unlimited {
			return s.wrong("quota-"+strings.ReplaceAll(resource, "_", "-"), "%d must be 0 or more, or -1 for no limit", *limit)
		}
	}
	if _, err := auth.ParseProviders(o.websso); err != nil {
		return s.wrong("websso", "%w", err)
	}
	if _, err := auth.ParseProxies(o.proxies); err != nil {
		return s.wrong("trusted-proxies", "%w", err)
	}
	if _, err := netip.ParsePrefix(o.Networks); err != nil {
		return s.wrong("networks", "it is no range such as 10.20.0.0/16: %w", err)
	}
	if _, err := ranges(o.sshFrom); err != nil {
		return s.wrong("ssh-from", "%w", err)
	}
	logins, err := charts.NewLogins(o.logins)
	if err != nil {
		return s.wrong("chart-credentials", "%w", err)
	}
	if _, err := charts.NewSources(o.charts, logins, nil); err != nil {
		return s.wrong("chart-sources", "%w", err)
	}
	if _, err := ranges(o.machineNetworks); err != nil {
		return s.wrong("machine-networks", "%w", err)
	}
	for _, server := range o.dns {
		if _, err := netip.ParseAddr(server); err != nil {
			return s.wrong("dns-servers", "%q is no address such as 192.0.2.53", server)
		}
	}
	switch {
	case (o.TLSCert == "") != (o.TLSKey == ""):
		return s.wrong("tls-cert", "tls-cert and tls-key are given together, or neither")
	case !slices.Contains(openstack.Orchestrations(), openstack.Orchestration(o.Stacks)):
		return s.wrong("orchestration", "%q is none of %v", o.Stacks, openstack.Orchestrations())
	case o.page < 1 || o.page > catalog.MaxPage:
		return s.wrong("package-page", "%d must be from 1 to %d", o.page, catalog.MaxPage)
	case len(o.Roles) == 0:
		return s.wrong("trust-roles", "without a role nothing can be deployed")
	case len(o.projectRoles) == 0 || slices.Contains(o.projectRoles, openstack.AdminRole):
		return s.wrong("project-role", "name roles of members, such as member: with %q whoever may deploy would be an administrator", openstack.AdminRole)
	case o.State == "":
		return s.wrong("state", "a server needs a folder for what it keeps")
	case !slices.Contains([]string{"text", "json"}, o.logFormat):
		return s.wrong("log-format", "%q is neither text nor json", o.logFormat)
	case o.Lease < MinLease:
		return s.wrong("lease", "%s must be at least %s, or every slow moment of the database would end deployments", o.Lease, MinLease)
	case len(o.embedded) > 0 && !slices.Contains(o.embedded, coreLibrary):
		return s.wrong("embedded-packages", "%s must be among them, since every environment needs it", coreLibrary)
	}
	return nil
}

// Resolve reads the settings from all their sources and checks them.
func (o *Options) Resolve(flags *pflag.FlagSet) (*settings, error) {
	s, err := readSettings(flags, os.LookupEnv)
	if err != nil {
		return nil, err
	}
	return s, o.check(s)
}

// logger writes to w as the settings say; lines of a request have its id.
func (o *Options) logger(w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: o.logLevel}
	var handler slog.Handler = slog.NewTextHandler(w, options)
	if o.logFormat == "json" {
		handler = slog.NewJSONHandler(w, options)
	}
	return slog.New(requestid.LogHandler(handler))
}

// quotaLimits are the quotas of the settings.
func (o *Options) quotaLimits() quota.Limits {
	limits := quota.Limits{}
	for resource, limit := range o.quotas {
		limits[resource] = *limit
	}
	return limits
}

// ranges reads ranges of IPv4.
func ranges(texts []string) (list []netip.Prefix, err error) {
	for _, text := range texts {
		network, err := netip.ParsePrefix(text)
		if err != nil || !network.Addr().Is4() {
			return nil, fmt.Errorf("%q is no range of IPv4 such as 192.0.2.0/24", text)
		}
		list = append(list, network.Masked())
	}
	return list, nil
}

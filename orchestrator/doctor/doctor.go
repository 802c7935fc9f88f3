// Package doctor checks a cloud before anything is made in it: whether the service user can sign in, whether the cloud has all that environments and
// clusters need, and the remedy where it does not. It makes only a trust and an application credential, and a server if asked to. It deletes all three.
package doctor

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/config"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/orchestrator/openstack"
)

// State is the result of a check.
type State string

// The results. A check that Failed must be mended.
const (
	OK      State = "ok"
	Warning State = "warning"
	Failed  State = "failed"
)

// Line is the result of one check, with the remedy where there is a problem.
type Line struct {
	Check  string `json:"check" yaml:"check"`
	State  State  `json:"state" yaml:"state"`
	Text   string `json:"text" yaml:"text"`
	Remedy string `json:"remedy,omitempty" yaml:"remedy,omitempty"`
}

// Credentials are a user's credentials, with the data to find the cloud's services.
type Credentials struct {
	Options  gophercloud.AuthOptions
	Endpoint gophercloud.EndpointOpts
	TLS      *tls.Config
}

// Config chooses the checks.
type Config struct {
	Service Credentials  // Burano's own
	User    *Credentials // a user who deploys; nil: the service user itself, and no quota is checked

	TrustRoles      []string
	Orchestration   openstack.Orchestration
	ExternalNetwork string // as the setting names it; may be ""

	// Image returns lines about the parts that an image of Glance lacks to be a node.
	Image func(ctx context.Context, provider *gophercloud.ProviderClient, endpoint gophercloud.EndpointOpts, id string) ([]Line, error)
	Now   func() time.Time

	// Boot is a server that is made and deleted again; without an image none is.
	Boot Boot
	// Direct makes stacks without Heat. Nil where no server is made.
	Direct func(openstack.Clients) openstack.Stacks
}

// patience is how long one check may take: the user wants to know which service does not answer.
const patience = 20 * time.Second

// examination is one look at a cloud.
type examination struct {
	Config
	lines    []Line
	service  *openstack.Service
	provider *gophercloud.ProviderClient // of the user, else of the service user
	endpoint gophercloud.EndpointOpts
	caller   identity.Caller // whose provider it is
}

// Cloud checks the cloud. Checks that are impossible after a failure are left out.
func Cloud(ctx context.Context, config Config) []Line {
	e := &examination{Config: config}
	for _, check := range []func(context.Context) (goOn bool){e.clock, e.signIn, e.roles, e.user, e.trust, e.delegation, e.services, e.catalog, e.external, e.flavors, e.images, e.quota} {
		limited, cancel := context.WithTimeout(ctx, patience)
		goOn := check(limited)
		cancel()
		if !goOn || ctx.Err() != nil {
			return e.lines
		}
	}
	if e.Boot.Image != "" {
		e.server(ctx)
	}
	return e.lines
}

func (e *examination) add(check string, state State, remedy, format string, args ...any) {
	e.lines = append(e.lines, Line{Check: check, State: state, Text: fmt.Sprintf(format, args...), Remedy: remedy})
}

// How far the clocks of cloud and server may be apart: certificates of new clusters begin at once, and trusts and tokens end at a time.
const (
	apartNoted = 5 * time.Second
	apartGrave = time.Minute
)

// clock asks Keystone without credentials, and compares the time of its answer with ours.
func (e *examination) clock(ctx context.Context) bool {
	address := e.Service.Options.IdentityEndpoint
	if parsed, err := url.Parse(address); err == nil && parsed.Scheme == "http" && !isLoopback(parsed.Hostname()) {
		e.add("TLS of Keystone", Warning, "have Keystone answer by TLS and name that address (auth_url, OS_AUTH_URL)", "passwords go to %s in the clear", address)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = e.Service.TLS
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		e.add("Keystone", Failed, "name Keystone's address: auth_url in clouds.yaml, or OS_AUTH_URL", "%q is no address: %s", address, err)
		return false
	}
	before := e.Now()
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		e.add("Keystone", Failed, "check the address (auth_url, OS_AUTH_URL), the way there (proxy, firewall) and, with TLS, the authority of its certificate (cacert, OS_CACERT)",
			"it does not answer: %s", err)
		return false
	}
	_ = response.Body.Close()
	after := e.Now()
	date, err := http.ParseTime(response.Header.Get("Date"))
	if err != nil {
		e.add("clock", Warning, "compare the clocks by hand", "Keystone's answer has no date")
		return true
	}
	// The header counts whole seconds: half of one is added on average.
	apart := before.Add(after.Sub(before) / 2).Sub(date.Add(time.Second / 2))
	const remedy = "have both synchronise their clocks (chrony, systemd-timesyncd): timedatectl says whether this machine does"
	switch which := direction(apart); {
	case apart.Abs() >= apartGrave:
		e.add("clock", Failed, remedy, "this machine's is %s %s Keystone's", apart.Abs().Round(time.Second), which)
	case apart.Abs() >= apartNoted:
		e.add("clock", Warning, remedy, "this machine's is %s %s Keystone's", apart.Abs().Round(time.Second), which)
	default:
		e.add("clock", OK, "", "the same as Keystone's, within %s", apartNoted)
	}
	return true
}

func direction(apart time.Duration) string {
	if apart < 0 {
		return "behind"
	}
	return "ahead of"
}

func isLoopback(host string) bool {
	return host == "localhost" || host == "::1" || strings.HasPrefix(host, "127.")
}

func (e *examination) signIn(ctx context.Context) bool {
	service, err := openstack.NewService(ctx, e.Service.Options, e.Service.Endpoint, e.Service.TLS)
	const remedy = "check user, password and project in clouds.yaml or the OS_* variables; `burano setup`, run as an administrator, makes the user"
	switch {
	case err == nil:
	case gophercloud.ResponseCodeIs(err, http.StatusUnauthorized):
		e.add("service user", Failed, remedy, "Keystone at %s refuses its credentials", e.Service.Options.IdentityEndpoint)
		return false
	case fault.KindOf(err) == fault.Invalid:
		e.add("service user", Failed, "give it a password", "%s", err)
		return false
	default:
		e.add("service user", Failed, remedy, "%s", err)
		return false
	}
	direct := e.Direct
	if direct == nil { // no stack is touched: a project is looked at only to see that the trust's token is taken
		direct = func(openstack.Clients) openstack.Stacks { return nil }
	}
	service.Orchestrate(e.Orchestration, direct)
	e.service = service
	e.caller, err = service.Validate(ctx, service.Token())
	if err != nil {
		e.add("service user", Failed, "give it the role service or admin in its project", "Keystone does not let it look at tokens: %s", err)
		return false
	}
	e.add("service user", OK, "", "%s is signed in to project %s", e.caller.UserName, e.caller.ProjectName)
	return true
}

// The purposes of the service user's roles.
var wantedRoles = []struct {
	name, purpose string
	without       State
}{
	{openstack.AdminRole, "it validates tokens of all projects and asks which roles imply which", Failed},
	{"service", "services of OpenStack that demand it of a service do not take its calls", Warning},
}

func (e *examination) roles(context.Context) bool {
	goOn := true
	for _, role := range wantedRoles {
		if !slices.Contains(e.caller.Roles, role.name) {
			e.add("roles", role.without, fmt.Sprintf("openstack role add --user %s --project %s %s (or `burano setup`)", e.caller.UserName, e.caller.ProjectName, role.name),
				"the service user has no role %s: %s", role.name, role.purpose)
			goOn = goOn && role.without != Failed
		}
	}
	if goOn {
		e.add("roles", OK, "", "the service user has %s", strings.Join(e.caller.Roles, ", "))
	}
	return goOn
}

// user signs in the user who deploys; all later checks have that user's rights.
func (e *examination) user(ctx context.Context) bool {
	person, check := e.User, "user"
	if person == nil {
		person, check = &e.Service, "service user"
	}
	options := person.Options
	options.AllowReauth = false
	provider, err := config.NewProviderClient(ctx, options, config.WithTLSConfig(person.TLS))
	if err != nil {
		e.add(check, Failed, "check the entry of clouds.yaml that --as names", "sign in to Keystone at %s: %s", options.IdentityEndpoint, err)
		return false
	}
	e.provider, e.endpoint = provider, person.Endpoint
	if e.caller, err = e.service.Validate(ctx, provider.Token()); err != nil {
		e.add(check, Failed, "give the service user the role service or admin", "their token cannot be validated: %s", err)
		return false
	}
	if e.User != nil {
		e.add(check, OK, "", "%s is signed in to project %s, with the roles %s", e.caller.UserName, e.caller.ProjectName, strings.Join(e.caller.Roles, ", "))
	}
	return true
}

// trustTime is after how long the trust would end that could not be revoked.
const trustTime = 10 * time.Minute

// trusted are the roles of the caller that trusts are made with.
func (e *examination) trusted() (roles []string) {
	for _, role := range e.TrustRoles {
		if slices.Contains(e.caller.Roles, role) {
			roles = append(roles, role)
		}
	}
	return roles
}

// trust makes one, as a deployment does, works with it and revokes it.
func (e *examination) trust(ctx context.Context) bool {
	roles := e.trusted()
	whose := "of " + e.caller.UserName
	switch {
	case len(roles) > 0:
	case e.User != nil:
		e.add("trust", Failed, fmt.Sprintf("openstack role add --user %s --project %s %s, or name a role of theirs in the setting trust-roles", e.caller.UserName, e.caller.ProjectName, e.TrustRoles[0]),
			"%s has none of the roles of trust-roles (%s), so can deploy nothing", e.caller.UserName, strings.Join(e.TrustRoles, ", "))
		return true
	default:
		roles = e.caller.Roles
	}
	if e.User == nil {
		whose = "of the service user for itself (--as CLOUD: of a user)"
	}
	id, granted, err := e.service.CreateTrust(ctx, e.caller, roles, time.Now().Add(trustTime))
	const remedy = "see whether Keystone's policy allows identity:create_trust and its configuration has [trust] allow_redelegation"
	if fault.KindOf(err) == fault.Forbidden {
		e.add("trust", Failed, createTrustRule, "Keystone makes none %s: %s", whose, err)
		return true
	}
	if err != nil {
		e.add("trust", Failed, remedy, "none can be made %s: %s", whose, err)
		return true
	}
	_, used := e.service.Project(ctx, id)
	if isMissing(used) {
		used = nil // a service; the token was given
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience) // also when this look is interrupted
	defer cancel()
	revoked := e.service.DeleteTrust(ending, id)
	switch {
	case used != nil:
		e.add("trust", Failed, remedy, "one %s is made, and Keystone lets nobody work with it: %s", whose, used)
	case revoked != nil:
		e.add("trust", Failed, "openstack trust delete "+id, "one %s cannot be revoked; it ends by itself in %s: %s", whose, trustTime, revoked)
	default:
		e.add("trust", OK, "", "made, used and revoked, %s, with the roles %s", whose, strings.Join(granted, ", "))
	}
	return true
}

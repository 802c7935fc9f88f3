// Package openstack is Burano's client of an OpenStack cloud: it checks tokens, keeps trusts, and holds one Heat stack per environment.
package openstack

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
)

// AdminRole is the role that Murano's policy calls admin ([DEFAULT] admin_role).
const AdminRole = "admin"

// Service acts as Burano's own service user: it validates the tokens of callers and is the trustee of their trusts.
type Service struct {
	SignIns
	Objects
	options gophercloud.AuthOptions
	home    home
	user    Named

	transport     http.RoundTripper // of all requests
	addresses     *addresses
	orchestration orchestration
	implied       implied
}

// NewService signs in as the service user. The options must hold a password: the service signs in again whenever a token ends, and once for each trust.
// Keystone grants that to neither tokens nor application credentials, which are bound to a project. trusted has the accepted authorities of the cloud's
// services; nil selects the machine's. Every call is passed to observe, which may be left out.
func NewService(ctx context.Context, options gophercloud.AuthOptions, endpoint gophercloud.EndpointOpts, trusted *tls.Config, observe ...func(Call)) (*Service, error) {
	if options.Password == "" {
		return nil, fault.New(fault.Invalid, "the service user has no password: give one in clouds.yaml or OS_PASSWORD, because Keystone lets nobody act "+
			"through a trust who has signed in with an application credential or a token")
	}
	options.AllowReauth = true
	known := &addresses{services: map[string]string{}}
	known.add(options.IdentityEndpoint, "identity")
	transport := newTransport(trusted, known, observe)
	provider, err := authenticate(ctx, options, transport)
	if err != nil {
		return nil, fmt.Errorf("sign in to Keystone at %s as the service user: %w", options.IdentityEndpoint, err)
	}
	client, err := openstack.NewIdentityV3(provider, endpoint)
	if err != nil {
		return nil, fmt.Errorf("find Keystone v3 in the service catalog of %s: %w", options.IdentityEndpoint, err)
	}
	own := tokens.Get(ctx, client, provider.Token())
	user, err := own.ExtractUser()
	if err != nil {
		return nil, fmt.Errorf("ask Keystone who the service user is: %w", err)
	}
	s := &Service{options: options, home: home{endpoint.Region, endpoint}, SignIns: SignIns{client}, Objects: Objects{provider: provider, userID: user.ID}, user: Named{user.ID, user.Name, user.Domain.Name},
		transport: transport, addresses: known}
	if project, err := own.ExtractProject(); err == nil && project != nil {
		s.project = project.ID
	}
	if s.home.name == "" {
		catalog, err := own.ExtractServiceCatalog()
		if err != nil {
			return nil, fmt.Errorf("read the service catalog: %w", err)
		}
		s.home.name = regionOf(catalog)
		if len(regionsOf(catalog, endpoint.Availability, true)) > 1 { // so that all services are of the same one
			s.home.endpoint.Region = s.home.name
		}
	}
	return s, nil
}

// regionOf is the region of the first Heat in a catalog, or without one of the first Nova: gophercloud takes it if no region is named.
func regionOf(catalog *tokens.ServiceCatalog) string {
	for _, service := range []string{heat, "compute"} {
		for _, entry := range catalog.Entries {
			for _, one := range entry.Endpoints {
				if entry.Type == service && one.Interface == string(gophercloud.AvailabilityPublic) {
					return regionName(one)
				}
			}
		}
	}
	return ""
}

// ProjectID is the service user's project, "" when its token has none.
func (s *Service) ProjectID() string { return s.project }

// Validate asks Keystone for the owner of a token; the caller of a token without a project has no ProjectID. A token that Keystone does not accept is a
// fault of kind Unauthorized; after any other error the answer is unknown.
func (s *Service) Validate(ctx context.Context, token string) (identity.Caller, error) {
	refused := fault.New(fault.Unauthorized, "Keystone does not know this token, or its time is over: get a new one")
	if token == "" {
		return identity.Caller{}, refused
	}
	result := tokens.Get(ctx, s.identity, token)
	if result.Err != nil {
		// 404 and 400 are about the token that is asked for; 401 and 403 are about the service user's own.
		if gophercloud.ResponseCodeIs(result.Err, http.StatusNotFound) || gophercloud.ResponseCodeIs(result.Err, http.StatusBadRequest) {
			return identity.Caller{}, refused
		}
		return identity.Caller{}, fmt.Errorf("ask Keystone about a token: %w", result.Err)
	}
	var told struct {
		Expires    keystoneTime   `json:"expires_at"`
		User       tokens.User    `json:"user"`
		Project    tokens.Project `json:"project"`
		Roles      []tokens.Role  `json:"roles"`
		Credential *struct {
			ID         string `json:"id"`
			Name       string `json:"name"`
			Restricted bool   `json:"restricted"`
		} `json:"application_credential"`
	}
	if err := result.ExtractIntoStructPtr(&told, "token"); err != nil {
		return identity.Caller{}, fmt.Errorf("read Keystone's answer about a token: %w", err)
	}
	caller := identity.Caller{UserID: told.User.ID, UserName: told.User.Name, UserDomainID: told.User.Domain.ID, UserDomainName: told.User.Domain.Name,
		ProjectID: told.Project.ID, ProjectName: told.Project.Name, ProjectDomainID: told.Project.Domain.ID, Token: token, Expires: time.Time(told.Expires),
		Credential: (*identity.Credential)(told.Credential)}
	for _, role := range told.Roles {
		caller.Roles = append(caller.Roles, role.Name)
	}
	caller.Admin = slices.Contains(caller.Roles, AdminRole)
	return caller, nil
}

// keystoneTime is a time as Keystone writes it: where it is the end of an application credential, without a zone, in UTC.
type keystoneTime time.Time

// UnmarshalText reads it.
func (t *keystoneTime) UnmarshalText(text []byte) error {
	parsed, err := time.Parse(time.RFC3339Nano, string(text))
	if err != nil {
		parsed, err = time.Parse("2006-01-02T15:04:05.999999", string(text))
	}
	*t = keystoneTime(parsed)
	return err
}

// Region is the region of the used services: the configured one, else the one where the service catalog has a Heat, or a Nova; "" for none.
func (s *Service) Region() string { return s.home.name }

// Token is the service user's own token; another one each time that it was renewed.
func (s *Service) Token() string { return s.identity.Token() }

// Answers returns an error unless Keystone answers and accepts the service user's own token, which is renewed when it has ended.
func (s *Service) Answers(ctx context.Context) error {
	if err := tokens.Get(ctx, s.identity, s.Token()).Err; err != nil && !gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
		// 404: the token had ended, and was renewed for this question.
		return fmt.Errorf("ask Keystone about the service user's token: %w", err)
	}
	return nil
}

// mostHeaders is how many bytes the headers of an answer may have: Keystone's have a token in them.
const mostHeaders = 256 << 10

// newTransport sends all calls: it repeats calls that may be made again. Before each attempt it checks that this process may still act, and it reports
// each attempt.
func newTransport(trusted *tls.Config, known *addresses, observe []func(Call)) http.RoundTripper {
	wire := http.DefaultTransport.(*http.Transport).Clone()
	wire.TLSClientConfig = trusted
	wire.ResponseHeaderTimeout = answerPatience
	wire.MaxResponseHeaderBytes = mostHeaders
	observed := observedTransport{next: wire, named: known.of}
	if len(observe) > 0 {
		observed.done = observe[0]
	}
	return retryTransport{next: soundTransport{guardedTransport{observed}}, named: known.of}
}

// authenticate is openstack.AuthenticatedClient over a transport.
func authenticate(ctx context.Context, options gophercloud.AuthOptions, transport http.RoundTripper) (*gophercloud.ProviderClient, error) {
	provider, err := openstack.NewClient(options.IdentityEndpoint)
	if err != nil {
		return nil, err
	}
	provider.HTTPClient.Transport = transport
	return provider, openstack.Authenticate(ctx, provider, options)
}

// as returns an identity client that carries another user's token.
func (s SignIns) as(token string) *gophercloud.ServiceClient {
	provider := &gophercloud.ProviderClient{IdentityBase: s.identity.IdentityBase, IdentityEndpoint: s.identity.IdentityEndpoint, HTTPClient: s.identity.HTTPClient}
	provider.UseTokenLock()
	provider.SetToken(token)
	return &gophercloud.ServiceClient{ProviderClient: provider, Endpoint: s.identity.Endpoint, Type: "identity"}
}

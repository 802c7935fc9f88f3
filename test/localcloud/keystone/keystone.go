// Package keystone is the identity service of the local cloud: users, projects, roles, tokens and trusts, answered in the shapes of Keystone v3
// (https://docs.openstack.org/api-ref/identity/v3/), all of it stored in files.
//
// Passwords and users are for a cloud on loopback: this package sets them, and they are public.
package keystone

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/burano/burano/test/localcloud/answer"
	"github.com/burano/burano/test/localcloud/state"
)

// Region is the first region of a local cloud.
const Region = "local"

// SecondRegion is the other region of a local cloud that has two.
const SecondRegion = "RegionTwo"

// Config has the service's folder and address.
type Config struct {
	StateDir      string           // folder for the tables, made when missing
	Endpoint      string           // base of all services' addresses, such as "http://127.0.0.1:5050"
	Now           func() time.Time // clock, time.Now when nil
	TokenLifetime time.Duration    // one hour when zero
	Services      []CatalogService // the services of the catalog; the five services of the local cloud when nil
	Region        string           // the name of the first region; Region when empty
	SecondRegion  bool             // whether the catalog lists them in SecondRegion, too, below its name
	Logger        *slog.Logger
}

// Service is the identity service. It is safe for concurrent use.
type Service struct {
	endpoint string
	fixed    []CatalogService
	named    []string // the names of the regions that the catalog lists them in
	now      func() time.Time
	lifetime time.Duration
	log      *slog.Logger

	domains     *state.Table[Domain]
	projects    *state.Table[Project]
	users       *state.Table[User]
	roles       *state.Table[Role]
	assignments *state.Table[assignment]
	trusts      *state.Table[trust]
	tokens      *state.Table[token]
	credentials *state.Table[applicationCredential]
	services    *state.Table[service]
	endpoints   *state.Table[endpoint]
	regions     *state.Table[region]

	proved sync.Map // hashes of passwords that were proved, by the hashes in the table

	changing sync.Mutex // held while something but tokens, trusts and application credentials changes: names are looked for, then taken
}

// New opens the tables and puts the cloud's first users, projects and roles into them when they are missing.
func New(config Config) (*Service, error) {
	s := &Service{
		endpoint: config.Endpoint,
		fixed:    config.Services,
		now:      config.Now,
		lifetime: cmp.Or(config.TokenLifetime, time.Hour),
		log:      config.Logger,
	}
	if s.fixed == nil {
		s.fixed = localServices()
	}
	if s.named = []string{cmp.Or(config.Region, Region)}; config.SecondRegion {
		s.named = append(s.named, SecondRegion)
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	var failures [11]error
	s.domains, failures[0] = state.Open[Domain](config.StateDir, "domains")
	s.projects, failures[1] = state.Open[Project](config.StateDir, "projects")
	s.users, failures[2] = state.Open[User](config.StateDir, "users")
	s.roles, failures[3] = state.Open[Role](config.StateDir, "roles")
	s.assignments, failures[4] = state.Open[assignment](config.StateDir, "assignments")
	s.trusts, failures[5] = state.Open[trust](config.StateDir, "trusts")
	s.tokens, failures[6] = state.Open[token](config.StateDir, "tokens")
	s.credentials, failures[7] = state.Open[applicationCredential](config.StateDir, "application_credentials")
	s.services, failures[8] = state.Open[service](config.StateDir, "services")
	s.endpoints, failures[9] = state.Open[endpoint](config.StateDir, "endpoints")
	s.regions, failures[10] = state.Open[region](config.StateDir, "regions")
	if err := errors.Join(failures[:]...); err != nil {
		return nil, fmt.Errorf("open keystone: %w", err)
	}
	if err := s.seed(); err != nil {
		return nil, fmt.Errorf("fill keystone: %w", err)
	}
	return s, nil
}

// Handler answers the identity API; it sees paths from "/v3" on, and "/" for the list of versions.
func (s *Service) Handler() http.Handler {
	mux := http.NewServeMux()
	open := func(pattern string, h handler) { mux.Handle(pattern, s.handle(h)) }
	open("GET /{$}", s.listVersions)
	open("GET /v3", s.showVersion)
	open("GET /v3/{$}", s.showVersion)
	open("POST /v3/auth/tokens", s.issueToken)
	open("GET /v3/auth/OS-FEDERATION/websso/{protocol}", s.signInByFederation)
	open("GET /v3/auth/OS-FEDERATION/identity_providers/{provider}/protocols/{protocol}/websso", s.signInByFederation)

	closed := func(pattern string, h callerHandler) { mux.Handle(pattern, s.handle(s.authenticated(h))) }
	closed("GET /v3/auth/tokens", s.showToken) // HEAD too
	closed("DELETE /v3/auth/tokens", s.revokeToken)
	closed("GET /v3/auth/catalog", s.showCatalog)
	closed("GET /v3/auth/projects", s.listOwnProjects)
	closed("GET /v3/auth/domains", s.listOwnDomains)

	changing := func(pattern string, h callerHandler) { closed(pattern, s.alone(h)) }
	offer(closed, s.alone, s.userCollection())
	offer(closed, s.alone, s.projectCollection())
	offer(closed, s.alone, s.domainCollection())
	offer(closed, s.alone, s.roleCollection())
	offer(closed, s.alone, s.serviceCollection())
	offer(closed, s.alone, s.endpointCollection())
	offer(closed, s.alone, s.regionCollection())
	for _, on := range []string{"projects/{project}", "domains/{domain}", "system"} {
		closed("GET /v3/"+on+"/users/{user}/roles", s.listGrants)
		closed("GET /v3/"+on+"/users/{user}/roles/{role}", s.checkGrant) // HEAD too
		changing("PUT /v3/"+on+"/users/{user}/roles/{role}", s.grant)
		changing("DELETE /v3/"+on+"/users/{user}/roles/{role}", s.ungrant)
	}
	changing("POST /v3/users/{id}/password", s.changePassword)
	closed("GET /v3/users/{id}/projects", s.listProjectsOfUser)
	closed("POST /v3/users/{id}/application_credentials", s.createApplicationCredential)
	closed("GET /v3/users/{id}/application_credentials", s.listApplicationCredentials)
	closed("GET /v3/users/{id}/application_credentials/{credential}", s.showApplicationCredential)
	closed("DELETE /v3/users/{id}/application_credentials/{credential}", s.deleteApplicationCredential)
	closed("GET /v3/role_assignments", s.listAssignments)

	closed("POST /v3/OS-TRUST/trusts", managing(s.createTrust))
	closed("GET /v3/OS-TRUST/trusts", managing(s.listTrusts))
	closed("GET /v3/OS-TRUST/trusts/{id}", managing(s.showTrust))
	closed("DELETE /v3/OS-TRUST/trusts/{id}", managing(s.deleteTrust))
	closed("GET /v3/OS-TRUST/trusts/{id}/roles", managing(s.listTrustRoles))
	closed("GET /v3/OS-TRUST/trusts/{id}/roles/{role}", managing(s.showTrustRole))

	open("/", func(http.ResponseWriter, *http.Request) error {
		return failure{http.StatusNotFound, "The requested URL was not found on the server. If you entered the URL manually " +
			"please check your spelling and try again."}
	})
	return mux
}

// offer registers the calls of a collection.
func offer[T any](closed func(string, callerHandler), alone func(callerHandler) callerHandler, c collection[T]) {
	closed("GET /v3/"+c.singular+"s", c.list)
	closed("GET /v3/"+c.singular+"s/{id}", c.show)
	closed("POST /v3/"+c.singular+"s", alone(c.create))
	closed("PATCH /v3/"+c.singular+"s/{id}", alone(c.update))
	closed("DELETE /v3/"+c.singular+"s/{id}", alone(c.delete))
}

// alone lets no two of its handlers run at once.
func (s *Service) alone(h callerHandler) callerHandler {
	return func(w http.ResponseWriter, r *http.Request, caller session) error {
		s.changing.Lock()
		defer s.changing.Unlock()
		return h(w, r, caller)
	}
}

// handler answers one request; a failure that it returns becomes Keystone's error body.
type handler func(http.ResponseWriter, *http.Request) error

// callerHandler is a handler for requests that carry a valid token.
type callerHandler func(http.ResponseWriter, *http.Request, session) error

func (s *Service) handle(h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil {
			s.writeFailure(w, r, err)
		}
	})
}

func (s *Service) authenticated(h callerHandler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		caller, ok := s.session(r.Header.Get("X-Auth-Token"))
		if !ok {
			return errUnauthorized
		}
		return h(w, r, caller)
	}
}

// failure is an error with the status that Keystone answers it with.
type failure struct {
	status  int
	message string
}

func (f failure) Error() string { return f.message }

var (
	errUnauthorized = failure{http.StatusUnauthorized, "The request you have made requires authentication."}
	errNoToken      = failure{http.StatusNotFound, "Failed to validate token"}
)

func notFound(kind, id string) failure {
	return failure{http.StatusNotFound, fmt.Sprintf("Could not find %s: %s.", kind, id)}
}

func forbidden(action string) failure {
	return failure{http.StatusForbidden, "You are not authorized to perform the requested action: " + action + "."}
}

func invalid(format string, args ...any) failure {
	return failure{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

func (s *Service) writeFailure(w http.ResponseWriter, r *http.Request, err error) {
	var f failure
	if !errors.As(err, &f) {
		s.log.ErrorContext(r.Context(), "keystone failed", "method", r.Method, "path", r.URL.Path, "error", err)
		f = failure{http.StatusInternalServerError, "An unexpected error prevented the server from fulfilling your request."}
	}
	if f.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Keystone uri="`+s.endpoint+`/identity"`)
	}
	writeJSON(w, f.status, map[string]any{"error": map[string]any{
		"code": f.status, "message": f.message, "title": http.StatusText(f.status),
	}})
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Add("Vary", "X-Auth-Token")
	answer.JSON(w, status, body)
}

// readJSON reads a request body of at most 1 MiB.
func readJSON(r *http.Request, into any) error {
	if err := answer.Read(r, into); err != nil {
		return invalid("The server could not comply with the request since it is either malformed or otherwise incorrect. "+
			"The client is assumed to be in error. The body is no JSON of the form wanted: %v", err)
	}
	return nil
}

// timestamp writes a time as Keystone does, with microseconds.
func timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

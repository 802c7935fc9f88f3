// Package broker offers the applications of the catalog to platforms as services, by the Open Service Broker API 2.16
// (https://github.com/openservicebrokerapi/servicebroker), like Murano's broker for Cloud Foundry, at its paths. It stores nothing by itself: an instance
// of a service is an environment of the caller's project, which is named after it.
package broker

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/golang-lru/v2/expirable"

	"github.com/burano/burano/web/auth"
	"github.com/burano/burano/web/client"
)

const (
	versionHeader = "X-Broker-API-Version"
	// remember is how long Keystone is not asked again about a user and a password, and so how long a former password may still do.
	remember = time.Minute
	capacity = 1000
	maxBody  = 1 << 20
)

// Config has the dependencies of a broker.
type Config struct {
	// SignIn gives the client of a user in the project of the broker. A user whom Keystone refuses is ErrRefused.
	SignIn func(ctx context.Context, user, password string) (*client.Client, error)
	Logger *slog.Logger
}

// ErrRefused reports that Keystone does not know a user with this password in the project.
var ErrRefused = errors.New("Keystone refuses this user and password for the broker's project")

type broker struct {
	config   Config
	users    *expirable.LRU[[sha256.Size]byte, *client.Client]
	attempts *auth.Attempts
}

// New makes the handler of the whole API.
func New(config Config) http.Handler {
	b := &broker{config: config, users: expirable.NewLRU[[sha256.Size]byte, *client.Client](capacity, nil, remember), attempts: auth.NewAttempts(time.Now)}
	mux := http.NewServeMux()
	serve := func(pattern string, h handler) { mux.Handle(pattern, b.handle(h)) }
	serve("GET /v2/catalog", b.catalog)
	serve("PUT /v2/service_instances/{instance}", b.provision)
	serve("GET /v2/service_instances/{instance}", b.show)
	serve("PATCH /v2/service_instances/{instance}", b.update)
	serve("DELETE /v2/service_instances/{instance}", b.deprovision)
	serve("GET /v2/service_instances/{instance}/last_operation", b.lastOperation)
	serve("PUT /v2/service_instances/{instance}/service_bindings/{binding}", b.bind)
	serve("DELETE /v2/service_instances/{instance}/service_bindings/{binding}", b.unbind)
	return mux
}

// handler answers one request of a user; the error that it returns becomes the answer.
type handler func(w http.ResponseWriter, r *http.Request, api *client.Client) error

// failure is an answer that is no success.
type failure struct {
	status int
	code   string // of the specification, "" for none
	text   string
}

func (f failure) Error() string { return f.text }

func (b *broker) handle(h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := b.enter(w, r, h)
		var known failure
		var refused *client.Refusal
		var often *auth.TooMany
		switch {
		case err == nil:
			return
		case errors.As(err, &known):
		case errors.Is(err, ErrRefused):
			w.Header().Set("WWW-Authenticate", `Basic realm="Burano"`)
			known = failure{status: http.StatusUnauthorized, text: err.Error()}
		case errors.As(err, &often):
			w.Header().Set("Retry-After", strconv.Itoa(often.Seconds()))
			known = failure{status: http.StatusTooManyRequests, text: often.Error()}
		case errors.As(err, &refused) && refused.Status < http.StatusInternalServerError:
			known = failure{status: refused.Status, text: refused.Message}
		default:
			b.config.Logger.ErrorContext(r.Context(), "a request of the broker failed", "method", r.Method, "path", r.URL.Path, "error", err)
			known = failure{status: http.StatusBadGateway, text: "Burano could not be asked: " + err.Error()}
		}
		body := map[string]string{"description": known.text}
		if known.code != "" {
			body["error"] = known.code
		}
		writeJSON(w, known.status, body)
	})
}

func (b *broker) enter(w http.ResponseWriter, r *http.Request, h handler) error {
	if version := r.Header.Get(versionHeader); !strings.HasPrefix(version, "2.") {
		return failure{status: http.StatusPreconditionFailed, text: "The header " + versionHeader + " must be 2.x, like 2.16; it is " + `"` + version + `"`}
	}
	if identity := r.Header.Get("X-Broker-API-Request-Identity"); identity != "" {
		w.Header().Set("X-Broker-API-Request-Identity", identity)
	}
	user, password, given := r.BasicAuth()
	if !given {
		return ErrRefused
	}
	api, err := b.client(r, user, password)
	if err != nil {
		return err
	}
	return h(w, r, api)
}

func (b *broker) client(r *http.Request, user, password string) (*client.Client, error) {
	key := sha256.Sum256([]byte(user + "\x00" + password))
	if known, ok := b.users.Get(key); ok {
		return known, nil
	}
	address, _, _ := net.SplitHostPort(r.RemoteAddr) // unknown clients count as one
	if wait := b.attempts.Take(address, user); wait > 0 {
		return nil, &auth.TooMany{Wait: wait}
	}
	made, err := b.config.SignIn(r.Context(), user, password)
	if err == nil {
		b.attempts.Succeeded(address, user)
		b.users.Add(key, made)
	}
	return made, err
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the status is sent: a broken connection is the caller's to notice
}

// bodyTime is how long a body may take.
const bodyTime = 30 * time.Second

func readJSON(w http.ResponseWriter, r *http.Request, into any) error {
	controller := http.NewResponseController(w)
	_ = controller.SetReadDeadline(time.Now().Add(bodyTime)) // tests' recorders know none
	defer func() { _ = controller.SetReadDeadline(time.Time{}) }()
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(into); err != nil && !errors.Is(err, io.EOF) {
		return failure{status: http.StatusBadRequest, text: "The body is no JSON object of the specification: " + err.Error()}
	}
	return nil
}

// asynchronous refuses callers who want to wait for the end: a deployment takes minutes.
func asynchronous(r *http.Request) error {
	if r.URL.Query().Get("accepts_incomplete") != "true" {
		return failure{http.StatusUnprocessableEntity, "AsyncRequired", "Deployments take minutes: this service plan requires accepts_incomplete=true"}
	}
	return nil
}

package localcloud

import (
	"net/http"
	"regexp"
	"strings"

	"github.com/google/uuid"

	"github.com/burano/burano/test/localcloud/answer"
	"github.com/burano/burano/test/localcloud/keystone"
)

// discovery matches clients' requests without a token: the list of versions.
var discovery = regexp.MustCompile(`^/(v[0-9.]+/?)?$`)

// routes puts each service below its path; it sees the rest of the path. All but discovery needs a token.
func (c *Cloud) routes(identity *keystone.Service, services map[string]http.Handler) http.Handler {
	mux := http.NewServeMux()
	mount := func(prefix string, next http.Handler) {
		stripped := http.StripPrefix(prefix, rooted(next))
		mux.Handle(prefix, stripped)
		mux.Handle(prefix+"/", stripped)
	}
	mount("/identity", identity.Handler())
	for prefix, service := range services {
		guarded := identity.Require(service)
		mount(prefix, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet && discovery.MatchString(r.URL.Path) {
				service.ServeHTTP(w, r)
				return
			}
			guarded.ServeHTTP(w, r)
		}))
	}
	// Heat's own handler begins below its version.
	orchestration := func(status int, below string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			answer.JSON(w, status, map[string]any{"versions": []any{map[string]any{
				"id": "v1.0", "status": "CURRENT", "links": []any{
					map[string]any{"rel": "self", "href": c.config.Endpoint() + below + "/orchestration/v1/"},
				},
			}}})
		}
	}
	for prefix := range services {
		if below, ok := strings.CutSuffix(prefix, "/orchestration/v1"); ok {
			mux.Handle("GET "+below+"/orchestration/{$}", orchestration(http.StatusMultipleChoices, below))
			mux.Handle("GET "+prefix, orchestration(http.StatusOK, below))
			mux.Handle("GET "+prefix+"/{$}", orchestration(http.StatusOK, below))
		}
	}
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		answer.JSON(w, http.StatusOK, map[string]any{"name": "burano local cloud", "identity": c.config.Endpoint() + "/identity/v3"})
	})
	outer := http.NewServeMux()
	outer.Handle("/faults", c.config.Faults)
	outer.Handle("/", c.config.Faults.Wrap(mux))
	return withRequestID(outer)
}

// rooted gives a handler "/" where nothing is left of a path.
func rooted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "" {
			r.URL.Path = "/"
		}
		next.ServeHTTP(w, r)
	})
}

// withRequestID names each request in its answer, as every OpenStack service does.
func withRequestID(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := "req-" + uuid.NewString()
		w.Header().Set("X-Openstack-Request-Id", id)
		if strings.HasPrefix(strings.TrimPrefix(r.URL.Path, "/"+keystone.SecondRegion), "/compute") {
			w.Header().Set("X-Compute-Request-Id", id)
		}
		next.ServeHTTP(w, r)
	})
}

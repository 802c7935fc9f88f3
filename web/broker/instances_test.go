package broker_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/web/broker"
	"github.com/burano/burano/web/client"
)

type tokens struct{}

func (tokens) Token() string                                { return "t" }
func (tokens) Reauthenticate(context.Context, string) error { return nil }

// A deployment whose answer was lost may run, and an environment that is abandoned then leaves servers that nothing knows of.
func TestAnEnvironmentIsAbandonedOnlyWhereItsDeploymentHasNotBegun(t *testing.T) {
	const id = "0123456789abcdef0123456789abcdef"
	for name, one := range map[string]struct {
		deploy  http.HandlerFunc
		shows   string // the environment, when it is asked for thereafter; "" for no answer
		status  int    // of the broker's answer
		deletes []string
	}{
		"the deployment has begun and its answer is lost": {deploy: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, shows: "deploying", status: http.StatusAccepted},
		"a proxy gives up":   {deploy: answer(http.StatusGatewayTimeout, "{}"), shows: "pending", status: http.StatusAccepted},
		"it has not begun":   {deploy: answer(http.StatusBadGateway, "{}"), shows: "ready", status: http.StatusBadGateway, deletes: []string{""}},
		"nothing is known":   {deploy: answer(http.StatusBadGateway, "{}"), status: http.StatusBadGateway},
		"it is refused":      {deploy: answer(http.StatusForbidden, `{"message":"the quota is full"}`), status: http.StatusForbidden, deletes: []string{"abandon=true"}},
		"it runs, and sends": {deploy: answer(http.StatusOK, `{}`), status: http.StatusAccepted},
	} {
		t.Run(name, func(t *testing.T) {
			var deletes []string
			tried := false
			mux := http.NewServeMux()
			mux.HandleFunc("GET /burano/v1/packages/{id}", answer(http.StatusOK, `{"id":"`+id+`","type":"Application","fully_qualified_name":"org.example.App","name":"App"}`))
			mux.HandleFunc("GET /v1/environments", func(w http.ResponseWriter, r *http.Request) {
				switch {
				case !tried:
					answer(http.StatusOK, `{"environments":[]}`)(w, r)
				case one.shows == "":
					answer(http.StatusServiceUnavailable, "{}")(w, r)
				default:
					answer(http.StatusOK, `{"environments":[{"id":"`+id+`","name":"service-i"}]}`)(w, r)
				}
			})
			mux.HandleFunc("GET /v1/environments/"+id, answer(http.StatusOK, `{"id":"`+id+`","status":"`+one.shows+`"}`))
			mux.HandleFunc("POST /v1/environments", answer(http.StatusOK, `{"id":"`+id+`"}`))
			mux.HandleFunc("POST /v1/environments/"+id+"/configure", answer(http.StatusOK, `{"id":"s"}`))
			mux.HandleFunc("PUT /v1/environments/"+id+"/services", answer(http.StatusOK, `[]`))
			mux.HandleFunc("POST /v1/environments/"+id+"/sessions/s/deploy", func(w http.ResponseWriter, r *http.Request) {
				tried = true
				one.deploy(w, r)
			})
			mux.HandleFunc("DELETE /v1/environments/"+id, func(_ http.ResponseWriter, r *http.Request) { deletes = append(deletes, r.URL.RawQuery) })
			server := httptest.NewServer(mux)
			t.Cleanup(server.Close)
			handler := broker.New(broker.Config{Logger: slog.New(slog.DiscardHandler), SignIn: func(context.Context, string, string) (*client.Client, error) {
				return client.New(server.URL, tokens{}, nil), nil
			}})
			request := httptest.NewRequest(http.MethodPut, "/v2/service_instances/i?accepts_incomplete=true", strings.NewReader(`{"service_id":"`+id+`","plan_id":"`+id+`-1"}`))
			request.Header.Set("X-Broker-API-Version", "2.16")
			request.SetBasicAuth("u", "p")
			recorded := httptest.NewRecorder()
			handler.ServeHTTP(recorded, request)
			require.Equal(t, one.status, recorded.Code, recorded.Body.String())
			require.Equal(t, one.deletes, deletes)
		})
	}
}

func answer(status int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(text))
	}
}

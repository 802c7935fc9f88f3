package api

import (
	"io"
	"net/http"

	"github.com/labstack/echo/v4"
)

// Starting makes the handler of a server that waits for its dependencies: it lives, is not ready, shows its metrics, and asks all other requests to come
// again. /readyz runs the config's Checks.
func Starting(config Config) http.Handler {
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.JSONSerializer = newPlainJSON()
	e.Pre(requestID)
	e.GET("/healthz", alive)
	e.GET("/readyz", (&readiness{checks: config.Checks, log: config.Logger}).handle)
	if !config.MetricsElsewhere {
		e.GET("/metrics", echo.WrapHandler(MetricsHandler(config.Metrics)))
	}
	e.Any("/*", func(c echo.Context) error {
		c.Response().Header().Set(echo.HeaderRetryAfter, "5")
		return (&refusal{status: http.StatusServiceUnavailable, explanation: "The server starts and waits for Keystone; try again shortly."}).write(c)
	})
	return e
}

// Leaving makes the handler of a server that is about to stop. It is not ready any more, and lets each client open a new connection for its next request,
// which a balancer gives to another server.
func Leaving(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		if r.URL.Path != "/readyz" {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, `{"checks": {"server": "stopping"}, "ready": false}`+"\n") // the client may have gone
	})
}

func alive(c echo.Context) error { return c.String(http.StatusOK, "ok\n") }

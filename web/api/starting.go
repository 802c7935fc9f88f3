package api

import (
	"net/http"

	"github.com/labstack/echo/v4"
)

// Starting makes the handler of a server that waits for what it cannot begin without: it lives, is not ready, shows its metrics, and asks
// everybody else to come again. The config's Checks are asked by /readyz.
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

func alive(c echo.Context) error { return c.String(http.StatusOK, "ok\n") }

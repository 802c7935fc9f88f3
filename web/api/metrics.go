package api

import (
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics are the API's own metrics. Routes are named by their pattern, so that ids make no series of their own.
type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	current  prometheus.Gauge
	streams  prometheus.Gauge
	panics   prometheus.Counter
}

func newMetrics(registry prometheus.Registerer) *metrics {
	factory := promauto.With(registry)
	return &metrics{
		requests: factory.NewCounterVec(prometheus.CounterOpts{Name: "burano_http_requests_total",
			Help: "Requests that were answered, by method, route and status; those with a status of 500 or more are the server's own errors."},
			[]string{"method", "route", "status"}),
		seconds: factory.NewHistogramVec(prometheus.HistogramOpts{Name: "burano_http_request_seconds", Help: "Time until a request was answered.",
			Buckets: []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60}}, []string{"method", "route"}),
		current: factory.NewGauge(prometheus.GaugeOpts{Name: "burano_http_requests_in_flight", Help: "Requests that are being answered."}),
		streams: factory.NewGauge(prometheus.GaugeOpts{Name: "burano_event_streams", Help: "Streams of events that are followed."}),
		panics:  factory.NewCounter(prometheus.CounterOpts{Name: "burano_http_panics_total", Help: "Requests that ended in a panic, which is a defect."}),
	}
}

// MetricsHandler answers the registry's metrics, in Prometheus' own format.
func MetricsHandler(registry *prometheus.Registry) http.Handler {
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}

// methods are the ones with series of their own; clients may send any word.
var methods = map[string]bool{"GET": true, "HEAD": true, "POST": true, "PUT": true, "PATCH": true, "DELETE": true, "OPTIONS": true}

// answered counts an answered request. The route is "versions" for answers before any routing.
func (m *metrics) answered(c echo.Context, took time.Duration) {
	method, route := c.Request().Method, c.Path()
	if !methods[method] {
		method = "other"
	}
	switch {
	case open[route]:
	case c.Response().Status == http.StatusMultipleChoices:
		route = "versions"
	case !routed(c):
		route = "none"
	}
	m.requests.WithLabelValues(method, route, strconv.Itoa(c.Response().Status)).Inc()
	if !isStream(route) { // a stream lasts as long as its subject
		m.seconds.WithLabelValues(method, route).Observe(took.Seconds())
	}
}

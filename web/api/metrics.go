package api

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"runtime/pprof"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/wait"
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

// profileHandlers answer profiles of the server's process as gzipped protocol buffers, which go tool pprof reads.
type profileHandlers struct{ allowed bool }

func (h profileHandlers) register(v1 *echo.Group) { v1.GET("/profiles/:profile", h.take) }

// mostProfileSeconds is the longest profile of processors.
const mostProfileSeconds = 30

// take answers a profile: cpu over some seconds, or the present heap, allocations (allocs) or goroutines.
func (h profileHandlers) take(c echo.Context) error {
	if !h.allowed {
		return fault.New(fault.Forbidden, "This server gives no profiles of itself: its setting profiles allows them to administrators")
	}
	var content bytes.Buffer
	switch kind := c.Param("profile"); kind {
	case "cpu":
		seconds, err := strconv.Atoi(cmp.Or(c.QueryParam("seconds"), "10"))
		if err != nil || seconds < 1 || seconds > mostProfileSeconds {
			return fault.New(fault.Invalid, "seconds must be a whole number from 1 to %d", mostProfileSeconds)
		}
		// It refuses a second one at the same time.
		if err := pprof.StartCPUProfile(&content); err != nil {
			return fault.New(fault.Conflict, "Somebody else takes a profile of the processors (%s); try again in %d seconds", err, mostProfileSeconds)
		}
		err = wait.Pause(c.Request().Context(), time.Duration(seconds)*time.Second)
		pprof.StopCPUProfile()
		if err != nil {
			return err
		}
	case "heap", "allocs", "goroutine":
		if err := pprof.Lookup(kind).WriteTo(&content, 0); err != nil {
			return fmt.Errorf("take the profile %s: %w", kind, err)
		}
	default:
		return fault.New(fault.NotFound, "There is no profile %s: there are cpu, heap, allocs and goroutine", kind)
	}
	return blob(c, "application/octet-stream", content.Bytes())
}

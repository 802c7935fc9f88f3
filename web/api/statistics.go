package api

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/orchestrator"
)

// statisticsHandlers answer the routes of statistics: of this and the other API servers' requests, and of the content of environments.
type statisticsHandlers struct {
	orchestrator *orchestrator.Service
}

func (h statisticsHandlers) register(v1 *echo.Group) {
	v1.GET("/stats", h.requests)
	v1.GET("/environments/:environment/instance-statistics/raw", h.instances)
	v1.GET("/environments/:environment/instance-statistics/raw/:instance", h.instances)
	v1.GET("/environments/:environment/instance-statistics/aggregated", h.types)
}

// requestStatisticsJSON counts the requests of one API server.
type requestStatisticsJSON struct {
	Seconds     float64 `json:"average_response_time"`
	CPUs        int     `json:"cpu_count"`
	CPUPercent  float64 `json:"cpu_percent"`
	Created     string  `json:"created"`
	Errors      int64   `json:"error_count"`
	ErrorRate   float64 `json:"errors_per_second"`
	Host        string  `json:"host"`
	ID          int64   `json:"id"`
	Requests    int64   `json:"request_count"`
	RequestRate float64 `json:"requests_per_second"`
	Projects    string  `json:"requests_per_tenant"` // JSON in a text: numbers by project
	Updated     string  `json:"updated"`
}

func (h statisticsHandlers) requests(c echo.Context) error {
	ctx, caller := calling(c)
	rows, err := h.orchestrator.Statistics().Requests(ctx, caller)
	if err != nil {
		return err
	}
	list := make([]requestStatisticsJSON, len(rows))
	for i, row := range rows {
		projects, err := json.Marshal(row.Projects)
		if err != nil {
			return err
		}
		list[i] = requestStatisticsJSON{Seconds: row.Seconds, CPUs: row.CPUs, CPUPercent: row.CPUPercent, Created: stamp(row.Created), Errors: row.Errors,
			ErrorRate: row.ErrorRate, Host: row.Host, ID: row.ID, Requests: row.Requests, RequestRate: row.RequestRate, Projects: string(projects),
			Updated: stamp(row.Updated)}
	}
	return c.JSON(http.StatusOK, list)
}

// instanceStatisticsJSON has the age of an object that a class counts.
type instanceStatisticsJSON struct {
	Active     bool    `json:"active"`
	Duration   int64   `json:"duration"` // seconds
	InstanceID string  `json:"instance_id"`
	Type       int64   `json:"type"`
	TypeName   string  `json:"type_name"`
	TypeTitle  *string `json:"type_title"`
	UnitCount  *int64  `json:"unit_count"`
}

func (h statisticsHandlers) instances(c echo.Context) error {
	ctx, caller := calling(c)
	rows, err := h.orchestrator.Statistics().Instances(ctx, caller, c.Param("environment"), c.Param("instance"))
	if err != nil {
		return err
	}
	list := make([]instanceStatisticsJSON, len(rows))
	for i, row := range rows {
		list[i] = instanceStatisticsJSON{row.Active, int64(row.Duration.Seconds()), row.InstanceID, row.Type, row.TypeName, row.TypeTitle, row.UnitCount}
	}
	return c.JSON(http.StatusOK, list)
}

// typeStatisticsJSON sums up the counted objects of one type.
type typeStatisticsJSON struct {
	Count    int   `json:"count"`
	Duration int64 `json:"duration"` // seconds
	Type     int64 `json:"type"`
}

func (h statisticsHandlers) types(c echo.Context) error {
	ctx, caller := calling(c)
	rows, err := h.orchestrator.Statistics().Types(ctx, caller, c.Param("environment"))
	if err != nil {
		return err
	}
	list := make([]typeStatisticsJSON, len(rows))
	for i, row := range rows {
		list[i] = typeStatisticsJSON{row.Count, int64(row.Duration.Seconds()), row.Type}
	}
	return c.JSON(http.StatusOK, list)
}

// statisticsPeriod is how often the numbers of requests are written, when there are requests (Murano's [stats] period).
const statisticsPeriod = 5 * time.Second

// counter counts this server's requests, for the row of its host. It is safe for concurrent use.
type counter struct {
	save func(c echo.Context, statistics orchestrator.RequestStatistics) error
	log  *slog.Logger

	mutex    sync.Mutex
	now      orchestrator.RequestStatistics // without values that are computed when it is written
	seconds  float64                        // of all requests together
	written  time.Time
	before   orchestrator.RequestStatistics
	usedThen time.Duration
}

func newCounter(service *orchestrator.Service, log *slog.Logger) *counter {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return &counter{
		save: func(c echo.Context, statistics orchestrator.RequestStatistics) error {
			// The request is answered, and its context may have ended with it.
			ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Request().Context()), statisticsPeriod)
			defer cancel()
			return service.Statistics().SaveRequests(ctx, statistics)
		},
		log:     log,
		now:     orchestrator.RequestStatistics{Host: host, Projects: map[string]int64{}, CPUs: runtime.NumCPU()},
		written: time.Now(), usedThen: processorTime(),
	}
}

// count is the middleware: it counts a request once it is answered, and writes the numbers when they are due.
func (n *counter) count(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		start := time.Now()
		err := next(c)
		if err != nil {
			c.Error(err) // writes the answer, so that its status is known here
		}
		project := identity.From(c.Request().Context()).ProjectID
		if statistics, due := n.note(time.Since(start), c.Response().Status, project, time.Now()); due {
			if err := n.save(c, statistics); err != nil {
				n.log.Warn("the statistics of requests could not be written; trying again", "after", statisticsPeriod, "error", err)
			}
		}
		return nil
	}
}

func (n *counter) note(took time.Duration, status int, project string, now time.Time) (statistics orchestrator.RequestStatistics, due bool) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.now.Requests++
	n.seconds += took.Seconds()
	if status >= http.StatusBadRequest {
		n.now.Errors++
	}
	if project != "" {
		n.now.Projects[project]++
	}
	first := n.before.Requests == 0
	passed := now.Sub(n.written)
	if !first && passed < statisticsPeriod {
		return statistics, false
	}
	used := processorTime()
	statistics = n.now
	statistics.Projects = maps.Clone(n.now.Projects)
	statistics.Seconds = n.seconds / float64(n.now.Requests)
	if seconds := passed.Seconds(); seconds > 0 {
		statistics.RequestRate = float64(n.now.Requests-n.before.Requests) / seconds
		statistics.ErrorRate = float64(n.now.Errors-n.before.Errors) / seconds
		statistics.CPUPercent = 100 * (used - n.usedThen).Seconds() / seconds / float64(n.now.CPUs)
	}
	n.before, n.written, n.usedThen = statistics, now, used
	return statistics, true
}

// processorTime is the processor time of this process.
func processorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

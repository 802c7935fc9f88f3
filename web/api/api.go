// Package api is Burano over HTTP: Murano's REST API v1 as its clients know it, and Burano's additions below /burano/v1.
// Handlers are thin: the work is the orchestrator's and the catalog's.
package api

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/internal/blackbox"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/internal/memory"
	"github.com/burano/burano/orchestrator"
	"github.com/burano/burano/orchestrator/doctor"
	"github.com/burano/burano/orchestrator/engine"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/store"
	"github.com/burano/burano/web/audit"
	"github.com/burano/burano/web/auth"
	"github.com/burano/burano/web/policy"
)

// Config has the services behind the API.
type Config struct {
	Orchestrator *orchestrator.Service
	Catalog      *catalog.Service
	// Auth puts the identity.Caller into the request's context, or returns a fault of kind Unauthorized.
	Auth echo.MiddlewareFunc
	// Known reports whether Auth would accept a request without asking Keystone; nil: no request.
	Known func(*http.Request) bool
	// Memory accounts for the memory of requests; nil: nothing does.
	Memory *memory.Budget
	// SignIn signs browsers in; nil: they cannot sign in.
	SignIn *auth.Authenticator
	// Policy decides about callers' rights; nil selects Murano's rules.
	Policy *policy.Policy
	// Keystone is where callers get a token; it is named in 401 answers.
	Keystone string
	// UpgradePlan asks for the effects of the upgrade of a cluster to an image (native.PlanUpgrade); the caller's rights are checked before. nil: there
	// are no upgrades.
	UpgradePlan func(clusterID, image string) engine.Question
	// Leaving asks for the fate of claims and volumes when an environment is deleted (native.Leaving); nil: clusters are not asked.
	Leaving engine.Question
	// Clusters answers questions about clusters; nil: clusters are not asked.
	Clusters Clusters
	// Snapshots stores snapshots of clusters, and SnapshotLoss describes the losses of a restore. nil: there are none.
	Snapshots    SnapshotStore
	SnapshotLoss func(store.Snapshot) string
	// Deleted restores deleted environments; nil: none stay.
	Deleted *orchestrator.Undeletion
	// Backups are the backups of environments; nil: there are none.
	Backups *orchestrator.Backups
	// Choices lists a caller's choices in the cloud (openstack.Service); nil: the cloud is not asked.
	Choices choicesFunc
	// MarkImage marks an image for forms (openstack.Service), nil takes the mark away; AllProjects lists the projects of the cloud. nil: the
	// cloud is not asked.
	MarkImage   func(ctx context.Context, caller identity.Caller, id string, mark *openstack.Mark) error
	AllProjects func(ctx context.Context, caller identity.Caller) ([]identity.Project, error)
	// Projects stores the projects that let Burano work in them with a role of its own; nil: the cloud is not asked.
	Projects *orchestrator.ProjectRoles
	// Examine checks the server's settings and the cloud, as burano doctor does; nil: there is no check.
	Examine func(ctx context.Context) []doctor.Line
	// Quotas have the quotas of projects.
	Quotas []QuotaStore
	// Applied stores projects' objects under labels.
	Applied AppliedStore
	// Checks are the checks of /readyz.
	Checks []Check
	Limits Limits
	// Running records the requests in work, for the server's next start, and knows the refused ones; nil: nothing is
	// recorded.
	Running *blackbox.Box
	// Metrics is the registry of the API's metrics; nil: none.
	Metrics *prometheus.Registry
	// Profiles allows administrators to take profiles of this process.
	Profiles bool
	// MetricsElsewhere: Metrics are shown by another listener, and not at /metrics.
	MetricsElsewhere bool
	// Stopping ends when the server is to stop: streams end then. nil: they end with their clients or subjects only.
	Stopping context.Context
	// Audit records calls; nil: nothing does. AuditRows lists the records; nil: they are not stored.
	Audit     *audit.Log
	AuditRows AuditRows
	// Address returns the address of a request's sender; nil: the other end of its connection.
	Address echo.IPExtractor
	// Logger should be over requestid.LogHandler.
	Logger *slog.Logger
}

// timeForm is how Murano writes times: UTC, whole seconds, no zone.
const timeForm = "2006-01-02T15:04:05"

func stamp(t time.Time) string {
	return string(t.UTC().AppendFormat(make([]byte, 0, len(time.RFC3339)), time.RFC3339)[:len(timeForm)]) // Go's fastest format, without its zone
}

// stampOrNil writes a time that may be nil.
func stampOrNil(t *time.Time) any {
	if t == nil {
		return nil
	}
	return stamp(*t)
}

// sessionHeader names the session that a request reads or writes.
const sessionHeader = "X-Configuration-Session"

func sessionOf(c echo.Context) string { return c.Request().Header.Get(sessionHeader) }

// calling is the context of a request, and its caller.
func calling(c echo.Context) (context.Context, identity.Caller) {
	ctx := c.Request().Context()
	return ctx, identity.From(ctx)
}

// New makes the handler of the whole API.
func New(config Config) http.Handler {
	e := newEcho(config)
	return e
}

func newEcho(config Config) *echo.Echo {
	if config.Policy == nil {
		config.Policy = policy.New()
	}
	if config.Metrics == nil {
		config.Metrics, config.MetricsElsewhere = prometheus.NewRegistry(), true
	}
	if config.Stopping == nil {
		config.Stopping = context.Background()
	}
	if config.Address == nil {
		config.Address = echo.ExtractIPDirect()
	}
	config.Limits = config.Limits.withDefaults()
	counted, crowd := newMetrics(config.Metrics), newCrowd(config)
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.JSONSerializer = newPlainJSON()
	e.HTTPErrorHandler = errorHandler(config)
	e.Pre(requestID, audited(config.Audit, config.Address), accessLog(config.Logger, counted, config.Address), newCounter(config.Orchestrator, config.Logger).count, limited(config.Limits, config.Stopping),
		noted(config.Running), recovery(config.Logger, counted), versions)
	e.Use(authenticated(config.Auth, crowd, config.Limits.Recheck), crowd.shared, identified, permitted(config.Policy))

	v1 := e.Group("/v1", readBody(config.Limits.Values), negotiate)
	environments := environmentHandlers{config.Orchestrator}
	environments.register(v1)
	deploymentHandlers{config.Orchestrator}.register(v1)
	actionHandlers{config.Orchestrator}.register(v1)
	templateHandlers{config.Orchestrator}.register(v1)
	schemaHandlers{config.Orchestrator}.register(v1)
	statisticsHandlers{config.Orchestrator}.register(v1)
	catalogHandlers{config.Catalog, config.Limits.Values}.register(v1)
	hostLabelHandlers{config.Orchestrator, config.Clusters}.register(v1)
	burano := e.Group("/burano/v1")
	progressHandlers{config.Orchestrator, config.Limits}.register(burano)
	previewHandlers{config.Orchestrator, config.Deleted, config.Limits.Values, config.Leaving}.register(burano)
	classHandlers{config.Catalog, config.Orchestrator}.register(burano)
	packageHandlers{config.Catalog, config.Limits.Values}.register(burano)
	draftHandlers{config.Orchestrator}.register(burano)
	historyHandlers{config.Orchestrator.History(), config.Limits.Values}.register(burano)
	choiceHandlers{config.Choices}.register(burano)
	newNeedHandlers(config).register(burano)
	cloudHandlers{config.MarkImage, config.AllProjects, config.Examine, config.Limits.Values}.register(burano)
	projectRoleHandlers{config.Projects}.register(burano)
	burano.GET("/version", showVersion)
	profileHandlers{config.Profiles}.register(burano)
	delegationHandlers{config.Orchestrator}.register(burano)
	hibernationHandlers{config.Orchestrator.Hibernations()}.register(burano)
	findingHandlers{config.Orchestrator}.register(burano)
	componentHandlers{config.Orchestrator}.register(burano)
	clusterHandlers{config.Orchestrator, config.Clusters}.register(burano)
	accessHandlers{config.Orchestrator, config.Clusters, config.Limits}.register(burano)
	joinHandlers{config.Orchestrator, config.Clusters, auth.NewAttempts(time.Now), config.Address, config.Limits}.register(burano)
	upgradeHandlers{config.Orchestrator, config.UpgradePlan, config.Clusters}.register(burano)
	nodeHandlers{config.Orchestrator, config.Clusters, config.Limits}.register(burano)
	runningHandlers{config.Orchestrator, config.Clusters, config.Limits}.register(burano)
	deletedHandlers{config.Deleted}.register(burano)
	snapshotHandlers{config.Orchestrator, config.Snapshots, config.Clusters, config.SnapshotLoss}.register(burano)
	backupHandlers{config.Backups, config.Limits, config.Logger}.register(burano)
	signInHandlers{config.SignIn, config.Policy}.register(burano)
	auditHandlers{config.AuditRows}.register(burano)
	quotaHandlers{config.Quotas, config.Limits.Values}.register(burano)
	appliedHandlers{config.Applied, config.Limits.Values}.register(burano)
	formHandlers{config.Catalog, config.Orchestrator, config.Limits.Values}.register(burano)
	description, err := describe()
	if err != nil {
		panic(err) // it is a constant of the program
	}
	e.GET("/openapi.json", description)
	e.GET("/healthz", alive)
	ready := &readiness{checks: append(config.Checks[:len(config.Checks):len(config.Checks)], crowd.checks()...), log: config.Logger}
	e.GET("/readyz", ready.handle)
	if !config.MetricsElsewhere {
		e.GET("/metrics", echo.WrapHandler(MetricsHandler(config.Metrics)))
	}
	checkRules(e.Routes(), config.Policy)
	return e
}

// versions answers every path that is neither v1 nor Burano's own with the list of versions, to any caller.
func versions(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		first, _, _ := strings.Cut(strings.TrimPrefix(c.Request().URL.Path, "/"), "/")
		switch first {
		case "v1", "burano", "healthz", "readyz", "metrics", "openapi.json":
			return next(c)
		}
		type link struct {
			Rel  string `json:"rel"`
			Href string `json:"href"`
		}
		type version struct {
			ID     string `json:"id"`
			Status string `json:"status"`
			Links  []link `json:"links"`
		}
		href := c.Scheme() + "://" + c.Request().Host + "/v1/"
		return c.JSON(http.StatusMultipleChoices, struct {
			Versions []version `json:"versions"`
		}{[]version{{ID: "v1.0", Status: "CURRENT", Links: []link{{Rel: "self", Href: href}}}}})
	}
}

// blob answers with bytes, and with their number: without it an answer longer than a buffer is sent in chunks.
func blob(c echo.Context, mediaType string, content []byte) error {
	if err := holds(c, int64(len(content))); err != nil {
		return err
	}
	c.Response().Header().Set(echo.HeaderContentLength, strconv.Itoa(len(content)))
	return c.Blob(http.StatusOK, mediaType, content)
}

// empty is the answer of calls that return nothing.
func empty(c echo.Context) error { return c.Blob(http.StatusOK, echo.MIMEApplicationJSON, nil) }

// answer writes a value; nothing (nil) is an empty body, as in Murano.
func answer(c echo.Context, value any) error {
	if value == nil {
		return empty(c)
	}
	return c.JSON(http.StatusOK, value)
}

// writeOver answers with the posted fields, overridden by the fields of made: Murano does so where something is made.
func writeOver(c echo.Context, posted map[string]any, made any) error {
	text, err := json.Marshal(made)
	if err != nil {
		return err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return err
	}
	for name, value := range fields {
		posted[name] = value
	}
	return c.JSON(http.StatusOK, posted)
}

// object is the body when it is an object; a call without any body is malformed.
func object(c echo.Context) (map[string]any, error) {
	value, there := body(c)
	if !there {
		return nil, fault.New(fault.Invalid, "The server could not comply with the request since it is either malformed or otherwise incorrect: it has no body")
	}
	fields, ok := value.(map[string]any)
	if !ok {
		fields = map[string]any{}
	}
	return fields, nil
}

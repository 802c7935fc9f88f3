package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/panics"
	"github.com/burano/burano/orchestrator"
	"github.com/burano/burano/orchestrator/access"
)

// Objects reads and changes the workloads of clusters (access.Clusters), after a check of the caller.
type Objects interface {
	Running(ctx context.Context, environmentID, objectID, namespace string) (access.Running, error)
	Pod(ctx context.Context, environmentID, objectID, namespace, name string) (access.PodDetails, error)
	RecreatePod(ctx context.Context, environmentID, objectID, namespace, name string) error
	Workload(ctx context.Context, environmentID, objectID string, ref access.WorkloadRef) (access.WorkloadDetails, error)
	ScaleWorkload(ctx context.Context, environmentID, objectID string, ref access.WorkloadRef, pods int32) error
	RestartWorkload(ctx context.Context, environmentID, objectID string, ref access.WorkloadRef) error
	ReadLog(ctx context.Context, environmentID, objectID string, log access.PodLog, line func(access.LogLine) error) error
	FollowLog(ctx context.Context, environmentID, objectID string, log access.PodLog, line func(access.LogLine) error, state func(string) error) (end string, err error)
}

// runningHandlers show the workloads of a cluster to readers of its project: workloads and pods with their events and logs. Secrets, and the environment
// variables of pods, are never shown. Writers may recreate pods and scale workloads (workloads.go).
type runningHandlers struct {
	orchestrator *orchestrator.Service
	clusters     Objects
	limits       Limits
}

func (h runningHandlers) register(v1 *echo.Group) {
	const pod = "/environments/:environment/clusters/:cluster/pods/:namespace/:pod"
	v1.GET("/environments/:environment/clusters/:cluster/running", h.list)
	v1.GET(pod, h.pod)
	v1.GET(pod+"/log", h.log)
	v1.GET(pod+"/log/events", h.follow)
	v1.POST(pod+"/recreate", h.recreate)
	const workload = "/environments/:environment/clusters/:cluster/workloads/:namespace/:kind/:workload"
	v1.GET(workload, h.workload)
	v1.PUT(workload+"/scale", h.scale, readBody(h.limits.Values))
	v1.POST(workload+"/restart", h.restart)
}

const (
	// tail is the default number of last lines of a log, mostTail the maximum.
	tail     = 500
	mostTail = 10_000
	// burst is the largest number of lines in one event, burstBytes its approximate number of bytes of text.
	burst      = 500
	burstBytes = 256 << 10
)

// kubernetesName matches names of namespaces, pods and containers (RFC 1123).
var kubernetesName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$`)

// reach checks that the caller may read the cluster, and returns the ids of its environment and object.
func (h runningHandlers) reach(c echo.Context) (environmentID, objectID string, err error) {
	ctx, caller := calling(c)
	environmentID, objectID = c.Param("environment"), c.Param("cluster")
	if err := h.orchestrator.Environments().MayReach(ctx, caller, environmentID, objectID); err != nil {
		return "", "", err
	}
	if h.clusters == nil {
		return "", "", fault.New(fault.NotFound, "This Burano asks no clusters")
	}
	return environmentID, objectID, nil
}

// asked makes the answer when a cluster does not answer.
func asked(c echo.Context, err error) error {
	var silent *access.NoAnswer
	if errors.As(err, &silent) && c.Request().Context().Err() == nil {
		c.Response().Header().Set(echo.HeaderRetryAfter, strconv.Itoa(comeAgain))
		return &refusal{status: http.StatusServiceUnavailable, explanation: silent.Error()}
	}
	return err
}

func (h runningHandlers) list(c echo.Context) error {
	environmentID, objectID, err := h.reach(c)
	if err != nil {
		return err
	}
	namespace := c.QueryParam("namespace")
	if namespace != "" && !kubernetesName.MatchString(namespace) {
		return fault.New(fault.Invalid, "%q is no name of a namespace", namespace)
	}
	found, err := h.clusters.Running(c.Request().Context(), environmentID, objectID, namespace)
	if err != nil {
		return asked(c, err)
	}
	return c.JSON(http.StatusOK, found)
}

func (h runningHandlers) pod(c echo.Context) error {
	environmentID, objectID, log, err := h.reachLog(c)
	if err != nil {
		return err
	}
	found, err := h.clusters.Pod(c.Request().Context(), environmentID, objectID, log.Namespace, log.Pod)
	if err != nil {
		return asked(c, err)
	}
	return c.JSON(http.StatusOK, found)
}

// reachLog is reach, and returns which log is requested.
func (h runningHandlers) reachLog(c echo.Context) (environmentID, objectID string, log access.PodLog, err error) {
	if environmentID, objectID, err = h.reach(c); err != nil {
		return "", "", log, err
	}
	log, err = logOf(c)
	return environmentID, objectID, log, err
}

// logOf reads the requested log: by default the last lines of the pod's main container.
func logOf(c echo.Context) (access.PodLog, error) {
	log := access.PodLog{Namespace: c.Param("namespace"), Pod: c.Param("pod"), Container: c.QueryParam("container"), Tail: tail}
	for _, name := range []string{log.Namespace, log.Pod} {
		if !kubernetesName.MatchString(name) {
			return log, fault.New(fault.NotFound, "There is no pod %s/%s", log.Namespace, log.Pod)
		}
	}
	if log.Container != "" && !kubernetesName.MatchString(log.Container) {
		return log, fault.New(fault.Invalid, "%q is no name of a container", log.Container)
	}
	if text := c.QueryParam("tail"); text != "" {
		lines, err := strconv.ParseInt(text, 10, 64)
		if err != nil || lines < 1 || lines > mostTail {
			return log, fault.New(fault.Invalid, "tail is a number of lines from 1 to %d, not %q", mostTail, text)
		}
		log.Tail = lines
	}
	if text := c.QueryParam("previous"); text != "" {
		previous, err := strconv.ParseBool(text)
		if err != nil {
			return log, fault.New(fault.Invalid, "previous is true or false, not %q", text)
		}
		log.Previous = previous
	}
	return log, nil
}

// log answers with lines as text; with timestamps=true each has its time before it.
func (h runningHandlers) log(c echo.Context) error {
	environmentID, objectID, log, err := h.reachLog(c)
	if err != nil {
		return err
	}
	stamped := c.QueryParam("timestamps") == "true"
	response := c.Response()
	begin := func() {
		if !response.Committed {
			response.Header().Set(echo.HeaderContentType, "text/plain; charset=utf-8")
			response.Header().Set("X-Content-Type-Options", "nosniff") // a browser must not read a pod's text as a page
			response.Header().Set(echo.HeaderCacheControl, "no-store")
			response.WriteHeader(http.StatusOK)
		}
	}
	err = h.clusters.ReadLog(c.Request().Context(), environmentID, objectID, log, func(line access.LogLine) error {
		begin()
		text := line.Text + "\n"
		if stamped {
			text = line.Time.UTC().Format(time.RFC3339Nano) + " " + text
		}
		_, err := io.WriteString(response, text)
		return err
	})
	if err != nil {
		return asked(c, err)
	}
	begin()
	return nil
}

// logLineJSON is a line of a log.
type logLineJSON struct {
	Time time.Time `json:"time"`
	Text string    `json:"text"`
}

// linesJSON are lines that have come.
type linesJSON struct {
	Lines []logLineJSON `json:"lines"`
}

// happening is a line of a log, or a new state of its container.
type happening struct {
	line  *access.LogLine
	state string
}

// follow streams a log as server-sent events. "lines" has {"lines": [{"time", "text"}]}, whose id is the time of the last one. "state" has the state of a
// container that does not run. "end" is the last, with the pod's end. A client that returns with Last-Event-ID continues there. A stream that ends without
// "end" was interrupted, and the client asks for it again.
func (h runningHandlers) follow(c echo.Context) error {
	environmentID, objectID, log, err := h.reachLog(c)
	if err != nil {
		return err
	}
	if log.Previous {
		return fault.New(fault.Invalid, "The log of a former run has ended: read it without /events")
	}
	if at, err := time.Parse(time.RFC3339Nano, c.Request().Header.Get("Last-Event-ID")); err == nil {
		log.After, log.Tail = at, mostTail
	}
	ctx, cancel := context.WithCancel(c.Request().Context())
	defer cancel()
	happenings, ended := make(chan happening, burst), make(chan error, 1)
	pass := func(one happening) error {
		select {
		case happenings <- one:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	var end string
	go func() {
		ended <- panics.Run(func() (err error) {
			end, err = h.clusters.FollowLog(ctx, environmentID, objectID, log, func(line access.LogLine) error { return pass(happening{line: &line}) },
				func(state string) error { return pass(happening{state: state}) })
			return err
		})
		close(happenings)
	}()
	stream := newEventStream(c, h.limits)
	defer stream.close()
	err = passOn(ctx, stream, happenings, h.limits.Idle)
	cancel()
	for range happenings { // the reader ends before its answer does
	}
	failed := <-ended
	switch {
	case errors.Is(err, errUnread):
		return nil
	case err != nil, c.Request().Context().Err() != nil:
		return stream.leave(c.Request().Context())
	case failed != nil:
		return asked(c, failed)
	}
	_ = stream.send("end", "", stateJSON{end}) // a client that has gone needs no end
	return nil
}

// passOn forwards events, joining lines that are there already, until there are no more.
func passOn(ctx context.Context, stream *eventStream, happenings <-chan happening, idle time.Duration) error {
	ticker := time.NewTicker(idle)
	defer ticker.Stop()
	var waiting []logLineJSON
	size := 0
	flush := func() error {
		if len(waiting) == 0 {
			return nil
		}
		sent := linesJSON{waiting}
		waiting, size = nil, 0
		return stream.send("lines", sent.Lines[len(sent.Lines)-1].Time.UTC().Format(time.RFC3339Nano), sent)
	}
	for {
		if len(waiting) == burst || size >= burstBytes || len(happenings) == 0 {
			if err := flush(); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
			if err := stream.idle(); err != nil {
				return err
			}
		case one, more := <-happenings:
			switch {
			case !more:
				return flush()
			case one.line != nil:
				waiting = append(waiting, logLineJSON{one.line.Time.UTC(), one.line.Text})
				size += len(one.line.Text)
			default:
				if err := flush(); err != nil {
					return err
				}
				if err := stream.send("state", "", stateJSON{one.state}); err != nil {
					return err
				}
			}
		}
	}
}

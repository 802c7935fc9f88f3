package keeper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/burano/burano/internal/blackbox"
	"github.com/burano/burano/internal/memory"
	"github.com/burano/burano/internal/panics"
	"github.com/burano/burano/orchestrator/desired"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/store"
)

const (
	// spread is the random part of an interval, so that environments which were deployed together are not checked together.
	spread = 0.2
	// unlooked is the kind of the finding that a duty's check failed.
	unlooked = "not-looked-at"
	// undeployed is the pause before the next check of an environment that was never deployed. The end of a task makes it due.
	undeployed = time.Hour
)

// errEndedServers is the reason why an environment is not checked for a day.
var errEndedServers = errors.New("looks at it ended the server three times while nothing else ran: it is not looked at for a day after the last time, or until another version of Burano runs")

// look has the due duties check an environment, stores their findings, and starts a repair.
func (h *holding) look(ctx context.Context, claim store.Claim, began time.Time) {
	log := h.Logger.With("environment", claim.EnvironmentID)
	key := blackbox.Key([]byte(blackbox.Look), []byte(claim.EnvironmentID))
	var environment *Environment
	err := errEndedServers
	if !h.Running.Refused(key) {
		note := h.Running.Begin(blackbox.Work{Kind: blackbox.Look, What: "look at environment " + claim.EnvironmentID, Key: key})
		defer note.End()
		environment, err = h.environment(ctx, claim)
	}
	if errors.Is(err, store.ErrNotFound) {
		return // it was removed, with its keeper
	}
	if err != nil {
		if ctx.Err() == nil {
			log.WarnContext(ctx, "an environment could not be looked at; trying again", "error", err)
		}
		environment = nil
	}
	looks := h.due(claim)
	if environment != nil {
		defer environment.Close()
		account := h.Memory.Account(environment.ProjectID)
		defer account.Close()
		ctx := memory.With(ctx, account)
		var all sync.WaitGroup
		for _, one := range looks {
			if _, also := one.duty.(Sleeper); also || environment.Sleeps.State == store.Awake {
				all.Go(func() { one.run(ctx, h.Keeper, environment) })
			}
		}
		all.Wait()
	}
	if ctx.Err() != nil {
		return // an interrupted check has no result; the claim is given back
	}
	now, chance := claim.Now+micros(time.Since(began)), rand.Float64()
	looked := store.Looked{Due: store.Dues{}, Again: again, Mends: h.mends}
	for _, one := range looks {
		looked.Due[one.duty.Name()] = now + micros(jittered(one.next(), chance))
		if environment == nil {
			looked.Due[one.duty.Name()] = now + micros(jittered(undeployed, chance))
			if err != nil {
				looked.Due[one.duty.Name()] = now + micros(jittered(time.Minute, chance))
			}
			continue
		}
		if one.err == nil {
			looked.Duties = append(looked.Duties, one.duty.Name())
		}
		looked.Findings = append(looked.Findings, one.findings()...)
	}
	standing, err := h.Store.Keepers().EndLook(ctx, claim, looked)
	switch {
	case errors.Is(err, store.ErrFenced), errors.Is(err, store.ErrNotFound):
		return // another server checks it, or it is gone
	case err != nil:
		if ctx.Err() == nil {
			log.WarnContext(ctx, "what was found in an environment could not be kept; it is looked at again when the lease has run out", "error", err)
		}
		return
	}
	h.repair(ctx, claim, now, standing, looks)
}

func micros(d time.Duration) store.Time { return store.Time(d.Microseconds()) }

// jittered is about as long, by a chance between 0 and 1. All duties of a check use the same chance, so that duties of one interval stay
// together.
func jittered(d time.Duration, chance float64) time.Duration {
	return time.Duration(float64(d) * (1 - spread/2 + spread*chance))
}

// environment reads the duties' view of an environment; nil where nothing was ever deployed.
func (h *holding) environment(ctx context.Context, claim store.Claim) (*Environment, error) {
	row, err := h.Store.Environments().Kept(ctx, claim.EnvironmentID)
	if err != nil || row.Model.ObjectsCopy == nil {
		return nil, err
	}
	environment := &Environment{ID: row.ID, ProjectID: row.ProjectID, Name: row.Name, Found: claim.Found, Failed: row.Failed, Model: row.Model.Objects, Fence: uint64(claim.TaskFence), Alive: h.lease.Check,
		Project: func(ctx context.Context, region string) (*openstack.Project, error) {
			project, err := h.projects.of(ctx, row.ID)
			if err != nil {
				return nil, err
			}
			own, _ := row.Model.ObjectsCopy["region"].(string)
			return project.In(ctx, cmp.Or(region, own))
		}}
	if environment.Sleeps, err = h.Store.Hibernations().Of(ctx, row.ID); err != nil {
		return nil, err
	}
	ids, err := h.Clusters(ctx, row.ID)
	if err != nil {
		return nil, err
	}
	objects(row.Model.ObjectsCopy, func(id string, properties map[string]any) {
		if slices.Contains(ids, id) {
			cluster, err := desired.ReadStored(id, properties)
			if err != nil { // the properties of these values count as not set
				h.Logger.WarnContext(ctx, "the stored model has values that its classes do not allow", "environment", row.ID, "cluster", id, "error", err)
			}
			environment.Clusters = append(environment.Clusters, cluster)
		}
		_, sized := properties["flavor"] // networks and volumes have ids in the cloud, too
		if server, _ := properties["openstackId"].(string); server != "" && sized {
			name, _ := properties["name"].(string)
			region, _ := properties["regionName"].(string)
			environment.Servers = append(environment.Servers, Server{ObjectID: id, Name: name, ID: server, Region: region})
		}
	})
	slices.SortFunc(environment.Clusters, func(a, b *desired.Cluster) int { return slices.Index(ids, a.ID) - slices.Index(ids, b.ID) })
	return environment, nil
}

// objects calls found for each object in a model.
func objects(value any, found func(id string, properties map[string]any)) {
	switch v := value.(type) {
	case map[string]any:
		if header, ok := v["?"].(map[string]any); ok {
			if id, ok := header["id"].(string); ok {
				found(id, v)
			}
		}
		for key, element := range v {
			if key != "?" {
				objects(element, found)
			}
		}
	case []any:
		for _, element := range v {
			objects(element, found)
		}
	}
}

// due are the duties that are due, or will be before the most frequent ones can be due again: duties that look together read the environment
// once.
func (h *holding) due(claim store.Claim) []*lookOf {
	every := longestPause
	for _, duty := range h.Duties {
		every = min(every, duty.Every())
	}
	soon := claim.Now + micros(time.Duration(spread/2*float64(every)))
	var looks []*lookOf
	for _, duty := range h.Duties {
		if claim.Duties[duty.Name()] <= soon {
			looks = append(looks, &lookOf{duty: duty})
		}
	}
	return looks
}

// lookOf is one duty's check of one environment.
type lookOf struct {
	duty   Duty
	result Result
	err    error
}

func (l *lookOf) run(ctx context.Context, k *Keeper, environment *Environment) {
	began := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, lookTimeout, fmt.Errorf("it took longer than %s", lookTimeout))
	defer cancel()
	l.err = panics.Run(func() (err error) {
		l.result, err = l.duty.Look(ctx, environment)
		return err
	})
	k.metrics.looked(l.duty.Name(), l.err, time.Since(began))
	if l.err != nil {
		k.Logger.DebugContext(ctx, "a duty could not look at an environment", "environment", environment.ID, "duty", l.duty.Name(), "error", l.err)
	}
}

// next is the pause before the next check.
func (l *lookOf) next() time.Duration {
	if l.err == nil && l.result.Next > 0 {
		return min(l.result.Next, l.duty.Every())
	}
	return l.duty.Every()
}

// The limits of a check's findings: parts of them come from a cluster's machines.
const (
	mostFindings = 1000
	longestText  = 8 << 10 // bytes of each text of a finding
	longestName  = 512     // bytes of its subject
)

// cut is the beginning of a text that is too long.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "…"
}

// findings are the findings of a check, as rows.
func (l *lookOf) findings() []store.Finding {
	if l.err != nil {
		return []store.Finding{{Duty: l.duty.Name(), Kind: unlooked, Severity: string(Warning),
			Text:  cut(fmt.Sprintf("What the duty %q looks after could not be looked at: %v", l.duty.Name(), l.err), longestText),
			Mends: "It is looked at again by itself; what was found before is shown as it was"}}
	}
	var rows []store.Finding
	for _, one := range l.result.Findings[:min(len(l.result.Findings), mostFindings)] {
		row := one.row(l.duty.Name())
		if !slices.ContainsFunc(rows, row.Same) {
			rows = append(rows, row)
		}
	}
	return rows
}

// row is the finding without the database's columns.
func (f Finding) row(duty string) store.Finding {
	return store.Finding{Duty: duty, ObjectID: f.ObjectID, Kind: f.Kind, Subject: cut(f.Subject, longestName), Severity: string(f.Severity), Text: cut(f.Text, longestText), Mends: cut(f.Mends, longestText), Repairable: f.Repair != nil,
		Routine: f.Repair != nil && f.Repair.Routine}
}

// mends is the remedy of a finding, once the number of its repairs is known.
func (k *Keeper) mends(row store.Finding) string {
	if row.Repairable && !row.Routine && row.Tries >= int64(k.Tries) {
		return fmt.Sprintf("It was repaired %d times, which did not help, and is not any more: see the deployment %s and its log", row.Tries, row.TaskID)
	}
	return row.Mends
}

// repair starts the repair of one of the open findings, the worst and oldest first.
func (h *holding) repair(ctx context.Context, claim store.Claim, now store.Time, standing []store.Finding, looks []*lookOf) {
	slices.SortStableFunc(standing, func(a, b store.Finding) int { return rank(a.Severity) - rank(b.Severity) })
	for _, row := range standing {
		repair := repairOf(row, looks)
		if repair == nil || row.NextTry > now || !repair.Routine && (row.Tries >= int64(h.Tries) || time.Since(row.Opened.Time()) < h.RepairAfter) {
			continue
		}
		pause := min(longestPause, h.Pause<<min(row.Tries, 10))
		action, most := store.Action{ObjectID: repair.ObjectID, Method: repair.Method, Args: arguments(repair.Args)}, h.Repairs
		sleeps := (store.Task{EnvironmentID: claim.EnvironmentID, Action: action}).Sleeps()
		if sleeps {
			most = h.Hibernations
		}
		task, err := h.Store.Tasks().SubmitRepair(ctx, store.Repair{Finding: row, TaskFence: claim.TaskFence, Pause: pause, Most: most, AfterFailure: repair.AfterFailure,
			Cloud: repair.Cloud, Action: action, Text: repair.Text})
		switch {
		case err == nil:
			h.metrics.repairs.WithLabelValues(row.Duty, row.Kind).Inc()
			h.Logger.InfoContext(ctx, "a repair was started", "environment", claim.EnvironmentID, "finding", row.Kind, "subject", row.Subject, "method", repair.Method,
				"task", task.ID, "try", row.Tries+1)
			h.Wake()
			return
		case errors.Is(err, store.ErrRevoked), sleeps && errors.Is(err, store.ErrBusy):
			continue // another one may need no delegation, and not wait for its turn to sleep
		case errors.Is(err, store.ErrBusy), errors.Is(err, store.ErrNotFound):
			return // the next look sees
		case ctx.Err() == nil:
			h.Logger.WarnContext(ctx, "a repair could not be started; trying again with the next look", "environment", claim.EnvironmentID, "finding", row.Kind, "error", err)
			return
		}
	}
}

func rank(severity string) int {
	return slices.Index([]Severity{Critical, Warning, Info}, Severity(severity))
}

func arguments(args map[string]any) map[string]any {
	if args == nil {
		return map[string]any{}
	}
	return args
}

// repairOf is the repair of a finding that a duty has just returned.
func repairOf(row store.Finding, looks []*lookOf) *Repair {
	for _, one := range looks {
		for _, found := range one.result.Findings {
			if found.Repair != nil && row.Same(found.row(one.duty.Name())) {
				return found.Repair
			}
		}
	}
	return nil
}

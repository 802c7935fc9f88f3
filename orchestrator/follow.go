package orchestrator

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/orchestrator/store"
)

const (
	// followPoll is how often a followed deployment is read without a notification: another process may run it.
	followPoll = time.Second
	// followed is how many of the newest reports are in memory for followers; a follower who is further behind reads the
	// rows.
	followed = 512
	// behind is how many rows a follower who is further behind reads at a time.
	behind = 256
)

// Follower gets a deployment's former and new reports. An error of its functions ends the following of the deployment.
type Follower struct {
	// Report is called for each line of the log whose number is above After.
	Report func(Report) error
	// State is called with the deployment's state, at first and after each change.
	State func(state string) error
	// Idle is called after each interval Every without news; nil: never.
	Idle  func() error
	Every time.Duration
	After int64
}

// Follow calls the follower of a deployment until that has ended, and returns the deployment's state then. A deletion that went well takes its log with
// it; its state is success. The state of a task whose environment was abandoned is "abandoned". It returns early with the error of ctx or of the follower.
//
// However many follow a deployment in this process, its rows are read once for all of them.
func (s Deployments) Follow(ctx context.Context, caller identity.Caller, deploymentID string, follower Follower) (state string, err error) {
	if _, err := s.mayWatch(ctx, caller, deploymentID); err != nil {
		return "", err
	}
	watched, release := s.watched.join(deploymentID)
	defer release()
	idle := time.NewTimer(follower.Every)
	defer idle.Stop()
	after := follower.After
	for {
		seen, changed := watched.seen()
		if after, err = s.catchUp(ctx, deploymentID, seen, after, follower.Report); err != nil {
			return "", err
		}
		if seen.gone {
			return s.gone(ctx, deploymentID)
		}
		if seen.looked {
			now := deploymentState(seen.state.Finished != nil, seen.state.Counts)
			if seen.state.Finished != nil {
				return now, nil
			}
			if now != state {
				if err := follower.State(now); err != nil {
					return "", err
				}
				state = now
			}
		}
		var quiet <-chan time.Time
		if follower.Idle != nil {
			idle.Reset(follower.Every)
			quiet = idle.C
		}
		for waiting := true; waiting; {
			select {
			case <-ctx.Done():
				return "", ctx.Err()
			case <-changed:
				waiting = false
			case <-quiet:
				if err := follower.Idle(); err != nil {
					return "", err
				}
				idle.Reset(follower.Every)
			}
		}
	}
}

// catchUp reports the lines of seen above the number after, and returns the number of the last line.
func (s Deployments) catchUp(ctx context.Context, deploymentID string, seen sight, after int64, report func(Report) error) (int64, error) {
	for after < seen.from {
		rows, err := s.store.Reports().List(ctx, deploymentID, after, behind)
		if err != nil {
			return after, err
		}
		if len(rows) == 0 {
			break
		}
		for _, row := range rows {
			if row.Number > seen.last {
				return after, nil // the next read has it, with the state then
			}
			if err := report(seenReport(row)); err != nil {
				return after, err
			}
			after = row.Number
		}
	}
	for _, row := range seen.reports {
		if row.Number > after {
			if err := report(seenReport(row)); err != nil {
				return after, err
			}
			after = row.Number
		}
	}
	return after, nil
}

// sight is the last read state of a deployment. It is not changed any more.
type sight struct {
	looked  bool
	gone    bool // with its environment
	state   store.TaskState
	reports []store.Report // the newest ones
	from    int64          // reports has all lines above this number
	last    int64          // the number of the last one
}

// differs is true if the other sight has news for followers.
func (s sight) differs(other sight) bool {
	ended := func(s sight) bool { return s.state.Finished != nil }
	return s.looked != other.looked || s.gone != other.gone || s.last != other.last || s.state.Counts != other.state.Counts || ended(s) != ended(other)
}

// watched are the deployments with followers in this process.
type watched struct {
	store *store.Store
	mutex sync.Mutex
	tasks map[string]*watchedTask
}

// watchedTask is read once for all its followers.
type watchedTask struct {
	followers int // under the mutex of watched
	end       context.CancelFunc

	mutex   sync.Mutex
	current sight
	changed chan struct{} // closed when there is a newer one
}

// join begins to watch a task, or shares the watch of other followers. release must be called.
func (w *watched) join(taskID string) (task *watchedTask, release func()) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	task = w.tasks[taskID]
	if task == nil {
		ctx, cancel := context.WithCancel(context.Background()) // release ends it
		task = &watchedTask{end: cancel, changed: make(chan struct{})}
		w.tasks[taskID] = task
		go task.watch(ctx, w.store, taskID)
	}
	task.followers++
	return task, func() {
		w.mutex.Lock()
		defer w.mutex.Unlock()
		if task.followers--; task.followers == 0 {
			task.end()
			delete(w.tasks, taskID)
		}
	}
}

// seen returns the last state, and a channel that is closed when there is another.
func (t *watchedTask) seen() (sight, <-chan struct{}) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.current, t.changed
}

// watch reads the task whenever it has changed, until ctx ends or the task has.
func (t *watchedTask) watch(ctx context.Context, rows *store.Store, taskID string) {
	woken, release := rows.Tasks().Watch(taskID)
	defer release()
	ticker := time.NewTicker(followPoll)
	defer ticker.Stop()
	for now := (sight{}); ; {
		next, err := look(ctx, rows, taskID, now)
		// After an error of the database it is read again: followers wait.
		if err == nil && now.differs(next) {
			t.show(next)
			now = next
		}
		if now.gone || now.state.Finished != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-woken:
		case <-ticker.C:
		}
	}
}

func (t *watchedTask) show(now sight) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.current = now
	close(t.changed)
	t.changed = make(chan struct{})
}

// look reads the news of a task.
func look(ctx context.Context, rows *store.Store, taskID string, former sight) (sight, error) {
	// The task is read before its log: the end of a task is written together with the log's last line.
	state, err := rows.Tasks().State(ctx, taskID)
	if errors.Is(err, store.ErrNotFound) {
		former.gone = true
		return former, nil
	}
	if err != nil {
		return sight{}, err
	}
	now := sight{looked: true, state: state, reports: former.reports, from: former.from, last: former.last}
	if !former.looked { // each follower reads former rows that are new to it
		now.last, err = rows.Reports().LastNumber(ctx, taskID)
		now.from = now.last
		return now, err
	}
	added, err := rows.Reports().List(ctx, taskID, former.last, 0)
	if err != nil || len(added) == 0 {
		return now, err
	}
	now.last = added[len(added)-1].Number
	// Readers of the former state have a part of the same array, which is only added to.
	now.reports = append(now.reports, added...)
	if over := len(now.reports) - followed; over > 0 {
		now.from = now.reports[over-1].Number
		now.reports = append([]store.Report(nil), now.reports[over:]...)
	}
	return now, nil
}

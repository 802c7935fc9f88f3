package store

import "sync"

// watchers wakes the followers of a task in this process. It holds no events: a woken follower reads the rows.
type watchers struct {
	mutex sync.Mutex
	tasks map[string]map[chan struct{}]bool
}

// Watch returns a channel that gets a value, soon, after every change of the task's reports, steps or state that this process
// writes; several changes may share one. release must be called.
func (s Tasks) Watch(taskID string) (changed <-chan struct{}, release func()) {
	channel := make(chan struct{}, 1)
	w := &s.watchers
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.tasks == nil {
		w.tasks = map[string]map[chan struct{}]bool{}
	}
	if w.tasks[taskID] == nil {
		w.tasks[taskID] = map[chan struct{}]bool{}
	}
	w.tasks[taskID][channel] = true
	return channel, func() {
		w.mutex.Lock()
		defer w.mutex.Unlock()
		delete(w.tasks[taskID], channel)
		if len(w.tasks[taskID]) == 0 {
			delete(w.tasks, taskID)
		}
	}
}

// changed wakes the task's watchers; called after the change is durable.
func (w *watchers) changed(taskID string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for channel := range w.tasks[taskID] {
		select {
		case channel <- struct{}{}:
		default: // it is awake already
		}
	}
}

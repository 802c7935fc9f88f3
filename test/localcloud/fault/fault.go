// Package fault lets calls of the local cloud go wrong once, as they do in a cloud that is upgraded, restarted or too busy.
package fault

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"slices"
	"sync"
	"time"
)

// Kind is how a call goes wrong.
type Kind string

// The kinds of faults.
const (
	Internal    Kind = "500"
	BadGateway  Kind = "502"
	Unavailable Kind = "503"   // with Retry-After
	Conflict    Kind = "409"   //
	Reset       Kind = "reset" // the connection is reset, and nothing was done
	Delay       Kind = "delay" // it is done late
	Lost        Kind = "lost"  // it is done, and the connection is reset in place of the answer
)

// Kinds are all of them.
var Kinds = []Kind{Internal, BadGateway, Unavailable, Conflict, Reset, Delay, Lost}

const (
	retryAfter = 1 // seconds, with 503
	delay      = time.Second
)

// Fault is the fault of one call.
type Fault struct {
	Method string `json:"method,omitempty"` // "" for any
	Path   string `json:"path,omitempty"`   // regular expression for the whole path with its service, "" for any
	// Request is the id of the request on whose behalf the call must be made (X-Openstack-Request-Id), "" for any call and "*" for one
	// that names any.
	Request string `json:"request,omitempty"`
	Nth     int    `json:"nth,omitempty"` // of the calls that match from now on; 0 is the first
	Kind    Kind   `json:"kind"`
}

// Call is one that was made.
type Call struct {
	Method  string `json:"method"`
	Path    string `json:"path"`
	Request string `json:"request,omitempty"`
	Fault   Kind   `json:"fault,omitempty"` // its fault
}

// Faults are the ordered ones that did not happen yet, and the calls since the last Clear. It is safe for concurrent use.
type Faults struct {
	mutex   sync.Mutex
	ordered []*order
	calls   []Call
	record  bool
}

type order struct {
	Fault
	path *regexp.Regexp
	seen int
}

// Order has faults happen, each once. From the first one on, also of none, calls are recorded.
func (f *Faults) Order(faults ...Fault) error {
	var made []*order
	for _, fault := range faults {
		if !slices.Contains(Kinds, fault.Kind) {
			return fmt.Errorf("the kind of a fault is %q: name one of %v", fault.Kind, Kinds)
		}
		path, err := regexp.Compile("^(?:" + fault.Path + ")$")
		if err != nil {
			return fmt.Errorf("the path of a fault: %w", err)
		}
		if fault.Path == "" {
			path = regexp.MustCompile("")
		}
		made = append(made, &order{Fault: fault, path: path})
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.ordered, f.record = append(f.ordered, made...), true
	return nil
}

// Clear forgets the faults that did not happen and the calls, and records no more.
func (f *Faults) Clear() {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.ordered, f.calls, f.record = nil, nil, false
}

// Pending are the faults that have not happened.
func (f *Faults) Pending() []Fault {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	pending := []Fault{}
	for _, one := range f.ordered {
		pending = append(pending, one.Fault)
	}
	return pending
}

// Calls returns the recorded calls.
func (f *Faults) Calls() []Call {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return slices.Clone(f.calls)
}

// meet records a call and returns its fault, "" for none.
func (f *Faults) meet(r *http.Request) (kind Kind) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if !f.record {
		return ""
	}
	id := r.Header.Get("X-Openstack-Request-Id")
	// One call meets one fault; the others wait for their own.
	for i, one := range f.ordered {
		if one.Method != "" && one.Method != r.Method || !one.on(id) || !one.path.MatchString(r.URL.Path) {
			continue
		}
		if one.seen++; kind == "" && one.seen >= max(one.Nth, 1) {
			kind = one.Kind
			f.ordered[i] = nil
		}
	}
	f.ordered = slices.DeleteFunc(f.ordered, func(one *order) bool { return one == nil })
	f.calls = append(f.calls, Call{Method: r.Method, Path: r.URL.Path, Request: id, Fault: kind})
	return kind
}

// on reports whether a fault applies to a call with this id of a request.
func (f Fault) on(id string) bool {
	return f.Request == "" || f.Request == id || f.Request == "*" && id != ""
}

// Wrap lets the calls of a cloud meet their faults.
func (f *Faults) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch kind := f.meet(r); kind {
		case Internal, BadGateway, Unavailable, Conflict:
			answer(w, kind)
		case Reset:
			reset(w)
		case Lost:
			next.ServeHTTP(nowhere{http.Header{}}, r)
			reset(w)
		case Delay:
			timer := time.NewTimer(delay)
			defer timer.Stop()
			select {
			case <-timer.C:
				next.ServeHTTP(w, r)
			case <-r.Context().Done():
			}
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func answer(w http.ResponseWriter, kind Kind) {
	status := map[Kind]int{Internal: 500, BadGateway: 502, Unavailable: 503, Conflict: 409}[kind]
	w.Header().Set("Content-Type", "application/json")
	if kind == Unavailable {
		w.Header().Set("Retry-After", fmt.Sprint(retryAfter))
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"code": status, "message": "a fault that was ordered"}})
}

// reset ends the connection so that the client's kernel hears of it at once.
func reset(w http.ResponseWriter) {
	connection, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // ends the connection too
	}
	if tcp, ok := connection.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = connection.Close()
}

// nowhere discards an answer.
type nowhere struct{ header http.Header }

func (n nowhere) Header() http.Header            { return n.header }
func (n nowhere) Write(text []byte) (int, error) { return len(text), nil }
func (n nowhere) WriteHeader(int)                {}

// ServeHTTP orders faults (POST of a list), returns pending ones and the calls (GET), and clears both (DELETE).
func (f *Faults) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodGet:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"pending": f.Pending(), "calls": f.Calls()})
	case http.MethodPost:
		var faults []Fault
		err := json.NewDecoder(r.Body).Decode(&faults)
		if err == nil {
			err = f.Order(faults...)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	case http.MethodDelete:
		f.Clear()
		w.WriteHeader(http.StatusNoContent)
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

package openstack

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/burano/burano/internal/requestid"
)

// Call is a call of the cloud that has ended. Each try of one that was made again is one of its own.
type Call struct {
	Service string // its type in the service catalog, such as "orchestration"; "unknown" when none has the address
	Method  string
	Status  int // 0 when there was no answer
	Took    time.Duration
}

// observedTransport reports each call, and gives it the id of the request on whose behalf it is made, which OpenStack's services write
// into their logs.
type observedTransport struct {
	next  http.RoundTripper
	named func(*url.URL) string
	done  func(Call) // nil for none
}

// RoundTrip implements http.RoundTripper.
func (t observedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if id := requestid.From(request.Context()); id != "" {
		request = request.Clone(request.Context())
		request.Header.Set(requestid.Header, id)
	}
	began := time.Now()
	answer, err := t.next.RoundTrip(request)
	if t.done != nil {
		call := Call{Service: t.named(request.URL), Method: request.Method, Took: time.Since(began)}
		if err == nil {
			call.Status = answer.StatusCode
		}
		t.done(call)
	}
	return answer, err
}

// addresses knows the addresses of services, from look-ups in service catalogs. It is safe for concurrent use.
type addresses struct {
	mutex    sync.RWMutex
	services map[string]string // by the beginning of the address
}

// note makes a client's look-ups known, and caches their results. For each look-up gophercloud asks the service again for its versions, and the catalog
// stays the one of the client's first token in any case.
func (a *addresses) note(provider *gophercloud.ProviderClient) {
	locate := provider.EndpointLocator
	if locate == nil {
		return
	}
	var found sync.Map // addresses by look-up
	provider.EndpointLocator = func(options gophercloud.EndpointOpts) (string, error) {
		asked := fmt.Sprint(options)
		if address, known := found.Load(asked); known {
			return address.(string), nil
		}
		address, err := locate(options)
		if err == nil {
			found.Store(asked, address)
			a.add(address, options.Type)
		}
		return address, err
	}
}

func (a *addresses) add(address, service string) {
	parsed, err := url.Parse(address)
	if err != nil {
		return
	}
	// Projects have paths of their own below a service's, and versions are asked for beside them.
	path, _, _ := strings.Cut(strings.TrimPrefix(parsed.Path, "/"), "/v")
	if strings.HasPrefix(path, "v") {
		path = ""
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.services[parsed.Host+"/"+path] = service
}

// of names the service that answers at an address.
func (a *addresses) of(address *url.URL) string {
	a.mutex.RLock()
	defer a.mutex.RUnlock()
	best, service := "", "unknown"
	for beginning, name := range a.services {
		if strings.HasPrefix(address.Host+address.Path, beginning) && len(beginning) > len(best) {
			best, service = beginning, name
		}
	}
	return service
}

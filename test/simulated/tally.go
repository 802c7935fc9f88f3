package simulated

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Tally counts the server's requests, by kind, with the bytes that it sends. A nil one counts nothing.
type Tally struct {
	mutex sync.Mutex
	kinds map[string]*counted
}

type counted struct{ requests, bytes int }

// NewTally counts from now on.
func NewTally() *Tally { return &Tally{kinds: map[string]*counted{}} }

// add counts a request of a kind.
func (t *Tally) add(bytes int, format string, args ...any) {
	if t == nil {
		return
	}
	kind := fmt.Sprintf(format, args...)
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.kinds[kind] == nil {
		t.kinds[kind] = &counted{}
	}
	t.kinds[kind].requests++
	t.kinds[kind].bytes += max(0, bytes)
}

// Write writes the counts since the last call, for each of so many clusters, and begins anew.
func (t *Tally) Write(to io.Writer, title string, clusters int) {
	if t == nil {
		return
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	fmt.Fprintf(to, "%s: requests and bytes for each cluster\n", title)
	for _, kind := range slices.Sorted(maps.Keys(t.kinds)) {
		one := t.kinds[kind]
		fmt.Fprintf(to, "%8.2f %9d  %s\n", float64(one.requests)/float64(clusters), one.bytes/clusters, kind)
	}
	t.kinds = map[string]*counted{}
}

// anID matches the parts in which requests of a kind differ.
var anID = regexp.MustCompile(`[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}|many-[^/]*|murano-[^/]*|burano-[0-9a-z]{6,}`)

// http counts a request of HTTP.
func (t *Tally) http(what string, request *http.Request) {
	if t == nil {
		return
	}
	path, query := anID.ReplaceAllString(request.URL.Path, "{}"), slices.Sorted(maps.Keys(request.URL.Query()))
	if len(query) > 0 {
		path += "?" + strings.Join(query, "&")
	}
	t.add(int(request.ContentLength), "%s %s %s", what, request.Method, path)
}

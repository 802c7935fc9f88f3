package haproxy_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/gateway/route"
)

func TestRequestsAreTriedAgain(t *testing.T) {
	l := ruleLab{newWebLab(t)}
	var mutex sync.Mutex
	asked := make(map[string]int) // by the query
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mutex.Lock()
		asked[r.URL.RawQuery]++
		fails, err := strconv.Atoi(r.URL.Query().Get("fails"))
		done := err != nil || asked[r.URL.RawQuery] > fails
		mutex.Unlock()
		if done {
			return
		}
		switch r.URL.Path {
		case "/codes", "/once":
			w.WriteHeader(http.StatusServiceUnavailable)
		case "/other":
			w.WriteHeader(http.StatusInternalServerError)
		case "/ends":
			panic(http.ErrAbortHandler)
		case "/slow":
			<-r.Context().Done()
		}
	}))
	t.Cleanup(server.Close)
	pool := poolAt("flaky", "http", server.Listener)
	retry := route.Filters{Retry: &route.Retry{Attempts: 2, Codes: []int{502, 503}}, Timeout: 500 * time.Millisecond}
	h := route.HTTP{Pools: []route.Pool{pool}, Sites: []route.Site{httpRoute("one", 0, l.path("", "/", through(pool, retry)), l.path("", "/once", all(pool)))}}
	require.NoError(t, route.Part{Site: &h.Sites[0]}.Validate())
	l.serve(t, h)
	for i, one := range []struct {
		path                 string
		fails, status, asked int
	}{
		{"/codes", 0, 200, 1}, {"/codes", 1, 200, 2}, {"/codes", 2, 200, 3}, {"/codes", 3, 503, 3}, {"/other", 1, 500, 1},
		{"/ends", 2, 200, 3}, {"/ends", 3, 502, 3}, {"/slow", 2, 200, 3}, {"/slow", 3, 504, 3}, {"/once", 1, 503, 1},
	} {
		query := fmt.Sprintf("case=%d&fails=%d", i, one.fails)
		response, _ := l.ask(t, "http://any.org"+one.path+"?"+query)
		require.Equal(t, one.status, response.StatusCode, "%+v", one)
		mutex.Lock()
		require.Equal(t, one.asked, asked[query], "%+v", one)
		mutex.Unlock()
	}
}

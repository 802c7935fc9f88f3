package openstack

import (
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/door"
)

// asking is a client of the cloud as the server has it.
func asking() *http.Client {
	return &http.Client{Transport: newTransport(nil, &addresses{services: map[string]string{}}, nil)}
}

func TestAnAnswerOfTheCloudWithoutEndIsLeftAndNotAskedForAgain(t *testing.T) {
	for name, one := range map[string]struct {
		kind, more string
		status     int
		packed     bool
	}{
		"JSON that is compressed":       {kind: "application/json", more: `"0000000000000000"`, packed: true},
		"JSON of things that are empty": {kind: "application/json", more: "[[{},{},{},{}],"},
		"bytes":                         {kind: "application/octet-stream", more: "0000000000000000"},
		"an error":                      {kind: "text/plain", more: "0000000000000000", status: http.StatusForbidden},
		"an outage":                     {kind: "text/plain", more: "0000000000000000", status: http.StatusServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				asked++
				w.Header().Set("Content-Type", one.kind)
				to := io.Writer(w)
				if one.packed {
					w.Header().Set("Content-Encoding", "gzip")
					to = gzip.NewWriter(w)
				}
				w.WriteHeader(max(one.status, http.StatusOK))
				more := strings.Repeat(one.more, 1<<10)
				for {
					if _, err := io.WriteString(to, more); err != nil {
						return
					}
				}
			}))
			t.Cleanup(server.Close)
			ctx := WithOutages(t.Context(), Outages{Patience: time.Minute})
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
			require.NoError(t, err)
			_, err = asking().Do(request)
			require.True(t, door.IsExceeded(err), "%v", err)
			require.Equal(t, 1, asked)
		})
	}
}

func TestAListWithoutEndIsLeft(t *testing.T) {
	for name, one := range map[string]struct{ server, bound string }{
		"of small pages":  {`{"id":"1","name":"a"}`, "1000 pages"},
		"of large pages":  {`{"id":"1","name":"` + strings.Repeat("x", 4<<20) + `"}`, "128 MiB"},
		"of empty things": {`{"id":"1","name":"a"` + strings.Repeat(`,"":{}`, 200_000) + `}`, "512 MiB when it is decoded"},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			var address string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked++
				w.Header().Set("Content-Type", "application/json")
				_, _ = fmt.Fprintf(w, `{"servers":[%s],"servers_links":[{"rel":"next","href":"%s/servers/detail?marker=%d"}]}`, one.server, address, asked)
			}))
			t.Cleanup(server.Close)
			address = server.URL
			client := &gophercloud.ServiceClient{ProviderClient: &gophercloud.ProviderClient{HTTPClient: *asking()}, Endpoint: server.URL + "/"}
			_, err := allPages(t.Context(), servers.List(client, servers.ListOpts{}))
			require.ErrorContains(t, err, "has more than "+one.bound)
			require.True(t, door.IsExceeded(err))
			require.LessOrEqual(t, asked, 1001)
		})
	}
}

func TestAnImageIsStreamedToItsFileAndAskedForAgainWhereItBreaksOff(t *testing.T) {
	data := strings.Repeat("0123456789abcdef", 2<<20) // more than an answer may have that is read whole
	sum := sha512.Sum512([]byte(data))
	size, begun := len(data), 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/file") {
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"id":"1","name":"n","size":%d,"os_hash_algo":"sha512","os_hash_value":"%s"}`, size, hex.EncodeToString(sum[:]))
			return
		}
		w.Header().Set("Content-Type", "application/octet-stream")
		if begun++; begun == 1 {
			_, _ = io.WriteString(w, strings.Repeat("x", 3<<20))
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, data)
	}))
	t.Cleanup(server.Close)
	provider := &gophercloud.ProviderClient{HTTPClient: *asking(), EndpointLocator: func(gophercloud.EndpointOpts) (string, error) { return server.URL + "/", nil }}
	project := Glance{provider: provider}
	download := func() (string, error) {
		file, err := os.Create(filepath.Join(t.TempDir(), "image"))
		require.NoError(t, err)
		ctx := WithOutages(t.Context(), Outages{Patience: time.Minute})
		failed := project.DownloadImage(ctx, "1", file, 1<<30, func(context.Context, int64) error { return nil })
		require.NoError(t, file.Close())
		content, err := os.ReadFile(file.Name())
		require.NoError(t, err)
		return string(content), failed
	}
	content, err := download()
	require.NoError(t, err)
	require.Equal(t, 2, begun)
	require.True(t, content == data)

	size = 1 << 20 // as Glance declares it, and more comes
	content, err = download()
	require.ErrorContains(t, err, "it has more than 1 MiB")
	require.LessOrEqual(t, len(content), 1<<20)
}

func TestAnObjectOfAContainerHasABound(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = io.CopyN(w, endless{}, map[string]int64{"piece": 4 << 20, "image": 4 << 30}[filepath.Base(r.URL.Path)])
	}))
	t.Cleanup(server.Close)
	s := &Service{Objects: Objects{provider: &gophercloud.ProviderClient{HTTPClient: *asking()}}}
	content, found, err := s.Object(context.Background(), server.URL+"/container", "piece")
	require.NoError(t, err)
	require.True(t, found)
	require.Len(t, content, 4<<20)
	_, _, err = s.Object(context.Background(), server.URL+"/container", "image")
	require.True(t, door.IsExceeded(err), "%v", err)
}

type endless struct{}

func (endless) Read(into []byte) (int, error) { return len(into), nil }

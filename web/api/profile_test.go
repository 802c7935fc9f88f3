package api

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAdministratorsTakeProfilesWhereTheServerAllowsThem(t *testing.T) {
	const path = "/burano/v1/profiles/"
	s := newServer(t)
	s.call("admin", "", "GET", path+"heap", nil, 403)

	s = newServer(t, func(config *Config) { config.Profiles = true })
	for _, kind := range []string{"cpu", "heap"} {
		s.call("demo", "", "GET", path+kind, nil, 403)
	}
	s.call("admin", "", "GET", path+"cmdline", nil, 404)
	for _, seconds := range []string{"0", "31", "-1", "1.5", "x"} {
		s.call("admin", "", "GET", path+"cpu?seconds="+seconds, nil, 400)
	}
	take := func(query string) []byte {
		answer := s.send("GET", path+query, map[string]string{"X-Auth-Token": "{token:admin}"}, nil)
		require.Equal(t, http.StatusOK, answer.Code, answer.Body.String())
		unpacked, err := gzip.NewReader(bytes.NewReader(answer.Body.Bytes()))
		require.NoError(t, err)
		content, err := io.ReadAll(unpacked)
		require.NoError(t, err)
		return content
	}
	require.Contains(t, string(take("goroutine")), "TestAdministratorsTakeProfiles")
	require.Contains(t, string(take("heap")), "inuse_space")
	require.Contains(t, string(take("allocs")), "alloc_space")
	require.Contains(t, string(take("cpu?seconds=1")), "nanoseconds")
	require.Contains(t, string(take("cpu?seconds=1")), "nanoseconds", "one after another")
}

func TestOneProfileOfProcessorsIsTakenAtATime(t *testing.T) {
	s := newServer(t, func(config *Config) { config.Profiles = true })
	codes := make(chan int, 2)
	for range cap(codes) {
		go func() {
			codes <- s.send("GET", "/burano/v1/profiles/cpu?seconds=2", map[string]string{"X-Auth-Token": "{token:admin}"}, nil).Code
		}()
	}
	require.ElementsMatch(t, []int{http.StatusOK, http.StatusConflict}, []int{<-codes, <-codes})
}

package api

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestErrorsBelowBuranoAreJSONInPlainWords(t *testing.T) {
	s := newServer(t)
	for _, accept := range []string{"", "text/html", "application/json", "text/event-stream"} {
		recorder := s.send("GET", "/burano/v1/deployments/nope/events", map[string]string{"X-Auth-Token": "{token:demo}", "Accept": accept}, nil)
		require.Equal(t, 404, recorder.Code)
		require.JSONEq(t, `{"code": 404, "title": "Not Found", "message": "The resource could not be found: there is no deployment nope"}`, recorder.Body.String())
	}
}

package publish_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/gateway/publish"
	"github.com/burano/burano/gateway/route"
)

func TestRetriesOfHTTPRoutesKeepWithinTheirTimeouts(t *testing.T) {
	retries := func(text string) *route.Retry {
		sites := publish.SitesOf(gatewayWorld(t, []string{gatewayText}, routeText("again", `{parentRefs: [{name: edge, sectionName: plain}], rules: [{backendRefs: [{name: a, port: 80}], `+text+`}]}`)))
		paths := siteOf(sites, route.KindHTTPRoute, "again").Paths
		if len(paths) == 0 {
			return nil
		}
		return paths[0].Targets[0].Filters.Retry
	}
	for text, is := range map[string]*route.Retry{
		`retry: {}`: {Attempts: 3}, `retry: {attempts: 1, codes: [500, 504]}`: {Attempts: 1, Codes: []int{500, 504}},
		`retry: {attempts: 2, backoff: 0s}, timeouts: {request: 3s, backendRequest: 1s}`: {Attempts: 2}, `retry: {}, timeouts: {request: 0s}`: {Attempts: 3}, `retry: {}, timeouts: {backendRequest: 1s}`: {Attempts: 3},
		`retry: {attempts: 11}`: nil, `retry: {attempts: 0}`: nil, `retry: {codes: [429]}`: nil, `retry: {backoff: 100ms}`: nil,
		`retry: {attempts: 2}, timeouts: {request: 2s, backendRequest: 1s}`: nil, `retry: {}, timeouts: {request: 2s}`: nil,
	} {
		require.Equal(t, is, retries(text), text)
	}
}

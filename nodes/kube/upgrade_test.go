package kube

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAPIsAreInTheWayThatWereAskedForAndThatTheNewVersionDoesNotHave(t *testing.T) {
	metrics := []byte(`# HELP apiserver_request_total [STABLE] Counter of apiserver requests
# TYPE apiserver_request_total counter
apiserver_request_total{code="200",verb="GET"} 7
# HELP apiserver_requested_deprecated_apis [STABLE] Gauge of deprecated APIs that have been requested
# TYPE apiserver_requested_deprecated_apis gauge
apiserver_requested_deprecated_apis{group="",removed_release="",resource="componentstatuses",subresource="",version="v1"} 1
apiserver_requested_deprecated_apis{group="flowcontrol.apiserver.k8s.io",removed_release="1.32",resource="flowschemas",subresource="",version="v1beta3"} 1
apiserver_requested_deprecated_apis{group="flowcontrol.apiserver.k8s.io",removed_release="1.32",resource="flowschemas",subresource="status",version="v1beta3"} 1
apiserver_requested_deprecated_apis{group="example.k8s.io",removed_release="1.40",resource="things",subresource="",version="v1alpha1"} 1
apiserver_requested_deprecated_apis{group="example.k8s.io",removed_release="1.36",resource="unasked",subresource="",version="v1alpha1"} 0
`)
	found, err := removedAPIs(metrics, 36)
	require.NoError(t, err)
	require.Equal(t, []RemovedAPI{{"flowschemas", "flowcontrol.apiserver.k8s.io/v1beta3", "1.32"}}, found)
	require.Equal(t, "flowschemas of flowcontrol.apiserver.k8s.io/v1beta3", found[0].String())

	found, err = removedAPIs(nil, 36)
	require.NoError(t, err)
	require.Empty(t, found)
}

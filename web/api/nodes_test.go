package api

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLabelsOfANodeSayWhichOfThemBuranoHasSet(t *testing.T) {
	s := newServer(t)
	mine := s.populate("demo", "demos")
	path := "/burano/v1/environments/" + mine["environment"] + "/clusters/" + mine["cluster"] + "/nodes/"
	labels := s.call("reader", "", "GET", path+"murano-kube-2/labels", nil, 200)
	require.Equal(t, map[string]any{"disk": "fast", "theirs": "yes"}, field(labels, "labels"))
	require.Equal(t, map[string]any{"disk": "fast"}, field(labels, "set"))
	taints := s.call("reader", "", "GET", path+"murano-kube-2/taints", nil, 200)
	require.Equal(t, "gpu", field(taints, "taints", 0, "key"))
	require.Equal(t, []any{}, field(taints, "set"))
	s.call("demo", "", "GET", path+"nothing/labels", nil, 404)
}

func TestWhatChangesANodeIsCheckedBeforeATaskIsMade(t *testing.T) {
	s := newServer(t)
	mine := s.populate("demo", "demos")
	path := "/burano/v1/environments/" + mine["environment"] + "/clusters/" + mine["cluster"] + "/nodes/murano-kube-2"
	for _, body := range []map[string]any{{}, {"labels": map[string]any{}}, {"labels": "a"}, {"labels": map[string]any{"a": 1}}} {
		s.call("demo", "", "POST", path+"/labels", body, 400)
	}
	s.call("demo", "", "POST", path+"/taints", map[string]any{"taints": []any{}}, 400)
	s.call("demo", "", "DELETE", path+"/labels", nil, 400)
	s.call("demo", "", "POST", path+"/lock", map[string]any{"node": "another"}, 400)
	// The object of this server's environments is no cluster.
	for _, deed := range []string{"cordon", "uncordon", "lock", "unlock", "reboot", "replace"} {
		s.call("demo", "", "POST", path+"/"+deed, nil, 409)
	}
	s.call("demo", "", "POST", path+"/labels", map[string]any{"labels": map[string]any{"a": "b"}}, 409)
	s.call("demo", "", "DELETE", path+"/labels?key=a", nil, 409)
	s.call("reader", "", "POST", path+"/lock", nil, 403)
	s.call("other", "", "POST", path+"/lock", nil, 403)
}

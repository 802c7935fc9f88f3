package api

import (
	"encoding/json"
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
	for _, deed := range []string{"cordon", "uncordon", "lock", "unlock", "reboot", "replace", "swact"} {
		s.call("demo", "", "POST", path+"/"+deed, nil, 409)
	}
	s.call("demo", "", "POST", path+"/labels", map[string]any{"labels": map[string]any{"a": "b"}}, 409)
	s.call("demo", "", "DELETE", path+"/labels?key=a", nil, 409)
	s.call("reader", "", "POST", path+"/lock", nil, 403)
	s.call("other", "", "POST", path+"/lock", nil, 403)
}

func TestLabelsOfAHostHaveTheFormOfStarlingX(t *testing.T) {
	s := newServer(t)
	mine, others := s.populate("demo", "demos"), s.populate("other", "others")
	host := mine["host"]
	label := field(s.call("reader", "", "GET", "/v1/ihosts/"+host+"/labels", nil, 200), "labels", 0)
	require.Equal(t, map[string]any{"uuid": mine["hostlabel"], "host_uuid": host, "label": "disk=fast", "label_key": "disk", "label_value": "fast", "created_at": nil, "updated_at": nil, "created_by": nil}, label)
	s.call("demo", "", "GET", "/v1/ihosts/"+others["host"]+"/labels", nil, 404)
	s.call("demo", "", "GET", "/v1/ihosts/nothing/labels", nil, 400)
	for body, code := range map[string]int{`{}`: 400, `{"a": 1}`: 400, `{"disk": "slow"}`: 409} {
		var fields map[string]any
		require.NoError(t, json.Unmarshal([]byte(body), &fields))
		s.call("demo", "", "POST", "/v1/labels/"+host, fields, code)
	}
	s.call("demo", "", "POST", "/v1/labels/"+host+"?overwrite=maybe", map[string]any{"a": "b"}, 400)
	// The object of this server's environments is no cluster.
	s.call("demo", "", "POST", "/v1/labels/"+host+"?overwrite=true", map[string]any{"disk": "slow"}, 409)
	s.call("demo", "", "DELETE", "/v1/labels/"+mine["hostlabel"], nil, 409)
	s.call("demo", "", "DELETE", "/v1/labels/"+others["hostlabel"], nil, 404)
	s.call("demo", "", "DELETE", "/v1/labels/nothing", nil, 400)
	s.call("reader", "", "POST", "/v1/labels/"+host, map[string]any{"a": "b"}, 403)
}

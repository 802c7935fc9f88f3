package attachments

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/openstack"
)

// world is a cloud and a Kubernetes that perform each call at once, and record it.
type world struct {
	volumes []openstack.Volume
	records kube.Attachments
	servers map[string]openstack.ServerState
	mounted map[string]error // by node and volume; nil is a mount
	did     []string
}

func (w *world) note(format string, args ...any) error {
	w.did = append(w.did, fmt.Sprintf(format, args...))
	return nil
}

func (w *world) Tagged(context.Context, string, map[string]string) ([]openstack.Volume, error) {
	return w.volumes, nil
}

func (w *world) Detach(_ context.Context, id, server string) error {
	return w.note("detach %s from %s", id, server)
}

func (w *world) DropAttachment(_ context.Context, id string) error { return w.note("drop %s", id) }

func (w *world) Records(context.Context) (kube.Attachments, error) { return w.records, nil }

func (w *world) Again(_ context.Context, record kube.Attachment) error {
	return w.note("attach %s to %s again", record.Volume, record.Node)
}

func (w *world) Forget(_ context.Context, record kube.Attachment) error {
	return w.note("forget %s at %s", record.Volume, record.Node)
}

func (w *world) End(_ context.Context, volume kube.Volume, node string) error {
	return w.note("end %s at %s", volume.Name, node)
}

// cluster has the nodes a and b, and the machine m.
func (w *world) cluster() Cluster {
	return Cluster{ID: "e/c", Name: "kube", Servers: map[string]string{"a": "server-a", "b": "server-b", "m": ""}, Cloud: w, Kubernetes: w,
		Server: func(_ context.Context, id string) (openstack.ServerState, error) { return w.servers[id], nil },
		Mounts: func(_ context.Context, node, volume string) (bool, error) {
			err, mounted := w.mounted[node+" "+volume]
			return mounted && err == nil, err
		}}
}

func volume(status string, servers ...string) openstack.Volume {
	one := openstack.Volume{ID: "v", Name: "pvc-1", Status: status, Servers: servers, Attachments: map[string]string{}}
	for _, server := range servers {
		one.Attachments[server] = "attachment of " + server
	}
	return one
}

func TestWhatTheCloudAndKubernetesSayOfAttachmentsIsBroughtTogether(t *testing.T) {
	known := map[string]kube.Volume{"v": {Name: "pvc-1", Handle: "v", Claim: "default/data"}}
	registered := map[string]map[string]bool{"a": {}, "b": {}}
	record := func(node string, done, ending bool) kube.Attachment {
		return kube.Attachment{Name: "csi-" + node, Volume: "pvc-1", Handle: "v", Node: node, Done: done, Ending: ending, Version: "1"}
	}
	on := map[string]openstack.ServerState{"server-a": {Status: openstack.Active}, "server-b": {Status: openstack.Active}, "rescue": {Status: openstack.Active}}
	for name, test := range map[string]struct {
		world    world
		volumes  map[string]kube.Volume
		did      []string
		text     string // of the difference; "" for none
		mends    string
		personal bool
	}{
		"they agree":                       {world: world{volumes: []openstack.Volume{volume("in-use", "server-a")}, records: kube.Attachments{List: []kube.Attachment{record("a", true, false)}}}},
		"nothing is attached":              {world: world{volumes: []openstack.Volume{volume("available")}}},
		"it is being attached":             {world: world{volumes: []openstack.Volume{volume("attaching", "server-a")}}},
		"Kubernetes is about to attach":    {world: world{volumes: []openstack.Volume{volume("available")}, records: kube.Attachments{List: []kube.Attachment{record("a", false, false)}}}},
		"it is being detached":             {world: world{volumes: []openstack.Volume{volume("available")}, records: kube.Attachments{List: []kube.Attachment{record("a", true, true)}}}},
		"it is to be attached where it is": {world: world{volumes: []openstack.Volume{volume("in-use", "server-a")}, records: kube.Attachments{List: []kube.Attachment{record("a", false, false)}}}},
		"nobody records where it is": {world: world{volumes: []openstack.Volume{volume("in-use", "server-b")}, records: kube.Attachments{List: []kube.Attachment{record("a", false, false)}}},
			did: []string{"end pvc-1 at b"}, text: "volume v of claim default/data of cluster kube is attached to node b in the cloud, and Kubernetes has no record of it", mends: "it is detached"},
		"no claim knows the volume": {world: world{volumes: []openstack.Volume{volume("in-use", "server-b")}}, volumes: map[string]kube.Volume{},
			did: []string{"detach v from server-b"}, text: "volume v (pvc-1) of cluster kube is attached to node b"},
		"its node still has it mounted": {world: world{volumes: []openstack.Volume{volume("in-use", "server-b")}, mounted: map[string]error{"b v": nil}},
			text: "is attached to node b in the cloud", mends: "as soon as nothing on the node uses the volume"},
		"its kubelet says that it is in use": {world: world{volumes: []openstack.Volume{volume("in-use", "server-b")}, records: kube.Attachments{InUse: map[string]map[string]bool{"a": {}, "b": {"v": true}}}},
			text: "is attached to node b in the cloud", mends: "as soon as nothing on the node uses the volume"},
		"its node does not answer": {world: world{volumes: []openstack.Volume{volume("in-use", "server-b")}, mounted: map[string]error{"b v": errors.New("no route to host")}},
			text: "is attached to node b in the cloud", mends: "until then it may use the volume (no route to host)"},
		"its node is off": {world: world{volumes: []openstack.Volume{volume("in-use", "server-b")}, mounted: map[string]error{"b v": errors.New("no route to host")},
			servers: map[string]openstack.ServerState{"server-b": {Status: openstack.Shut}}}, did: []string{"end pvc-1 at b"}, text: "is attached to node b in the cloud"},
		"its server is gone": {world: world{volumes: []openstack.Volume{volume("in-use", "former")}}, did: []string{"detach v from former", "drop attachment of former"},
			text: "is attached to server former, which is gone"},
		"a server that is no node has it": {world: world{volumes: []openstack.Volume{volume("in-use", "rescue")}}, text: "is attached to server rescue, which is ACTIVE in Nova and no node of the cluster",
			mends: "openstack server remove volume rescue v", personal: true},
		"the cloud does not have it where it is recorded": {world: world{volumes: []openstack.Volume{volume("available")}, records: kube.Attachments{List: []kube.Attachment{record("a", true, false)}}},
			did: []string{"attach pvc-1 to a again"}, text: "is attached to node a of cluster kube, and the cloud has not attached it"},
		"a node that is gone is recorded": {world: world{volumes: []openstack.Volume{volume("available")}, records: kube.Attachments{List: []kube.Attachment{record("former", true, false)}}},
			did: []string{"forget pvc-1 at former"}, text: "is attached to node former, which cluster kube does not have"},
		"the volume is not the cluster's": {world: world{records: kube.Attachments{List: []kube.Attachment{record("a", true, false)}}}},
	} {
		t.Run(name, func(t *testing.T) {
			w := test.world
			w.records.Volumes = known
			if test.volumes != nil {
				w.records.Volumes = test.volumes
			}
			if w.records.InUse == nil {
				w.records.InUse = registered
			}
			if w.servers == nil {
				w.servers = on
			}
			differences, err := w.cluster().Reconcile(t.Context())
			require.NoError(t, err)
			require.Equal(t, test.did, w.did)
			if test.text == "" {
				require.Empty(t, differences)
				return
			}
			require.Len(t, differences, 1)
			require.Contains(t, differences[0].Text, test.text)
			require.Contains(t, differences[0].Mends, test.mends)
			require.Equal(t, !test.personal, differences[0].Ours)
		})
	}
}

func TestARestoreWaitsForAttachmentsThatPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{volumes: []openstack.Volume{volume("in-use", "server-b")}, mounted: map[string]error{"b v": nil}, servers: map[string]openstack.ServerState{"server-b": {Status: openstack.Active}},
			records: kube.Attachments{Volumes: map[string]kube.Volume{}, InUse: map[string]map[string]bool{}}}
		time.AfterFunc(10*time.Second, func() { delete(w.mounted, "b v") })
		time.AfterFunc(20*time.Second, func() { w.volumes = []openstack.Volume{volume("available")} })
		var told []string
		left, err := w.cluster().Settle(t.Context(), time.Minute, func(one Difference) { told = append(told, one.Text) })
		require.NoError(t, err)
		require.Empty(t, left)
		require.Len(t, told, 1)
		require.Contains(t, w.did, "detach v from server-b")

		w.volumes = []openstack.Volume{volume("in-use", "server-b")}
		w.mounted["b v"] = nil
		left, err = w.cluster().Settle(t.Context(), time.Minute, func(Difference) {})
		require.Error(t, err)
		require.Len(t, left, 1)
	})
}

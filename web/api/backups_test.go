package api

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/envelope"
	"github.com/burano/burano/internal/wait"
	"github.com/burano/burano/orchestrator/backup"
	"github.com/burano/burano/orchestrator/engine"
	"github.com/burano/burano/orchestrator/store"
)

func TestBackupsAreTheirProjectsAndStayWhenTheEnvironmentGoes(t *testing.T) {
	s := newServer(t)
	mine, others := s.populate("demo", "demos"), s.populate("other", "others")
	path := "/burano/v1/backups/" + mine["backup"]
	shown := s.call("demo", "", "GET", path, nil, 200)
	require.Equal(t, "demos-environment", field(shown, "environment_name"))
	require.Equal(t, []any{shown}, field(s.call("reader", "", "GET", "/burano/v1/backups", nil, 200), "backups"))
	require.Empty(t, field(s.call("demo", "", "GET", "/burano/v1/backups?environment=another", nil, 200), "backups"))
	s.call("other", "", "GET", path, nil, 404)
	s.call("other", "", "POST", path+"/restore", map[string]any{"name": "theirs"}, 404)
	s.call("other", "", "DELETE", path, nil, 404)
	s.call("demo", "", "POST", path+"/restore", map[string]any{"name": "demos-environment"}, 409)
	refused := s.call("demo", "", "POST", "/burano/v1/environments/"+mine["environment"]+"/backups", map[string]any{"reason": "before"}, 400)
	require.Contains(t, field(refused, "message"), "has no cluster that was deployed")

	s.call("demo", "", "DELETE", "/v1/environments/"+mine["environment"]+"?abandon=true", nil, 200)
	restored := field(s.call("demo", "", "POST", path+"/restore", map[string]any{"name": "demos-restored"}, 200), "id").(string)
	s.awaitIdle(restored)
	require.Equal(t, "demos-restored", field(s.call("demo", "", "GET", "/v1/environments/"+restored, nil, 200), "name"))
	s.call("demo", "", "DELETE", path, nil, 200)
	s.call("demo", "", "GET", path, nil, 404)
	s.call("other", "", "GET", "/burano/v1/backups/"+others["backup"], nil, 200)
}

func TestADrillRestoresABackupBesideAndRemovesWhatItHasMade(t *testing.T) {
	s := newServer(t)
	mine := s.populate("demo", "demos")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); s.config.Backups.RunDrills(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	names := func() (names []any) {
		for _, one := range field(s.call("demo", "", "GET", "/v1/environments", nil, 200), "environments").([]any) {
			names = append(names, field(one, "name"))
		}
		return names
	}
	before := names()
	begun := s.call("demo", "", "POST", "/burano/v1/backups/"+mine["backup"]+"/drill", nil, 200)
	require.Contains(t, names(), field(begun, "environment"))
	for _, one := range field(s.call("demo", "", "GET", "/v1/environments", nil, 200), "environments").([]any) {
		if field(one, "name") == field(begun, "environment") { // as the keeper takes them
			taken := store.Snapshot{ProjectID: goldenDemo, EnvironmentID: field(one, "id").(string), EnvironmentName: field(one, "name").(string), ClusterID: "c", Kind: store.Scheduled}
			require.NoError(t, s.rows.Snapshots().BeginSnapshot(t.Context(), &taken))
			require.NoError(t, s.rows.Snapshots().KeepSnapshot(t.Context(), taken.ID, 1, 1))
		}
	}
	require.Contains(t, s.snapshotsOf("demo"), field(begun, "environment"))
	var last any
	err := wait.Every(50*time.Millisecond).For(time.Minute).Until(t.Context(), func(context.Context) error {
		last = field(s.call("demo", "", "GET", "/burano/v1/environments/"+mine["environment"]+"/backups/drills", nil, 200), "drills").([]any)[0]
		if field(last, "ended") == nil {
			return wait.Again(fmt.Errorf("it is %v", last))
		}
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, "answered", field(last, "state"), last)
	require.Equal(t, before, names(), "what the drill has made is gone")
	require.NotContains(t, s.snapshotsOf("demo"), field(begun, "environment"))
}

// snapshotsOf are the names of the environments that the snapshots of a caller are of.
func (s *server) snapshotsOf(token string) (names []any) {
	for _, one := range field(s.call(token, "", "GET", "/burano/v1/snapshots", nil, 200), "snapshots").([]any) {
		names = append(names, field(one, "environment_name"))
	}
	return names
}

// downloaded is a file of a backup that a caller downloads, opened with its key.
func (s *server) downloaded(token, backup string) []byte {
	s.t.Helper()
	key, err := envelope.NewKey()
	require.NoError(s.t, err)
	order, err := json.Marshal(map[string]string{"recipient": key.Recipient()})
	require.NoError(s.t, err)
	recorder := s.send("POST", "/burano/v1/backups/"+backup+"/file", map[string]string{"X-Auth-Token": "{token:" + token + "}", "Content-Type": "application/json"}, order)
	require.Equal(s.t, 200, recorder.Code, recorder.Body)
	sealed := recorder.Body.Bytes()
	require.NotContains(s.t, string(sealed), "demos")
	opened, err := key.Reader(bytes.NewReader(sealed))
	require.NoError(s.t, err)
	file, err := io.ReadAll(opened)
	require.NoError(s.t, err)
	return file
}

func (s *server) uploaded(token string, file []byte, status int) any {
	s.t.Helper()
	recorder := s.send("POST", "/burano/v1/backups/file", map[string]string{"X-Auth-Token": "{token:" + token + "}", "Content-Type": "application/octet-stream"}, file)
	require.Equal(s.t, status, recorder.Code, recorder.Body)
	var answer any
	require.NoError(s.t, json.Unmarshal(recorder.Body.Bytes(), &answer))
	return answer
}

func TestABackupGoesAsAFileToAnotherProjectAndIsRestoredThere(t *testing.T) {
	s := newServer(t)
	mine := s.populate("demo", "demos")
	file := s.downloaded("demo", mine["backup"])

	back := s.uploaded("demo", file, 200)
	require.Equal(t, "uploaded", field(back, "kind"))
	require.Equal(t, mine["environment"], field(back, "environment_id"))
	theirs := s.uploaded("other", file, 200)
	require.Empty(t, field(theirs, "environment_id"))
	id := field(theirs, "id").(string)
	s.call("demo", "", "GET", "/burano/v1/backups/"+id, nil, 404)
	refused := s.call("other", "", "POST", "/burano/v1/backups/"+id+"/drill", nil, 400)
	require.Contains(t, field(refused, "message"), "the project has no environment that it is of")
	restored := field(s.call("other", "", "POST", "/burano/v1/backups/"+id+"/restore", map[string]any{"name": "restored", "region": "elsewhere"}, 200), "id").(string)
	s.awaitIdle(restored)
	require.Equal(t, "elsewhere", field(s.call("other", "", "GET", "/burano/v1/environments/"+restored+"/export", nil, 200), "region"))
}

func TestWhoMayNotExportAnEnvironmentGetsNoFileOfItsBackup(t *testing.T) {
	s := newServer(t)
	mine := s.populate("demo", "demos")
	key, err := envelope.NewKey()
	require.NoError(t, err)
	order := map[string]any{"recipient": key.Recipient()}
	path := "/burano/v1/backups/" + mine["backup"] + "/file"
	s.call("reader", "", "POST", "/burano/v1/environments/"+mine["environment"]+"/export", order, 403)
	s.call("reader", "", "POST", path, order, 403)
	s.call("other", "", "POST", path, order, 404)
	for _, recipient := range []string{"", "age1nothing"} {
		refused := s.call("demo", "", "POST", path, map[string]any{"recipient": recipient}, 400)
		require.Contains(t, field(refused, "message"), "no public key such as age1")
	}
	s.uploaded("reader", s.downloaded("demo", mine["backup"]), 403)
}

func TestAFileOfABackupIsAcceptedAsAnApplicationsDataOnly(t *testing.T) {
	s := newServer(t)
	own := `"objects":{"services":[]},"environmentName":"shop"`
	for _, one := range []struct{ head, words string }{
		{`"environmentName":"shop"`, "its model has no list of applications"},
		{`"objects":{"services":{}},"environmentName":"shop"`, "its model has no list of applications"},
		{`"objects":{"services":[` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `]},"environmentName":"shop"`, "nested deeper than 100 levels"},
		{own + `,"attributes":[{"objectId":"c","class":"com.mirantis.docker.kubernetes.KubernetesCluster","name":"stack","value":1}]`, "the attribute stack of c is none that an application stores"},
		{own + `,"attributes":[{"objectId":"c","class":"io.murano.resources.Instance","name":"` + engine.CodeAttribute("server") + `","value":1}]`, "is none that an application stores"},
		{own + `,"secrets":{"clusters/c/pki":"eA=="}`, "clusters/c/pki is no secret of an application"},
		{`"objects":{"services":[]},"environmentName":"` + strings.Repeat("n", 300) + `"`, "255"},
	} {
		var file bytes.Buffer
		archive := tar.NewWriter(&file)
		head := `{"format":"burano-backup","version":1,"created":"2026-11-27T12:00:00Z",` + one.head + `}`
		require.NoError(t, archive.WriteHeader(&tar.Header{Name: "backup.json", Size: int64(len(head))}))
		_, err := io.WriteString(archive, head)
		require.NoError(t, err)
		require.NoError(t, archive.Close())
		require.Contains(t, fmt.Sprint(s.uploaded("demo", file.Bytes(), 400)), one.words, one.head)
	}
	require.Empty(t, field(s.call("demo", "", "GET", "/burano/v1/backups", nil, 200), "backups"))
}

func TestABackupOfWhichAnEnvironmentWaitsForFilesCannotBeDeleted(t *testing.T) {
	s := newServer(t)
	mine := s.populate("demo", "demos")
	held := store.Backup{ProjectID: goldenDemo, Kind: store.Requested, EnvironmentName: "held", Model: store.Model{Objects: map[string]any{"name": "held"}}}
	require.NoError(t, s.rows.Backups().Begin(t.Context(), &held))
	require.NoError(t, s.rows.Backups().Keep(t.Context(), held))
	waiting := store.Environment{ID: store.NewID(), ProjectID: goldenDemo, Name: "waits", Model: store.Model{Objects: map[string]any{}}}
	require.NoError(t, s.rows.Environments().Import(t.Context(), store.Imported{Environment: waiting,
		Attributes: []store.Attribute{{EnvironmentID: waiting.ID, ObjectID: "c", Class: "Cluster", Name: backup.AttributeFilledFrom, Value: fmt.Sprintf("%q", held.ID)}}}))
	refused := s.call("demo", "", "DELETE", "/burano/v1/backups/"+held.ID, nil, 409)
	require.Contains(t, field(refused, "message"), "Environment "+waiting.ID+" waits for files of backup "+held.ID)
	s.call("demo", "", "DELETE", "/v1/environments/"+waiting.ID, nil, 200)
	s.call("demo", "", "DELETE", "/burano/v1/backups/"+held.ID, nil, 200)
	s.call("demo", "", "GET", "/burano/v1/environments/"+mine["environment"]+"/backups/preview", nil, 400) // it has no cluster
}

func TestARestoreThatCouldNotBeDeployedMakesNothingAndHasAllReasons(t *testing.T) {
	s := newServer(t)
	mine := s.populate("demo", "demos")
	application := func(class, id string) any { return map[string]any{"?": map[string]any{"type": class, "id": id}} }
	held := store.Backup{ProjectID: goldenDemo, Kind: store.Requested, EnvironmentName: "held",
		Model: store.Model{Objects: map[string]any{"name": "held", "services": []any{application("org.nowhere.One", "one"), application("org.nowhere.Two", "two")}}}}
	require.NoError(t, s.rows.Backups().Begin(t.Context(), &held))
	require.NoError(t, s.rows.Backups().Keep(t.Context(), held))
	path := "/burano/v1/backups/" + held.ID + "/restore"
	said := fmt.Sprint(s.call("demo", "", "POST", path, map[string]any{"name": "again"}, 400))
	require.Contains(t, said, "org.nowhere.One")
	require.Contains(t, said, "org.nowhere.Two")
	require.Contains(t, fmt.Sprint(s.call("demo", "", "POST", path, map[string]any{"name": "demos-environment"}, 409)), "already exists")
	left := field(s.call("demo", "", "GET", "/v1/environments", nil, 200), "environments").([]any)
	require.Len(t, left, 1)
	require.Equal(t, mine["environment"], field(left[0], "id"))
}

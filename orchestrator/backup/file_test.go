package backup_test

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/quota"
	"github.com/burano/burano/nodes/claimdata/claimdatatest"
	"github.com/burano/burano/orchestrator/backup"
	"github.com/burano/burano/orchestrator/snapshot"
	"github.com/burano/burano/orchestrator/store"
)

// uploads are those of a project that has no environment.
func uploads(project string) backup.Upload {
	return backup.Upload{ProjectID: project, Kind: store.Uploaded, Now: time.Now().Add(time.Hour), Admit: func([]byte) error { return nil }, Accept: func(backup.File) error { return nil },
		Has: func(context.Context, string) (bool, error) { return false, nil }}
}

// written is the file of a backup of a world.
func (w *world) written(t *testing.T) (made store.Backup, file []byte) {
	order := w.order("task")
	order.Reason = "before the sale"
	order.Contents = store.BackupContents{Secrets: map[string][]byte{"attribute/redis/a/password": []byte("secret")},
		Attributes: []store.Attribute{{EnvironmentID: w.environment.ID, ObjectID: "redis", Class: "io.burano.Redis", Name: "code/made", Value: `{"n": 3}`}}}
	made, err := w.backups.Make(t.Context(), order, []backup.Cluster{w.cluster})
	require.NoError(t, err)
	var written bytes.Buffer
	require.NoError(t, w.backups.Write(t.Context(), made.ID, &written))
	return made, written.Bytes()
}

// entries are the parts of a file.
func entries(t *testing.T, file []byte) (names []string, contents map[string][]byte) {
	contents = map[string][]byte{}
	archive := tar.NewReader(bytes.NewReader(file))
	for {
		entry, err := archive.Next()
		if err == io.EOF {
			return names, contents
		}
		require.NoError(t, err)
		names = append(names, entry.Name)
		contents[entry.Name], err = io.ReadAll(archive)
		require.NoError(t, err)
	}
}

// packed is a file of these entries.
func packed(t *testing.T, names []string, contents map[string][]byte) []byte {
	var file bytes.Buffer
	archive := tar.NewWriter(&file)
	for _, name := range names {
		require.NoError(t, archive.WriteHeader(&tar.Header{Name: name, Size: int64(len(contents[name]))}))
		_, err := archive.Write(contents[name])
		require.NoError(t, err)
	}
	require.NoError(t, archive.Close())
	return file.Bytes()
}

func TestABackupGoesAsAFileToAnotherBurano(t *testing.T) {
	here, there := newWorld(t, quota.Unlimited), newWorld(t, quota.Unlimited)
	made, file := here.written(t)
	described, err := backup.Check(bytes.NewReader(file))
	require.NoError(t, err)
	require.Equal(t, "shop", described.EnvironmentName)
	require.Equal(t, 3, described.Parts())

	got, err := there.backups.Read(t.Context(), uploads("p2"), bytes.NewReader(file))
	require.NoError(t, err)
	require.Equal(t, store.Uploaded, got.Kind)
	require.Equal(t, "before the sale", got.Reason)
	require.Equal(t, made.Created, got.Created)
	require.Equal(t, made.Model, got.Model)
	require.Equal(t, made.Parts.Secrets, got.Parts.Secrets)
	require.Equal(t, []store.Attribute{{ObjectID: "redis", Class: "io.burano.Redis", Name: "code/made", Value: `{"n":3}`}}, got.Parts.Attributes)
	require.Equal(t, "p2", got.ProjectID)
	require.Empty(t, got.EnvironmentID, "the project has none that it is of")
	etcd, err := there.archive.Snapshot(t.Context(), got.Parts.Clusters[0].Snapshot)
	require.NoError(t, err)
	require.Equal(t, "p2", etcd.ProjectID)

	filled := &claimdatatest.Nodes{Files: map[string]string{}}
	require.NoError(t, there.backups.Fill(t.Context(), got.ID, there.of(empty(), filled), claimdatatest.Step, there.order("").Report))
	require.Equal(t, map[string]string{path("claim-1", "new-claim-1"): "one", path("claim-2", "new-claim-2"): "two"}, filled.Files)

	var again bytes.Buffer
	require.NoError(t, there.backups.Write(t.Context(), got.ID, &again))
	names, contents := entries(t, file)
	namesAgain, contentsAgain := entries(t, again.Bytes())
	require.Equal(t, names, namesAgain)
	for _, name := range names[1:] {
		require.Equal(t, contents[name], contentsAgain[name], name)
	}

	// Where its environment is, it belongs to that; a clock that runs ahead elsewhere makes no newest backup here.
	own := uploads("p1")
	own.Has = func(_ context.Context, id string) (bool, error) { return id == here.environment.ID, nil }
	own.Now = made.Created.Time().Add(-time.Minute)
	back, err := here.backups.Read(t.Context(), own, bytes.NewReader(file))
	require.NoError(t, err)
	require.Equal(t, here.environment.ID, back.EnvironmentID)
	require.Equal(t, own.Now.UnixMicro(), int64(back.Created))
	require.NoError(t, there.backups.Delete(t.Context(), got.ID))
	there.nothing(t, "p2")
}

// objectStore has the objects of one container. It refuses objects with this in their names.
type objectStore struct {
	objects map[string][]byte
	refuses string
}

func (o *objectStore) PutObject(_ context.Context, container, name string, content []byte) error {
	if container != "https://swift/of-p2" || o.refuses != "" && strings.Contains(name, o.refuses) {
		return errors.New("507 Insufficient Storage")
	}
	o.objects[name] = content
	return nil
}

func (o *objectStore) Object(_ context.Context, _, name string) (content []byte, found bool, err error) {
	content, found = o.objects[name]
	return content, found, nil
}

func (o *objectStore) DeleteObject(_ context.Context, _, name string) error {
	delete(o.objects, name)
	return nil
}

func TestAnUploadIsInTheContainerOfItsProject(t *testing.T) {
	_, file := newWorld(t, quota.Unlimited).written(t)
	there := newWorld(t, quota.Unlimited)
	kept := &objectStore{objects: map[string][]byte{}}
	there.objects = kept
	there.archive = there.newArchive(there.rows.Snapshots())
	there.backups.Archive = there.archive
	upload := uploads("p2")
	upload.Container = func(context.Context) (string, error) { return "https://swift/of-p2", nil }

	got, err := there.backups.Read(t.Context(), upload, bytes.NewReader(file))
	require.NoError(t, err)
	require.Empty(t, got.Parts.Warnings)
	require.Len(t, kept.objects, 3, "the etcd and two claims, and nothing of the trial")
	filled := &claimdatatest.Nodes{Files: map[string]string{}}
	require.NoError(t, there.backups.Fill(t.Context(), got.ID, there.of(empty(), filled), claimdatatest.Step, there.order("").Report))
	require.Equal(t, map[string]string{path("claim-1", "new-claim-1"): "one", path("claim-2", "new-claim-2"): "two"}, filled.Files)
	require.NoError(t, there.backups.Delete(t.Context(), got.ID))
	require.Empty(t, kept.objects)

	kept.refuses = "/" // the trial's name has none
	_, err = there.backups.Read(t.Context(), upload, bytes.NewReader(file))
	require.ErrorContains(t, err, "507", "what was read of the upload cannot be read again")
	there.nothing(t, "p2")

	for _, container := range []func(context.Context) (string, error){
		func(context.Context) (string, error) { return "", errors.New("403 Forbidden") },
		func(context.Context) (string, error) { return "https://swift/of-another", nil },
	} {
		upload.Container = container
		got, err = there.backups.Read(t.Context(), upload, bytes.NewReader(file))
		require.NoError(t, err)
		require.Len(t, got.Parts.Warnings, 1)
		require.Contains(t, got.Parts.Warnings[0], "The project's object store cannot be used: the backup is kept in the database: ")
		require.Empty(t, kept.objects)
	}
}

func TestAFileThatIsNotAsItWasWrittenLeavesNothing(t *testing.T) {
	w := newWorld(t, quota.Unlimited)
	made, file := w.written(t)
	require.NoError(t, w.backups.Delete(t.Context(), made.ID))
	refuses := func(file []byte, words string) {
		t.Helper()
		_, err := backup.Check(bytes.NewReader(file))
		require.ErrorContains(t, err, words)
		_, err = w.backups.Read(t.Context(), uploads("p1"), bytes.NewReader(file))
		require.ErrorContains(t, err, words)
		require.Equal(t, fault.Invalid, fault.KindOf(err), err)
		w.nothing(t, "p1")
	}
	refuses(nil, "It is no file of a backup")
	refuses([]byte(strings.Repeat("any text ", 1000)), "It is no file of a backup")
	refuses(file[:100], "ends early, at its beginning")

	names, contents := entries(t, file)
	for i := 1; i < len(names); i++ { // cut off between two entries, with the end of an archive
		refuses(packed(t, names[:i], contents), "ends early")
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		_, err := w.backups.Read(t.Context(), uploads("p1"), bytes.NewReader(file[:random.IntN(len(file)-2048)])) // before its end
		require.Error(t, err)
		require.Equal(t, fault.Invalid, fault.KindOf(err), err)
		w.nothing(t, "p1")
	}
	changed := func(name string, change func(string) string) []byte {
		others := maps.Clone(contents)
		others[name] = []byte(change(string(contents[name])))
		return packed(t, names, others)
	}
	swap := func(former, now string) func(string) string {
		return func(text string) string {
			require.Contains(t, text, former)
			return strings.Replace(text, former, now, 1)
		}
	}
	refuses(changed("backup.json", swap(`"version":1`, `"version":2`)), "is of a newer Burano (0.1.0-dev) and has format 2. This Burano (0.1.0-dev) reads formats up to 1: upgrade it")
	refuses(changed("backup.json", swap(`"format":"burano-backup"`, `"format":"other"`)), "It is no file of a backup")
	refuses(changed("backup.json", swap(`"namespace":"default"`, `"namespace":"others"`)), "its description is of claim default/claim-1")
	refuses(changed("backup.json", swap(`"reason":"before`, `"reason":3,"was":"before`)), "damaged: backup.json cannot be read")
	refuses(changed("parts/0001/000000.gz", func(text string) string { return text[:len(text)-9] + "x" + text[len(text)-8:] }), "damaged")
	refuses(changed("parts/0001/000000.gz", func(text string) string { return text[:len(text)-3] }), "part 2 of 3")
	refuses(changed("parts/0002/000000.gz", func(string) string { return string(contents["parts/0001/000000.gz"]) }), "part 3 of 3 is not as it was written")
	refuses(changed("end.json", swap("3", "2")), "it has 3 parts, and ends with a number of 2")
	refuses(packed(t, append(names, "more"), contents), "something follows its end")
	exchanged := maps.Clone(contents) // whole parts in each other's places
	for _, name := range []string{"000000.gz", "end.json"} {
		exchanged["parts/0001/"+name], exchanged["parts/0002/"+name] = contents["parts/0002/"+name], contents["parts/0001/"+name]
	}
	_, err := w.backups.Read(t.Context(), uploads("p1"), bytes.NewReader(packed(t, names, exchanged)))
	require.ErrorContains(t, err, "the files of claim default/claim-1 are others than it says")
	w.nothing(t, "p1")
}

func TestAnUploadEndsWhereTheServerOrTheCallerEndsIt(t *testing.T) {
	w := newWorld(t, quota.Unlimited)
	made, file := w.written(t)
	require.NoError(t, w.backups.Delete(t.Context(), made.ID))
	gone := errors.New("the client is gone")
	_, err := w.backups.Read(t.Context(), uploads("p1"), io.MultiReader(bytes.NewReader(file[:len(file)/2]), broken{gone}))
	require.ErrorIs(t, err, gone)
	w.nothing(t, "p1")
	refused := uploads("p1")
	refused.Accept = func(backup.File) error { return fault.New(fault.TooLarge, "it is too large") }
	_, err = w.backups.Read(t.Context(), refused, bytes.NewReader(file))
	require.ErrorContains(t, err, "it is too large")
	w.nothing(t, "p1")
	away := errors.New("the database is away")
	w.backups.Archive = failing{w.archive, away}
	_, err = w.backups.Read(t.Context(), uploads("p1"), bytes.NewReader(file))
	require.ErrorIs(t, err, away)
	require.Zero(t, fault.KindOf(err), "the file is not to blame: %v", err)
	w.nothing(t, "p1")
}

type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }

// failing is an archive that fails while it takes something.
type failing struct {
	backup.Archive
	err error
}

func (f failing) Take(ctx context.Context, of snapshot.Subject, write func(ctx context.Context, to io.Writer) error) (store.Snapshot, error) {
	return f.Archive.Take(ctx, of, func(ctx context.Context, to io.Writer) error {
		return write(ctx, writing(func([]byte) (int, error) { return 0, f.err }))
	})
}

type writing func(content []byte) (int, error)

func (w writing) Write(content []byte) (int, error) { return w(content) }

func TestAFileThatDoesNotFitInTheQuotaIsRefusedBeforeItIsRead(t *testing.T) {
	here, there := newWorld(t, quota.Unlimited), newWorld(t, 100)
	_, file := here.written(t)
	read := 0
	source := io.TeeReader(bytes.NewReader(file), writing(func(content []byte) (int, error) { read += len(content); return len(content), nil }))
	_, err := there.backups.Read(t.Context(), uploads("p1"), source)
	require.ErrorContains(t, err, "Quota exceeded for snapshot_bytes")
	require.Equal(t, fault.Forbidden, fault.KindOf(err))
	require.Less(t, read, len(file)/2)
	there.nothing(t, "p1")
	// One that does not say what it needs is refused as soon as it needs more.
	names, contents := entries(t, file)
	var head map[string]any
	require.NoError(t, json.Unmarshal(contents["backup.json"], &head))
	head["stored"] = 0
	contents["backup.json"], err = json.Marshal(head)
	require.NoError(t, err)
	_, err = there.backups.Read(t.Context(), uploads("p1"), bytes.NewReader(packed(t, names, contents)))
	require.ErrorContains(t, err, "Quota exceeded for snapshot_bytes")
	require.Equal(t, fault.Forbidden, fault.KindOf(err))
	there.nothing(t, "p1")
}

func TestTheRemainsOfAnUploadGoWhenItsServerIsGone(t *testing.T) {
	w := newWorld(t, quota.Unlimited)
	left := store.Backup{ProjectID: "p1", Kind: store.Uploaded}
	require.NoError(t, w.backups.Begin(t.Context(), &left))
	require.NoError(t, w.backups.Sweep(t.Context(), w.now))
	list, err := w.backups.List(t.Context(), store.BackupFilter{})
	require.NoError(t, err)
	require.Len(t, list, 1, "it may go on")
	for range 6 * 60 { // each look at the clock takes a second
		require.NoError(t, w.backups.Touch(t.Context(), left.ID))
	}
	require.NoError(t, w.backups.Sweep(t.Context(), w.now))
	require.NoError(t, w.backups.Touch(t.Context(), left.ID), "it goes on")
	w.now = w.now.Add(6 * time.Minute)
	require.NoError(t, w.backups.Sweep(t.Context(), w.now))
	require.ErrorIs(t, w.backups.Touch(t.Context(), left.ID), store.ErrNotFound)
	w.nothing(t, "p1")
}

package nodes

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestImagesOfPodsAreBroughtOnceAndLetGoOfWhenNoneWantsThem(t *testing.T) {
	dir := t.TempDir()
	list, notes, calls := filepath.Join(dir, "list"), filepath.Join(dir, "notes"), filepath.Join(dir, "calls")
	require.NoError(t, os.WriteFile(list, []byte("registry.local/pause:1\n"), 0o600))
	// ctr keeps its list of images in a file: an archive is the name of its image.
	ctr := map[string]string{"ctr": `case "$4" in
ls) cat "$LIST" ;;
import) cat "$5" >>"$LIST" ;;
label) echo "$5 $6" >>"$CALLS" ;;
esac`}
	env := []string{"NOTES=" + notes, "LIST=" + list, "CALLS=" + calls}
	look := func(wanted string) string {
		return bash(t, runtimeScript+containerImagesScript, ctr, append(env, "WANTED="+wanted)...)
	}
	bring := func(name, digest string) {
		file := filepath.Join(dir, digest+".tar")
		require.NoError(t, os.WriteFile(file, []byte(name+"\n"), 0o600))
		bash(t, runtimeScript+containerImageScript, ctr, append(env, "FILE="+file, "NAME="+name, "DIGEST="+digest)...)
		require.NoFileExists(t, file)
	}
	called := func() string {
		text, err := os.ReadFile(calls)
		require.NoError(t, err)
		require.NoError(t, os.Remove(calls))
		return string(text)
	}
	const both = "aa glance.local/web:1\nbb glance.local/web:12"
	require.Equal(t, "aa\nbb\n", look(both))
	bring("glance.local/web:1", "aa")
	bring("glance.local/web:12", "bb")
	require.Equal(t, "glance.local/web:1 io.cri-containerd.pinned=pinned\nglance.local/web:12 io.cri-containerd.pinned=pinned\n", called())
	require.Empty(t, look(both), "it has them")

	require.Equal(t, "cc\n", look("cc glance.local/web:1\nbb glance.local/web:12"), "another one of the name")
	require.NoFileExists(t, calls, "pods run the name")
	bring("glance.local/web:1", "cc")
	called()
	require.Empty(t, look("bb glance.local/web:12"))
	require.Equal(t, "glance.local/web:1 io.cri-containerd.pinned=\n", called(), "and the longer name stays")
	require.NoError(t, os.WriteFile(list, nil, 0o600))
	require.Equal(t, "bb\n", look("bb glance.local/web:12"), "somebody has removed it")
	require.Empty(t, look(""))
	require.NoFileExists(t, calls, "there is nothing to let go of")
	left, err := os.ReadDir(notes)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestImagesAreNotedForEachWhoWantsThem(t *testing.T) {
	vault := newVault()
	web, base := ContainerImage{Name: "glance.local/web:1", Digest: "aa", ID: "1"}, ContainerImage{Name: "glance.local/base:1", Digest: "bb", ID: "2"}
	note := func(holder string, images ...ContainerImage) []ContainerImage {
		t.Helper()
		all, err := noteImages(t.Context(), vault, holder, images)
		require.NoError(t, err)
		return all
	}
	require.Nil(t, note("one"), "nothing to do")
	require.Empty(t, vault.Values())
	require.Equal(t, []ContainerImage{web}, note("one", web))
	require.Equal(t, []ContainerImage{base, web}, note("two", web, base))
	held, err := ImagesFor(t.Context(), vault, "two")
	require.NoError(t, err)
	require.Equal(t, []ContainerImage{web, base}, held)
	require.Equal(t, []ContainerImage{web}, note("two"))
	last := note("one")
	require.NotNil(t, last, "nodes let go of the last one")
	require.Empty(t, last)
	require.Nil(t, note("one"))
}

package images

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/stretchr/testify/require"
)

func TestEachApplicationHasARecipe(t *testing.T) {
	require.NotEmpty(t, Applications())
	for _, called := range Applications() {
		folder, remove, err := applicationSource(called)
		require.NoError(t, err, called)
		made, err := readRecipe(folder, "")
		require.NoError(t, err, called)
		require.Contains(t, made.Name, "glance.local/"+called+":")
		element, err := readElement(folder)
		require.NoError(t, err, called)
		require.NotEmpty(t, element.packages, called)
		info, err := os.Stat(filepath.Join(folder, "files", made.EntryPoint[0]))
		require.NoError(t, err, called)
		require.Equal(t, os.FileMode(0o755), info.Mode().Perm(), "%s: it can be executed", called)
		remove()
		require.NoDirExists(t, folder)
	}
}

func TestAFolderSaysWhatItsImageIs(t *testing.T) {
	folder := t.TempDir()
	_, _, err := applicationSource(filepath.Join(folder, "none"))
	require.ErrorContains(t, err, "it is neither a folder nor one of ")
	_, err = readRecipe(folder, "")
	require.ErrorContains(t, err, "container.yaml: no such file or directory: it says how the image is called")
	for text, problem := range map[string]string{
		"name: web\nentryPoint: [/x]\n":                      `the image is called "web": write a host, a name and a tag`,
		"name: glance.local/web\nentryPoint: [/x]\n":         `the image is called "glance.local/web": write a host, a name and a tag`,
		"name: glance.local/web:1\n":                         "has no entryPoint",
		"name: glance.local/web:1\nentrypoint: [/bin/web]\n": "field entrypoint not found",
	} {
		write(t, filepath.Join(folder, recipeFile), text)
		_, err = readRecipe(folder, "")
		require.ErrorContains(t, err, problem)
	}
	write(t, filepath.Join(folder, recipeFile), "name: glance.local/web:1\nentryPoint: [/bin/web]\nuser: '1000'\n")
	made, err := readRecipe(folder, "registry.test:5000/team/web:2")
	require.NoError(t, err)
	require.Equal(t, recipe{Name: "registry.test:5000/team/web:2", EntryPoint: []string{"/bin/web"}, User: "1000"}, made)
}

func TestAnArchiveTellsTheNameOfItsImage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "web.tar")
	one, err := name.NewTag("glance.local/web:1")
	require.NoError(t, err)
	require.NoError(t, tarball.WriteToFile(path, one, empty.Image))
	called, err := NameOf(path)
	require.NoError(t, err)
	require.Equal(t, "glance.local/web:1", called)
	other, err := name.NewTag("glance.local/web:2")
	require.NoError(t, err)
	require.NoError(t, tarball.MultiWriteToFile(path, map[name.Tag]v1.Image{one: empty.Image, other: empty.Image}))
	_, err = NameOf(path)
	require.ErrorContains(t, err, "it has to hold one, with one name")
	write(t, path, "no archive")
	_, err = NameOf(path)
	require.ErrorContains(t, err, "is no archive of a container image")
}

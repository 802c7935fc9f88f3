package images

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
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
		recipes, remove, err := readRecipes(called)
		require.NoError(t, err, called)
		made, err := inherit(recipes, "")
		require.NoError(t, err, called)
		require.Contains(t, made.Name, "glance.local/"+called+":")
		own := recipes[len(recipes)-1].element
		require.NotEmpty(t, own.packages, called)
		info, err := os.Stat(filepath.Join(own.folder, "files", made.EntryPoint[0]))
		require.NoError(t, err, called)
		require.Equal(t, os.FileMode(0o755), info.Mode().Perm(), "%s: it can be executed", called)
		remove()
		require.NoDirExists(t, own.folder)
	}
}

func TestAFolderSaysWhatItsImageIs(t *testing.T) {
	folder := t.TempDir()
	_, _, err := readRecipes(filepath.Join(folder, "none"))
	require.ErrorContains(t, err, "it is neither a folder nor one of ")
	write(t, filepath.Join(folder, "packages"), "web\n")
	_, _, err = readRecipes(folder)
	require.ErrorContains(t, err, "container.yaml: no such file or directory: it says how the image is called")
	for text, problem := range map[string]string{
		"name: web\nentryPoint: [/x]\n":                      `the image is called "web": write a host, a name and a tag`,
		"name: glance.local/web\nentryPoint: [/x]\n":         `the image is called "glance.local/web": write a host, a name and a tag`,
		"name: glance.local/web:1\n":                         "has no entryPoint",
		"name: glance.local/web:1\nentrypoint: [/bin/web]\n": "field entrypoint not found",
		"release: buster\n":                                  `the release "buster" in ` + filepath.Join(folder, recipeFile) + " is not known: there is bookworm, trixie",
		"base: other\n":                                      `the base "other" in ` + filepath.Join(folder, recipeFile) + " is neither one of ",
		"base: /etc\n":                                       `the base "/etc" in `,
		"base: ../none\n":                                    "none: no such file or directory",
		"base: ./\n":                                         "has more than 4 bases below one another, or is a base of itself",
		"env: {A-B: c}\n":                                    `"A-B" in env of `,
		"user: a b\n":                                        `the user "a b" in `,
		"stopSignal: stop\n":                                 `the stopSignal "stop" in `,
		"commands: [" + strings.Repeat("a, ", maxWords) + "a]\n": "has 257 arguments and variables, more than 256",
		"commands: [" + strings.Repeat("a", maxWord+1) + "]\n":   "has more than 32768 bytes, or a zero byte",
		"# " + strings.Repeat("a", maxRecipe) + "\n":             "has more than 65536 bytes",
	} {
		write(t, filepath.Join(folder, recipeFile), text)
		recipes, remove, err := readRecipes(folder)
		if err == nil {
			_, err = inherit(recipes, "")
			remove()
		}
		require.ErrorContains(t, err, problem)
	}
	write(t, filepath.Join(folder, recipeFile), "name: glance.local/web:1\nentryPoint: [/bin/web]\nuser: '1000'\n")
	recipes, remove, err := readRecipes(folder)
	require.NoError(t, err)
	defer remove()
	made, err := inherit(recipes, "registry.test:5000/team/web:2")
	require.NoError(t, err)
	require.Equal(t, recipe{Name: "registry.test:5000/team/web:2", EntryPoint: []string{"/bin/web"}, User: "1000", Release: "bookworm", Env: map[string]string{}}, made)
}

func TestARecipeIsReadWithinBounds(t *testing.T) {
	folder := t.TempDir()
	write(t, filepath.Join(folder, recipeFile), "name: glance.local/web:1\nentryPoint: [/bin/web]\n")
	for packages, problem := range map[string]string{
		"?essential":                           `"?essential" in ` + filepath.Join(folder, "packages") + " is no name of a Debian package",
		"web,--mode=fake":                      "is no name of a Debian package",
		"/etc/passwd":                          "is no name of a Debian package",
		strings.Repeat("web\n", maxPackages+1): "names 2001 packages, more than 2000",
		strings.Repeat("#\n", maxPackagesFile): "has more than 262144 bytes",
	} {
		write(t, filepath.Join(folder, "packages"), packages)
		_, _, err := readRecipes(folder)
		require.ErrorContains(t, err, problem)
	}
	write(t, filepath.Join(folder, "packages"), "web:all libweb++=2:1.0~rc1-1+b1 # comment\n")
	recipes, _, err := readRecipes(folder)
	require.NoError(t, err)
	require.Equal(t, []string{"web:all", "libweb++=2:1.0~rc1-1+b1"}, recipes[0].element.packages)
	require.NoError(t, os.MkdirAll(filepath.Join(folder, "files"), 0o755))
	require.NoError(t, os.Symlink("/bin/elsewhere", filepath.Join(folder, "files", "link")), "links of the image's own are kept")
	_, _, err = readRecipes(folder)
	require.NoError(t, err)
	require.NoError(t, os.Symlink("/dev/zero", filepath.Join(folder, "files", "endless")))
	_, _, err = readRecipes(folder)
	require.ErrorContains(t, err, "endless is neither a file nor a folder nor a link to one")
	require.NoError(t, os.Remove(filepath.Join(folder, "files", "endless")))
	large, err := os.Create(filepath.Join(folder, "files", "large"))
	require.NoError(t, err)
	require.NoError(t, errors.Join(large.Truncate(maxFolder), large.Close()))
	_, _, err = readRecipes(folder)
	require.ErrorContains(t, err, "has more than 50000 files or 1024 MiB")
}

func TestARecipeHasTheFieldsOfItsBaseThatItDoesNotSet(t *testing.T) {
	parent := t.TempDir()
	write(t, filepath.Join(parent, "python", recipeFile), "release: trixie\nentryPoint: [/usr/bin/python3]\ncommands: [-I]\nuser: '64000:64000'\nenv: {A: a, B: b}\n")
	write(t, filepath.Join(parent, "python", "packages"), "python3\n")
	write(t, filepath.Join(parent, "web", recipeFile), "base: ../python\nname: glance.local/web:1\nenv: {B: c}\nstopSignal: SIGINT\n")
	write(t, filepath.Join(parent, "web", "packages"), "python3-flask\n")
	recipes, _, err := readRecipes(filepath.Join(parent, "web"))
	require.NoError(t, err)
	require.Len(t, recipes, 2)
	require.Equal(t, []string{"python3"}, recipes[0].element.packages, "the lowest is the first")
	made, err := inherit(recipes, "")
	require.NoError(t, err)
	require.Equal(t, recipe{Name: "glance.local/web:1", EntryPoint: []string{"/usr/bin/python3"}, Commands: []string{"-I"}, Env: map[string]string{"A": "a", "B": "c"},
		User: "64000:64000", StopSignal: "SIGINT", Release: "trixie"}, made)
	_, err = inherit(recipes[:1], "")
	require.ErrorContains(t, err, `the image is called ""`, "a base has no name of itself")
	write(t, filepath.Join(parent, "web", recipeFile), "base: ../python\nname: glance.local/web:1\nentryPoint: [/bin/web]\nrelease: bookworm\n")
	recipes, _, err = readRecipes(filepath.Join(parent, "web"))
	require.NoError(t, err)
	made, err = inherit(recipes, "")
	require.ErrorContains(t, err, "the release of web is bookworm, and that of its base is trixie")
	require.Empty(t, made.Commands, "arguments are those of the program")
}

func TestALayerHasWhatDiffersFromTheOnesBelow(t *testing.T) {
	below, root := t.TempDir(), t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(root, "tmp"), 0o755))
	for _, folder := range []string{below, root} {
		for path, text := range map[string]string{"etc/same": "same", "etc/other": folder, "usr/bin/mode": "x", "run/passing": folder} {
			write(t, filepath.Join(folder, path), text)
		}
	}
	for path, text := range map[string]string{"etc/gone": "", "usr/share/gone/one": "", "usr/share/gone/two/three": "", "usr/lib/file/in": "", "tmp/left": ""} {
		write(t, filepath.Join(below, path), text)
	}
	require.NoError(t, os.MkdirAll(filepath.Join(root, "usr/share"), 0o755))
	require.NoError(t, os.Chmod(filepath.Join(root, "usr/bin/mode"), 0o755))
	write(t, filepath.Join(root, "usr/lib/file"), "a file in the place of a folder")
	write(t, filepath.Join(root, "opt/new/file"), "")
	require.NoError(t, os.Symlink("same", filepath.Join(root, "etc/link")))
	list := filepath.Join(t.TempDir(), inventoryFile)
	require.NoError(t, writeInventory(below, list))
	layer := filepath.Join(t.TempDir(), "layer.tar")
	require.NoError(t, packDifferences(t.Context(), root, list, layer, io.Discard))
	require.NoFileExists(t, layer+".list")
	file, err := os.Open(layer)
	require.NoError(t, err)
	defer file.Close()
	var names []string
	for archive := tar.NewReader(file); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		names = append(names, header.Name)
	}
	require.ElementsMatch(t, []string{"./etc/.wh.gone", "./etc/link", "./etc/other", "./opt/", "./opt/new/", "./opt/new/file", "./usr/bin/mode", "./usr/lib/file",
		"./usr/share/.wh.gone"}, names)
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

package images

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/stretchr/testify/require"
)

func TestMirrorsComeFromTheMachinesOwnSources(t *testing.T) {
	folder := t.TempDir()
	write(t, filepath.Join(folder, "sources.list.d", "debian.sources"), `# the archive
Types: deb
URIs: http://mirror.test/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By:
 /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://mirror.test/debian-security/
Suites: bookworm-security
Components: main

Types: deb
URIs: http://mirror.test/debian
Suites: bookworm trixie
Components: main

Enabled: no
Types: deb
URIs: http://mirror.test/debian
Suites: bookworm
Components: main

Types: deb-src
URIs: http://mirror.test/debian
Suites: bookworm
Components: main

Types: deb
URIs: https://other.test/docker
Suites: bookworm
Components: stable
`)
	write(t, filepath.Join(folder, "sources.list.d", "old.sources.disabled"), "Types: deb\nURIs: http://old.test/debian\nSuites: bookworm\n")
	sources, err := findSources(folder, "bookworm")
	require.NoError(t, err)
	require.Equal(t, `Types: deb
URIs: http://mirror.test/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By:
 /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://mirror.test/debian-security/
Suites: bookworm-security
Components: main
`, sources)
	require.Equal(t, ".sources", sourcesExtension(sources))
}

func TestMirrorsMayStandInTheOldForm(t *testing.T) {
	folder := t.TempDir()
	_, err := findSources(folder, "bookworm")
	require.ErrorContains(t, err, `no Debian source with the suite bookworm is in `+folder)
	require.ErrorContains(t, err, `add a line "deb MIRROR bookworm main"`)

	write(t, filepath.Join(folder, "sources.list"), `
# deb http://commented.test/debian bookworm main
deb [signed-by=/usr/share/keyrings/a.gpg] http://mirror.test/debian bookworm main contrib # why
deb-src http://mirror.test/debian bookworm main
deb http://mirror.test/debian-security bookworm-security main
deb http://mirror.test/debian trixie main
deb https://other.test/docker bookworm stable
deb http://mirror.test/debian bookworm-backports main
`)
	sources, err := findSources(folder, "bookworm")
	require.NoError(t, err)
	require.Equal(t, `deb [signed-by=/usr/share/keyrings/a.gpg] http://mirror.test/debian bookworm main contrib
deb http://mirror.test/debian-security bookworm-security main
`, sources)
	require.Equal(t, ".list", sourcesExtension(sources))
}

func TestMirrorsOfOneReleaseHaveTheOthers(t *testing.T) {
	folder := t.TempDir()
	write(t, filepath.Join(folder, "sources.list.d", "debian.sources"), "Types: deb\nURIs: http://bookworm.test/bookworm/debian\nSuites: bookworm bookworm-updates\nComponents: main\n")
	sources, err := findSources(folder, "trixie")
	require.NoError(t, err)
	require.Equal(t, "Types: deb\nURIs: http://bookworm.test/bookworm/debian\nSuites: trixie trixie-updates\nComponents: main\n", sources)
	require.NoError(t, os.Remove(filepath.Join(folder, "sources.list.d", "debian.sources")))
	write(t, filepath.Join(folder, "sources.list"), "deb http://mirror.test/debian bookworm main\ndeb http://mirror.test/debian-security bookworm-security main\n")
	sources, err = findSources(folder, "trixie")
	require.NoError(t, err)
	require.Equal(t, "deb http://mirror.test/debian trixie main\ndeb http://mirror.test/debian-security trixie-security main\n", sources)
	write(t, filepath.Join(folder, "sources.list"), "deb http://mirror.test/debian bookworm main\ndeb http://new.test/debian trixie main\n")
	sources, err = findSources(folder, "trixie")
	require.NoError(t, err)
	require.Equal(t, "deb http://new.test/debian trixie main\n", sources, "a source of the release itself comes first")
}

func FuzzSources(f *testing.F) {
	f.Add("deb [a=b] http://m/debian bookworm main\n", "Types: deb\nURIs: http://m/debian\nSuites: bookworm\n")
	f.Add("deb [", ":\n :\n\n  x")
	f.Fuzz(func(t *testing.T, lines, stanzas string) {
		for _, line := range oneLineSources(lines, "bookworm") {
			require.True(t, strings.HasPrefix(line, "deb "))
		}
		deb822Sources(stanzas, "bookworm")
	})
}

func TestTheElementsOfTheRepositoryAreSound(t *testing.T) {
	elements, err := readElements("elements")
	require.NoError(t, err)
	more, err := readElements(optionalFolder)
	require.NoError(t, err)
	elements = append(elements, more...)
	packages := allPackages(elements)
	for _, needed := range []string{"systemd", "openssh-server", "runc", "haproxy", "nftables", "iptables"} {
		require.Contains(t, packages, needed)
	}
	for _, element := range elements {
		if element.install == "" {
			continue
		}
		info, err := os.Stat(element.install)
		require.NoError(t, err)
		require.NotZero(t, info.Mode()&0o111, "%s can be run by hand", element.install)
		script, err := os.ReadFile(element.install)
		require.NoError(t, err)
		require.Contains(t, string(script), "set -euo pipefail")
		output, err := exec.CommandContext(t.Context(), element.install).CombinedOutput()
		require.Error(t, err)
		require.Contains(t, string(output), "ROOT: the root file system to change", "it says what it wants")
	}
}

func TestElementsThatAreNoneAreRefused(t *testing.T) {
	folder := t.TempDir()
	_, err := readElements(folder)
	require.ErrorContains(t, err, "there are no elements in")
	require.NoError(t, os.Mkdir(filepath.Join(folder, "10-empty"), 0o755))
	_, err = readElements(folder)
	require.ErrorContains(t, err, "element 10-empty is empty")
	write(t, filepath.Join(folder, "10-empty", "packages"), "# two\nvim less # and a reason\n\n")
	elements, err := readElements(folder)
	require.NoError(t, err)
	require.Equal(t, []string{"vim", "less"}, elements[0].packages)
}

func TestAnImageHasMoreWhenItIsAskedForIt(t *testing.T) {
	elements, more, err := optional(".", nil)
	require.NoError(t, err)
	require.Empty(t, elements)
	require.Empty(t, more)
	elements, more, err = optional(".", []string{"docker"})
	require.NoError(t, err)
	require.Equal(t, []string{"docker.io"}, allPackages(elements))
	require.Equal(t, "cri-dockerd", more[0].programs[0].name)
	_, _, err = optional(".", []string{"docker", "podman"})
	require.EqualError(t, err, "no image can be built with podman: there is docker")

	keyOf := func(elements []element) string {
		key := newKey()
		require.NoError(t, (&builder{source: ".", elements: elements}).addElements(key, "elements"))
		return key.String()
	}
	require.NotEqual(t, keyOf(nil), keyOf(elements), "it is another image")
}

func TestAnElementLaysItsFilesAndRunsItsScript(t *testing.T) {
	folder, root := t.TempDir(), t.TempDir()
	write(t, filepath.Join(folder, "10-a", "files", "etc", "a"), "laid")
	write(t, filepath.Join(folder, "10-a", "install"), "#!/bin/sh\ncat \"$ROOT/etc/a\" \"$PROGRAMS\" \"$IMAGES\" > \"$ROOT/etc/b\"\necho said\n")
	require.NoError(t, os.Chmod(filepath.Join(folder, "10-a", "install"), 0o755))
	programs, containers := filepath.Join(t.TempDir(), "p"), filepath.Join(t.TempDir(), "c")
	write(t, programs, "-programs")
	write(t, containers, "-images")
	elements, err := readElements(folder)
	require.NoError(t, err)
	output := newTail()
	require.NoError(t, elements[0].apply(t.Context(), root, programs, containers, output))
	content, err := os.ReadFile(filepath.Join(root, "etc", "b"))
	require.NoError(t, err)
	require.Equal(t, "laid-programs-images", string(content))
	require.Equal(t, "said", output.String())
}

func TestTheSamePackedFilesAreTheSameBytes(t *testing.T) {
	sums := map[string]bool{}
	for _, age := range []time.Duration{0, time.Hour} {
		root := t.TempDir()
		for _, name := range []string{"b", "a", "dev/null", "run/x"} {
			write(t, filepath.Join(root, name), name)
			then := time.Now().Add(-age)
			require.NoError(t, os.Chtimes(filepath.Join(root, name), then, then))
		}
		packed := filepath.Join(t.TempDir(), "image.tar")
		require.NoError(t, pack(t.Context(), root, packed, newTail()))
		sum, size, err := checksum(packed)
		require.NoError(t, err)
		require.NotZero(t, size)
		sums[sum] = true
		names, err := exec.Command("tar", "--list", "--file", packed).Output()
		require.NoError(t, err)
		require.Equal(t, "./\n./a\n./b\n./dev/\n./run/\n", string(names))
	}
	require.Len(t, sums, 1)
}

func TestAContainerImageHoldsItsProgramAndIsTheSameEachTime(t *testing.T) {
	folder := t.TempDir()
	binary := filepath.Join(folder, "binary")
	write(t, binary, "program")
	sums := map[string]bool{}
	for _, archive := range []string{filepath.Join(folder, "1.tar"), filepath.Join(folder, "2.tar")} {
		require.NoError(t, Container{Program: "pause", Reference: "registry.local/pause:1", User: nobody}.Write(archive, binary, "amd64"))
		sum, _, err := checksum(archive)
		require.NoError(t, err)
		sums[sum] = true
	}
	require.Len(t, sums, 1)

	tag, err := name.NewTag("registry.local/pause:1")
	require.NoError(t, err)
	image, err := tarball.ImageFromPath(filepath.Join(folder, "1.tar"), &tag)
	require.NoError(t, err)
	config, err := image.ConfigFile()
	require.NoError(t, err)
	require.Equal(t, []string{"/pause"}, config.Config.Entrypoint)
	require.Equal(t, nobody, config.Config.User)
	require.Equal(t, "linux/amd64", config.OS+"/"+config.Architecture)

	unpacked := exec.Command("tar", "--list", "--verbose")
	unpacked.Stdin = mutate.Extract(image)
	list, err := unpacked.Output()
	require.NoError(t, err)
	require.Regexp(t, `(?m)^-rwxr-xr-x .* 7 .* pause$`, string(list))
}

func TestEveryModuleOfTheRepositoryPinsWhatItIsNamedAfter(t *testing.T) {
	built, from := map[string]bool{}, map[string]bool{}
	for _, module := range slices.Concat(append([][]module{modules()}, slices.Collect(maps.Values(optionalModules()))...)...) {
		from[module.in(".")] = true
		version, err := moduleVersion(t.Context(), module.in("."), module.main)
		require.NoError(t, err, module.name)
		if module.main != "" {
			require.Regexp(t, `^v\d+\.\d+\.\d+`, version)
		}
		for _, program := range module.programs {
			require.False(t, built[program.name], "%s is built twice", program.name)
			built[program.name] = true
		}
		for _, container := range containers() {
			if container.Program == module.name {
				require.Contains(t, container.Reference, ":"+strings.TrimPrefix(version, "v"))
			}
		}
	}
	for _, container := range containers() {
		require.True(t, built[container.Program], "%s is in an image and must be built", container.Program)
	}
	folders, err := os.ReadDir("modules")
	require.NoError(t, err)
	former := 0
	for _, folder := range folders {
		minor, isFormer := strings.CutPrefix(folder.Name(), kubernetesModule+"-")
		if !isFormer {
			continue
		}
		former++
		list, err := modulesWith(".", minor)
		require.NoError(t, err)
		version, err := moduleVersion(t.Context(), list[slices.IndexFunc(list, func(m module) bool { return m.name == kubernetesModule })].in("."), "k8s.io/kubernetes")
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(version, "v"+minor+"."), "%s pins %s", folder.Name(), version)
	}
	require.Len(t, folders, len(from)+former, "every folder of modules is built")
	_, err = modulesWith(".", "1.2")
	require.ErrorContains(t, err, "no image can be built with Kubernetes 1.2: there are 1.")

	_, err = moduleVersion(t.Context(), filepath.Join("modules", "cni"), "example.org/nothing")
	require.ErrorContains(t, err, "go.mod does not pin example.org/nothing")
}

func TestKubernetesIsToldItsVersion(t *testing.T) {
	settings := kubernetesVersion("v1.36.3")
	require.Contains(t, settings, "k8s.io/component-base/version.gitVersion=v1.36.3")
	require.Contains(t, settings, "k8s.io/client-go/pkg/version.gitMinor=36")
	require.Len(t, settings, 12)
	require.Empty(t, kubernetesVersion("nonsense"))
}

func TestABuildSaysWhatItCannotDo(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gets further than being told to be root")
	}
	_, err := Build(t.Context(), Options{Source: t.TempDir(), Out: "image.tar"})
	require.ErrorContains(t, err, "is not the source of the image")
	_, err = Build(t.Context(), Options{Source: "."})
	require.ErrorContains(t, err, "no file is named")
}

func TestAFinishedImageIsDeliveredOnceAndAgainWhenItIsDamaged(t *testing.T) {
	cached, out := t.TempDir(), filepath.Join(t.TempDir(), "build", "node-image.tar")
	write(t, filepath.Join(cached, imageFile), "an image")
	manifest := Manifest{SHA256: "abc", Size: 8, Modules: map[string]string{"etcd": "v3"}}
	require.NoError(t, writeJSON(filepath.Join(cached, manifestFile), manifest))
	builder := builder{out: out}
	got, err := builder.deliver(piece{folder: cached})
	require.NoError(t, err)
	require.Equal(t, manifest, got)
	require.FileExists(t, strings.TrimSuffix(out, ".tar")+".json")
	before, err := os.Stat(out)
	require.NoError(t, err)

	_, err = builder.deliver(piece{folder: cached})
	require.NoError(t, err)
	again, err := os.Stat(out)
	require.NoError(t, err)
	require.True(t, os.SameFile(before, again), "it is not written twice")

	write(t, out, "cut")
	_, err = builder.deliver(piece{folder: cached})
	require.NoError(t, err)
	content, err := os.ReadFile(out)
	require.NoError(t, err)
	require.Equal(t, "an image", string(content))
}

func TestAProgramThatIsStoppedMayCleanUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	marker := filepath.Join(t.TempDir(), "cleaned")
	command := exec.CommandContext(ctx, "bash", "-c", `trap 'touch "$0"; exit 1' INT; echo ready; while :; do sleep 0.05; done`, marker)
	err := runCommand(command, writerFunc(func(data []byte) (int, error) {
		cancel()
		return len(data), nil
	}))
	require.ErrorContains(t, err, "run bash -c")
	require.FileExists(t, marker)
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(data []byte) (int, error) { return f(data) }

package nodes

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/nodes/kube"
)

func TestAStandaloneServerHasARuntimeAndAKubelet(t *testing.T) {
	registries, err := kube.ParseRegistries(kube.RegistrySettings{Registry: "registry.example.org:5000", User: "team", Password: "secret", Mirrors: "https://mirror.example.org"})
	require.NoError(t, err)
	units, err := kube.Standalone{Registries: registries, Containers: netip.MustParsePrefix("172.31.0.0/16"), MTU: 1450}.Units()
	require.NoError(t, err)
	reviewed(t, "standalone.txt", written(filesOf(units)))
}

func TestFoldersOfAStandaloneServerAreKeptOrGoWithTheirPods(t *testing.T) {
	pods, volumes := t.TempDir(), t.TempDir()+"/"
	describe := func(names ...string) {
		for _, name := range names {
			require.NoError(t, os.WriteFile(filepath.Join(pods, name+".json"), nil, 0o600))
		}
	}
	run := func(env ...string) {
		bash(t, standalonePodsScript, nil, append(env, "PODS="+pods, "VOLUMES="+volumes)...)
		bash(t, standaloneClearScript, nil, "PODS="+pods, "VOLUMES="+volumes)
	}
	there := func() (names []string) {
		for _, pattern := range []string{pods + "/*", volumes + "*/*"} {
			found, err := filepath.Glob(pattern)
			require.NoError(t, err)
			for _, path := range found {
				names = append(names, filepath.Join(filepath.Base(filepath.Dir(path)), filepath.Base(path)))
			}
		}
		return names
	}
	folder := filepath.Base(pods)
	describe("web", "db")
	run("KEEP=web.json\ndb.json", "FOLDERS=1 kept/data\n1 with/web/cache")
	require.Equal(t, []string{folder + "/db.json", folder + "/web.json", "kept/data", "with/web"}, there())
	run("END=web.json")
	require.Equal(t, []string{folder + "/db.json", "kept/data"}, there())
	describe("web")
	run("KEEP=web.json", "FOLDERS=9223372036854775807 kept/data")
	require.Equal(t, []string{folder + "/web.json", "kept/data"}, there(), "a folder that is there is not made again")
	run("KEEP=")
	require.Equal(t, []string{"kept/data"}, there())

	file := func(pod, name string) string {
		path := filepath.Join(volumes, "files", pod, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, nil, 0o400))
		return path
	}
	mounted := file("web", "0011")
	file("web", "2233")
	file("db", "4455")
	require.NoError(t, os.WriteFile(filepath.Join(pods, "web.json"), []byte(`{"hostPath":{"path":"`+mounted+`"}}`), 0o600))
	run("KEEP=web.json")
	left, err := filepath.Glob(volumes + "files/*/*")
	require.NoError(t, err)
	require.Equal(t, []string{mounted}, left, "files that no pod mounts any more go")
	require.Equal(t, []string{folder + "/web.json", "files/web", "kept/data"}, there())
}

package images

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// otherVersions are the reasons why a module of the image is not compiled with the product's versions of libraries: a folder, or one library of it.
var otherVersions = map[string]string{
	"calico":          "its last version that the module proxy serves was written for Kubernetes 1.29",
	"flannelcni":      "a version of the plugins that still had Flannel's",
	"cridockerd":      "the last version, for Docker 20; compiled on demand only",
	"gatewayapi":      "files only",
	"kubernetes-1.35": "the former minor version, as it was published",
	"coredns github.com/mitchellh/mapstructure": "in the list of modules only",
	"coredns go.etcd.io/bbolt":                  "in the list of modules only",
	"coredns go.etcd.io/etcd/api/v3":            "in the list of modules only",
	"coredns go.etcd.io/etcd/client/pkg/v3":     "in the list of modules only",
	"coredns go.etcd.io/etcd/client/v3":         "in the list of modules only",
}

// TestTheImageSharesTheVersionsOfTheProduct holds one set of versions: the product is compiled first, and whatever its libraries are in the image's programs,
// too, is then in the compiler's cache.
func TestTheImageSharesTheVersionsOfTheProduct(t *testing.T) {
	product := versionsIn(t, "..")
	folders, err := filepath.Glob("modules/*/go.mod")
	require.NoError(t, err)
	require.NotEmpty(t, folders)
	used := map[string]bool{}
	for _, file := range folders {
		name := filepath.Base(filepath.Dir(file))
		if otherVersions[name] != "" {
			used[name] = true
			continue
		}
		for path, version := range versionsIn(t, filepath.Dir(file)) {
			if shared, is := product[path]; is && version != shared {
				if otherVersions[name+" "+path] == "" {
					t.Errorf("images/modules/%s has %s %s, the product %s: raise the older one (go get), replace it, or write the reason into otherVersions", name, path, version, shared)
				}
				used[name+" "+path] = true
			}
		}
	}
	for one := range otherVersions {
		require.True(t, used[one], "otherVersions names %s, which differs no more", one)
	}
}

// versionsIn are the versions that a module's go.mod requires, by path.
func versionsIn(t *testing.T, folder string) map[string]string {
	t.Helper()
	edit := exec.Command("go", "mod", "edit", "-json")
	edit.Dir = folder
	text, err := edit.Output()
	require.NoError(t, err)
	var file struct {
		Require []struct{ Path, Version string }
		Replace []struct {
			Old, New struct{ Path, Version string }
		}
	}
	require.NoError(t, json.Unmarshal(text, &file))
	versions := map[string]string{}
	for _, one := range file.Require {
		versions[one.Path] = one.Version
	}
	for _, one := range file.Replace {
		if one.Old.Path == one.New.Path && versions[one.Old.Path] != "" && versions[one.Old.Path] != one.New.Version {
			versions[one.Old.Path] += " (replaced by " + one.New.Version + ")" // the compiler writes the required version into positions
		}
	}
	return versions
}

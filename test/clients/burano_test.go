package clients

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

func TestBuranosOwnClient(t *testing.T) {
	s := start(t)
	app := func(name, rest string) string {
		return zipped(t, map[string]string{"manifest.yaml": manifest(name, rest), "Classes/C.yaml": class(name)})
	}
	s.write(map[string]string{
		"one.zip":                           app("org.test.One", ""),
		"two/manifest.yaml":                 manifest("org.test.Two", "Require: {org.test.Three: '>=1'}\n"),
		"two/Classes/C.yaml":                class("org.test.Two"),
		"org.test.Three/manifest.yaml":      manifest("org.test.Three", "Version: 1.2.0\nRequire: {org.test.Base: , io.murano: }\n"),
		"org.test.Three/Classes/C.yaml":     class("org.test.Three"),
		"repository/apps/org.test.Base.zip": app("org.test.Base", ""),
		"repository/apps/org.test.Old.zip":  app("org.test.Old", ""),
		"new/manifest.yaml":                 manifest("org.test.New", "Require: {org.test.Old: '>=2'}\n"),
		"circle/org.test.A/manifest.yaml":   manifest("org.test.A", "Require: {org.test.B: }\n"),
		"circle/org.test.B/manifest.yaml":   manifest("org.test.B", "Require: {org.test.A: }\n"),
		"wrong/manifest.yaml":               "FullName: [\n",
		"stack.yaml":                        "heat_template_version: 2016-10-14\ndescription: a stack\nresources: {}\n",
		"classes/A.yaml":                    "Namespaces: {=: org.test.made}\nName: A\n---\nName: B\n",
		"clouds.yaml": "clouds:\n  mine:\n    region_name: local\n    auth: {auth_url: '" + s.keystone + "/identity/v3', username: demo, password: demo, project_name: demo, " +
			"user_domain_name: Default, project_domain_name: Default}\n",
	})
	repository := httptest.NewServer(http.FileServer(http.Dir(filepath.Join(s.home, "repository"))))
	t.Cleanup(repository.Close)
	demo, admin := s.as("demo", "demo", "MURANO_REPO_URL="+repository.URL), s.as("admin", "admin")
	burano := func(environment []string, args ...string) string {
		t.Helper()
		out, ok := s.run(environment, s.program, args...)
		require.True(t, ok, "%v: %s", args, out)
		return out
	}
	refused := func(says string, environment []string, args ...string) {
		t.Helper()
		out, ok := s.run(environment, s.program, args...)
		require.False(t, ok, "%v: %s", args, out)
		require.Contains(t, out, says)
	}

	require.Equal(t, "org.test.One: imported\n", burano(demo, "package", "import", "one.zip", "--categories", "Web", "--tags", "more"))
	refused("--exists-action s leaves what is there, u replaces it", demo, "package", "import", "one.zip")
	require.Equal(t, "org.test.One: is there already, left as it is\n", burano(demo, "package", "import", "--exists-action", "s", "one.zip"))
	require.Equal(t, "org.test.One: updated\n", burano(demo, "package", "import", "--exists-action", "u", "one.zip"))
	require.Equal(t, "org.test.Base: imported\norg.test.Three: imported\norg.test.Two: imported\n", burano(demo, "package", "import", "two"),
		"what is required comes first: from beside the folder, and from the repository")
	refused(`org.test.New requires org.test.Old of version ">=2", but `+repository.URL+"/apps/org.test.Old.zip is 0.0.0", demo, "package", "import", "new")
	refused("these packages require each other: org.test.A, org.test.B, org.test.A", demo, "package", "import", "circle/org.test.A")
	refused("wrong: Unable to load due to 'manifest.yaml", demo, "package", "import", "wrong")
	refused("answers 404", demo, "package", "import", repository.URL+"/nothing.zip")
	refused("nothing is no file, folder or URL; to look for it by name, say where with --repository", admin, "package", "import", "nothing")
	require.Equal(t, "org.test.Old: imported\n", burano(demo, "package", "import", repository.URL+"/apps/org.test.Old.zip"))

	// The content of a repository is carried to a server that cannot reach it.
	s.write(map[string]string{
		"repository/apps/org.test.Big.zip": zipped(t, map[string]string{"manifest.yaml": manifest("org.test.Big", "Require: {org.test.Small: , io.murano: }\n"),
			"Classes/C.yaml": class("org.test.Big"), "images.lst": "Images:\n- {Name: big, DiskFormat: raw, ContainerFormat: bare, Url: big.img}\n"}),
		"repository/apps/org.test.Small.1.0.0.zip": app("org.test.Small", ""), "repository/apps/org.test.Small.zip": app("org.test.Small", ""),
		"repository/images/big.img": "an image", "repository/bundles/both.bundle": `{"Packages": [{"Name": "org.test.Big"}, {"Name": "org.test.Small", "Version": "1.0.0"}]}`,
		"bad.bundle": "Packages: []\n", "lost.bundle": "Packages: [{Name: org.test.Nothing}]\n",
	})
	require.Equal(t, "org.test.Small: saved as carried/org.test.Small.zip\norg.test.Big: saved as carried/org.test.Big.zip\norg.test.Big: image big saved as carried/big.img\n",
		burano(demo, "package", "save", "--path", "carried", "org.test.Big"))
	image, err := os.ReadFile(filepath.Join(s.home, "carried", "big.img"))
	require.NoError(t, err)
	require.Equal(t, "an image", string(image))
	require.NotContains(t, burano(demo, "bundle", "save", "both", "-p", "again", "--no-images"), "big.img")
	require.FileExists(t, filepath.Join(s.home, "again", "org.test.Small.zip"))
	s.write(map[string]string{"carried/carry.bundle": "Packages: [{Name: org.test.Big}]\n"})
	require.Contains(t, burano(s.as("demo", "demo"), "bundle", "import", "carried/carry.bundle"), "org.test.Small: imported\norg.test.Big: imported\n", "from beside the bundle")
	require.Contains(t, burano(demo, "bundle", "import", "both", "--exists-action", "s"), "org.test.Big: is there already")
	refused("answers 404", demo, "bundle", "import", "nothing")
	refused("no list", demo, "bundle", "import", "bad.bundle")
	refused("org.test.Nothing: it is not beside the bundle", s.as("demo", "demo"), "bundle", "import", "lost.bundle")
	refused("--exists-action is s", demo, "bundle", "import", "both", "--exists-action", "x")
	for _, name := range []string{"org.test.Big", "org.test.Small"} {
		burano(demo, "package", "delete", name)
	}

	s.image("there", `{"type":"linux"}`)
	s.image("unmarked", "")
	s.write(map[string]string{"boots/manifest.yaml": manifest("org.test.Boots", ""), "boots/Classes/C.yaml": class("org.test.Boots"),
		"boots/images.lst": "Images:\n- {Name: there, DiskFormat: raw, ContainerFormat: bare, Meta: {type: linux}}\n" +
			"- {Name: unmarked, DiskFormat: raw, ContainerFormat: bare, Meta: {type: linux}}\n" +
			"- {Name: else, DiskFormat: qcow2, ContainerFormat: bare, Url: 'https://example.org/e', Meta: {title: It's else}}\n- {Name: odd}\n"})
	require.Equal(t, `org.test.Boots: imported
org.test.Boots: images.lst:5:3: an image needs a DiskFormat
org.test.Boots: images.lst:5:3: an image needs a ContainerFormat
org.test.Boots: needs the image there (raw, bare): Glance has it (<id>)
org.test.Boots: needs the image unmarked (raw, bare): Glance has it (<id>), but forms do not find it; openstack image set --property `+
		`murano_image_info='{"type":"linux"}' <id>
org.test.Boots: needs the image else (qcow2, bare): Glance does not have it, it is at https://example.org/e; openstack image create `+
		`--disk-format qcow2 --container-format bare --property murano_image_info='{"title":"It'\''s else"}' --file FILE else
`, uuids.ReplaceAllString(burano(demo, "package", "import", "boots"), "<id>"))
	burano(demo, "package", "delete", "org.test.Boots")

	type row struct {
		ID       string `json:"id" yaml:"id"`
		FullName string `json:"fully_qualified_name" yaml:"fully_qualified_name"`
		Name     string
		Tags     []string
		Enabled  bool
	}
	names := func(rows []row) (list []string) {
		for _, r := range rows {
			list = append(list, r.FullName)
		}
		return list
	}
	var rows []row
	require.NoError(t, json.Unmarshal([]byte(burano(demo, "package", "list", "-o", "json")), &rows))
	require.Equal(t, []string{"org.test.Base", "io.murano", "org.test.Old", "org.test.One", "org.test.Three", "org.test.Two"}, names(rows))
	require.NoError(t, yaml.Unmarshal([]byte(burano(s.as("", "", "OS_CLOUD=mine"), "package", "list", "--owned", "--search", "three", "-o", "yaml")), &rows))
	require.Equal(t, []string{"org.test.Three"}, names(rows)[:1])
	require.Regexp(t, `(?m)^ID +FULL NAME +VERSION +NAME +TYPE +PUBLIC +ENABLED$`, burano(demo, "package", "list"))
	refused(`--output is table, json or yaml, not "xml"`, demo, "package", "list", "-o", "xml")

	var one row
	burano(demo, "package", "update", "org.test.One", "--name", "Uno", "--tags", "red,green", "--enabled=false", "--categories", "Databases")
	require.NoError(t, json.Unmarshal([]byte(burano(demo, "package", "show", "org.test.One", "-o", "json")), &one))
	require.Equal(t, row{ID: one.ID, FullName: "org.test.One", Name: "Uno", Tags: []string{"red", "green"}}, one)
	require.Regexp(t, `(?m)^Categories +Databases$`, burano(demo, "package", "show", one.ID))
	require.NotContains(t, burano(demo, "package", "list"), "org.test.One")
	require.Contains(t, burano(demo, "package", "list", "--all"), "org.test.One")
	refused("nothing to change: name at least one of", demo, "package", "update", "org.test.One")
	refused("Access was denied", demo, "package", "update", "org.test.One", "--public")
	refused(`there is no package "org.test.Nope"; `+"`burano package list --all` lists", demo, "package", "show", "org.test.Nope")

	burano(demo, "package", "download", "org.test.One", "down.zip")
	downloaded, err := os.ReadFile(filepath.Join(s.home, "down.zip"))
	require.NoError(t, err)
	uploaded, err := os.ReadFile(filepath.Join(s.home, "one.zip"))
	require.NoError(t, err)
	require.Equal(t, uploaded, downloaded)
	refused("down.zip is there already: name another file, or write over it with --force", demo, "package", "download", "org.test.One", "down.zip")

	require.Contains(t, burano(demo, "category", "show", "Databases"), "org.test.One")
	refused("Access was denied", demo, "category", "create", "Mine")
	require.Contains(t, burano(admin, "category", "create", "Mine"), "Mine (")
	require.Regexp(t, `(?m)Mine +0$`, burano(demo, "category", "list"))
	require.Contains(t, burano(admin, "category", "delete", "Mine"), "deleted")
	refused(`there is no category "Mine"`, admin, "category", "delete", "Mine")
	require.Contains(t, burano(demo, "__complete", "package", "show", ""), "org.test.Two")
	require.Contains(t, burano(demo, "completion", "bash"), "burano")

	require.Contains(t, burano(demo, "package", "delete", "org.test.One", "org.test.Two"), "org.test.Two (")
	refused("comes with Burano and cannot be deleted", admin, "package", "delete", "io.murano")

	require.Equal(t, "io.murano.apps.generated.stack: saved as io.murano.apps.generated.stack.zip\n", burano(demo, "package", "create", "-t", "stack.yaml"))
	require.Equal(t, "io.murano.apps.generated.stack: imported\n", burano(demo, "package", "import", "io.murano.apps.generated.stack.zip"))
	burano(demo, "package", "create", "-c", "classes", "--full-name", "org.test.made", "--output", "made.zip")
	burano(demo, "package", "import", "made.zip")
	require.Regexp(t, `(?m)^Classes +org.test.made.A, org.test.made.B$`, burano(demo, "package", "show", "org.test.made"))
	require.Contains(t, burano(demo, "package", "create", "org.test.Three"), "org.test.Three.zip")
	refused("name a folder, or a Heat template with -t", demo, "package", "create")
	refused("no credentials: name an entry of clouds.yaml", []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.home, "OS_CLIENT_CONFIG_FILE=" + s.home + "/none.yaml"}, "package", "list")
}

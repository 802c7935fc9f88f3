package execution

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// resources are the files of a package.
func resources(files map[string]string) Read {
	return func(name string) ([]byte, error) {
		if text, there := files[name]; there {
			return []byte(text), nil
		}
		return nil, fmt.Errorf("no file %s: %w", name, fs.ErrNotExist)
	}
}

type object = map[string]any

func template(version string, scripts object) object {
	return object{"FormatVersion": version, "Version": "1.0.0", "Name": "Deploy", "Body": "return deploy().stdout", "Parameters": object{"port": int64(80)}, "Scripts": scripts}
}

func application(files ...any) object {
	return object{"deploy": object{"Type": "Application", "Version": "1.0.0", "EntryPoint": "deploy.sh", "Files": files}}
}

func TestATemplateBecomesAPlanWithItsFiles(t *testing.T) {
	read := resources(map[string]string{"scripts/deploy.sh": "#!/bin/sh\r\necho\r\n", "scripts/conf/a.conf": "a\r\n", "scripts/b.bin": "b\r\n", "scripts/raw": "\xff\r\n"})
	given := template("2.1.0", application("conf/a.conf", "<b.bin>", "raw", object{"renamed": "conf/a.conf"}, object{"lib": "https://example.org/lib.tar.gz"}, "https://example.org/x/module.git"))
	built, err := Build(given, read)
	require.NoError(t, err)
	plan, err := Parse(built)
	require.NoError(t, err)
	got := map[string]string{}
	for _, one := range plan.scriptFiles(plan.scripts["deploy"]) {
		got[one.name] = string(one.content) + one.url
	}
	require.Equal(t, map[string]string{"deploy.sh": "#!/bin/sh\necho\n", "conf/a.conf": "a\n", "b.bin": "b\r\n", "raw": "\xff\r\n", "renamed": "a\n",
		"lib": "https://example.org/lib.tar.gz", "module": "https://example.org/x/module.git"}, got)
	require.Equal(t, "deploy.sh", given["Scripts"].(object)["deploy"].(object)["EntryPoint"], "the template is not changed")
	require.Nil(t, given["Files"])

	again, err := Build(given, read)
	require.NoError(t, err)
	other, err := Parse(again)
	require.NoError(t, err)
	require.Equal(t, plan.Digest("a"), other.Digest("a"))
	require.NotEqual(t, plan.Digest("a"), other.Digest("b"))
}

func TestUseBase64KeepsTheBytesOfFiles(t *testing.T) {
	given := template("2.0.0", application())
	given["Scripts"].(object)["deploy"].(object)["Options"] = object{"useBase64": true}
	built, err := Build(given, resources(map[string]string{"scripts/deploy.sh": "a\r\n"}))
	require.NoError(t, err)
	plan, err := Parse(built)
	require.NoError(t, err)
	require.Equal(t, "a\r\n", string(plan.scriptFiles(plan.scripts["deploy"])[0].content))
}

func TestATemplateMayHoldFilesItself(t *testing.T) {
	given := template("2.0.0", object{"deploy": object{"Type": "Application", "EntryPoint": "inline.sh"}})
	given["Files"] = object{"x": object{"Name": "inline.sh", "BodyType": "Text", "Body": "echo"}}
	built, err := Build(given, resources(nil))
	require.NoError(t, err)
	plan, err := Parse(built)
	require.NoError(t, err)
	require.Equal(t, "x", plan.scripts["deploy"].entry)
}

func TestTemplatesOfWhichNoPlanCanBeMadeAreRefused(t *testing.T) {
	read := resources(map[string]string{"scripts/deploy.sh": "x"})
	for want, given := range map[string]object{
		"No entry point in script deploy":     {"FormatVersion": "2.0.0", "Scripts": object{"deploy": object{"Type": "Application"}}},
		"no file scripts/missing":             template("2.0.0", application("missing")),
		`"../../../etc/passwd" is no path in`: template("2.0.0", application("../../../etc/passwd")),
		"a path, or a map of one name":        template("2.0.0", application(object{"a": "b", "c": "d"})),
		"Scripts is no map":                   {"FormatVersion": "2.0.0", "Scripts": []any{}},
	} {
		_, err := Build(given, read)
		require.ErrorContains(t, err, want)
	}
}

func plan(change func(object)) object {
	p := object{"FormatVersion": "2.2.0", "Name": "Deploy", "Body": "return deploy()", "Files": object{"f": object{"Name": "deploy.sh", "BodyType": "Text", "Body": "x"}},
		"Scripts": object{"deploy": object{"Type": "Application", "EntryPoint": "f", "Files": []any{}, "Options": object{}}}}
	change(p)
	return p
}

func deploy(p object) object { return p["Scripts"].(object)["deploy"].(object) }

func TestPlansAreCheckedAsMuranosAgentDoes(t *testing.T) {
	for name, test := range map[string]struct {
		change func(object)
		code   int
		want   string // "" for none
	}{
		"whole":                        {func(object) {}, 0, ""},
		"without scripts and files":    {func(p object) { delete(p, "Scripts"); delete(p, "Files"); p["Body"] = "return" }, 0, ""},
		"of format 1 in the new shape": {func(p object) { delete(p, "FormatVersion") }, 0, ""},
		"of a newer format":            {func(p object) { p["FormatVersion"] = "2.3.0" }, codeVersion, "Unsupported format version 2.3.0"},
		"of no format":                 {func(p object) { p["FormatVersion"] = "new" }, codeVersion, "Unsupported format version"},
		"for Windows":                  {func(p object) { p["Scripts"] = []any{"a.ps1"}; p["Commands"] = []any{} }, codeFormat, "PowerShell"},
		"with another action":          {func(p object) { p["Action"] = "Stop" }, codeFormat, `"Stop"`},
		"without a body":               {func(p object) { delete(p, "Body") }, codeFormat, "Body is not in"},
		"with a body that is none":     {func(p object) { p["Body"] = "return (" }, codeFailed, "SyntaxError"},
		"with scripts that are a text": {func(p object) { p["Scripts"] = "deploy" }, codeFormat, "Scripts is not a dictionary"},
		"without a type":               {func(p object) { delete(deploy(p), "Type") }, codeFormat, "Incorrect Type entry in script deploy"},
		"of an unknown type":           {func(p object) { deploy(p)["Type"] = "Salt" }, codeFormat, "not a valid type"},
		"without entry point":          {func(p object) { deploy(p)["EntryPoint"] = "missing" }, codeFormat, "misses entry point missing"},
		"without a file":               {func(p object) { deploy(p)["Files"] = []any{"missing"} }, codeFormat, "misses file missing"},
		"of Chef":                      {func(p object) { deploy(p)["Type"], deploy(p)["EntryPoint"] = "Chef", "git::default" }, 0, ""},
		"of Chef in 2.0": {func(p object) {
			p["FormatVersion"] = "2.0.0"
			deploy(p)["Type"], deploy(p)["EntryPoint"] = "Chef", "git::default"
		}, codeFormat, "not valid for format 2.0.0"},
		"of Puppet without a recipe":   {func(p object) { deploy(p)["Type"], deploy(p)["EntryPoint"] = "Puppet", "git" }, codeFormat, ":: needed"},
		"of Puppet with a quote":       {func(p object) { deploy(p)["Type"], deploy(p)["EntryPoint"] = "Puppet", "a'::b" }, codeFormat, ":: needed"},
		"with Berkshelf for no Chef":   {func(p object) { deploy(p)["Options"] = object{"useBerkshelf": true} }, codeFormat, "invalid for type Application"},
		"with Berkshelf in 2.1":        {func(p object) { p["FormatVersion"] = "2.1.0"; deploy(p)["Options"] = object{"useBerkshelf": true} }, codeFormat, "invalid for version 2.1.0"},
		"with a file without a name":   {func(p object) { p["Files"] = object{"f": object{"Body": "x"}} }, codeFormat, "Incorrect Name entry"},
		"with a file above its folder": {func(p object) { p["Files"].(object)["f"].(object)["Name"] = "../x" }, codeFormat, "no path below"},
		"with a file of another type":  {func(p object) { p["Files"].(object)["f"].(object)["BodyType"] = "Hex" }, codeFormat, "Incorrect BodyType"},
		"with a file that is no Base64": {func(p object) {
			p["Files"].(object)["f"].(object)["BodyType"] = "Base64"
			p["Files"].(object)["f"].(object)["Body"] = "!"
		}, codeFormat, "not Base64"},
		"with a download": {func(p object) {
			p["Files"].(object)["d"] = object{"Name": "d", "Type": "Downloadable", "URL": "https://example.org/x"}
		}, 0, ""},
		"with a download in 2.0": {func(p object) {
			p["FormatVersion"] = "2.0.0"
			p["Files"].(object)["d"] = object{"Name": "d", "Type": "Downloadable", "URL": "https://example.org/x"}
		}, codeFormat, "not valid for version 2.0.0"},
		"with a download from nowhere": {func(p object) { p["Files"].(object)["d"] = object{"Name": "d", "Type": "Downloadable", "URL": "x"} }, codeFormat, "Incorrect URL entry"},
		"with a script in a folder":    {func(p object) { p["Scripts"].(object)["a/b"] = deploy(p) }, codeFormat, "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(plan(test.change))
			if test.want == "" {
				require.NoError(t, err)
				return
			}
			var wrong *Error
			require.True(t, errors.As(err, &wrong), "%v", err)
			require.Equal(t, test.code, wrong.Code)
			require.Contains(t, wrong.Message, test.want)
		})
	}
}

func TestAPlanOfACommandIsCalledAfterItsFirstLineThatIsNoComment(t *testing.T) {
	for name, wanted := range map[string]string{
		"Install nginx": "Install nginx",
		"Execute #!/bin/bash\n# Licensed under the Apache License\n\n  apt-get update\napt-get install x\n": "Execute apt-get update…",
		"Execute uname -a":                        "Execute uname -a",
		"Execute #!/bin/sh\n# nothing\n":          "Execute #!/bin/sh…",
		"Two lines\nof a name":                    "Two lines…",
		"Execute echo " + strings.Repeat("x", 90): "Execute echo " + strings.Repeat("x", 67) + "…",
	} {
		require.Equal(t, wanted, told(name))
	}
}

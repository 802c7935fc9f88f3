package catalog_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/internal/fault"
)

func withManifest(t testing.TB, manifest string) (*catalog.Package, error) {
	t.Helper()
	return read(zipOf(t, entry{name: "manifest.yaml", content: manifest}, entry{name: "template.yaml", content: "resources: {}\n"}))
}

func TestAWrongManifestIsRefusedWithItsReason(t *testing.T) {
	for name, c := range map[string]struct{ manifest, says string }{
		"no YAML":                {"FullName: [a, b", "Unable to load due to 'manifest.yaml: yaml: line 1"},
		"empty":                  {"", "manifest.yaml is empty"},
		"a list":                 {"- a", "should be a map"},
		"no FullName":            {"Type: Library\n", "FullName is not specified"},
		"FullName with a blank":  {"Type: Library\nFullName: not valid!\n", "Invalid FullName not valid!"},
		"FullName ends in a dot": {"Type: Library\nFullName: a.b.\n", "Invalid FullName a.b."},
		"FullName with two dots": {"Type: Library\nFullName: a..b\n", "Invalid FullName"},
		"FullName too long":      {"Type: Library\nName: a\nFullName: " + strings.Repeat("a", 129) + "\n", "128 characters maximum"},
		"no Type":                {"FullName: a\n", "Invalid package Type None"},
		"another Type":           {"FullName: a\nType: Thing\n", "Invalid package Type Thing"},
		"another Format":         {"FullName: a\nType: Library\nFormat: Foo/9.9\n", "Unsupported format Foo/9.9"},
		"a later MuranoPL":       {"FullName: a\nType: Library\nFormat: 1.5\n", "Unsupported format MuranoPL/1.5"},
		"long Name":              {"FullName: a\nType: Library\nName: " + strings.Repeat("n", 81) + "\n", "Package name should be 80 characters maximum"},
		"Version is no version":  {"FullName: a\nType: Library\nVersion: new\n", "Version 'new' is no version"},
		"Tags are no list":       {"FullName: a\nType: Library\nTags: {x: y}\n", "Tags should be a list of texts"},
		"Classes are a list":     {"FullName: a\nType: Library\nClasses: [x]\n", "Classes should be a map"},
		"a class without file":   {"FullName: a\nType: Library\nClasses: {x: }\n", "Classes should be a map"},
		"Require is a list":      {"FullName: a\nType: Library\nRequire: [x]\n", "Require should be a map"},
		"Require of no version":  {"FullName: a\nType: Library\nRequire: {x: soon}\n", `Require of 'x': "soon" is no version spec`},
		"Supplier is a text":     {"FullName: a\nType: Library\nSupplier: x\n", "Supplier should be a map"},
		"Name is a map":          {"FullName: a\nType: Library\nName: {a: b}\n", "Name should be a text"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := withManifest(t, c.manifest)
			if err == nil {
				err = p.CheckLengths()
			}
			require.ErrorContains(t, err, c.says)
			require.Equal(t, fault.Invalid, fault.KindOf(err))
		})
	}
}

func TestEveryFormatOfMuranoIsRead(t *testing.T) {
	for written, language := range map[string]string{
		"": "1.0", "Format: 1.0\n": "1.0", "Format: 1.1\n": "1.1", "Format: '1.2'\n": "1.2", "Format: MuranoPL/1.3\n": "1.3",
		"Format: 1.4\n": "1.4", "Format: Heat.HOT/1.0\n": "1.0",
	} {
		p, err := withManifest(t, "FullName: org.A\nType: Application\n"+written)
		require.NoError(t, err, written)
		require.Equal(t, language, p.Format(), written)
		require.Equal(t, strings.Contains(written, "HOT"), p.HOT())
	}
}

func TestAManifestGivesWhatItSaysAndDefaultsOtherwise(t *testing.T) {
	p, err := withManifest(t, `
Format: 1.3
Type: Library
FullName: org.golden.Ünicode_1
Version: 1.2
Tags: [b, a, b]
Author: me
Supplier: {Name: Inc, CompanyUrl: {Text: t, Link: l}, 1: {true: 2026-01-01}}
Require: {io.murano: , x.y: ">=1.2, <2"}
Meta: [a.M, {a.N: {n: 5}}]
Classes:
  z.Z: Z.yaml
  a.A: A.yaml
`)
	require.NoError(t, err)
	require.Equal(t, "org.golden.Ünicode_1", p.FullName())
	require.Equal(t, p.FullName(), p.Name())
	require.Equal(t, "Library", p.Type())
	require.Equal(t, "1.2.0", p.Version().String())
	require.Equal(t, "The description is not provided", p.Description())
	require.Equal(t, "me", p.Author())
	require.Equal(t, []string{"b", "a"}, p.Tags())
	require.Equal(t, []string{"z.Z", "a.A"}, p.ClassNames())
	require.Equal(t, map[string]string{"io.murano": "", "x.y": ">=1.2, <2"}, p.Requires())
	require.Equal(t, []any{"a.M", map[string]any{"a.N": map[string]any{"n": 5}}}, p.Meta())
	_, err = json.Marshal(p.Supplier())
	require.NoError(t, err)
	require.Nil(t, formOf(t, p))
	logo, err := p.Logo()
	require.NoError(t, err)
	require.Nil(t, logo)

	p, err = withManifest(t, "FullName: org.A\nType: Library\n")
	require.NoError(t, err)
	require.Equal(t, "0.0.0", p.Version().String())
	require.NotNil(t, p.Supplier())

	p, err = withManifest(t, "FullName: org.A\nType: Library\nTags: web\n")
	require.NoError(t, err)
	require.Equal(t, []string{"web"}, p.Tags())
}

func TestMetadataOfAnUploadIsChecked(t *testing.T) {
	no := false
	meta, err := catalog.ParseMetadata([]byte(`{"categories":["Web"],"tags":[],"is_public":true,"enabled":false,"name":"n","description":"d"}`))
	require.NoError(t, err)
	require.Equal(t, catalog.Metadata{Categories: []string{"Web"}, Tags: []string{}, Public: true, Enabled: &no}, meta)
	for _, text := range []string{"", "{", "[1]", "text", "null"} {
		meta, err := catalog.ParseMetadata([]byte(text))
		require.NoError(t, err, text)
		require.Zero(t, meta, text)
	}
	for text, says := range map[string]string{
		`{"foo":"bar"}`:               "Additional properties are not allowed ('foo' was unexpected)",
		`{"b":1,"a":2,"tags":1}`:      "Additional properties are not allowed ('a', 'b' were unexpected)",
		`{"is_public":"yes"}`:         "'yes' is not of type 'boolean'",
		`{"enabled":null}`:            "None is not of type 'boolean'",
		`{"tags":"it's"}`:             `"it's" is not of type 'array'`,
		`{"tags":["a",1]}`:            "1 is not of type 'string'\n\nFailed validating 'type' in schema['properties']['tags']['items']:\n    {'type': 'string'}\n\nOn instance['tags'][1]:\n    1",
		`{"tags":["a",null]}`:         "None is not of type 'string'",
		`{"tags":["a","a"]}`:          "['a', 'a'] has non-unique elements",
		`{"tags":[1],"name":{"a":1}}`: "{'a': 1} is not of type 'string'",
	} {
		_, err := catalog.ParseMetadata([]byte(text))
		require.ErrorContains(t, err, says)
		require.Equal(t, fault.Invalid, fault.KindOf(err))
	}
}

// FuzzManifest holds that any manifest gives a package with a proper name, or a fault.
func FuzzManifest(f *testing.F) {
	f.Add(plainManifest)
	f.Add("Format: Heat.HOT/1.0\nType: Application\nFullName: a\nTags: [a]\nSupplier: {Logo: x, 1: [.nan]}\nRequire: {a: '>=1.2,<2.0.0-0'}\n")
	f.Add("a: &a [*a]\nFullName: *a\n")
	f.Add("&a x: *a\nClasses: {<<: &b {c: d}}\n")
	f.Fuzz(func(t *testing.T, manifest string) {
		p, err := withManifest(t, manifest)
		if err != nil {
			require.NotZero(t, fault.KindOf(err), "%v", err)
			return
		}
		require.NotEmpty(t, p.FullName())
		require.NotNil(t, p.Version())
		_, err = json.Marshal([]any{p.Name(), p.Tags(), p.Supplier(), p.Requires()})
		require.NoError(t, err)
		for _, class := range p.ClassNames() {
			_, _, err := p.ClassFile(class)
			require.Equal(t, p.HOT(), err == nil) // this package has no class file
		}
	})
}

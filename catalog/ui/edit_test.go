package ui_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog/apps"
	"github.com/burano/burano/catalog/ui"
)

const siteForm = `
Version: 2.4
Templates:
  node:
    ?: {type: org.test.Node}
    flavor: $.site.flavor
    name: generateHostname($.site.pattern, $index)
    zone: switch($.site.zone => $.site.zone)
  address:
    ?: {type: org.test.Address}
    public: $.site.closed
Application:
  ?: {type: org.test.Site}
  title: $.site.title
  nodes: repeat($node, $.site.count)
  open: not $.site.closed
  registry: switch($.site.registry = always => true, $.site.registry = never => false)
  labels: dict(regex('[^\s=,]+=[^\s=,]*').searchAll(coalesce($.site.labels, '')).select(regex('=').split($)))
  adminPassword: $.site.word
  environment: [{name: DB_PASSWORD, value: $.site.database}]
  shared: repeat($address, switch($.site.shared => 1, true => 0)).first(null)
Forms:
- site:
    fields:
    - {name: title, type: string, label: Title}
    - {name: flavor, type: flavor}
    - {name: pattern, type: string, initial: 'node-#', required: false}
    - {name: zone, type: azone, required: false}
    - {name: count, type: integer, initial: 2, minValue: 1}
    - {name: closed, type: boolean, initial: false}
    - {name: registry, type: choice, choices: [['', Usual], [always, Always], [never, Never]], initial: '', required: false}
    - {name: labels, type: string, initial: '', required: false}
    - {name: word, type: password}
    - {name: database, type: string}
    - {name: shared, type: boolean, initial: false}
    - {name: unused, type: string, required: false, initial: 'a hint'}
`

var siteAnswers = values{"site": {"title": "shop", "flavor": "small", "word": "Wonder-land-1", "database": "the word of the database", "labels": "a=b, c=d"}}

// stored is a model as the server stores and reads it.
func stored(t *testing.T, model map[string]any) map[string]any {
	t.Helper()
	text, err := json.Marshal(model)
	require.NoError(t, err)
	var read map[string]any
	require.NoError(t, json.Unmarshal(text, &read))
	return read
}

func site(t *testing.T) (*ui.Definition, map[string]any) {
	t.Helper()
	definition := parsed(t, siteForm)
	return definition, stored(t, modelled(t, definition, ui.Input{Name: "web", Origin: "org.test.Site", Values: siteAnswers}))
}

// today reads an object, with its record or without one.
func today(t *testing.T, definition *ui.Definition, object map[string]any, recorded bool) *ui.Today {
	t.Helper()
	in := ui.Input{Origin: "org.test.Site"}
	if record, is := ui.RecordOf(object); is && recorded {
		in.Values = record.Values
	}
	found, err := definition.Today(t.Context(), in, object)
	require.NoError(t, err)
	return found
}

func edited(t *testing.T, definition *ui.Definition, now *ui.Today, changes values) ui.Edit {
	t.Helper()
	edit, err := definition.Edit(t.Context(), now, "", changes)
	require.NoError(t, err)
	return edit
}

func TestAModelRecordsItsAnswersWithoutSecrets(t *testing.T) {
	_, object := site(t)
	record, is := ui.RecordOf(object)
	require.True(t, is)
	require.Equal(t, "org.test.Site", record.Package)
	require.Equal(t, "shop", record.Values["site"]["title"])
	require.Equal(t, 2.0, record.Values["site"]["count"], "also what was left as suggested")
	require.NotContains(t, record.Values["site"], "word")
	require.NotContains(t, record.Values["site"], "database", "the variable that it goes into is a secret")
	delete(object, "adminPassword")
	delete(object, "environment")
	text, err := json.Marshal(object)
	require.NoError(t, err)
	require.NotContains(t, string(text), "Wonder-land-1")
	require.NotContains(t, string(text), "the word of the database")
	_, is = ui.RecordOf(modelled(t, parsed(t, siteForm), ui.Input{Name: "web", Values: siteAnswers}))
	require.False(t, is, "without the name of a package")
}

// With a record and without one the answers are read from the object as it is now.
func TestTodaysAnswersAreReadFromTheObject(t *testing.T) {
	for _, recorded := range []bool{true, false} {
		definition, object := site(t)
		object["title"], object["open"], object["registry"], object["labels"] = "store", false, false, map[string]any{"e": "f"}
		object["nodes"] = append(object["nodes"].([]any), map[string]any{"?": map[string]any{"id": "third", "type": "org.test.Node/1.0.0@org.test.Site"},
			"flavor": "small", "name": "node-3", "zone": nil, "more": 1})
		now := today(t, definition, object, recorded)
		shown := now.Values()["site"]
		require.Equal(t, "store", shown["title"])
		require.EqualValues(t, 3, shown["count"])
		require.Equal(t, true, shown["closed"])
		require.Equal(t, "never", shown["registry"])
		require.Equal(t, "e=f", shown["labels"])
		require.Equal(t, "small", shown["flavor"])
		require.NotContains(t, shown, "word")
		require.NotContains(t, shown, "database")
		require.Equal(t, []ui.Question{{Form: "site", Field: "database"}, {Form: "site", Field: "word"}}, now.Kept)
		require.Contains(t, now.Covered, "nodes")
		if recorded {
			require.Empty(t, now.Unknown)
		} else {
			require.Equal(t, []ui.Question{{Form: "site", Field: "unused"}}, now.Unknown)
		}
		require.Empty(t, edited(t, definition, now, nil).Changed)
		require.Empty(t, edited(t, definition, now, now.Values()).Changed, "what is sent as it was shown")
	}
}

func TestAnEditChangesOnlyWhatTheAnswersChange(t *testing.T) {
	definition, object := site(t)
	first := object["nodes"].([]any)[0].(map[string]any)
	first["name"], first["status"] = "renamed", "up" // by an action
	object["computed"] = "by code"
	now := today(t, definition, object, true)
	edit := edited(t, definition, now, values{"site": {"flavor": "large", "count": 3}})
	require.Empty(t, edit.Errors)
	require.Empty(t, edit.Conflicts)
	require.Equal(t, []string{"nodes.0.flavor", "nodes.1.flavor", "nodes"}, edit.Changed)
	nodes := edit.Object["nodes"].([]any)
	require.Len(t, nodes, 3)
	for i := range 2 {
		require.Equal(t, at(t, object, "nodes", i, "?", "id"), at(t, nodes, i, "?", "id"), "objects stay the same")
		require.Equal(t, "large", at(t, nodes, i, "flavor"))
	}
	require.Equal(t, "renamed", at(t, nodes, 0, "name"))
	require.Equal(t, "up", at(t, nodes, 0, "status"))
	require.Equal(t, "node-3", at(t, nodes, 2, "name"))
	require.NotEmpty(t, at(t, nodes, 2, "?", "id"))
	require.Equal(t, "by code", edit.Object["computed"])
	require.Equal(t, "Wonder-land-1", edit.Object["adminPassword"])
	require.Equal(t, object["?"].(map[string]any)["id"], at(t, edit.Object, "?", "id"))
	require.Equal(t, "small", at(t, object, "nodes", 0, "flavor"), "the former object does not change")

	record, _ := ui.RecordOf(edit.Object)
	require.Equal(t, "large", record.Values["site"]["flavor"])
	require.NotContains(t, record.Values["site"], "word")
	again := today(t, definition, stored(t, edit.Object), true)
	require.EqualValues(t, 3, again.Values()["site"]["count"])
	fewer := edited(t, definition, again, values{"site": {"count": 1, "shared": true, "word": "Another-word-1"}})
	require.Len(t, fewer.Object["nodes"], 1)
	require.NotEmpty(t, at(t, fewer.Object, "shared", "?", "id"))
	require.Equal(t, "Another-word-1", fewer.Object["adminPassword"])
	require.NotContains(t, at(t, fewer.Object, "?"), "word")
	gone := edited(t, definition, today(t, definition, stored(t, fewer.Object), true), values{"site": {"shared": false}})
	require.Nil(t, gone.Object["shared"])
	renamed, err := definition.Edit(t.Context(), now, "other", nil)
	require.NoError(t, err)
	require.Equal(t, "other", at(t, renamed.Object, "?", "name"))
}

func TestValuesThatWereChangedOtherwiseStayAndAreReported(t *testing.T) {
	definition, object := site(t)
	object["labels"] = map[string]any{"a": "b", "c": "d", "with": "two words"} // no answer makes that
	nodes := object["nodes"].([]any)
	nodes[1].(map[string]any)["flavor"] = "huge"
	now := today(t, definition, object, true)
	require.Equal(t, []ui.Question{{Form: "site", Field: "labels"}}, now.Unknown)
	require.NotContains(t, now.Covered, "labels")
	require.NotContains(t, now.Covered, "nodes")
	edit := edited(t, definition, now, values{"site": {"labels": "a=b, c=other", "flavor": "large"}})
	require.Equal(t, []string{"labels.c", "nodes.0.flavor"}, edit.Changed)
	require.Equal(t, map[string]any{"a": "b", "c": "other", "with": "two words"}, edit.Object["labels"])
	require.Equal(t, []ui.Conflict{{Path: "nodes.1.flavor", Present: "huge", Wanted: "large"}}, edit.Conflicts)
	require.Equal(t, "huge", at(t, edit.Object, "nodes", 1, "flavor"))

	object["adminPassword"] = "changed by an action"
	object["nodes"] = nodes[:1]
	unread := today(t, definition, object, true)
	require.NotContains(t, unread.Values()["site"], "word")
	one := edited(t, definition, unread, values{"site": {"word": "Another-word-1"}})
	require.Equal(t, "Another-word-1", one.Object["adminPassword"])
}

func TestAnEditWithWrongAnswersChangesNothing(t *testing.T) {
	definition, object := site(t)
	object["title"] = "" // which the form would not take
	now := today(t, definition, object, true)
	edit := edited(t, definition, now, values{"site": {"count": 0, "none": 1}})
	require.Nil(t, edit.Object)
	require.Equal(t, []ui.InputError{{Form: "site", Field: "none", Message: "There is no such field"},
		{Form: "site", Field: "count", Message: "Ensure this value is greater than or equal to 1."}}, edit.Errors, "only about what is changed")
	require.NotNil(t, edited(t, definition, now, values{"site": {"count": 3}}).Object)
	other := map[string]any{"?": map[string]any{"id": "x", "type": "org.test.Other"}}
	_, err := definition.Today(t.Context(), ui.Input{}, other)
	require.ErrorContains(t, err, "the forms make a org.test.Site and no org.test.Other")
}

// The forms of each package that comes with Burano read back the objects that they made, and an edit without changes changes nothing.
func TestFormsThatComeWithBuranoEditWhatTheyMade(t *testing.T) {
	packages, err := apps.Packages()
	require.NoError(t, err)
	tried := 0
	for _, p := range packages {
		form := formOf(t, p)
		if form == "" {
			continue
		}
		t.Run(p.FullName(), func(t *testing.T) {
			definition := parsed(t, form)
			in := ui.Input{Name: "name", Origin: p.FullName(), Values: required(t, definition)}
			result := filled(t, definition, in)
			require.Empty(t, result.Errors)
			object := stored(t, result.Model)
			for _, recorded := range []bool{true, false} {
				read := ui.Input{Origin: p.FullName()}
				if record, is := ui.RecordOf(object); recorded {
					require.True(t, is)
					read.Values = record.Values
				}
				now, err := definition.Today(t.Context(), read, object)
				require.NoError(t, err)
				for form, fields := range in.Values {
					for field, value := range fields {
						q := ui.Question{Form: form, Field: field}
						if !slices.Contains(now.Kept, q) && !slices.Contains(now.Unknown, q) {
							require.EqualValues(t, value, now.Values()[form][field], "%s.%s, recorded: %v", form, field, recorded)
						}
					}
				}
				if recorded {
					require.Empty(t, now.Unknown)
					covered := slices.Sorted(maps.Keys(object))
					require.Equal(t, slices.DeleteFunc(covered, func(name string) bool { return name == "?" }), now.Covered)
				}
				edit := edited(t, definition, now, nil)
				require.Empty(t, edit.Changed)
				require.Equal(t, object, stored(t, edit.Object))
			}
		})
		tried++
	}
	require.Greater(t, tried, 10)
}

// required fills the fields that have to be filled in.
func required(t *testing.T, definition *ui.Definition) values {
	t.Helper()
	forms, err := definition.Describe(t.Context(), nil)
	require.NoError(t, err)
	answers := values{}
	for range 40 {
		result, err := definition.Evaluate(t.Context(), ui.Input{Name: "name", Values: answers})
		if err == nil && len(result.Errors) == 0 {
			break
		}
		for _, wrong := range result.Errors {
			for _, form := range forms {
				for _, field := range form.Fields {
					if form.Name != wrong.Form || field.Name != wrong.Field {
						continue
					}
					if answers[form.Name] == nil {
						answers[form.Name] = map[string]any{}
					}
					answers[form.Name][field.Name] = suitable(field, answers[form.Name][field.Name])
				}
			}
		}
	}
	return answers
}

// suitable is the next text to try in a field.
func suitable(field ui.FieldView, last any) any {
	tries := []any{"name", "a1b2c3d4e5f60718293a4b5c6d7e8f90", "Secret-word-1", "https://example.org/pages.git", "registry.example.org/web:1", "10.1.0.0/16", "10.1.0.4", 3}
	if field.Type == "integer" {
		return 3
	}
	at := slices.IndexFunc(tries, func(one any) bool { return one == last })
	return tries[(at+1)%len(tries)]
}

func TestTheAnswersToAClusterAreReadFromOneThatHasLived(t *testing.T) {
	definition := embedded(t, "com.mirantis.docker.kubernetes.KubernetesCluster")
	in := ui.Input{Origin: "com.mirantis.docker.kubernetes.KubernetesCluster", Values: values{
		"nodesConfiguration": {"image": "an image", "flavor": "m1.medium", "availabilityZone": "nova", "secondAvailabilityZone": "west", "minionCount": 2, "virtualAddress": true},
		"kubeNetConfiguration": {"volumes": "cinder", "podRange": "172.20.0.0/16", "podRange6": "fd00:1::/64", "serviceRange6": "fd00:2::/112", "registry": "always",
			"dockerRegistryPassword": "hunter two"}}}
	object := stored(t, modelled(t, definition, in))
	object["nodeCount"] = 4.0 // scaled, which appends nodes
	nodes := object["minionNodes"].([]any)
	for _, name := range []string{"murano-kube-5", "murano-kube-9"} {
		node := stored(t, nodes[0].(map[string]any))
		node["?"].(map[string]any)["id"] = name
		instance := node["instance"].(map[string]any)
		instance["?"].(map[string]any)["id"], instance["name"] = name+" instance", name
		nodes = append(nodes, node)
	}
	object["minionNodes"] = nodes
	record, _ := ui.RecordOf(object)
	require.NotContains(t, record.Values["kubeNetConfiguration"], "dockerRegistryPassword")
	for _, recorded := range []bool{true, false} {
		read := ui.Input{Origin: in.Origin}
		if recorded {
			read.Values = record.Values
		}
		now, err := definition.Today(t.Context(), read, object)
		require.NoError(t, err)
		machines, network := now.Values()["nodesConfiguration"], now.Values()["kubeNetConfiguration"]
		require.EqualValues(t, 4, machines["minionCount"])
		require.EqualValues(t, 5, machines["maxMinionCount"])
		require.Equal(t, "m1.medium", machines["flavor"])
		require.Equal(t, "west", machines["secondAvailabilityZone"])
		require.Equal(t, true, machines["virtualAddress"])
		require.Equal(t, "murano-kube-#", machines["unitNamingPattern"])
		require.Equal(t, "cinder", network["volumes"])
		require.Equal(t, "always", network["registry"])
		require.Equal(t, []string{"172.20.0.0/16", "fd00:1::/64", "fd00:2::/112"}, []string{network["podRange"].(string), network["podRange6"].(string), network["serviceRange6"].(string)})
		require.Contains(t, now.Kept, ui.Question{Form: "kubeNetConfiguration", Field: "dockerRegistryPassword"})
		edit := edited(t, definition, now, values{"nodesConfiguration": {"autoRepair": true}})
		require.Equal(t, []string{"autoRepair"}, edit.Changed)
		require.Empty(t, edit.Conflicts)
		require.True(t, strings.HasSuffix(at(t, edit.Object, "minionNodes", 4, "instance", "name").(string), "-9"))
	}
}

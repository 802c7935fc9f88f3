package ui_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/catalog/apps"
	"github.com/burano/burano/catalog/ui"
)

type values = map[string]map[string]any

// parsed reads a definition in which nothing is wrong.
func parsed(t *testing.T, text string) *ui.Definition {
	t.Helper()
	definition, problems := ui.Parse("ui.yaml", []byte(text))
	for _, problem := range problems {
		require.Truef(t, problem.Warning, "%v", problem)
	}
	return definition
}

// filled evaluates a definition, of which it demands that it can be.
func filled(t *testing.T, definition *ui.Definition, in ui.Input) ui.Result {
	t.Helper()
	result, err := definition.Evaluate(t.Context(), in)
	require.NoError(t, err)
	if len(result.Errors) > 0 {
		require.Nil(t, result.Model, "there is no model while something is wrong")
	}
	return result
}

// modelled is the model of correct input.
func modelled(t *testing.T, definition *ui.Definition, in ui.Input) map[string]any {
	t.Helper()
	result := filled(t, definition, in)
	require.Empty(t, result.Errors)
	return result.Model
}

func formOf(t *testing.T, p *catalog.Package) string {
	t.Helper()
	text, err := p.UI()
	require.NoError(t, err)
	return string(text)
}

func embedded(t *testing.T, name string) *ui.Definition {
	t.Helper()
	packages, err := apps.Packages()
	require.NoError(t, err)
	for _, p := range packages {
		if p.FullName() == name {
			return parsed(t, formOf(t, p))
		}
	}
	t.Fatalf("no package %s comes with Burano", name)
	return nil
}

// at follows keys and places into a model.
func at(t *testing.T, value any, path ...any) any {
	t.Helper()
	for _, step := range path {
		switch step := step.(type) {
		case string:
			require.Contains(t, value, step)
			value = value.(map[string]any)[step]
		case int:
			require.Greater(t, len(value.([]any)), step)
			value = value.([]any)[step]
		}
	}
	return value
}

// headers returns the headers of all objects in a model.
func headers(value any) []map[string]any {
	var found []map[string]any
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			found = append(found, headers(item)...)
		}
	case map[string]any:
		if header, ok := value["?"].(map[string]any); ok {
			found = append(found, header)
		}
		for _, item := range value {
			found = append(found, headers(item)...)
		}
	}
	return found
}

func sorted(list []ui.InputError) []ui.InputError {
	return slices.SortedFunc(slices.Values(list), func(a, b ui.InputError) int { return cmp.Compare(a.Form+a.Field, b.Form+b.Field) })
}

var hotPackage = fstest.MapFS{
	"manifest.yaml": {Data: []byte("Format: Heat.HOT/1.0\nType: Application\nFullName: org.test.Stack\nName: Stack\nVersion: 1.2\n")},
	"template.yaml": {Data: []byte(`heat_template_version: 2013-05-23
parameters:
  size: {type: number, constraints: [{range: {min: 1, max: 10}}]}
  zone: {type: string, constraints: [{allowed_values: [north, south], description: north or south}]}
  key: {type: string, constraints: [{length: {min: 2, max: 4}}, {allowed_pattern: "[a-z]+", description: small letters}]}
  names: {type: comma_delimited_list, default: [a, b]}
  table: {type: json, default: {a: 1}}
  on: {type: boolean, default: true}
resources: {}
`)},
}

func fieldOf(t *testing.T, forms []ui.FormView, form, field string) ui.FieldView {
	t.Helper()
	for _, f := range forms {
		for _, candidate := range f.Fields {
			if f.Name == form && candidate.Name == field {
				return candidate
			}
		}
	}
	t.Fatalf("there is no field %s in a form %s", field, form)
	return ui.FieldView{}
}

func TestTheFormOfAPodSaysWhereAndAsWhomItRuns(t *testing.T) {
	definition := embedded(t, "com.mirantis.docker.kubernetes.KubernetesPod")
	first := map[string]any{"name": "web", "kubernetesCluster": "cluster"}
	model := modelled(t, definition, ui.Input{Values: values{"appConfiguration": first}})
	for property, none := range map[string]any{"nodeSelector": map[string]any{}, "tolerations": []any{}, "securityContext": map[string]any{}, "topologySpread": nil} {
		require.Equal(t, none, model[property], property)
	}
	model = modelled(t, definition, ui.Input{Values: values{"appConfiguration": first, "advanced": {"nodeSelector": "disk = fast,example.org/room=", "tolerations": "batch, example.org/gpu",
		"runAsUser": 1000, "fsGroup": 2000, "runAsNonRoot": true, "serviceAccount": "web"}}})
	require.Equal(t, map[string]any{"disk": "fast", "example.org/room": ""}, model["nodeSelector"])
	require.Equal(t, []any{map[string]any{"key": "batch", "operator": "Exists"}, map[string]any{"key": "example.org/gpu", "operator": "Exists"}}, model["tolerations"])
	require.Equal(t, map[string]any{"runAsUser": int64(1000), "fsGroup": int64(2000), "runAsNonRoot": true}, model["securityContext"])
	require.Equal(t, "web", model["serviceAccount"])
	refused := filled(t, definition, ui.Input{Values: values{"appConfiguration": first, "advanced": {"nodeSelector": "fast", "tolerations": "batch=yes"}}})
	require.Len(t, refused.Errors, 2)
}

func TestTheFormsOfAClusterMakeItsModel(t *testing.T) {
	definition := embedded(t, "com.mirantis.docker.kubernetes.KubernetesCluster")
	forms, err := definition.Describe(t.Context(), nil)
	require.NoError(t, err)
	require.Len(t, forms, 3)
	count := fieldOf(t, forms, "nodesConfiguration", "minionCount")
	require.Equal(t, "integer", count.Type)
	require.Equal(t, int64(2), count.Initial)
	require.Equal(t, int64(1), *count.MinValue)
	require.True(t, count.Required)
	flavor := fieldOf(t, forms, "nodesConfiguration", "flavor")
	require.Equal(t, "flavors", flavor.Cloud)
	require.Equal(t, map[string]any{"requirements": map[string]any{"min_disk": int64(10), "min_vcpus": int64(1), "min_memory_mb": int64(1024)}}, flavor.Options)
	require.Equal(t, "linux.kubernetes", fieldOf(t, forms, "nodesConfiguration", "image").Options["image_type"])
	require.Equal(t, "availability-zones", fieldOf(t, forms, "nodesConfiguration", "availabilityZone").Cloud)
	require.False(t, fieldOf(t, forms, "nodesConfiguration", "keyPair").Required)
	require.Equal(t, []ui.Pattern{{Pattern: `^[a-zA-Z][-_\w#]*$`}}, fieldOf(t, forms, "nodesConfiguration", "unitNamingPattern").Patterns)

	instance := map[string]any{"flavor": "m1.medium", "image": "kube", "availabilityZone": "nova"}
	model := modelled(t, definition, ui.Input{Values: values{"nodesConfiguration": with(instance, "gatewayNamingPattern", "gate-#")}})
	require.Equal(t, "com.mirantis.docker.kubernetes.KubernetesCluster", at(t, model, "?", "type"))
	require.Equal(t, "murano-kube-1", at(t, model, "masterNode", "instance", "name"))
	require.Len(t, model["minionNodes"], 3, "as many as there may be")
	require.Equal(t, "murano-kube-4", at(t, model, "minionNodes", 2, "instance", "name"))
	require.Equal(t, "gate-2", at(t, model, "gatewayNodes", 1, "instance", "name"))
	require.Equal(t, "nova", at(t, model, "minionNodes", 1, "instance", "availabilityZone"))
	instance["secondAvailabilityZone"], instance["thirdAvailabilityZone"] = "", "south"
	spread := modelled(t, definition, ui.Input{Values: values{"nodesConfiguration": instance}})
	require.Equal(t, "nova", at(t, spread, "masterNode", "instance", "availabilityZone"))
	for i, zone := range []string{"south", "nova", "south"} {
		require.Equal(t, zone, at(t, spread, "minionNodes", i, "instance", "availabilityZone"))
	}
	require.Equal(t, "nova", at(t, spread, "gatewayNodes", 0, "instance", "availabilityZone"))
	require.Equal(t, "south", at(t, spread, "gatewayNodes", 1, "instance", "availabilityZone"))
	require.Equal(t, "availability-zones", fieldOf(t, forms, "nodesConfiguration", "secondAvailabilityZone").Cloud)
	require.Equal(t, int64(2), model["nodeCount"])
	require.Equal(t, int64(1), model["masterCount"])
	require.Equal(t, []any{"nova", "south"}, spread["masterZones"])
	require.Equal(t, "", at(t, model, "masterNode", "instance", "keyname"))
	require.Equal(t, false, model["useFlannel"])
	for _, none := range []string{"podRange", "serviceRange", "publicIpv6Cidr", "clusterDomain", "podMtu", "httpProxy"} {
		require.Empty(t, model[none], none)
	}
	require.Equal(t, "", model["dockerRegistryPassword"])
	own := modelled(t, definition, ui.Input{Values: values{"nodesConfiguration": instance, "kubeNetConfiguration": map[string]any{
		"dockerRegistry": "registry.example.org", "dockerRegistryUser": "me", "dockerRegistryPassword": "short"}}})
	require.Equal(t, "short", own["dockerRegistryPassword"])
	elsewhere := modelled(t, definition, ui.Input{Values: values{"nodesConfiguration": instance, "kubeNetConfiguration": map[string]any{
		"podRange": "172.20.0.0/18", "clusterDomain": "k8s.example.org", "podMtu": 1300, "httpsProxy": "http://proxy.example.org:3128"}}})
	require.Equal(t, []any{"172.20.0.0/18", "k8s.example.org", int64(1300), "http://proxy.example.org:3128", nil},
		[]any{elsewhere["podRange"], elsewhere["clusterDomain"], elsewhere["podMtu"], elsewhere["httpsProxy"], elsewhere["serviceRange"]})
	dual := modelled(t, definition, ui.Input{Values: values{"nodesConfiguration": instance, "kubeNetConfiguration": {
		"podRange6": "fd00:10:244::/64", "serviceRange6": "fd00:10:96::/112", "publicIpv6Cidr": "2001:db8::/32"}}})
	require.Equal(t, []any{"10.244.0.0/16,fd00:10:244::/64", "10.96.0.0/16,fd00:10:96::/112", "2001:db8::/32"}, []any{dual["podRange"], dual["serviceRange"], dual["publicIpv6Cidr"]})
	own6 := modelled(t, definition, ui.Input{Values: values{"nodesConfiguration": instance, "kubeNetConfiguration": {
		"podRange": "172.20.0.0/18", "podRange6": "fd00:10:244::/64", "serviceRange": "172.21.0.0/16", "serviceRange6": "fd00:10:96::/112"}}})
	require.Equal(t, []any{"172.20.0.0/18,fd00:10:244::/64", "172.21.0.0/16,fd00:10:96::/112"}, []any{own6["podRange"], own6["serviceRange"]})
	half := filled(t, definition, ui.Input{Values: values{"nodesConfiguration": instance, "kubeNetConfiguration": {"podRange6": "fd00:10:244::/64", "useFlannel": true}}}).Errors
	require.Equal(t, []ui.InputError{{"kubeNetConfiguration", "", "IPv6 needs a range for pods and one for Services; give both, or leave both empty"},
		{"kubeNetConfiguration", "", "Flannel connects pods by IPv4 alone; choose Calico, or leave the ranges of IPv6 empty"}}, half)
	require.Empty(t, model["calicoDatastore"])
	for flannel, refused := range map[bool][]ui.InputError{false: nil, true: {{"kubeNetConfiguration", "", "Flannel keeps its data in etcd; choose Calico, or leave them there"}}} {
		input := ui.Input{Values: values{"nodesConfiguration": instance, "kubeNetConfiguration": {"calicoInKubernetes": true, "useFlannel": flannel}}}
		require.Equal(t, refused, filled(t, definition, input).Errors)
		if !flannel {
			require.Equal(t, "kubernetes", modelled(t, definition, input)["calicoDatastore"])
		}
	}
	require.NotContains(t, model["?"], "name", "a definition of 2.0 has a field of its own for it")
	ids := map[string]bool{}
	for _, header := range headers(model) {
		_, err := uuid.Parse(header["id"].(string))
		require.NoError(t, err)
		ids[header["id"].(string)] = true
	}
	require.Len(t, ids, 13, "a cluster, six nodes and their six instances, each with an id of its own")
	require.Nil(t, model["virtualAddress"])
	shared := modelled(t, definition, ui.Input{Values: values{"nodesConfiguration": with(instance, "virtualAddress", true)}})
	require.Equal(t, "io.murano.SharedIp", at(t, shared, "virtualAddress", "?", "type"))
	require.Equal(t, true, at(t, shared, "virtualAddress", "assignFloatingIp"))
	require.Nil(t, model["apiAddress"])
	require.Nil(t, shared["apiAddress"])
	shared = modelled(t, definition, ui.Input{Values: values{"nodesConfiguration": with(instance, "apiAddress", true)}})
	require.Equal(t, "io.murano.SharedIp", at(t, shared, "apiAddress", "?", "type"))
	require.Nil(t, shared["virtualAddress"])
	require.Equal(t, []any{}, model["storageClasses"])
	require.Nil(t, model["enableRegistry"], "a new cluster has one where its volumes follow pods")
	for chosen, wanted := range map[string]bool{"always": true, "never": false} {
		made := modelled(t, definition, ui.Input{Values: values{"nodesConfiguration": instance, "kubeNetConfiguration": {"volumes": "local", "registry": chosen, "registryCollectAt": ""}}})
		require.Equal(t, wanted, made["enableRegistry"])
		require.Nil(t, made["registryCollectAt"])
	}
	require.Equal(t, true, model["keepVolumes"])
	storing := func(answers map[string]any) []any {
		t.Helper()
		made := modelled(t, definition, ui.Input{Values: values{"nodesConfiguration": instance, "kubeNetConfiguration": answers}})
		return []any{made["storageClasses"], made["keepVolumes"]}
	}
	require.Equal(t, []any{[]any{}, true}, storing(map[string]any{"volumes": "none"}))
	require.Equal(t, []any{[]any{map[string]any{"name": "burano-local", "backend": "local", "default": true}}, true}, storing(map[string]any{"volumes": "local", "registry": "always"}))
	require.Equal(t, []any{[]any{map[string]any{"name": "burano-cinder", "backend": "cinder", "default": true, "type": nil}}, true}, storing(map[string]any{"volumes": "cinder", "volumeType": ""}))
	require.Equal(t, []any{[]any{map[string]any{"name": "burano-cinder", "backend": "cinder", "default": true, "type": "ssd"}}, false},
		storing(map[string]any{"volumes": "cinder", "volumeType": "ssd", "deleteVolumes": true}))
	refused := filled(t, definition, ui.Input{Values: values{"nodesConfiguration": instance, "kubeNetConfiguration": {"registry": "always", "volumeType": "ssd"}}}).Errors
	require.Equal(t, []ui.InputError{{"kubeNetConfiguration", "", "A registry of the cluster needs volumes for claims"},
		{"kubeNetConfiguration", "", "Volumes of the cloud have a type; choose these, or leave the type empty"}}, refused)
}

// with is a copy of the values with one more.
func with(of map[string]any, name string, value any) map[string]any {
	more := maps.Clone(of)
	more[name] = value
	return more
}

func TestAClusterHasTheGroupOfMinionsThatItsFormNames(t *testing.T) {
	definition := embedded(t, "com.mirantis.docker.kubernetes.KubernetesCluster")
	instance := map[string]any{"flavor": "m1.medium", "image": "kube", "availabilityZone": "nova", "thirdAvailabilityZone": "south"}
	groups := func(group map[string]any) []any {
		t.Helper()
		list, ok := modelled(t, definition, ui.Input{Values: values{"nodesConfiguration": instance, "groupConfiguration": group}})["minionGroups"].([]any)
		require.True(t, ok)
		return list
	}
	require.Empty(t, groups(nil))
	require.Empty(t, groups(map[string]any{"name": "", "flavor": "", "labels": "", "count": "", "minimum": nil}))
	one := func(group map[string]any) map[string]any {
		t.Helper()
		list := groups(group)
		require.Len(t, list, 1)
		made := list[0].(map[string]any)
		require.Equal(t, "com.mirantis.docker.kubernetes.KubernetesMinionGroup", at(t, made, "?", "type"))
		delete(made, "?")
		return made
	}
	require.Equal(t, map[string]any{"name": "workers", "flavor": nil, "count": int64(1), "minimum": nil, "maximum": int64(10), "zones": []any{"nova", "south"}, "labels": map[string]any{}},
		one(map[string]any{"name": "workers"}))
	require.Equal(t, map[string]any{"name": "workers", "flavor": "m1.large", "count": int64(2), "minimum": int64(0), "maximum": int64(5), "zones": []any{"nova", "south"},
		"labels": map[string]any{"disk": "fast", "tier": ""}},
		one(map[string]any{"name": "workers", "flavor": "m1.large", "count": 2, "minimum": 0, "maximum": 5, "labels": " disk=fast , tier="}))
	require.Nil(t, one(map[string]any{"name": "workers", "count": "", "minimum": ""})["count"])

	wrong := func(group map[string]any) []ui.InputError {
		return filled(t, definition, ui.Input{Values: values{"nodesConfiguration": instance, "groupConfiguration": group}}).Errors
	}
	require.Equal(t, []ui.InputError{{"groupConfiguration", "name", "Lower-case letters, digits and hyphens only, a letter first, at most 40"},
		{"groupConfiguration", "labels", "Labels such as disk=fast, tier=batch"}}, wrong(map[string]any{"name": "Workers", "labels": "disk fast"}))
	require.Equal(t, []ui.InputError{{"groupConfiguration", "", "There cannot be more nodes of the group at first, or at least, than at most"}},
		wrong(map[string]any{"name": "workers", "count": 3, "maximum": 2}))
}

func TestWhatIsWrongIsSaidWithFormAndField(t *testing.T) {
	definition := embedded(t, "com.mirantis.docker.kubernetes.KubernetesCluster")
	result := filled(t, definition, ui.Input{Values: values{
		"nodesConfiguration": {"minionCount": 0, "unitNamingPattern": "-x", "maxGatewayCount": "many", "gatewayNamingPattern": "a" + strings.Repeat("b", 64), "nodes": 1,
			"flavor": "m1.medium", "image": "", "availabilityZone": nil},
		"kubeNetConfiguration": {"publicCidr": []any{}},
		"more":                 {},
	}})
	require.ElementsMatch(t, []ui.InputError{
		{"nodesConfiguration", "minionCount", "Ensure this value is greater than or equal to 1."},
		{"nodesConfiguration", "unitNamingPattern", "Letters, digits, underscores, hyphens and the sign '#' only, a letter first"},
		{"nodesConfiguration", "maxGatewayCount", "Enter a whole number."},
		{"nodesConfiguration", "gatewayNamingPattern", "Ensure this value has at most 64 characters (it has 65)."},
		{"nodesConfiguration", "nodes", "There is no such field"},
		{"kubeNetConfiguration", "publicCidr", "This field is required."},
		{"nodesConfiguration", "image", "This field is required."},
		{"nodesConfiguration", "availabilityZone", "This field is required."},
		{"more", "", "There is no such form"},
	}, result.Errors)

	result = filled(t, definition, ui.Input{Values: values{"nodesConfiguration": {"masterCount": 4, "minionCount": 5, "gatewayCount": "3",
		"flavor": "f", "image": "i", "availabilityZone": "a"}}})
	require.Equal(t, []ui.InputError{
		{"nodesConfiguration", "", "There are 1, 2, 3 or 5 masters"},
		{"nodesConfiguration", "", "There cannot be more nodes at first than at most"},
		{"nodesConfiguration", "", "There cannot be more gateways at first than at most"},
	}, result.Errors, "the validators of the form")
}

func TestAnApplicationRefersToAnObjectOfAClass(t *testing.T) {
	definition := embedded(t, "com.example.docker.DockerApp")
	result := filled(t, definition, ui.Input{})
	host := fieldOf(t, result.Forms, "appConfiguration", "host")
	require.Equal(t, "object", host.Type)
	require.Equal(t, []string{"com.mirantis.docker.kubernetes.KubernetesPod", "com.mirantis.docker.DockerStandaloneHost"}, host.Classes)
	require.Equal(t, []ui.InputError{{"appConfiguration", "host", "This field is required."}, {"appConfiguration", "image", "This field is required."}}, result.Errors)
	license := fieldOf(t, result.Forms, "appConfiguration", "license")
	require.True(t, license.Hidden)
	require.Equal(t, "Apache License, Version 2.0", license.Description)

	model := modelled(t, definition, ui.Input{Package: "Docker", Values: values{"appConfiguration": {"host": "pod-id", "image": " nginx ", "publish": "off"}}})
	require.Equal(t, "pod-id", model["host"])
	require.Equal(t, "nginx", model["image"])
	require.Equal(t, false, model["publish"])
	require.Equal(t, map[string]any{"name": "Docker"}, at(t, model, "?", "_26411a1861294160833743e45d0eaad9"))
}

func TestTheFormOfAHeatTemplateMakesItsModel(t *testing.T) {
	p, err := catalog.ReadEmbedded(hotPackage)
	require.NoError(t, err)
	definition := parsed(t, formOf(t, p))
	forms, err := definition.Describe(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, "a, b", strings.ReplaceAll(fieldOf(t, forms, "group1", "names").Initial.(string), ",", ", "))
	require.False(t, fieldOf(t, forms, "group1", "names").Required)

	model := modelled(t, definition, ui.Input{Values: values{"group0": {"name": "stack"}, "group1": {"size": 3, "zone": "north", "key": "abcd"}}})
	require.Equal(t, "org.test.Stack", at(t, model, "?", "type"))
	require.Equal(t, "1.2.0", at(t, model, "?", "classVersion"))
	require.Equal(t, "stack", model["name"])
	require.Equal(t, map[string]any{"size": int64(3), "zone": "north", "key": "abcd", "names": "a,b", "table": `{"a":1}`, "on": true}, model["templateParameters"])

	result := filled(t, definition, ui.Input{Values: values{"group0": {"name": "stack"}, "group1": {"size": 11, "zone": "west", "key": "ABCD"}}})
	require.Equal(t, []ui.InputError{
		{"group1", "key", "small letters"},
		{"group1", "size", "Enter a valid value."},
		{"group1", "zone", "north or south"},
	}, sorted(result.Errors))
}

// The functions that forms have besides YAQL's own.
func TestFunctionsOfForms(t *testing.T) {
	definition := parsed(t, `
Version: 2.4
Parameters: {size: 7, twice: $size * 2}
Templates:
  part: {'?': {type: org.test.Part}, number: $index, size: $size}
  whole:
    ?: {type: org.test.Whole}
    inner: ref(part, shared)
Application:
  ?: {type: org.test.App}
  name: name()
  hosts:
  - generateHostname('node-#-#', 3)
  - generateHostname(node, 3)
  - generateHostname('', 1)
  - generateHostname(null, 1)
  parts: repeat($part, $.one.count)
  none: repeat($part, 0)
  first: ref(part, shared)
  again: ref(part, shared)
  full: ref(part, shared, false)
  other: ref(part)
  id: ref(part, third, true)
  same: ref(part, third)
  whole: ref(whole)
  forms: $forms.one.count
  twice: $twice
  extra: $extra
  "quoted()": "$.one"
Forms:
- one: {fields: [{name: count, type: integer, initial: 2}]}
`)
	model := modelled(t, definition, ui.Input{Name: "my-app", Parameters: map[string]any{"extra": map[string]any{"a": []any{1}}}})
	require.Equal(t, "my-app", model["name"])
	require.Equal(t, "my-app", at(t, model, "?", "name"))
	hosts := model["hosts"].([]any)
	require.Equal(t, []any{"node-3-3", "node"}, hosts[:2])
	for _, host := range hosts[2:] {
		require.Regexp(t, `^[a-z]{5}[0-9a-z]{8,}$`, host)
	}
	require.NotEqual(t, hosts[2], hosts[3])
	require.Equal(t, int64(1), at(t, model, "parts", 0, "number"))
	require.Equal(t, int64(2), at(t, model, "parts", 1, "number"))
	require.Len(t, model["parts"], 2)
	require.Equal(t, []any{}, model["none"])
	shared := at(t, model, "first", "?", "id")
	require.Equal(t, shared, model["again"], "the id alone when it is there already")
	require.Equal(t, model["first"], model["full"])
	require.Equal(t, shared, at(t, model, "whole", "inner"))
	require.NotEqual(t, shared, at(t, model, "other", "?", "id"))
	require.Equal(t, model["id"], model["same"])
	require.NotEqual(t, shared, model["id"])
	require.Equal(t, int64(2), model["forms"])
	require.Equal(t, int64(14), model["twice"])
	require.Equal(t, map[string]any{"a": []any{1}}, model["extra"])
	require.Equal(t, "$.one", model["quoted()"])
}

// In 2.4 any attribute may be an expression, over the forms before and the fields before.
func TestAttributesAreEvaluated(t *testing.T) {
	definition := parsed(t, `
Application: {'?': {type: org.test.App}, pick: $.two.pick}
Parameters: {colours: {r: Red, g: Green}}
Forms:
- one:
    fields:
    - {name: limit, type: integer, initial: 3}
    - {name: count, type: integer, initial: $.one.limit, maxValue: $.one.limit}
- two:
    fields:
    - {name: pick, type: choice, choices: $colours, initial: g, required: $.one.count > 2, description: 'plain text (really)', helpText: yes/no}
    - {name: later, type: string, required: false, initial: $.nowhere.to.be.found}
`)
	forms, err := definition.Describe(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, int64(3), fieldOf(t, forms, "one", "count").Initial)
	pick := fieldOf(t, forms, "two", "pick")
	require.Equal(t, []ui.Choice{{"r", "Red"}, {"g", "Green"}}, pick.Choices)
	require.True(t, pick.Required)
	require.Equal(t, "plain text (really)", pick.Description)
	require.Equal(t, "yes/no", pick.Help, "what has no value as an expression is a text after all")

	result := filled(t, definition, ui.Input{Name: "a", Values: values{"one": {"limit": 1, "count": 2}, "two": {"pick": "blue", "later": "x"}}})
	require.False(t, fieldOf(t, result.Forms, "two", "pick").Required)
	messages := fmt.Sprint(result.Errors)
	require.Contains(t, messages, "{one count Ensure this value is less than or equal to 1.}")
	require.Contains(t, messages, "{two pick Select a valid choice. blue is not one of the available choices.}")
	require.Contains(t, messages, "{two later initial cannot be evaluated:")
}

// This is the behaviour of Murano's dashboard (14.0): the last of duplicates, and the first form of two keys. It shows no form whose attributes use a
// later one; here they are null until it is filled in.
func TestFormsWithWhatStandsTwiceOrComesLaterAreFilledIn(t *testing.T) {
	definition, problems := ui.Parse("ui.yaml", []byte(`
Application: {'?': {type: org.test.App}, a: $.one.a, b: $.two.b, gone: $.two.gone}
Forms: [zero: {fields: [{name: z, type: string}]}]
Forms:
- one:
    fields:
    - {name: a, type: string, label: first, label: second}
    - {name: n, type: integer, required: false}
    - {name: a, type: integer, label: third, initial: $.two.b, maxValue: $.two.most}
    validators: [{expr: $.one.a != $.two.b, message: they are equal}]
  ignored: {fields: []}
- two: {fields: [{name: gone, type: string}]}
- two: {fields: [{name: b, type: integer, required: $.one.n > 2}]}
`))
	require.NotNil(t, definition)
	require.Len(t, problems, 8)
	result := filled(t, definition, ui.Input{Name: "app", Values: values{"one": {"a": 3}, "two": {"b": 4}}})
	require.Empty(t, result.Errors)
	require.Equal(t, "third", result.Forms[0].Fields[0].Label)
	require.Equal(t, []any{int64(3), int64(4), nil}, []any{result.Model["a"], result.Model["b"], result.Model["gone"]})
}

func TestEachTypeCleansItsValues(t *testing.T) {
	for _, c := range []struct {
		field    string
		given    any
		expected any
		message  string
	}{
		{"type: string", 5, "5", ""},
		{"type: string", map[string]any{}, nil, "A text is wanted here, not a list or a map"},
		{"type: string, minLength: 3", "éé", nil, "Ensure this value has at least 3 characters (it has 2)."},
		{"type: string, regexpValidator: '/^[a-z]+$/i'", "ABC", "ABC", ""},
		{"type: string, regexpValidator: '^(?!root$)[a-z]+$'", "root", nil, "Enter a valid value."},
		{"type: string, regexpValidator: '^(?!root$)[a-z]+$'", "user", "user", ""},
		{"type: string, regexpValidator: '(unclosed'", "user", nil, "the validator cannot be evaluated: the pattern \"(unclosed\" is no regular expression:"},
		{`type: string, validators: [{expr: "$ = $.toUpper()", message: upper case only}]`, "abc", nil, "upper case only"},
		{`type: string, validators: [{expr: {regexpValidator: "^a"}, message: a first}]`, "b", nil, "a first"},
		{"type: string, required: false, minLength: 3", "", "", ""},
		{"type: text", " a\nb ", "a\nb", ""},
		{"type: boolean", "true", true, ""},
		{"type: boolean", nil, false, ""},
		{"type: integer", " 12 ", int64(12), ""},
		{"type: integer", 1.5, nil, "Enter a whole number."},
		{"type: integer, required: false", "", nil, ""},
		{"type: integer, errorMessages: {invalid: a number}", "x", nil, "a number"},
		{"type: password", "Secret1", nil, "The password must contain at least one letter, one number and one special character"},
		{"type: password", "Se1!", nil, "Ensure this value has at least 7 characters (it has 4)."},
		{"type: password", " Secret1! ", " Secret1! ", ""},
		{"type: password, regexpValidator: '^x'", "x", "x", ""},
		{"type: choice, choices: [[1, One], [b, Two]]", 1, "1", ""},
		{"type: choice, choices: [[a, One]]", "c", nil, "Select a valid choice. c is not one of the available choices."},
		{"type: clusterip", "10.0.0.300", nil, "Enter a valid IPv4 address."},
		{"type: clusterip", "10.0.0.3", "10.0.0.3", ""},
		{"type: databaselist", "one, two,,", []any{"one", "two"}, ""},
		{"type: databaselist", "one, 2two", nil, `"2two" is no name of a database: letters, digits, underscores and @, #, $ only, no digit first`},
		{"type: network", []any{"net", nil}, []any{"net", nil}, ""},
		{"type: network", "net", []any{"net", nil}, ""},
		{"type: network", []any{"net"}, nil, "A network is the list of its id and the id of a subnet, which may be null"},
		{"type: network", nil, []any{nil, nil}, ""},
		{"type: network, allowAuto: false, required: false", nil, nil, ""},
		{"type: network, allowAuto: false", nil, nil, "This field is required."},
		{"type: keypair, required: false", nil, "", ""},
		{"type: org.test.Host, required: false", "", nil, ""},
		{"type: [org.test.Host, org.test.Other]", nil, nil, "This field is required."},
		{"type: image, errorMessages: {required: choose one}", "", nil, "choose one"},
	} {
		t.Run(fmt.Sprintf("%s: %v", c.field, c.given), func(t *testing.T) {
			definition := parsed(t, "Version: 2\nApplication: {'?': {type: a.B}, value: $.one.it}\nForms: [{one: {fields: [{name: it, "+c.field+"}]}}]\n")
			result := filled(t, definition, ui.Input{Values: values{"one": {"it": c.given}}})
			if c.message == "" {
				require.Empty(t, result.Errors)
				require.Equal(t, c.expected, result.Model["value"])
				return
			}
			require.Len(t, result.Errors, 1, "%v", result.Errors)
			require.Equal(t, "it", result.Errors[0].Field)
			require.True(t, strings.HasPrefix(result.Errors[0].Message, c.message), result.Errors[0].Message)
		})
	}
}

func TestSecretsAreMarked(t *testing.T) {
	definition := parsed(t, "Version: 2.3\nApplication: {'?': {type: a.B}}\nForms: [{one: {fields: [{name: a, type: password, confirmInput: false}, {name: b, type: password}, {name: c, type: string}]}}]\n")
	forms, err := definition.Describe(t.Context(), nil)
	require.NoError(t, err)
	a, b, c := fieldOf(t, forms, "one", "a"), fieldOf(t, forms, "one", "b"), fieldOf(t, forms, "one", "c")
	require.Equal(t, []bool{true, true, false}, []bool{a.Secret, b.Secret, c.Secret})
	require.Equal(t, []bool{false, true, false}, []bool{a.Confirm, b.Confirm, c.Confirm})
	require.Equal(t, int64(7), *b.MinLength)
}

func TestTheNameOfTheApplicationIsAskedForSince22(t *testing.T) {
	definition := parsed(t, "Application: {'?': {type: a.B}}\nForms: []\n")
	require.True(t, definition.Named())
	for name, message := range map[string]string{"": "The application needs a name", "a b": "Letters, digits, hyphens and underscores only"} {
		require.Equal(t, []ui.InputError{{"", "name", message}}, filled(t, definition, ui.Input{Name: name}).Errors)
	}
	require.False(t, parsed(t, "Version: 2.1\nApplication: {'?': {type: a.B}}\n").Named())
}

// A definition that would take all memory, or never end, comes to an error.
func TestDefinitionsHaveLimits(t *testing.T) {
	for name, c := range map[string]struct{ application, message string }{
		"many":     {`{'?': {type: a.B}, x: !yaql "repeat($t, 1000000)"}`, "at most 10000 items"},
		"nested":   {`{'?': {type: a.B}, x: !yaql "repeat($many, 10000)"}`, "more than 100000 values"},
		"circle":   {"{'?': {type: a.B}, x: $circle}", "more than 50 times"},
		"ref":      {"{'?': {type: a.B}, x: ref(self)}", "more than 50 times"},
		"unknown":  {"{'?': {type: a.B}, x: ref(nothing)}", "there is no template nothing"},
		"sequence": {`{'?': {type: a.B}, x: !yaql "range(0, 100000).toList()"}`, "10000"},
		"memory":   {`{'?': {type: a.B}, x: !yaql "range(0, 9999).select(str($) * 200).join('')"}`, "bytes"},
		"header":   {"{x: 1}", "no '?'"},
		"barbican": {"{'?': {type: a.B}, x: encryptData(a)}", "key manager"},
	} {
		t.Run(name, func(t *testing.T) {
			definition := parsed(t, "Version: 2\nTemplates:\n  t: {a: 1}\n  many: repeat($t, 10000)\n  circle: [$circle]\n  self: {x: ref(self)}\nApplication: "+c.application+"\n")
			result, err := definition.Evaluate(t.Context(), ui.Input{})
			require.ErrorContains(t, err, c.message)
			require.Nil(t, result.Model)
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := parsed(t, "Version: 2\nApplication: {'?': {type: a.B}}\n").Evaluate(ctx, ui.Input{})
	require.ErrorIs(t, err, context.Canceled)
}

// A pattern that a text makes backtrack without end comes to an error soon.
func TestAPatternMayNotTakeLong(t *testing.T) {
	definition := parsed(t, "Version: 2\nApplication: {'?': {type: a.B}}\nForms: [{one: {fields: [{name: it, type: string, regexpValidator: '^(?=(a+)+$)a'}]}}]\n")
	result := filled(t, definition, ui.Input{Values: values{"one": {"it": strings.Repeat("a", 64) + "!"}}})
	require.Len(t, result.Errors, 1)
	require.Contains(t, result.Errors[0].Message, "takes too long")
}

// A user's input is data: it is never evaluated.
func TestValuesAreNoExpressions(t *testing.T) {
	definition := parsed(t, "Version: 2\nApplication: {'?': {type: a.B}, value: $.one.it}\nForms: [{one: {fields: [{name: it, type: string}]}}]\n")
	require.Equal(t, "$.one", modelled(t, definition, ui.Input{Values: values{"one": {"it": "$.one"}}})["value"])
}

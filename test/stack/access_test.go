package stack

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/nodes/access"
)

// farm is an environment with servers of these classes; the ones of scripted classes get the script.
func farm(script string, classes map[string]string) map[string]any {
	var servers []any
	for id, class := range classes {
		server := map[string]any{"?": map[string]any{"type": class, "id": id}, "name": id, "flavor": "m1.small", "image": "tiny"}
		if class == "io.burano.test.Scripted" {
			server["script"] = script
		}
		servers = append(servers, server)
	}
	return map[string]any{
		"?": map[string]any{"type": "io.murano.Environment", "id": "environment"}, "name": "farm",
		"defaultNetworks": map[string]any{"flat": nil, "environment": map[string]any{
			"?": map[string]any{"type": "io.murano.resources.NeutronNetwork", "id": "own"}, "name": "own"}},
		"applications": []any{map[string]any{"?": map[string]any{"type": "io.burano.test.Farm", "id": "farm"}, "servers": servers}},
	}
}

// userData is the user data of a template's servers, by their names.
func userData(template map[string]any) map[string]string {
	made := map[string]string{}
	for _, server := range resourcesOf(template, "OS::Nova::Server") {
		made[server["name"].(string)], _ = server["user_data"].(string)
	}
	return made
}

const (
	linux    = "io.murano.resources.LinuxInstance"
	agent    = "io.murano.resources.LinuxMuranoInstance"
	windows  = "io.murano.resources.WindowsInstance"
	scripted = "io.burano.test.Scripted"
)

func TestServersOfApplicationsAreMadeWithBuranosKeyBesideTheirOwnUserData(t *testing.T) {
	w := newWorld(t)
	first := userData(w.push(t, farm("#!/bin/sh\ntrue\n", map[string]string{"a": linux, "b": agent, "c": scripted, "d": windows})))
	require.True(t, access.MadeOf(first["a"], ""))
	require.True(t, access.MadeOf(first["b"], ""))
	require.True(t, access.MadeOf(first["c"], "#!/bin/sh\ntrue\n"))
	require.Contains(t, first["c"], "Content-Type: text/x-shellscript")
	require.Empty(t, first["d"], "Burano does not log in to Windows")
	require.NotEqual(t, first["a"], first["b"], "each has a host key of its own")

	again := userData(w.push(t, farm("#!/bin/sh\ntrue\n", map[string]string{"a": linux, "b": agent, "c": scripted, "d": windows})))
	require.Equal(t, first, again)
	other := userData(w.push(t, farm("#!/bin/sh\nfalse\n", map[string]string{"c": scripted})))
	require.True(t, access.MadeOf(other["c"], "#!/bin/sh\nfalse\n"), "a script that was changed is a change, which the guard refuses where the server is there")

	foreign := userData(w.push(t, farm("#ps1_sysnative\ndir", map[string]string{"e": scripted})))
	require.Equal(t, "#ps1_sysnative\ndir", foreign["e"])
}

// A former version made servers without the key; a new one may write other user data.
func TestServersKeepTheUserDataThatTheyWereMadeWith(t *testing.T) {
	w := newWorld(t)
	const script = "#!/bin/sh\ntrue\n"
	model := farm(script, map[string]string{"a": linux, "c": scripted})
	made := userData(w.push(t, model))
	former := map[string]string{"a": "", "c": script}
	kept := func(data map[string]string) {
		var template map[string]any
		require.NoError(t, json.Unmarshal(w.secrets["template of the stack"], &template))
		for _, server := range resourcesOf(template, "OS::Nova::Server") {
			server["user_data"] = data[server["name"].(string)]
		}
		text, err := json.Marshal(template)
		require.NoError(t, err)
		w.secrets["template of the stack"] = text
	}
	kept(former)
	require.Equal(t, former, userData(w.push(t, model)))

	otherwise := map[string]string{"a": "# another version\n" + made["a"], "c": "# another version\n" + made["c"]}
	kept(otherwise)
	require.Equal(t, otherwise, userData(w.push(t, model)))

	// A server that Nova does not know any more is made again, and with the key.
	kept(former)
	for _, one := range model["applications"].([]any)[0].(map[string]any)["servers"].([]any) {
		one.(map[string]any)["openstackId"] = "deleted"
	}
	w.nova = func(rw http.ResponseWriter, _ *http.Request) {
		http.Error(rw, `{"itemNotFound": {"code": 404}}`, http.StatusNotFound)
	}
	require.Equal(t, made, userData(w.push(t, model)))
}

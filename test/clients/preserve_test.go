package clients

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/keypairs"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/stretchr/testify/require"
)

// made returns the ids of the user's servers, each with the time of its last creation or rebuild by Nova.
func (u cloudUser) made(t *testing.T) map[string]string {
	t.Helper()
	pages, err := servers.List(u.nova, nil).AllPages(t.Context())
	require.NoError(t, err)
	found, err := servers.ExtractServers(pages)
	require.NoError(t, err)
	made := map[string]string{}
	for _, one := range found {
		made[one.Name] = one.ID + " " + one.LaunchedAt.String()
	}
	return made
}

// serversOutliveEdits edits lines of deployed files for which Heat would rebuild, resize or replace servers. Preview and deployment refuse
// them before anything is touched; once the line is taken back, the rest of the edit is deployed.
func serversOutliveEdits(t *testing.T, s *server, demo cloudUser) {
	s.importServers(t)
	farm := func(first, script, more string) {
		s.write(map[string]string{"edited.yaml": `name: edited
applications:
  - '?': {type: io.burano.test.Farm, id: farm}
    ports: [8080]
    servers:
      - {'?': {type: io.murano.resources.LinuxInstance, id: one}, name: one, ` + first + `}
      - {'?': {type: io.burano.test.Scripted, id: two}, name: two, flavor: m1.tiny, image: tiny, script: '` + script + `'}
` + more})
	}
	const good, more = "flavor: m1.tiny, image: tiny", "      - {'?': {type: io.murano.resources.LinuxInstance, id: three}, name: three, flavor: m1.tiny, image: tiny}\n"
	farm(good, "#!/bin/sh", "")
	s.burano(t, "deploy", "edited.yaml", "--follow")
	made := demo.made(t)
	require.Len(t, made, 2)
	refused := func(t *testing.T, file string, says ...string) {
		t.Helper()
		for _, flag := range []string{"--dry-run", "--follow"} {
			out, ok := s.run(s.as("demo", "demo"), s.program, "deploy", file, flag)
			require.False(t, ok, out)
			for _, words := range append(says, "Nothing was changed. Put ") {
				require.Contains(t, out, words, flag)
			}
			require.NotContains(t, out, "Making servers")
		}
	}
	for name, try := range map[string]struct{ first, script, says string }{
		"flavor":    {"flavor: m1.small, image: tiny", "#!/bin/sh", "server one (" + strings.Fields(made["one"])[0] + ") was made with flavor m1.tiny and cannot have m1.small while it is there: Heat would shut it down"},
		"image":     {"flavor: m1.tiny, image: other", "#!/bin/sh", "was made with image tiny and cannot have other while it is there: Heat would rebuild it"},
		"key":       {good + ", keyname: mine", "#!/bin/sh", "was made with key_name none and cannot have mine while it is there: Heat would delete it"},
		"zone":      {good + ", availabilityZone: elsewhere", "#!/bin/sh", "was made with availability_zone nova and cannot have elsewhere"},
		"user data": {good, "#!/bin/bash", "server two (" + strings.Fields(made["two"])[0] + ") was made with other user_data and cannot have what it is to have while it is there: Heat would delete it"},
	} {
		t.Run(name, func(t *testing.T) {
			farm(try.first, try.script, more)
			refused(t, "edited.yaml", try.says)
			require.Equal(t, made, demo.made(t))
		})
	}

	// A refused edit is not done in part: the objects that it takes out are still there.
	s.write(map[string]string{"edited.yaml": "name: edited\napplications:\n  - '?': {type: io.burano.test.Farm, id: farm}\n    servers:\n" +
		"      - {'?': {type: io.murano.resources.LinuxInstance, id: one}, name: one, flavor: m1.small, image: tiny}\n"})
	refused(t, "edited.yaml", "was made with flavor m1.tiny")
	require.Equal(t, made, demo.made(t))

	farm(good, "#!/bin/sh", more)
	require.Contains(t, s.burano(t, "deploy", "edited.yaml", "--dry-run"), "three")
	s.burano(t, "deploy", "edited.yaml", "--follow")
	now := demo.made(t)
	require.Len(t, now, 3)
	require.Equal(t, []string{made["one"], made["two"]}, []string{now["one"], now["two"]})

	// Objects that an edit takes out are deleted, and the preview lists them.
	farm(good, "#!/bin/sh", "")
	require.Contains(t, s.burano(t, "deploy", "edited.yaml", "--dry-run"), "x the server three "+strings.Fields(now["three"])[0]+" is deleted")
	farm(good, "#!/bin/sh", more)

	// Where the server is gone nothing can be lost.
	require.NoError(t, servers.Delete(t.Context(), demo.nova, strings.Fields(made["one"])[0]).ExtractErr())
	require.Eventually(t, func() bool { return len(demo.made(t)) == 2 }, time.Minute, 50*time.Millisecond)
	farm("flavor: m1.small, image: tiny", "#!/bin/sh", more)
	s.burano(t, "deploy", "edited.yaml", "--dry-run")
	s.burano(t, "deploy", "edited.yaml", "--follow")
	now = demo.made(t)
	require.Len(t, now, 3)
	require.NotEqual(t, made["one"], now["one"])
	require.Equal(t, made["two"], now["two"])
	s.burano(t, "environment", "delete", "--yes", "edited")
}

// serversOfTemplatesOutliveEdits is the same for a server in the stack of a Heat template.
func serversOfTemplatesOutliveEdits(t *testing.T, s *server, demo cloudUser) {
	s.write(map[string]string{
		"guest/manifest.yaml": "Format: Heat.HOT/1.0\nType: Application\nFullName: org.test.Guest\nName: Guest\n",
		"guest/template.yaml": `heat_template_version: 2016-10-14
parameters:
  flavor: {type: string}
  script: {type: string, default: hello}
  word: {type: string, default: one}
resources:
  net: {type: OS::Neutron::Net}
  subnet: {type: OS::Neutron::Subnet, properties: {network: {get_resource: net}, cidr: 10.78.0.0/24}}
  guest:
    type: OS::Nova::Server
    depends_on: subnet
    properties:
      name: guest
      image: tiny
      flavor: {get_param: flavor}
      networks: [{network: {get_resource: net}}]
      user_data_format: RAW
      user_data: {str_replace: {template: say WORD, params: {WORD: {get_param: script}}}}
  word: {type: OS::Heat::Value, properties: {value: {get_param: word}}}
outputs:
  word: {value: {get_attr: [word, value]}}
`})
	s.burano(t, "package", "import", "guest")
	file := func(parameters string) {
		s.write(map[string]string{"guest.yaml": "name: guest\napplications:\n  - {'?': {type: org.test.Guest, id: guest}, name: guest, templateParameters: {" + parameters + "}}\n"})
	}
	file("flavor: m1.tiny")
	s.burano(t, "deploy", "guest.yaml", "--follow")
	made := demo.made(t)
	require.Len(t, made, 1)
	for parameters, says := range map[string]string{
		"flavor: m1.small":               "server guest (" + strings.Fields(made["guest"])[0] + ") was made with flavor m1.tiny and cannot have m1.small",
		"flavor: m1.tiny, script: other": "was made with other user_data",
	} {
		file(parameters)
		for _, flag := range []string{"--dry-run", "--follow"} {
			out, ok := s.run(s.as("demo", "demo"), s.program, "deploy", "guest.yaml", flag)
			require.False(t, ok, out)
			require.Contains(t, out, says)
		}
		require.Equal(t, made, demo.made(t))
	}
	file("flavor: m1.tiny, word: two")
	s.burano(t, "deploy", "guest.yaml", "--follow")
	require.Equal(t, "two", s.model(t, "guest")["services"].([]any)[0].(map[string]any)["templateOutputs"].(map[string]any)["word"])
	require.Equal(t, made, demo.made(t))
	s.burano(t, "environment", "delete", "--yes", "guest")
}

// TestPlansKnowWhatTheCloudLacks previews new environments without clusters: the preview refuses servers and volumes that the cloud cannot make. Of servers that the code of an
// application makes or leaves out it has notes.
func TestPlansKnowWhatTheCloudLacks(t *testing.T) {
	s := startCloud(t)
	s.serve(http.DefaultClient, "http", "--embedded-packages", "com.mirantis.docker.Interfaces,com.mirantis.docker.DockerStandaloneHost")
	demo := s.cloudAs("demo")
	s.importServers(t)
	s.write(map[string]string{
		"lacking/manifest.yaml": "Format: Heat.HOT/1.0\nType: Application\nFullName: org.test.Lacking\nName: Lacking\n",
		"lacking/template.yaml": `heat_template_version: 2016-10-14
parameters:
  flavor: {type: string}
  count: {type: number, default: 1}
  disk: {type: string, default: ""}
resources:
  key: {type: OS::Nova::KeyPair, properties: {name: made-by-the-stack}}
  group:
    type: OS::Heat::ResourceGroup
    properties:
      count: {get_param: count}
      resource_def: {type: OS::Nova::Server, properties: {name: guest, image: tiny, flavor: {get_param: flavor}, key_name: made-by-the-stack}}
  disk: {type: OS::Cinder::Volume, properties: {size: 1, volume_type: {get_param: disk}}}
`})
	s.burano(t, "package", "import", "lacking")
	plain := func(instance string) string {
		return "{'?': {type: com.mirantis.docker.DockerStandaloneHost}, name: host, instance: {'?': {type: io.murano.resources.LinuxMuranoInstance}, name: plain, " + instance + "}}"
	}
	farm := func(instance string) string {
		return "{'?': {type: io.burano.test.Farm}, servers: [{'?': {type: io.murano.resources.LinuxInstance}, name: perhaps, " + instance + "}]}"
	}
	template := func(parameters string) string {
		return "{'?': {type: org.test.Lacking}, name: guest, templateParameters: {" + parameters + "}}"
	}
	volume := "volumes: {/dev/vdb: {'?': {type: io.murano.resources.CinderVolume}, name: data, size: 1, volumeType: marble}}"
	for name, try := range map[string]struct {
		application, says string
		refused           bool
	}{
		"a flavor":                    {plain("flavor: m1.vast, image: tiny"), `server plain: the project sees no flavor with the name or id "m1.vast"`, true},
		"an image":                    {plain("flavor: m1.tiny, image: marble"), `server plain: the project sees no active image with the name or id "marble"`, true},
		"a key":                       {plain("flavor: m1.tiny, image: tiny, keyname: lost"), `server plain: the user who deploys has no key pair "lost"`, true},
		"a zone":                      {plain("flavor: m1.tiny, image: tiny, availabilityZone: mars"), `server plain: there is no availability zone "mars" to make servers in`, true},
		"a type of volumes":           {plain("flavor: m1.tiny, image: tiny, " + volume), `volume data: the project sees no volume type with the name or id "marble"`, true},
		"nothing to start from":       {plain("flavor: m1.tiny"), "server plain has nothing to start from", true},
		"a flavor of a template":      {template("flavor: m1.vast"), `server guest: the project sees no flavor with the name or id "m1.vast"`, true},
		"a volume of a template":      {template("flavor: m1.tiny, disk: marble"), `volume disk: the project sees no volume type with the name or id "marble"`, true},
		"a quota for a template":      {template("flavor: m1.tiny, count: 1000"), "the project's quota of instances is exceeded: 1000 more are needed", true},
		"a flavor that code may need": {farm("flavor: m1.vast, image: tiny"), `server perhaps: the project sees no flavor with the name or id "m1.vast"`, false},
		"all that is needed":          {template("flavor: m1.tiny"), "environment lacking would be made", false},
	} {
		t.Run(name, func(t *testing.T) {
			s.write(map[string]string{"lacking.yaml": "name: lacking\napplications:\n  - " + try.application + "\n"})
			out, ok := s.run(s.as("demo", "demo"), s.program, "deploy", "lacking.yaml", "--dry-run")
			require.Equal(t, try.refused, !ok, out)
			require.Contains(t, out, try.says)
			require.Equal(t, try.refused, strings.Contains(out, "! "), out)
			if try.refused { // and nothing is made
				out, ok := s.run(s.as("demo", "demo"), s.program, "deploy", "lacking.yaml", "--follow")
				require.False(t, ok, out)
				require.Contains(t, out, try.says)
			}
			require.Empty(t, demo.made(t))
			require.NotContains(t, s.burano(t, "environment", "list"), "lacking")
		})
	}
}

// TestThePreviewChecksTheKeyPairsOfTheServersOwner previews a server with a key pair of the caller's. In a project that gives Burano a role, servers are the service user's, which has no such key
// pair: preview and deployment say so.
func TestThePreviewChecksTheKeyPairsOfTheServersOwner(t *testing.T) {
	s := startCloud(t)
	s.serve(http.DefaultClient, "http", "--embedded-packages", "com.mirantis.docker.Interfaces,com.mirantis.docker.DockerStandaloneHost")
	demo := s.cloudAs("demo")
	_, err := keypairs.Create(t.Context(), demo.nova, keypairs.CreateOpts{Name: "of-demo"}).Extract()
	require.NoError(t, err)
	s.write(map[string]string{"keyed.yaml": "name: keyed\napplications:\n  - {'?': {type: com.mirantis.docker.DockerStandaloneHost}, name: host, instance: {'?': {type: io.murano.resources.LinuxMuranoInstance}, " +
		"name: plain, flavor: m1.tiny, image: tiny, keyname: of-demo}}\n"})
	out, _ := s.run(s.as("demo", "demo"), s.program, "deploy", "keyed.yaml", "--dry-run")
	require.NotContains(t, out, "key pair")
	offered := func() int {
		var found map[string][]any
		s.read(t, "/burano/v1/cloud/keypairs", &found)
		return len(found["keypairs"])
	}
	require.Equal(t, 1, offered())

	var project struct {
		ID string `json:"project_id"`
	}
	require.NoError(t, json.Unmarshal([]byte(s.burano(t, "project", "show", "--output", "json")), &project))
	out, ok := s.run(s.as("admin", "admin"), s.program, "project", "enable", "--project", project.ID)
	require.True(t, ok, out)
	for _, flag := range []string{"--dry-run", "--follow"} {
		out, ok = s.run(s.as("demo", "demo"), s.program, "deploy", "keyed.yaml", flag)
		require.False(t, ok, out)
		require.Contains(t, out, `server plain: Burano's service user, to whom servers belong in this project (burano project show), has no key pair "of-demo"`)
	}
	require.Zero(t, offered(), "forms offer none that is refused")
	require.Empty(t, demo.made(t))
}

// groupsOfTemplates have servers of one definition: edits add servers, or remove some by name, and change none of the others.
func groupsOfTemplates(t *testing.T, s *server, demo cloudUser) {
	s.write(map[string]string{
		"group/manifest.yaml": "Format: Heat.HOT/1.0\nType: Application\nFullName: org.test.Group\nName: Group\n",
		"group/template.yaml": `heat_template_version: 2016-10-14
parameters:
  count: {type: number}
  gone: {type: comma_delimited_list, default: ""}
  flavor: {type: string, default: m1.tiny}
resources:
  net: {type: OS::Neutron::Net}
  subnet: {type: OS::Neutron::Subnet, properties: {network: {get_resource: net}, cidr: 10.79.0.0/24}}
  group:
    type: OS::Heat::ResourceGroup
    depends_on: subnet
    properties:
      count: {get_param: count}
      removal_policies: [{resource_list: {get_param: gone}}]
      resource_def:
        type: OS::Nova::Server
        properties: {name: member-%index%, image: tiny, flavor: {get_param: flavor}, networks: [{network: {get_resource: net}}]}
outputs:
  names: {value: {get_attr: [group, name]}}
  addresses: {value: {get_attr: [group, first_address]}}
`})
	s.burano(t, "package", "import", "group")
	file := func(parameters string) {
		s.write(map[string]string{"group.yaml": "name: group\napplications:\n  - {'?': {type: org.test.Group, id: group}, name: group, templateParameters: {" + parameters + "}}\n"})
	}
	outputs := func() map[string]any {
		return s.model(t, "group")["services"].([]any)[0].(map[string]any)["templateOutputs"].(map[string]any)
	}
	file("count: 2")
	s.burano(t, "deploy", "group.yaml", "--follow")
	made := demo.made(t)
	require.ElementsMatch(t, []string{"member-0", "member-1"}, slices.Collect(maps.Keys(made)))
	require.Len(t, outputs()["addresses"], 2)
	for _, step := range []struct {
		parameters string
		names      []any
	}{
		{"count: 3", []any{"member-0", "member-1", "member-2"}},
		{"count: 2, gone: '1'", []any{"member-0", "member-2"}},
		{"count: 3, gone: '1'", []any{"member-0", "member-2", "member-3"}},
		{"count: 1, gone: '1'", []any{"member-0"}},
	} {
		file(step.parameters)
		s.burano(t, "deploy", "group.yaml", "--follow")
		require.Equal(t, step.names, outputs()["names"], step.parameters)
		now := demo.made(t)
		require.Len(t, now, len(step.names))
		require.Equal(t, made["member-0"], now["member-0"], "the server is the same")
	}
	file("count: 1, gone: '1', flavor: m1.small")
	out, ok := s.run(s.as("demo", "demo"), s.program, "deploy", "group.yaml", "--follow")
	require.False(t, ok, out)
	require.Contains(t, out, "was made with flavor m1.tiny and cannot have m1.small")
	require.Equal(t, made["member-0"], demo.made(t)["member-0"])
	s.burano(t, "environment", "delete", "--yes", "group")
}

package openstack

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

func TestNewResourcesOfATemplateAreCounted(t *testing.T) {
	const text = `
parameters: {size: {default: small}, disk: {default: 3}}
resources:
  key: {type: OS::Nova::KeyPair, properties: {name: made-here}}
  one: {type: OS::Nova::Server, properties: {name: first, flavor: {get_param: size}, image: {get_resource: picture}, key_name: made-here}}
  there: {type: OS::Nova::Server, properties: {flavor: unknown}}
  perhaps: {type: OS::Nova::Server, condition: large, properties: {flavor: unknown}}
  farm:
    type: OS::Heat::ResourceGroup
    properties: {count: 3, resource_def: {type: OS::Nova::Server, properties: {name: "of-%index%", flavor: small, image: i, key_name: unknown}}}
  disk: {type: OS::Cinder::Volume, properties: {size: {get_param: disk}, volume_type: fast}}
  grown: {type: OS::Cinder::Volume, properties: {size: 5}}
  nested: {type: volumes.yaml, properties: {gib: 2}}
  port: {type: OS::Neutron::Port}
`
	template := map[string]any{}
	require.NoError(t, yaml.Unmarshal([]byte(text), &template))
	content := Content{Template: template, Files: map[string]string{"volumes.yaml": "parameters: {gib: {}}\nresources: {one: {type: OS::Cinder::Volume, properties: {size: {get_param: gib}}}}\n"}}
	wanted := definition{template: content.Template, parameters: content.inputs(), files: content.Files}
	was := definition{template: map[string]any{"resources": map[string]any{"grown": map[string]any{"type": volumeType, "properties": map[string]any{"size": 2.0}}}}}

	var needs demand
	needs.add(wanted, was, map[string]bool{"there": true, "grown": true}, 1, 1)
	require.Equal(t, map[string]int{serverType: 4, volumeType: 2, portType: 1}, needs.kinds)
	require.Equal(t, []string{"of-%index%", "of-%index%", "of-%index%", "first"}, needs.coming())

	known := cloudChoices{
		flavors:     []FlavorChoice{{ID: "1", Name: "small", CPUs: 2, RAM: 512}},
		images:      []ImageChoice{{ID: "2", Name: "i"}},
		keypairs:    []KeypairChoice{{Name: "k"}},
		volumeTypes: []VolumeType{{ID: "3", Name: "slow"}, {ID: "4", Name: "fast"}},
		quotas: []QuotaChoice{{"cores", 4, 11}, {"ram", 0, -1}, {"instances", 0, 4}, {quotaVolumes, 0, 1}, {quotaGigabytes, 2, 9}, {"gigabytes_fast", 1, 3},
			{"volumes_fast", 0, 1}, {quotaPerVolume, 0, 4}},
	}
	require.Equal(t, []string{`server of-%index%: the user who deploys has no key pair "unknown": there are k (key pairs belong to users, not to projects)`,
		"volume grown: it is to have 5 GiB, and the project's quota of one volume is 4 GiB"}, known.missing(needs))
	known.byRole = true
	require.Equal(t, `server of-%index%: Burano's service user, to whom servers belong in this project (burano project show), has no key pair "unknown": key pairs belong to users, not to projects. `+
		"Leave it out: Burano needs none", known.missing(needs)[0], "it lists no names of other projects")
	require.Equal(t, []string{
		"the project's quota of cores is exceeded: 8 more are needed and 7 of 11 are left, so 1 are missing",
		"the project's quota of volumes is exceeded: 2 more are needed and 1 of 1 are left, so 1 are missing",
		"the project's quota of room for volumes (GiB) is exceeded: 8 more are needed and 7 of 9 are left, so 1 are missing",
		"the project's quota of room for volumes (GiB) of type fast is exceeded: 3 more are needed and 2 of 3 are left, so 1 are missing",
	}, known.exceeded(needs))
}

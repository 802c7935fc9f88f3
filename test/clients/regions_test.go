package clients

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/flavors"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/imagedata"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/test/localcloud"
	"github.com/burano/burano/test/localcloud/keystone"
	"github.com/burano/burano/test/localcloud/localcloudtest"
)

// An environment with an application in each of two regions has a stack, networks and servers in each. An interrupted deployment goes on
// in both, and deletion leaves nothing in either.
func TestAnEnvironmentStandsInTwoRegions(t *testing.T) {
	slot := os.Getenv("BURANO_SLOT")
	s := startCloudWith(t, localcloud.Config{ExternalCIDR: netip.MustParsePrefix("10.86.10" + slot + ".0/24"),
		SecondCIDR: netip.MustParsePrefix("10.86.11" + slot + ".0/24"), Prefix: "bl2" + slot + "-"})
	near, far := s.cloudAs("demo"), s.cloudIn("demo", keystone.SecondRegion)
	s.equip(t, s.cloudIn("admin", keystone.SecondRegion))
	state := t.TempDir()
	first := s.serve(http.DefaultClient, "http", "--state", state)
	s.importServers(t)
	nearBefore, farBefore := near.holds(t), far.holds(t)
	trusts := s.trusts(t)

	t.Run("regions and what they have are looked up", func(t *testing.T) {
		require.Equal(t, []any{map[string]any{"name": keystone.SecondRegion, "home": false}, map[string]any{"name": keystone.Region, "home": true}},
			s.ask(t, "/burano/v1/cloud/regions")["regions"])
		flavorsIn := func(region string) string {
			return s.askText(t, "/burano/v1/cloud/flavors?region="+region, http.StatusOK)
		}
		require.Contains(t, flavorsIn(keystone.SecondRegion), `"far.tiny"`)
		require.NotContains(t, flavorsIn(""), `"far.tiny"`)
		require.Equal(t, flavorsIn(""), flavorsIn(keystone.Region))
		require.Contains(t, s.askText(t, "/burano/v1/cloud/flavors?region=nowhere", http.StatusBadRequest), `no region \"nowhere\" with Nova and Neutron that the project may use: there are RegionTwo, local`)
	})

	t.Run("an unknown region is said before anything is made", func(t *testing.T) {
		for name, model := range map[string]string{"lost": "region: nowhere\n" + farmsIn("", ""), "astray": farmsIn("", "nowhere")} {
			s.write(map[string]string{name + ".yaml": "name: " + name + "\n" + model})
			out, ok := s.run(s.as("demo", "demo"), s.program, "deploy", name+".yaml", "--follow")
			require.False(t, ok, out)
			require.Contains(t, out, `the cloud has no region "nowhere"`)
			require.Contains(t, out, "there are RegionTwo, local")
			require.Equal(t, nearBefore, near.holds(t))
			require.Equal(t, farBefore, far.holds(t))
		}
		s.write(map[string]string{"astray.yaml": "name: astray\n" + strings.Split(farmsIn("", ""), "  - '?': {type: io.burano.test.Farm, id: far}")[0]})
		s.burano(t, "deploy", "astray.yaml", "--follow")
		require.Equal(t, []string{"one"}, near.holds(t)["servers"], "what had never been made is given up without its region")
		s.delete(t, "astray")
		require.Equal(t, nearBefore, near.holds(t))
	})

	first.stop(t)
	s.write(map[string]string{"two.yaml": "name: two\n" + farmsIn("", keystone.SecondRegion)})
	said := s.killedDuring(t, state, []string{"begin:servers in RegionTwo", "end:servers in RegionTwo"}, "deploy", "two.yaml")
	grown := map[string]int{"stacks": 1, "servers": 1, "floating IPs": 1, "routers": 1, "networks": 1, "ports": 2, "security groups": 1}
	nearNow, farNow := near.holds(t), far.holds(t)
	for kind, count := range grown {
		require.Len(t, nearNow[kind], len(nearBefore[kind])+count, "%s: %v\n%s", kind, nearNow[kind], said)
		require.Len(t, farNow[kind], len(farBefore[kind])+count, "%s: %v\n%s", kind, farNow[kind], said)
	}
	require.Equal(t, []string{"one"}, nearNow["servers"])
	require.Equal(t, []string{"two"}, farNow["servers"])
	require.Equal(t, nearNow["stacks"][0]+"-"+keystone.SecondRegion, farNow["stacks"][0])
	model := s.model(t, "two")
	regions := model["regions"].(map[string]any)
	require.Len(t, regions, 3, "%v", regions)
	ranges := map[string]bool{}
	for _, name := range []string{keystone.Region, keystone.SecondRegion} {
		network := regions[name].(map[string]any)["defaultNetworks"].(map[string]any)["environment"].(map[string]any)
		require.Equal(t, name, network["regionName"])
		require.NotEmpty(t, network["openstackId"])
		ranges[network["subnetCidr"].(string)] = true
	}
	require.Len(t, ranges, 2, "no two regions have the same addresses")
	for _, name := range []string{"one", "two"} {
		answers(t, s.floatingOf(t, model, name), name)
	}

	made := [2]string{near.server(t, "one"), far.server(t, "two")}
	s.burano(t, "deploy", "two.yaml", "--follow")
	require.Equal(t, made, [2]string{near.server(t, "one"), far.server(t, "two")}, "the same again changes nothing")

	id := model["?"].(map[string]any)["id"].(string)
	require.ErrorContains(t, s.moved(t, id, keystone.SecondRegion), "the environment stands in region local and cannot move to RegionTwo")
	require.Equal(t, made, [2]string{near.server(t, "one"), far.server(t, "two")})

	require.NoError(t, s.moved(t, id, keystone.Region))
	s.write(map[string]string{"one.yaml": "name: two\n" + strings.Split(farmsIn("", ""), "  - '?': {type: io.burano.test.Farm, id: far}")[0]})
	s.burano(t, "deploy", "one.yaml", "--follow", "--allow-destroy", "two")
	require.Equal(t, farBefore, far.holds(t), "what is not wanted there any more is gone")
	require.Equal(t, made[0], near.server(t, "one"))
	s.burano(t, "deploy", "two.yaml", "--follow")
	require.Equal(t, []string{"two"}, far.holds(t)["servers"])

	s.killedDuring(t, state, []string{"end:delete stack in RegionTwo"}, "environment", "delete", "--yes", "two")
	require.Equal(t, nearBefore, near.holds(t), "nothing is left")
	require.Equal(t, farBefore, far.holds(t), "nothing is left")

	s.burano(t, "environment", "create", "elsewhere", "--region", keystone.SecondRegion)
	s.write(map[string]string{"elsewhere.yaml": "name: elsewhere\n" + farmsIn("", keystone.SecondRegion)})
	s.burano(t, "deploy", "elsewhere.yaml", "--follow")
	require.Equal(t, []string{"one", "two"}, far.holds(t)["servers"], "all of an environment stands in its own region")
	require.Equal(t, nearBefore, near.holds(t))
	s.delete(t, "elsewhere")
	require.Equal(t, farBefore, far.holds(t), "nothing is left")
	s.trustsGo(t, trusts)
}

// delete deletes an environment and waits until it is gone.
func (s *server) delete(t *testing.T, name string) {
	t.Helper()
	s.burano(t, "environment", "delete", "--yes", name)
	require.Eventually(t, func() bool { return !strings.Contains(s.burano(t, "environment", "list"), name) }, time.Minute, 100*time.Millisecond)
}

// farmsIn are two applications, each with a server in a region, "" for the environment's.
func farmsIn(near, far string) string {
	text := "applications:\n"
	for _, one := range [][3]string{{"near", "one", near}, {"far", "two", far}} {
		text += "  - '?': {type: io.burano.test.Farm, id: " + one[0] + "}\n    servers:\n      - {'?': {type: io.burano.test.Open, id: " + one[1] + "}, name: " + one[1] +
			", flavor: m1.tiny, image: tiny, assignFloatingIp: true"
		if one[2] != "" {
			text += ", regionName: " + one[2]
		}
		text += "}\n"
	}
	return text
}

// equip gives another region the image and the flavor of startCloudWith, and a flavor of its own.
func (s *server) equip(t *testing.T, admin cloudUser) {
	t.Helper()
	public, disk := images.ImageVisibilityPublic, 1
	content, err := localcloudtest.TinyServer(t.Context())
	require.NoError(t, err)
	image, err := images.Create(t.Context(), admin.glance, images.CreateOpts{Name: "tiny", DiskFormat: "raw", ContainerFormat: "bare", Visibility: &public}).Extract()
	require.NoError(t, err)
	require.NoError(t, imagedata.Upload(t.Context(), admin.glance, image.ID, bytes.NewReader(content)).ExtractErr())
	for _, name := range []string{"m1.tiny", "far.tiny"} {
		_, err = flavors.Create(t.Context(), admin.nova, flavors.CreateOpts{Name: name, RAM: 512, VCPUs: 1, Disk: &disk}).Extract()
		require.NoError(t, err)
	}
}

// ask gets an answer of Burano's API.
func (s *server) ask(t *testing.T, path string) (answer map[string]any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(s.askText(t, path, http.StatusOK)), &answer))
	return answer
}

// askText gets an answer of a status as it is sent.
func (s *server) askText(t *testing.T, path string, status int) string {
	t.Helper()
	token, _ := s.token("demo", "demo")
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, nil)
	require.NoError(t, err)
	request.Header.Set("X-Auth-Token", token)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, status, response.StatusCode, "%s", text)
	return string(text)
}

// moved deploys an environment with another region in its model.
func (s *server) moved(t *testing.T, environment, region string) error {
	t.Helper()
	token, _ := s.token("demo", "demo")
	f := &faultyFarm{s: s, token: token, name: environment, environment: environment}
	_, session, err := f.call(t, "POST", "/"+environment+"/configure", "", "", nil)
	require.NoError(t, err)
	id := session["id"].(string)
	body := strings.NewReader(`[{"op": "replace", "path": "/region", "value": "` + region + `"}]`)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, s.url+"/v1/environments/"+environment+"/model/", body)
	require.NoError(t, err)
	request.Header.Set("X-Auth-Token", token)
	request.Header.Set("X-Configuration-Session", id)
	request.Header.Set("Content-Type", "application/env-model-json-patch")
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusOK, response.StatusCode)
	_, _, err = f.call(t, "POST", "/"+environment+"/sessions/"+id+"/deploy", "", "", nil)
	require.NoError(t, err)
	return f.ended(t)
}

// floatingOf is the floating address of a server of a model's farms.
func (s *server) floatingOf(t *testing.T, model map[string]any, name string) string {
	t.Helper()
	for _, application := range model["services"].([]any) {
		for _, one := range application.(map[string]any)["servers"].([]any) {
			if one := one.(map[string]any); one["name"] == name {
				address, _ := one["floatingIpAddress"].(string)
				return address
			}
		}
	}
	require.Fail(t, "there is no server", name)
	return ""
}

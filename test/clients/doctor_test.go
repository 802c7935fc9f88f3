package clients

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/quotasets"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/services"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/orchestrator/doctor"
	driver "github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/test/localcloud/localcloudtest"
)

// found are the lines of doctor's output, by subject.
type found map[string]doctor.Line

// doctor runs `burano doctor` as the service user, unless the variables override that, and checks that its exit code matches its lines.
func (s *server) doctor(environment []string, args ...string) found {
	t := s.t
	t.Helper()
	out, ok := s.run(environment, s.program, append([]string{"doctor", "--output", "json", "--state", filepath.Join(s.home, "state")}, args...)...)
	var lines []doctor.Line
	decoder := json.NewDecoder(strings.NewReader(out)) // the error follows the lines
	require.NoError(t, decoder.Decode(&lines), out)
	all, failed := found{}, 0
	for _, line := range lines {
		require.Contains(t, []doctor.State{doctor.OK, doctor.Warning, doctor.Failed}, line.State)
		require.Equal(t, line.State != doctor.OK, line.Remedy != "", "what is not well has a remedy: %+v", line)
		if line.State == doctor.Failed {
			failed++
		}
		if known, there := all[line.Check]; !there || known.State == doctor.OK {
			all[line.Check] = line
		}
	}
	require.Equal(t, failed == 0, ok, out)
	return all
}

// TestTheDoctorNamesWhatACloudLacks removes parts of a local cloud, one after another.
func TestTheDoctorNamesWhatACloudLacks(t *testing.T) {
	s := startCloud(t)
	service := s.as("burano", "service")
	s.write(map[string]string{".config/openstack/clouds.yaml": fmt.Sprintf(`clouds:
  user:
    region_name: local
    auth: {auth_url: %s/identity/v3, username: demo, password: demo, project_name: demo, user_domain_name: Default, project_domain_name: Default}
`, s.keystone)})
	state := func(t *testing.T, all found, check string, state doctor.State, says string) {
		t.Helper()
		require.Equal(t, state, all[check].State, "%+v", all)
		require.Contains(t, all[check].Text, says)
	}

	all := s.doctor(service, "--as", "user")
	for _, check := range []string{"settings", "TLS", "key file", "database", "clock", "service user", "roles", "user", "trust", "application credentials", "Nova", "Neutron", "Glance", "Heat", "Cinder", "external network", "quota"} {
		state(t, all, check, doctor.OK, "")
	}
	state(t, all, "trust", doctor.OK, "made, used and revoked, of demo, with the roles member")
	state(t, all, "application credentials", doctor.OK, "they make no trusts")
	state(t, all, "Nova", doctor.OK, "API to 2.")
	state(t, all, "service catalog", doctor.Warning, "no application-catalog")
	state(t, all, "node image", doctor.Failed, "no image that is marked")
	require.Zero(t, s.trusts(t), "none is left")

	t.Run("an image and a flavor", func(t *testing.T) {
		content, err := localcloudtest.TinyServer(t.Context())
		require.NoError(t, err)
		s.write(map[string]string{"node.tar": string(content)})
		out, ok := s.run(s.as("admin", "admin"), s.program, "image", "upload", "node.tar", "--public")
		require.True(t, ok, out)
		all := s.doctor(service, "--as", "user")
		state(t, all, "node image", doctor.Warning, "it is a tar, which only the local cloud boots")
		state(t, all, "flavors", doctor.OK, "fit a node of a cluster")
		require.NotContains(t, all["flavors"].Text, "m1.tiny", "it has 512 MiB of memory")
		out, ok = s.run(service, s.program, "doctor", "--state", filepath.Join(s.home, "state"))
		require.True(t, ok, out)
		require.Regexp(t, `warning +service catalog +it has no application-catalog`, out)
		require.Contains(t, out, "to do: `burano setup --url ADDRESS`")
		require.NoDirExists(t, filepath.Join(s.home, "state"), "nothing is made")
	})
	t.Run("a server that nobody can log in to", func(t *testing.T) {
		demo := s.cloudAs("demo")
		before := demo.holds(t)
		all := s.doctor(service, "--as", "user", "--boot", "tiny", "--boot-patience", "15s", "--orchestration", "direct")
		state(t, all, "a server", doctor.Failed, "cannot be logged in to at 10.")
		require.Equal(t, before, demo.holds(t), "nothing is left of it")
		state(t, s.doctor(service, "--as", "user", "--boot", "none"), "a server", doctor.Failed, "project demo sees no image none")
		state(t, s.doctor(service, "--as", "user", "--boot", "tiny", "--boot-flavor", "none"), "a server", doctor.Failed, "none")
		require.Equal(t, before, demo.holds(t), "nothing is left of it")
		require.Zero(t, s.trusts(t), "none is left")
	})
	t.Run("credentials and roles", func(t *testing.T) {
		state(t, s.doctor(append(service, "OS_PASSWORD=wrong")), "service user", doctor.Failed, "refuses its credentials")
		state(t, s.doctor(append(service, "OS_AUTH_URL=http://"+freeAddress(t)+"/v3")), "Keystone", doctor.Failed, "does not answer")
		state(t, s.doctor(s.as("demo", "demo")), "roles", doctor.Failed, "has no role admin")
		state(t, s.doctor(s.as("admin", "admin")), "roles", doctor.Warning, "has no role service")
		all := s.doctor(service, "--as", "user", "--trust-roles", "heat_stack_owner")
		state(t, all, "trust", doctor.Failed, "demo has none of the roles of trust-roles (heat_stack_owner)")
	})
	t.Run("services of the catalog", func(t *testing.T) {
		admin := s.cloudAs("admin")
		keystone, err := openstack.NewIdentityV3(admin.nova.ProviderClient, gophercloud.EndpointOpts{})
		require.NoError(t, err)
		offer := func(kind string, enabled bool) {
			pages, err := services.List(keystone, services.ListOpts{ServiceType: kind}).AllPages(t.Context())
			require.NoError(t, err)
			found, err := services.ExtractServices(pages)
			require.NoError(t, err)
			require.Len(t, found, 1)
			require.NoError(t, services.Update(t.Context(), keystone, found[0].ID, services.UpdateOpts{Enabled: &enabled}).Err)
		}
		for _, one := range []struct {
			kind, check string
			state       doctor.State
			flags       []string
		}{
			{"orchestration", "Heat", doctor.OK, nil}, {"orchestration", "Heat", doctor.Failed, []string{"--orchestration", "heat"}},
			{"volumev3", "Cinder", doctor.Warning, nil}, {"compute", "Nova", doctor.Failed, nil}, {"network", "Neutron", doctor.Failed, nil},
		} {
			offer(one.kind, false)
			all := s.doctor(service, append(one.flags, "--as", "user")...)
			offer(one.kind, true)
			state(t, all, one.check, one.state, "the service catalog has none")
			require.NotEqual(t, doctor.Failed, all["trust"].State, "%+v", all["trust"])
		}
		require.Zero(t, s.trusts(t), "none is left")
	})
	t.Run("networks and quotas", func(t *testing.T) {
		state(t, s.doctor(service, "--external-network", "elsewhere"), "external network", doctor.Failed, "there is no elsewhere")
		_, project := s.token("demo", "demo")
		two := 2
		require.NoError(t, quotasets.Update(t.Context(), s.cloudAs("admin").nova, project, quotasets.UpdateOpts{Instances: &two}).Err)
		all := s.doctor(service, "--as", "user")
		state(t, all, "quota", doctor.Failed, "project demo has 2 of 2 instances left, and the smallest cluster takes 3")
		require.Contains(t, all["quota"].Remedy, "openstack quota set demo --instances")
	})
	t.Run("what is on the machine", func(t *testing.T) {
		s.write(map[string]string{"bad.yaml": "listen: nowhere\n", "keys/secret.key": "no key\n"})
		state(t, s.doctor(service, "--config", "bad.yaml"), "settings", doctor.Failed, "is no address with a port")
		s.write(map[string]string{"open.yaml": "listen: 0.0.0.0:8082\n"})
		state(t, s.doctor(service, "--config", "open.yaml"), "TLS", doctor.Warning, "plain HTTP")
		state(t, s.doctor(service, "--tls-cert", "open.yaml", "--tls-key", "open.yaml"), "TLS", doctor.Failed, "")
		all := s.doctor(service, "--state", filepath.Join(s.home, "keys"), "--database", "postgres://nobody@"+freeAddress(t)+"/none")
		state(t, all, "key file", doctor.Failed, "read the key file")
		state(t, all, "database", doctor.Failed, "")
		state(t, all, "trust", doctor.OK, "")
	})
	t.Run("clocks", func(t *testing.T) {
		for apart, wanted := range map[time.Duration]doctor.State{0: doctor.OK, -20 * time.Second: doctor.Warning, time.Hour: doctor.Failed} {
			lines := doctor.Cloud(t.Context(), doctor.Config{
				Service: doctor.Credentials{Options: gophercloud.AuthOptions{IdentityEndpoint: s.keystone + "/identity/v3", Username: "burano", Password: "wrong", DomainName: "Default", TenantName: "service"}},
				Now:     func() time.Time { return time.Now().Add(apart) }, Orchestration: driver.Auto,
			})
			require.Equal(t, "clock", lines[0].Check)
			require.Equal(t, wanted, lines[0].State, lines[0].Text)
		}
	})
}

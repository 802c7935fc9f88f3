package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/wait"
)

// TestNovaOfTheCatalogMakesServers deploys OpenStack's compute service with all that it needs and a host of its fake driver, makes servers as its clients do, and changes it
// while they do.
func TestNovaOfTheCatalogMakesServers(t *testing.T) {
	soakOnly(t, "make soak runs this: it installs Debian's packages of OpenStack")
	l := start(t)
	demo := l.user(t, "burano-demo")
	l.pushApplications(t, "mariadb", "rabbitmq", "keystone", "glance", "placement", "neutron", "nova")

	began := time.Now()
	log := l.run(t, l.as("burano-demo"), "burano", "deploy", "test/e2e/testdata/nova.yaml", "--follow")
	l.deleteIfFailed(t, "nova")
	t.Logf("cluster and services took %.1f s", time.Since(began).Seconds())
	s, a, k := l.openStack(t, demo, "nova")
	token, _, err := k.token()
	require.NoError(t, err)
	n := compute{address: "http://" + s.published(t, a, "nova") + "/v2.1", token: token}
	require.Contains(t, k.services(t, token), `"`+n.address+`"`)
	l.eventually(t, 2*time.Minute, "Nova knows its host", func() error {
		text, err := n.ask(t.Context(), http.MethodGet, "/os-hypervisors", "")
		if err == nil && !strings.Contains(text, `"hypervisor_hostname": "compute-1"`) {
			err = fmt.Errorf("it has %s", text)
		}
		return err
	})
	glance := imageService{address: "http://" + s.published(t, a, "glance"), token: token}
	n.image = glance.upload(t, []byte("nothing starts from this"))
	text, err := n.ask(t.Context(), http.MethodPost, "/flavors", `{"flavor": {"name": "small", "ram": 64, "vcpus": 1, "disk": 1}}`)
	require.NoError(t, err)
	var made struct{ Flavor struct{ ID string } }
	require.NoError(t, json.Unmarshal([]byte(text), &made))
	n.flavor = made.Flavor.ID

	kept, err := n.create(t.Context(), "kept")
	require.NoError(t, err)
	t.Logf("the first server is ACTIVE %.1f s after the call of deploy", time.Since(began).Seconds())

	t.Run("no description has passwords, nothing is root, and hosts have no database", func(t *testing.T) {
		s.conceals(t, log, k.password, "rabbit://", "mysql+pymysql", s.inPod(t, "servers", "echo $OS_PLACEMENT__PASSWORD"))
		for _, pod := range []string{"networks", "servers", "conductors", "schedulers", "hosts"} {
			s.isConfined(t, pod, "/etc/x")
		}
		require.Empty(t, s.inPod(t, "hosts", "env | grep mysql || true"))
	})

	t.Run("packages have the options of their images", func(t *testing.T) {
		s.hasOptions(t, "Nova", "servers")
		s.hasOptions(t, "Neutron", "networks")
	})

	serves := func() error {
		_, err := n.ask(context.Background(), http.MethodGet, "/servers/"+kept, "")
		return err
	}
	lists := func() error {
		_, err := n.ask(context.Background(), http.MethodGet, "/servers/detail", "")
		return err
	}
	whole := func() error {
		id, err := n.create(context.Background(), "passing")
		if err == nil {
			err = n.remove(context.Background(), id)
		}
		return err
	}
	// Each part is there once, no row is left of a pod that has gone, and a server is made and deleted.
	standing := func(t *testing.T) {
		t.Helper()
		require.NoError(t, whole())
		l.eventually(t, 2*time.Minute, "all parts of Nova are up", func() error {
			text, err := n.ask(t.Context(), http.MethodGet, "/os-services", "")
			if err != nil {
				return err
			}
			var listed struct {
				Services []struct{ Binary, Host, State string }
			}
			if err := json.Unmarshal([]byte(text), &listed); err != nil {
				return err
			}
			var found []string
			for _, one := range listed.Services {
				found = append(found, one.Binary+" on "+one.Host+" is "+one.State)
			}
			slices.Sort(found)
			if want := []string{"nova-compute on compute-1 is up", "nova-conductor on conductor is up", "nova-scheduler on scheduler is up"}; !slices.Equal(want, found) {
				return fmt.Errorf("they are %v", found)
			}
			return nil
		})
	}
	standing(t)

	t.Run("another option rolls all parts, and no request fails", func(t *testing.T) {
		underRequests(t, "quota.instances", func() {
			task, log := s.changed(t, a, "nova", func(nova map[string]any) {
				nova["options"] = map[string]any{"quota": map[string]any{"instances": 20}}
			})
			require.Equal(t, "success", task["state"], log)
		}, serves, lists)
		for _, pod := range []string{"servers", "conductors", "schedulers", "hosts"} {
			require.Contains(t, s.inPod(t, pod, "cat /etc/nova/nova.conf"), "[quota]\ninstances = 20\n", pod)
		}
		standing(t)
	})

	t.Run("passwords are rotated in all parts, and no request fails", func(t *testing.T) {
		for action, variable := range map[string]string{"rotateQueuePassword": "OS_DEFAULT__TRANSPORT_URL", "rotateDatabasePassword": "OS_API_DATABASE__CONNECTION"} {
			underRequests(t, action, func() { s.act(t, "nova", action, map[string]any{}) }, serves, lists)
			for _, pod := range []string{"servers", "conductors", "schedulers"} {
				require.Contains(t, s.inPod(t, pod, "echo $"+variable), "://nova_2:", pod)
			}
		}
		standing(t)
	})

	t.Run("its cells are there once, without passwords", func(t *testing.T) {
		// list_cells shows templates with their values, so the database itself is asked.
		cells := s.inPod(t, "data", `MYSQL_PWD="$MARIADB_ROOT_PASSWORD" mariadb -N -e "SELECT CONCAT_WS(' ', name, transport_url, database_connection) FROM nova_api.cell_mappings ORDER BY name"`)
		const place = "{scheme}://{username}:{password}@{hostname}:{port}/"
		require.Equal(t, "cell0 none:/// "+place+"nova_cell0?{query}\ncell1 "+place+"{path} "+place+"{path}?{query}", cells)
	})

	t.Run("without its queue its parts wait, and are not ended", func(t *testing.T) {
		restarts := func() string {
			return s.cluster.kubectl(t, "", "get", "pod", "-o", `jsonpath={range .items[*]}{.metadata.name}={.status.containerStatuses[0].restartCount} {end}`)
		}
		before := partsOfNova(restarts())
		s.killed(t, "messages")
		require.NoError(t, serves())
		l.eventually(t, 6*time.Minute, "servers are made", whole)
		require.Equal(t, before, partsOfNova(restarts()))
		standing(t)
	})

	require.NoError(t, n.remove(t.Context(), kept))
	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "nova")
}

// partsOfNova are the words about pods that take their work from Nova's queue.
func partsOfNova(pods string) (found []string) {
	for _, one := range strings.Fields(pods) {
		if strings.HasPrefix(one, "conductors-") || strings.HasPrefix(one, "schedulers-") || strings.HasPrefix(one, "hosts-") {
			found = append(found, one)
		}
	}
	slices.Sort(found)
	return found
}

// compute is a Nova as its clients see it, with the image and the flavor of their servers.
type compute struct{ address, token, image, flavor string }

// ask makes a request with the microversion from which servers may have no network.
func (c compute) ask(ctx context.Context, method, path, body string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.address+path, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	request.Header.Set("OpenStack-API-Version", "compute 2.37")
	text, err := sentToService(request, c.token)
	return string(text), err
}

// create makes a server without a network, and returns its id when it is ACTIVE.
func (c compute) create(ctx context.Context, name string) (id string, err error) {
	text, err := c.ask(ctx, http.MethodPost, "/servers", fmt.Sprintf(`{"server": {"name": %q, "imageRef": %q, "flavorRef": %q, "networks": "none"}}`, name, c.image, c.flavor))
	if err != nil {
		return "", err
	}
	var made struct {
		Server struct {
			ID, Status string
			Fault      struct{ Message string }
		}
	}
	if err := json.Unmarshal([]byte(text), &made); err != nil {
		return "", err
	}
	id = made.Server.ID
	return id, wait.Every(500*time.Millisecond).For(90*time.Second).Until(ctx, func(ctx context.Context) error {
		text, err := c.ask(ctx, http.MethodGet, "/servers/"+id, "")
		if err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(text), &made); err != nil {
			return err
		}
		switch made.Server.Status {
		case "ACTIVE":
			return nil
		case "ERROR":
			return fmt.Errorf("server %s: %s", id, made.Server.Fault.Message)
		}
		return wait.Again(fmt.Errorf("server %s is %s", id, made.Server.Status))
	})
}

// remove deletes a server, and returns when it is gone.
func (c compute) remove(ctx context.Context, id string) error {
	if _, err := c.ask(ctx, http.MethodDelete, "/servers/"+id, ""); err != nil {
		return err
	}
	return wait.Every(500*time.Millisecond).For(90*time.Second).Until(ctx, func(ctx context.Context) error {
		_, err := c.ask(ctx, http.MethodGet, "/servers/"+id, "")
		switch {
		case err == nil:
			return wait.Again(errors.New("server " + id + " is there"))
		case strings.Contains(err.Error(), " 404 "):
			return nil
		}
		return err
	})
}

package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestServicesOfOpenStackHaveACacheAndAQueue deploys OpenStack's identity service with Memcached and RabbitMQ, and has pods of these killed.
func TestServicesOfOpenStackHaveACacheAndAQueue(t *testing.T) {
	soakOnly(t, "make soak runs this: it installs Debian's packages of OpenStack")
	l := start(t)
	demo := l.user(t, "burano-demo")
	l.pushApplications(t, "mariadb", "memcached", "rabbitmq", "keystone")

	began := time.Now()
	log := l.run(t, l.as("burano-demo"), "burano", "deploy", "test/e2e/testdata/openstack.yaml", "--follow")
	l.deleteIfFailed(t, "openstack")
	t.Logf("cluster and services took %.1f s", time.Since(began).Seconds())
	s, _, k := l.openStack(t, demo, "openstack")
	token, _, err := k.token()
	require.NoError(t, err)

	t.Run("no description has passwords, and nothing is root", func(t *testing.T) {
		s.conceals(t, log, k.password, "rabbit://", "mysql+pymysql")
		for _, pod := range []string{"memory", "messages", "identities"} {
			s.isConfined(t, pod, "/etc/x")
		}
	})

	t.Run("Keystone keeps checked tokens in the cache, and goes on without it", func(t *testing.T) {
		hits := func() (found int) {
			_, err := fmt.Sscanf(s.inPod(t, "identities", `python3 -c '
import memcache, os
print(dict(memcache.Client(["memory-memcached:11211"]).get_stats()[0][1])["get_hits"])'`), "%d", &found)
			require.NoError(t, err)
			return found
		}
		before := hits()
		for range 5 {
			require.Contains(t, k.services(t, token), k.address+"/v3")
		}
		require.Greater(t, hits(), before)
		k.under(t, "a cache that is killed", func() { s.killed(t, "memory") })
		require.Contains(t, k.services(t, token), k.address+"/v3")
	})

	const take = `message = queue.get(timeout=10); print(message.payload); message.ack()`
	t.Run("a queue has its messages when its pod was killed", func(t *testing.T) {
		s.amqp(t, `queue.put("kept")`)
		s.killed(t, "messages")
		require.Equal(t, "kept", s.amqp(t, take))
	})

	t.Run("the queue's password is rotated, with its messages", func(t *testing.T) {
		users := func() string {
			return s.inPod(t, "messages", "rabbitmqctl --silent list_users")
		}
		require.Equal(t, "keystone_1\t[]", users(), "the user guest is none of its")
		s.amqp(t, `queue.put("rotated")`)
		k.under(t, "the queue's password", func() { s.act(t, "keystone", "rotateQueuePassword", map[string]any{}) })
		require.Equal(t, "keystone_2\t[]", users())
		require.Equal(t, "rotated", s.amqp(t, take))
	})

	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "openstack")
}

// inPod runs a script in a container of a pod, and returns its output.
func (s *scaling) inPod(t *testing.T, pod, script string) string {
	t.Helper()
	return strings.TrimSpace(s.cluster.kubectl(t, "", "exec", "deployment/"+pod, "--", "sh", "-c", script))
}

// killed has a pod end at once, as its container is killed, and returns when another one is ready in its place.
func (s *scaling) killed(t *testing.T, pod string) {
	t.Helper()
	uid := func() string {
		return strings.TrimSpace(s.cluster.kubectl(t, "", "get", "pod", "-l", "id="+pod, "-o", `jsonpath={.items[?(@.status.containerStatuses[0].ready==true)].metadata.uid}`))
	}
	before, began := uid(), time.Now()
	require.NotEmpty(t, before)
	s.cluster.kubectl(t, "", "delete", "pod", "-l", "id="+pod, "--force", "--grace-period=0")
	s.lab.eventually(t, time.Minute, pod+" is back", func() error {
		if now := uid(); now == "" || now == before {
			return errors.New("no other pod is ready")
		}
		return nil
	})
	t.Logf("%s was killed, and another pod is ready after %.1f s", pod, time.Since(began).Seconds())
}

// amqp runs statements of Python in a pod of Keystone, with a lasting queue of its virtual host. The queue has confirmed each message.
func (s *scaling) amqp(t *testing.T, statements string) string {
	t.Helper()
	return s.inPod(t, "identities", `python3 -c '
import os
from kombu import Connection
url = os.environ["OS_DEFAULT__TRANSPORT_URL"].replace("rabbit", "amqp", 1)
with Connection(url, connect_timeout=10, transport_options={"confirm_publish": True}) as connection:
    queue = connection.SimpleQueue("test")
    `+statements+`'`)
}

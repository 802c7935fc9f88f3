package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/stretchr/testify/require"
)

// publicImages are the kinds of io.burano.PublicImage with the properties of their images: repository, port, folder of data, and the variables for the
// password and one more setting.
var publicImages = []struct{ kind, repository, port, data, secret, variable string }{
	{"CrateDB", "library/crate:5.10", "4200", "/data", "", ""},
	{"Elasticsearch", "library/elasticsearch:8.19.0", "9200", "/usr/share/elasticsearch/data", "ELASTIC_PASSWORD", "discovery.type=single-node"},
	{"GlassFish", "eclipse-ee4j/glassfish:7.1.0", "8080", "", "", ""},
	{"Grafana", "grafana/grafana:12.0.0", "3000", "/var/lib/grafana", "GF_SECURITY_ADMIN_PASSWORD", ""},
	{"InfluxDB", "library/influxdb:1.11", "8086", "/var/lib/influxdb", "INFLUXDB_ADMIN_PASSWORD", "INFLUXDB_ADMIN_USER=admin"},
	{"Jenkins", "jenkins/jenkins:lts", "8080", "/var/jenkins_home", "", ""},
	{"MongoDB", "library/mongo:7.0", "27017", "/data/db", "MONGO_INITDB_ROOT_PASSWORD", "MONGO_INITDB_ROOT_USERNAME=root"},
	{"MySQL", "library/mysql:8.4", "3306", "/var/lib/mysql", "MYSQL_ROOT_PASSWORD", ""},
	{"Orion", "fiware/orion:latest", "1026", "", "", ""},
	{"WildFly", "jboss/wildfly:latest", "8080", "", "", ""},
}

// TestPublicImagesRunAsTheirFormSays deploys each kind as its form makes it. A registry has images of the public names with another program, which answers
// on the port and uses the folder of each.
func TestPublicImagesRunAsTheirFormSays(t *testing.T) {
	soakOnly(t, "`make soak` runs this: it makes an image, and ten applications")
	l := start(t)
	demo := l.user(t, "burano-demo")
	found := inventory(t, demo)
	mirror := startRegistry(t, "", "")
	archive := filepath.Join(t.TempDir(), "public.tar")
	l.run(t, nil, "burano", "image", "build-from", "test/e2e/testdata/public", "--output", archive)
	program, err := tarball.ImageFromPath(archive, nil)
	require.NoError(t, err)
	for _, one := range publicImages {
		mirror.pushAs(t, program, one.repository, "KIND="+one.kind, "PORT="+one.port, "DATA="+one.data)
	}

	text, err := os.ReadFile("testdata/kinds.yaml")
	require.NoError(t, err)
	model, _, _ := strings.Cut(string(text), "  - \"?\": {type: com.mirantis.docker.kubernetes.KubernetesPod")
	model = strings.Replace(model, "name: kinds\n", "name: public\n", 1)
	model = strings.Replace(model, "name: kinds-cluster\n", fmt.Sprintf("name: kinds-cluster\n    dockerMirror: http://%s\n    dockerRegistry: %[1]s\n", mirror.address), 1)
	for _, one := range publicImages {
		model += fmt.Sprintf("  - \"?\": {type: com.mirantis.docker.kubernetes.KubernetesPod, id: %[1]s}\n    name: %[1]s\n    kubernetesCluster: cluster\n    replicas: 1\n", strings.ToLower(one.kind))
	}
	l.deleteIfFailed(t, "public")
	l.run(t, l.as("burano-demo"), "burano", "deploy", writeModel(t, model), "--follow")
	environment := environmentNamed(t, demo, "public")
	s := &scaling{lab: l, user: demo, cluster: l.clusterOf(t, demo, environment), environment: environment["id"].(string)}
	a := newApplications(t, l)

	session := a.draft(t, s.environment)
	for i, one := range publicImages {
		pod := a.application(t, s.environment, strings.ToLower(one.kind))["?"].(map[string]any)["id"]
		values := map[string]any{"name": one.kind, "host": pod, "kind": one.kind, "port": 20000 + i, "publish": true, "size": "10Mi"}
		if one.kind == "GlassFish" { // of another registry than Docker Hub
			values["image"] = mirror.address + "/" + one.repository
		}
		a.add(t, s.environment, session, "io.burano.PublicImage", one.kind, map[string]any{"appConfiguration": values})
	}
	began := time.Now()
	task, log := a.try(t, s.environment, session)
	require.Equal(t, "success", task["state"], log)
	t.Logf("ten applications took %.1f s", time.Since(began).Seconds())

	says := func(kind string) string {
		t.Helper()
		var text string
		l.eventually(t, 20*time.Second, kind+" answers", func() (err error) {
			text, err = get("http://" + s.published(t, a, kind) + "/")
			return err
		})
		return text
	}
	for i, one := range publicImages {
		require.True(t, strings.HasSuffix(s.published(t, a, one.kind), fmt.Sprintf(":%d", 20000+i)))
		text := says(one.kind)
		require.Contains(t, text, "KIND="+one.kind+"\n")
		require.Contains(t, text, "PORT="+one.port+"\n", one.kind)
		require.Contains(t, text, one.variable, one.kind)
		if one.secret != "" {
			shown, _ := s.call(t, one.kind, "showPassword", map[string]any{})
			require.Contains(t, text, one.secret+"="+shown["result"].(string)+"\n", one.kind)
		}
		if one.data != "" {
			require.Contains(t, text, "starts: 1\n", one.kind)
		}
		image := s.cluster.kubectl(t, "", "get", "deployment", strings.ToLower(one.kind), "-o", "jsonpath={.spec.template.spec.containers[*].image}")
		require.Contains(t, one.repository, strings.TrimPrefix(image, mirror.address+"/"), one.kind)
		repository, _, _ := strings.Cut(one.repository, ":")
		if one.kind != "GlassFish" {
			require.True(t, mirror.pulls(repository+" ns=docker.io"), "%s: %v", one.kind, mirror.pulled)
		}
	}
	s.act(t, "mongodb", "recreatePod", map[string]any{})
	require.Contains(t, says("MongoDB"), "starts: 2\n", "its data stay")

	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "public")
	asBefore(t, demo, found)
}

// pushAs pushes an image into a repository, with variables of its own.
func (r *imageRegistry) pushAs(t *testing.T, image v1.Image, repository string, variables ...string) {
	t.Helper()
	config, err := image.ConfigFile()
	require.NoError(t, err)
	settings := *config.Config.DeepCopy()
	settings.Env = append(settings.Env, variables...)
	image, err = mutate.Config(image, settings)
	require.NoError(t, err)
	reference, err := name.ParseReference(r.address+"/"+repository, name.Insecure)
	require.NoError(t, err)
	require.NoError(t, remote.Write(reference, image))
}

package e2e

import (
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"
	"github.com/stretchr/testify/require"
)

// twoMinions is a cluster of a master, two minions and a gateway, called scaling-cluster, for an environment called groups.
func twoMinions(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("testdata/groups.yaml")
	require.NoError(t, err)
	cluster, _, _ := strings.Cut(string(text), "    minionGroups:")
	minion := regexp.MustCompile(`(?m)^      - "\?": \{type: \S+KubernetesMinionNode\}\n.*\n`).FindString(cluster)
	require.NotEmpty(t, minion)
	cluster = strings.Replace(cluster, minion, minion+strings.Replace(minion, "murano-kube-2", "murano-kube-3", 1), 1)
	return strings.Replace(cluster, "nodeCount: 1", "nodeCount: 2", 1)
}

// TestARegistryThatIsThereByDefaultMirrorsDockerHubAndTidiesUp has nodes pull from Docker Hub's mirror with and without the registry, and without the
// mirror. It waits until deleted images are collected at the cluster's time.
func TestARegistryThatIsThereByDefaultMirrorsDockerHubAndTidiesUp(t *testing.T) {
	soakOnly(t, "`make soak` runs this")
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		t.Skipf("servers' volumes are loop devices, which this machine has not: %v", err)
	}
	l := start(t)
	l.relaunch(t, watchful...)
	demo := l.user(t, "burano-demo")
	found := inventory(t, demo)
	mirror := startRegistry(t, "", "")
	mirror.push(t, l, "library/hello:1")
	file := filepath.Join(t.TempDir(), "groups.yaml")
	deploy := func(lines string) string {
		t.Helper()
		model := strings.Replace(twoMinions(t), "name: scaling-cluster", "name: scaling-cluster\n    storageClasses: [{name: burano-cinder, backend: cinder, default: true}]\n"+
			"    keepVolumes: false\n    registrySize: 1Gi\n    dockerMirror: http://"+mirror.address+lines, 1)
		require.NoError(t, os.WriteFile(file, []byte(model), 0o600))
		return l.run(t, l.as("burano-demo"), "burano", "deploy", file, "--follow")
	}
	burano := func(args ...string) string {
		t.Helper()
		return l.run(t, l.as("burano-demo"), "burano", args...)
	}
	const host = "registry.scaling-cluster.internal"
	began := time.Now()
	require.Contains(t, deploy(""), "the registry "+host+" serves as soon as Cinder has made its volume")
	deployed := time.Now()
	l.deleteIfFailed(t, "groups")
	burano("environment", "delegation", "set", "groups")
	environment := environmentNamed(t, demo, "groups")
	s := &scaling{lab: l, user: demo, cluster: l.clusterOf(t, demo, environment), environment: environment["id"].(string)}
	s.find(t)
	c := s.cluster
	serves := func() {
		t.Helper()
		c.kubectl(t, "", "rollout", "status", "-n", "kube-system", "deployment/burano-registry", "--timeout=180s")
	}
	serves()
	t.Logf("deployed in %.1f s; the registry served %.1f s later", deployed.Sub(began).Seconds(), time.Since(deployed).Seconds())
	runs := func(name, image, node string) {
		t.Helper()
		c.kubectl(t, "", "run", name, "--image="+image, "--image-pull-policy=Always", `--overrides={"spec":{"nodeName":"`+node+`"}}`)
		output, err := c.tryKubectl("", "wait", "--for=condition=Ready", "pod/"+name, "--timeout=120s")
		require.NoErrorf(t, err, "%s%s", output, c.kubectl(t, "", "describe", "pod", name))
		c.kubectl(t, "", "delete", "pod", name, "--now")
	}
	mirrors := func() {
		t.Helper()
		l.eventually(t, time.Minute, "the registry mirrors", func() error {
			status := strings.TrimSpace(s.in(t, "murano-kube-2", "curl --silent --output /dev/null --write-out %{http_code} --cacert /etc/burano/pki/kubernetes-ca.crt https://10.96.0.11:5001/v2/ || true"))
			if status != "200" {
				return fmt.Errorf("it answers %s", status)
			}
			return nil
		})
	}
	require.Contains(t, burano("image", "list", "groups"), host+"/registry.local/demo:1")
	runs("brought", host+"/registry.local/demo:1", "murano-kube-2")

	mirrors()
	runs("first", "hello:1", "murano-kube-2")
	require.True(t, mirror.pulls("library/hello "), "%v", mirror.pulled)
	require.False(t, mirror.pulls("library/hello ns=docker.io"), "the node asked the registry: %v", mirror.pulled)
	c.kubectl(t, "", "scale", "-n", "kube-system", "deployment/burano-registry", "--replicas=0")
	c.kubectl(t, "", "wait", "--for=delete", "-n", "kube-system", "pod", "-l", "app=burano-registry", "--timeout=60s")
	mirror.push(t, l, "library/other:1")
	runs("without-registry", "other:1", "murano-kube-2")
	require.True(t, mirror.pulls("library/other ns=docker.io"), "the node asked the mirror itself: %v", mirror.pulled)
	c.kubectl(t, "", "scale", "-n", "kube-system", "deployment/burano-registry", "--replicas=1")
	serves()
	mirrors()
	require.NoError(t, mirror.server.Close())
	runs("without-mirror", "hello:1", "murano-kube-3")

	at := strings.TrimSpace(s.in(t, "murano-kube-2", "date --utc --date 'now + 5 minutes' +%H:%M"))
	deploy("\n    registryCollectAt: '" + at + "'")
	serves()
	archive := filepath.Join(t.TempDir(), "hello.tar")
	tag, err := name.NewTag("team/hello:1")
	require.NoError(t, err)
	image := l.demoImage(t)
	require.NoError(t, tarball.WriteToFile(archive, tag, image))
	burano("image", "push", archive, "--to", "groups")
	node := c.kubectl(t, "", "get", "pod", "-n", "kube-system", "-l", "app=burano-registry", "-o", "jsonpath={.items[0].spec.nodeName}")
	blobs := func() int {
		return len(strings.Fields(s.in(t, node, "find /var/lib/kubelet/pods -path '*/mount/docker/registry/v2/blobs/*' -name data")))
	}
	before := blobs()
	burano("image", "delete", "groups", "team/hello:1")
	require.Equal(t, before, blobs(), "what was deleted is there until "+at)
	began = time.Now()
	l.eventually(t, 8*time.Minute, "what was deleted is gone", func() error {
		if now := blobs(); now != before-2 {
			return fmt.Errorf("%d blobs, of %d", now, before)
		}
		return nil
	})
	t.Logf("it was gone %.0f s later; the time was %s: %s", time.Since(began).Seconds(), at, c.kubectl(t, "", "logs", "-n", "kube-system", "deployment/burano-registry"))
	runs("after", host+"/registry.local/demo:1", "murano-kube-3")
	t.Log(c.kubectl(t, "", "get", "pod", "-n", "kube-system", "-l", "app=burano-registry", "-o", "jsonpath={.items[0].status.containerStatuses[0].restartCount}"))

	burano("environment", "delete", "--yes", "groups")
	asBefore(t, demo, found)
}

// TestAClusterHasARegistryOfItsOwn pushes images to it from the command line. Pods on both nodes run them, before and after events of a
// cluster's life: restarts, a replaced node, another authority, removal and a new deployment.
func TestAClusterHasARegistryOfItsOwn(t *testing.T) {
	soakOnly(t, "`make soak` runs this")
	l := start(t)
	l.relaunch(t, watchful...)
	demo := l.user(t, "burano-demo")
	found := inventory(t, demo)
	cluster := twoMinions(t)
	with := func(lines string) string {
		return strings.Replace(cluster, "name: scaling-cluster", "name: scaling-cluster\n    "+lines, 1)
	}
	file := filepath.Join(t.TempDir(), "groups.yaml")
	try := func(model string) (string, error) {
		require.NoError(t, os.WriteFile(file, []byte(model), 0o600))
		return l.try(l.as("burano-demo"), "burano", "deploy", file, "--follow")
	}
	deploy := func(model string) string {
		t.Helper()
		output, err := try(model)
		require.NoError(t, err, output)
		return output
	}
	burano := func(args ...string) string {
		t.Helper()
		return l.run(t, l.as("burano-demo"), "burano", args...)
	}
	const storage = "storageClasses: [{name: burano-local, backend: local, default: true}]"
	again := l.nodeImageWithout(t, "burano_registry")
	output, err := try(with(storage + "\n    enableRegistry: true"))
	l.deleteIfFailed(t, "groups")
	require.Error(t, err, output)
	require.Contains(t, output, "image burano-node of node murano-kube-2 does not say that it has a registry, which enableRegistry needs")
	again()
	output, err = try(with("enableRegistry: true\n    registrySize: much"))
	require.Error(t, err, output)
	require.Contains(t, output, "the cluster has no storageClasses, so that nothing would keep what is pushed")
	require.Contains(t, output, `registrySize is "much"`)
	output, err = try(with(storage + "\n    enableRegistry: true\n    registryStorageClass: other"))
	require.Error(t, err, output)
	require.Contains(t, output, `registryStorageClass is "other", and storageClasses has no such class: name one of burano-local`)

	own := with(storage + "\n    enableRegistry: true\n    registrySize: 1Gi")
	const host = "registry.scaling-cluster.internal"
	output = deploy(own)
	require.Contains(t, output, "the registry "+host+" serves")
	environment := environmentNamed(t, demo, "groups")
	s := &scaling{lab: l, user: demo, cluster: l.clusterOf(t, demo, environment), environment: environment["id"].(string)}
	s.find(t)
	c := s.cluster
	require.Contains(t, burano("cluster", "show", "groups"), "REGISTRY  "+host)
	require.NotContains(t, deploy(own), "started", "the same again starts nothing")

	archive := filepath.Join(t.TempDir(), "hello.tar")
	const brought = host + "/registry.local/demo:1" // by the node image
	tag, err := name.NewTag("team/hello:1")
	require.NoError(t, err)
	image := l.demoImage(t)
	require.NoError(t, tarball.WriteToFile(archive, tag, image))
	digest, err := image.Digest()
	require.NoError(t, err)
	require.Contains(t, burano("image", "list", "groups"), brought)
	began := time.Now()
	output = burano("image", "push", archive, "--to", "groups")
	t.Logf("pushed in %.1f s:\n%s", time.Since(began).Seconds(), output)
	pushed := host + "/team/hello:1"
	require.Contains(t, output, "container image "+pushed+" ("+digest.String()+") is pushed")

	other := httptest.NewServer(registry.New())
	defer other.Close()
	elsewhere, err := name.ParseReference(strings.TrimPrefix(other.URL, "http://") + "/library/hello:2")
	require.NoError(t, err)
	require.NoError(t, remote.Write(elsewhere, l.demoImage(t)))
	burano("image", "copy", elsewhere.String(), "--to", "groups", "--platform", "linux/amd64")
	listed := burano("image", "list", "groups")
	require.Contains(t, listed, pushed+"  ")
	require.Contains(t, listed, host+"/hello:2  ")

	pulled := func(when string) {
		t.Helper()
		nodes := strings.Fields(c.kubectl(t, "", "get", "nodes", "-o", "jsonpath={.items[*].metadata.name}"))
		require.Len(t, nodes, 2)
		for _, node := range nodes {
			pod := "on-" + node
			c.kubectl(t, "", "run", pod, "--image="+pushed, "--image-pull-policy=Always", `--overrides={"spec":{"nodeName":"`+node+`"}}`)
			output, err := c.tryKubectl("", "wait", "--for=condition=Ready", "pod/"+pod, "--timeout=90s")
			require.NoErrorf(t, err, "%s: %s%s", when, output, c.kubectl(t, "", "describe", "pod", pod))
			c.kubectl(t, "", "delete", "pod", pod, "--now")
		}
	}
	pulled("at first")

	t.Run("nobody comes in without a password, and nodes cannot push", func(t *testing.T) {
		ask := func(arguments string) string {
			return strings.TrimSpace(s.in(t, "murano-kube-2", "curl --silent --output /dev/null --write-out %{http_code} --resolve "+host+":443:10.96.0.11 "+arguments+" || true"))
		}
		const ca = "--cacert /etc/burano/pki/kubernetes-ca.crt "
		require.Equal(t, "401", ask(ca+"https://"+host+"/v2/team/hello/manifests/1"))
		require.Equal(t, "000", ask("https://"+host+"/v2/"), "nobody else has signed its certificate")
		node := `--user "$(grep -oP '"` + host + `":\{"auth":"\K[^"]+' /var/lib/kubelet/config.json | base64 -d)" `
		require.Equal(t, "200", ask(ca+node+"https://"+host+"/v2/team/hello/manifests/1"))
		require.Equal(t, "401", ask(ca+node+"--request POST https://"+host+"/v2/team/hello/blobs/uploads/"))
		require.Equal(t, "401", ask(ca+node+"--request DELETE https://"+host+"/v2/team/hello/manifests/"+digest.String()))
		require.Equal(t, "401", ask(ca+"--user burano:guess https://"+host+"/v2/"))
	})

	t.Run("editors may push, and readers may not", func(t *testing.T) {
		may := func(group string) string {
			secret, _ := c.tryKubectl("", "auth", "can-i", "get", "secrets/burano-registry-login", "-n", "kube-system", "--as=somebody", "--as-group="+group)
			forward, _ := c.tryKubectl("", "auth", "can-i", "create", "pods", "--subresource=portforward", "-n", "kube-system", "--as=somebody", "--as-group="+group)
			return strings.Join(strings.Fields(secret+forward), " ")
		}
		require.Equal(t, "yes yes", may("burano:editors"))
		require.Equal(t, "no no", may("burano:readers"))
	})

	place := func() string {
		return c.kubectl(t, "", "get", "pod", "-n", "kube-system", "-l", "app=burano-registry", "-o", "jsonpath={.items[0].spec.nodeName}")
	}
	t.Run("its passwords are others, and images can be pulled meanwhile", func(t *testing.T) {
		login := func() string {
			return c.kubectl(t, "", "get", "secret", "-n", "kube-system", "burano-registry-login", "-o", "jsonpath={.data.username} {.data.password}")
		}
		node := func() string {
			return s.in(t, "murano-kube-2", `grep -oP '"`+host+`":\{"auth":"\K[^"]+' /var/lib/kubelet/config.json`)
		}
		asked := func(auth string) string {
			return strings.TrimSpace(s.in(t, "murano-kube-2", "curl --silent --output /dev/null --write-out %{http_code} --resolve "+host+":443:10.96.0.11 --cacert /etc/burano/pki/kubernetes-ca.crt "+
				"--header 'Authorization: Basic "+strings.TrimSpace(auth)+"' https://"+host+"/v2/team/hello/manifests/1 || true"))
		}
		formerLogin, formerNode, restarts := login(), node(), place()
		require.Equal(t, "200", asked(formerNode))
		began := c.kubectl(t, "", "get", "pod", "-n", "kube-system", "-l", "app=burano-registry", "-o", "jsonpath={.items[0].metadata.uid}")
		stop, ended := make(chan struct{}), make(chan error, 1)
		go func() { // pods that pull, one after the other
			for n := 0; ; n++ {
				select {
				case <-stop:
					ended <- nil
					return
				default:
				}
				pod := fmt.Sprintf("pulls-%d", n)
				output, err := c.tryKubectl("", "run", pod, "--image="+pushed, "--image-pull-policy=Always")
				if err == nil {
					output, err = c.tryKubectl("", "wait", "--for=condition=Ready", "pod/"+pod, "--timeout=90s")
				}
				if err == nil {
					output, err = c.tryKubectl("", "get", "events", "--field-selector", "involvedObject.name="+pod+",type=Warning", "-o", "jsonpath={.items[*].message}")
				}
				if err != nil || strings.Contains(output, "pull") {
					ended <- fmt.Errorf("%s: %s %w", pod, output, err)
					return
				}
				_, _ = c.tryKubectl("", "delete", "pod", pod, "--now")
			}
		}()
		s.act(t, "scaling-cluster", "rotate", map[string]any{"what": []string{"registry"}})
		close(stop)
		require.NoError(t, <-ended)
		require.Equal(t, restarts, place())
		require.Equal(t, began, c.kubectl(t, "", "get", "pod", "-n", "kube-system", "-l", "app=burano-registry", "-o", "jsonpath={.items[0].metadata.uid}"), "it has not begun anew")
		require.NotEqual(t, formerLogin, login())
		require.NotEqual(t, formerNode, node())
		require.Equal(t, "401", asked(formerNode))
		require.Equal(t, "200", asked(node()))
		require.Contains(t, burano("image", "list", "groups"), pushed)
		burano("image", "push", archive, "--to", "groups")
		s.act(t, "scaling-cluster", "rotate", map[string]any{"what": []string{"registry"}})
		require.Equal(t, "200", asked(node()))
		pulled("after the passwords were rotated twice")
	})
	t.Run("images are there when the node has started anew", func(t *testing.T) {
		burano("action", "call", "groups", "scaling-cluster", "rebootNode", "--arg", "node="+place(), "--follow")
		c.kubectl(t, "", "rollout", "status", "-n", "kube-system", "deployment/burano-registry", "--timeout=120s")
		pulled("after the restart of its node")
	})
	t.Run("the node with its volume is not replaced unless that was said", func(t *testing.T) {
		result, _ := s.call(t, "scaling-cluster", "replaceNode", map[string]any{"node": place()})
		require.Equal(t, true, result["isException"])
		require.Contains(t, fmt.Sprint(result["result"]), place()+": kube-system/burano-registry")
		larger := strings.ReplaceAll(own, "flavor: m1.medium", "flavor: m1.large")
		require.NoError(t, os.WriteFile(file, []byte(larger), 0o600))
		preview := burano("deploy", file, "--dry-run")
		require.Contains(t, preview, "cluster scaling-cluster: the deployment will be refused")
		require.Contains(t, preview, place()+": kube-system/burano-registry")
	})
	t.Run("another authority is no reason to stop", func(t *testing.T) {
		burano("action", "call", "groups", "scaling-cluster", "rotate", "--arg", `what=["kubernetes"]`, "--follow")
		burano("cluster", "kubeconfig", "groups", "--output", c.kubeconfig)
		pulled("after the rotation")
		require.Contains(t, burano("image", "list", "groups"), pushed)
	})
	t.Run("what is deleted gives its room back", func(t *testing.T) {
		blobs := func() int {
			volume := c.kubectl(t, "", "get", "pvc", "-n", "kube-system", "burano-registry", "-o", "jsonpath={.spec.volumeName}")
			return len(strings.Fields(s.in(t, place(), "find /var/lib/burano-volumes/"+volume+"/docker/registry/v2/blobs -name data")))
		}
		before := blobs()
		burano("image", "delete", "groups", "hello:2")
		require.NotContains(t, burano("image", "list", "groups"), "hello:2")
		pod := c.kubectl(t, "", "get", "pod", "-n", "kube-system", "-l", "app=burano-registry", "-o", "jsonpath={.items[0].metadata.name}")
		burano("cluster", "recreate-pod", "groups", pod, "-n", "kube-system")
		c.kubectl(t, "", "wait", "--for=delete", "-n", "kube-system", "pod/"+pod, "--timeout=60s")
		c.kubectl(t, "", "rollout", "status", "-n", "kube-system", "deployment/burano-registry", "--timeout=120s")
		require.Equal(t, before-2, blobs(), "manifest and configuration; the layer is the other image's, too")
		pulled("after the collection")
		output, err := l.try(l.as("burano-demo"), "burano", "image", "delete", "groups", "hello:2")
		require.Error(t, err)
		require.Contains(t, output, "the registry has no image "+host+"/hello:2")
	})
	t.Run("it ends, and is back with its images", func(t *testing.T) {
		require.Contains(t, deploy(with(storage+"\n    enableRegistry: false")), "the registry ended; what was pushed to it stays in the claim kube-system/burano-registry")
		output, err := l.try(l.as("burano-demo"), "burano", "image", "list", "groups")
		require.Error(t, err)
		require.Contains(t, output, "has no registry: set enableRegistry to true")
		require.NotContains(t, s.in(t, "murano-kube-2", "cat /etc/containerd/config.toml"), "config_path")
		c.kubectl(t, "", "create", "service", "clusterip", "squatter", "--clusterip=10.96.0.11", "--tcp=80")
		output, err = try(own)
		require.Error(t, err, output)
		require.Contains(t, output, "the Service default/squatter has the address 10.96.0.11, which is that of the cluster's registry")
		c.kubectl(t, "", "delete", "service", "squatter")
		require.Contains(t, deploy(own), "the registry "+host+" serves")
		pulled("after it was back")
	})
	t.Run("the node goes with it where that was said, and images can be pushed again", func(t *testing.T) {
		node := place()
		burano("action", "call", "groups", "scaling-cluster", "replaceNode", "--arg", "node="+node, "--arg", "loseVolumes=true", "--follow")
		require.Contains(t, deploy(own), "the registry does not serve: what was pushed to it was on the disk of "+node)
		c.kubectl(t, "", "delete", "pvc", "-n", "kube-system", "burano-registry", "--timeout=60s")
		deploy(own)
		list := burano("image", "list", "groups")
		require.NotContains(t, list, pushed)
		require.Contains(t, list, brought, "it comes back by itself")
		burano("image", "push", archive, "--to", "groups")
		pulled("from an empty one")
	})
	t.Run("on a volume of Cinder it follows to another node", func(t *testing.T) {
		if _, err := os.Stat("/dev/loop-control"); err != nil {
			t.Skipf("servers' volumes are loop devices, which this machine has not: %v", err)
		}
		burano("environment", "delegation", "set", "groups")
		deploy(with(storage + "\n    enableRegistry: false"))
		c.kubectl(t, "", "delete", "pvc", "-n", "kube-system", "burano-registry", "--timeout=60s")
		output := deploy(with(strings.Replace(storage, "]", ", {name: burano-cinder, backend: cinder}]", 1) + "\n    enableRegistry: true\n    registrySize: 1Gi\n    registryStorageClass: burano-cinder\n    keepVolumes: false"))
		require.Contains(t, output, "the registry "+host+" serves as soon as Cinder has made its volume")
		c.kubectl(t, "", "rollout", "status", "-n", "kube-system", "deployment/burano-registry", "--timeout=180s")
		burano("image", "push", archive, "--to", "groups")
		node := place()
		burano("action", "call", "groups", "scaling-cluster", "replaceNode", "--arg", "node="+node, "--follow")
		c.kubectl(t, "", "rollout", "status", "-n", "kube-system", "deployment/burano-registry", "--timeout=180s")
		require.NotEqual(t, node, place())
		pulled("from another node")
	})
	burano("environment", "delete", "--yes", "groups")
	asBefore(t, demo, found)
}

// nodeImageWithout removes a property of the node image, and returns the function that restores it.
func (l *lab) nodeImageWithout(t *testing.T, property string) (again func()) {
	t.Helper()
	client := l.user(t, "burano-admin").service(t, openstack.NewImageV2)
	pages, err := images.List(client, images.ListOpts{Name: "burano-node"}).AllPages(t.Context())
	require.NoError(t, err)
	list, err := images.ExtractImages(pages)
	require.NoError(t, err)
	require.Len(t, list, 1)
	says := func(change images.UpdateImageProperty) {
		change.Name = property
		require.NoError(t, images.Update(t.Context(), client, list[0].ID, images.UpdateOpts{change}).Err)
	}
	says(images.UpdateImageProperty{Op: images.RemoveOp})
	return func() {
		says(images.UpdateImageProperty{Op: images.AddOp, Value: list[0].Properties[property].(string)})
	}
}

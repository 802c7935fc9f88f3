package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// volumeUser is a pod without root rights that runs a script of bash's over a claim, and ends. It has the programs of its node, since no image of the tests has a
// shell.
const volumeUser = `
apiVersion: v1
kind: Pod
metadata: {name: %[1]s}
spec:
  restartPolicy: Never
  securityContext: %[2]s
  containers:
  - name: user
    image: registry.local/demo:1
    imagePullPolicy: IfNotPresent
    command: [/usr/bin/bash, -euc, '%[3]s']
    volumeMounts:
    - {name: data, mountPath: /data}
    - {name: usr, mountPath: /usr, readOnly: true}
    - {name: lib, mountPath: /lib, readOnly: true}
    - {name: lib64, mountPath: /lib64, readOnly: true}
  volumes:
  - {name: data, persistentVolumeClaim: {claimName: kept}}
  - {name: usr, hostPath: {path: /usr}}
  - {name: lib, hostPath: {path: /usr/lib}}
  - {name: lib64, hostPath: {path: /usr/lib64}}
`

const claimed = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: kept}
spec:
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 10Mi}}
`

// localVolumes gives an existing cluster, deployed from a file, local volumes, has pods use one, and removes all of it again. With BURANO_SOAK it deploys
// the same once more, and removes the class while there is a volume of it.
func localVolumes(t *testing.T, s *scaling, file string) {
	l, c := s.lab, s.cluster
	without, err := os.ReadFile(file)
	require.NoError(t, err)
	deploy := func(model string) string {
		t.Helper()
		require.NoError(t, os.WriteFile(file, []byte(model), 0o600))
		return l.run(t, l.as("burano-demo"), "burano", "deploy", file, "--follow")
	}
	with := strings.Replace(string(without), "name: scaling-cluster", "name: scaling-cluster\n    storageClasses: [{name: burano-local, backend: local, default: true}]", 1)
	log := deploy(with)
	require.Contains(t, log, "storage-controllers started")
	require.Contains(t, log, "storage-node started")
	for _, other := range []string{"kubelet", "containerd", "kube-apiserver", "kube-controller-manager", "burano-publish"} {
		require.NotContains(t, log, other+" started", "what runs goes on")
	}
	soak := soaking()
	if soak {
		require.NotContains(t, deploy(with), "storage-", "the same again starts nothing")
	}

	run := func(name, security, script string) {
		t.Helper()
		c.kubectl(t, fmt.Sprintf(volumeUser, name, security, script), "apply", "-f", "-")
		l.eventually(t, 2*time.Minute, "pod "+name+" ends", func() error {
			if phase := c.kubectl(t, "", "get", "pod", name, "-o", "jsonpath={.status.phase}"); phase != "Succeeded" {
				return fmt.Errorf("it is %s: %s", phase, c.kubectl(t, "", "describe", "pod", name))
			}
			return nil
		})
		c.kubectl(t, "", "delete", "pod", name)
	}
	c.kubectl(t, claimed, "apply", "-f", "-")
	began := time.Now()
	run("writer", "{runAsUser: 1000, runAsGroup: 1000, runAsNonRoot: true}", "echo kept > /data/file; ls -ln /data")
	t.Logf("written after %.1f s", time.Since(began).Seconds())
	run("reader", "{runAsUser: 1001, runAsGroup: 1001, fsGroup: 2000, runAsNonRoot: true}", "[[ $(</data/file) == kept ]]; echo more > /data/more")

	volume := c.kubectl(t, "", "get", "pvc", "kept", "-o", "jsonpath={.spec.volumeName}")
	node := c.kubectl(t, "", "get", "pv", volume, "-o", "jsonpath={.spec.csi.volumeAttributes.node}")
	content, err := c.on(node, "/bin/cat", "/var/lib/burano-volumes/"+volume+"/file")
	require.NoError(t, err, content)
	require.Equal(t, "kept\n", content)
	listed, err := c.on(node, "/usr/bin/stat", "-c", "%a %g", "/var/lib/burano-volumes", "/var/lib/burano-volumes/"+volume+"/more")
	require.NoError(t, err, listed)
	require.Regexp(t, `^700 0\n\d+ 2000\n$`, listed, "others do not look into it, and fsGroup counts")

	for action, arguments := range map[string]map[string]any{"scaleNodesDown": {"node": node}, "replaceNode": {"node": node}} {
		result, _ := s.call(t, "scaling-cluster", action, arguments)
		require.Equal(t, true, result["isException"], action)
		require.Contains(t, fmt.Sprint(result["result"]), "what these claims have would be lost")
		require.Contains(t, fmt.Sprint(result["result"]), node+": default/kept")
	}
	if soak {
		log = deploy(string(without))
		require.Contains(t, log, "no storage class has the back-end local any more, and these volumes of it stay: default/kept")
		run("later", "{runAsUser: 1000}", "[[ $(</data/file) == kept ]]")
	}

	c.kubectl(t, "", "delete", "pvc", "kept")
	l.eventually(t, time.Minute, "the volume is gone", func() error {
		if left := c.kubectl(t, "", "get", "pv", "-o", "name"); left != "" {
			return fmt.Errorf("there is %s", left)
		}
		return nil
	})
	listed, err = c.on(node, "/bin/ls", "-A", "/var/lib/burano-volumes")
	require.NoError(t, err, listed)
	require.Empty(t, listed, "what was in it is gone, too")
	log = deploy(string(without))
	require.Contains(t, log, "storage-node ended")
	require.Contains(t, log, "storage-controllers ended")
}

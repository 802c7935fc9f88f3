package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestWorkloadsOfEachKindRunOnACluster runs a stateful set and a cron job of the catalog's classes, which keep their volumes, and a pod with
// all kinds of limits together.
func TestWorkloadsOfEachKindRunOnACluster(t *testing.T) {
	soakOnly(t, "make soak runs this: it waits for the clock to have a cron job run; the objects that Kubernetes is given are tested as such")
	l := start(t)
	l.relaunch(t, "--keeper-interval", "3s")
	demo := l.user(t, "burano-demo")
	found := inventory(t, demo)
	text, err := os.ReadFile("testdata/kinds.yaml")
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "kinds.yaml")
	deploy := func(model string) string {
		t.Helper()
		require.NoError(t, os.WriteFile(file, []byte(model), 0o600))
		return l.run(t, l.as("burano-demo"), "burano", "deploy", file, "--follow")
	}
	began := time.Now()
	// A minute may begin meanwhile.
	require.Regexp(t, `The cron job tick (runs at \* \* \* \* \*; it has not run yet|runs since|ran last at)`, deploy(string(text)))
	t.Logf("cluster and workloads took %.1f s", time.Since(began).Seconds())
	l.deleteIfFailed(t, "kinds")
	environment := environmentNamed(t, demo, "kinds")
	s := &scaling{lab: l, user: demo, cluster: l.clusterOf(t, demo, environment), environment: environment["id"].(string)}

	t.Run("each replica of a stateful set keeps a volume of its own", s.keepsVolumes)
	t.Run("a cron job runs by the clock and keeps its volume", func(t *testing.T) {
		s.ranAtItsTime(t)
		require.Regexp(t, `The cron job tick ran last at \S+, and succeeded`, deploy(string(text)))
	})
	t.Run("a cron job that fails says why", func(t *testing.T) {
		broken := strings.Replace(string(text), "cat /data/runs", "echo the hand is broken; exit 3", 1)
		deploy(broken)
		s.runNow(t, "broken", "Failed")
		log := deploy(broken)
		require.Regexp(t, `The cron job tick ran last at \S+, and failed: `, log)
		require.Contains(t, log, "it ended with exit code 3 (Error)")
		require.Contains(t, log, "the hand is broken")
	})
	t.Run("a pod has its variables from the cluster, and its limits", func(t *testing.T) {
		guarded, err := os.ReadFile("testdata/guarded.yaml")
		require.NoError(t, err)
		s.cluster.kubectl(t, "", "create", "secret", "generic", "words", "--from-literal=first=pencil-and-paper")
		s.cluster.kubectl(t, "", "create", "configmap", "levels", "--from-literal=cell=deep", "--from-literal=first=high")
		deploy(string(text) + string(guarded))
		s.isGuarded(t)
		pods := func() string {
			return s.cluster.kubectl(t, "", "get", "pods", "-l", "id=guarded", "-o", podsThatStay)
		}
		former := pods()
		deploy(string(text) + string(guarded))
		require.Equal(t, former, pods(), "nothing has changed")
		s.cluster.kubectl(t, `{"data":{"cell":"deeper"}}`, "patch", "configmap", "levels", "--patch-file=/dev/stdin")
		plan, _ := l.try(l.as("burano-demo"), "burano", "deploy", file, "--dry-run") // exit code 2
		require.Regexp(t, `annotations\[burano.io/values\]: "configMap/levels=[0-9a-f]+, secret/words=([0-9a-f]+)" → "configMap/levels=`, plan)
		deploy(string(text) + string(guarded))
		require.Contains(t, s.cluster.kubectl(t, "", "logs", "deployment/guarded"), "level deeper", "pods have the new value")
	})

	t.Run("a pod has its files, and rolls only after its bootstrap", func(t *testing.T) { s.isMigrated(t, file, string(text)) })

	t.Run("a pod has a namespace of its own, with the strictest level that it keeps", func(t *testing.T) { s.hasNamespace(t, file, string(text)) })
	t.Run("pods of all nodes can have a share of Manila", func(t *testing.T) { s.isShared(t, file, string(text)) })
	t.Run("a container that ends is no success, and later a finding", func(t *testing.T) { s.isBrief(t, file, string(text)) })

	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "kinds")
	asBefore(t, demo, found)
}

func (s *scaling) keepsVolumes(t *testing.T) {
	lines := func(pod string) string {
		return s.cluster.kubectl(t, "", "exec", pod, "--", "/usr/bin/cat", "/data/log")
	}
	require.Equal(t, "book-0 began\n", lines("book-0"))
	s.act(t, "book", "scalePodUp", map[string]any{})
	require.Equal(t, "book-1 began\n", lines("book-1"))
	s.act(t, "book", "recreatePod", map[string]any{})
	require.Equal(t, "book-0 began\nbook-0 began\n", lines("book-0"))
	require.Equal(t, "book-1 began\nbook-1 began\n", lines("book-1"))
	s.act(t, "book", "scalePodDown", map[string]any{})
	s.lab.eventually(t, time.Minute, "the second replica ends", func() error {
		if pods := s.cluster.kubectl(t, "", "get", "pods", "-l", "id=book", "-o", "name"); strings.TrimSpace(pods) != "pod/book-0" {
			return fmt.Errorf("there are %s", pods)
		}
		return nil
	})
	require.Contains(t, s.cluster.kubectl(t, "", "get", "pvc", "-o", "name"), "book-1", "its data stay")
	s.act(t, "book", "scalePodUp", map[string]any{})
	require.Equal(t, strings.Repeat("book-1 began\n", 3), lines("book-1"))
}

// ranAtItsTime waits until the cron job has run by the clock, has it run once more, and reads the output of both on its volume.
func (s *scaling) ranAtItsTime(t *testing.T) {
	began := time.Now()
	s.lab.eventually(t, 2*time.Minute, "the clock has the cron job run", func() error {
		if last := s.cluster.kubectl(t, "", "get", "cronjob", "tick", "-o", "jsonpath={.status.lastSuccessfulTime}"); last == "" {
			return fmt.Errorf("it has not: %s", s.cluster.kubectl(t, "", "get", "job,pod", "-l", "id=tick"))
		}
		return nil
	})
	t.Logf("it ran after %.1f s", time.Since(began).Seconds())
	s.runNow(t, "again", "Complete")
	require.GreaterOrEqual(t, strings.Count(s.cluster.kubectl(t, "", "logs", "job/again"), "run"), 2, "the volume of the run before")
	result, _ := s.call(t, "tick", "getLogs", map[string]any{})
	require.GreaterOrEqual(t, len(result["result"].([]any)), 2)
}

// runNow runs the cron job outside its times, and waits for the expected end.
func (s *scaling) runNow(t *testing.T, name, end string) {
	t.Helper()
	s.cluster.kubectl(t, "", "create", "job", name, "--from=cronjob/tick")
	s.lab.eventually(t, time.Minute, "the run is "+end, func() error {
		if conditions := s.cluster.kubectl(t, "", "get", "job", name, "-o", "jsonpath={.status.conditions[*].type}"); !strings.Contains(conditions, end) {
			return fmt.Errorf("it is %q: %s", conditions, s.cluster.kubectl(t, "", "get", "pod", "-l", "job-name="+name))
		}
		return nil
	})
}

// podsThatStay is the output of kubectl with the names of pods that are not about to end.
const podsThatStay = `go-template={{range .items}}{{if not .metadata.deletionTimestamp}}{{.metadata.name}} {{end}}{{end}}`

// isMigrated changes a file of a pod's container: the bootstrap runs once for each text, a failed one leaves the pods alone, and a rollback has the former text.
func (s *scaling) isMigrated(t *testing.T, file, kinds string) {
	migrated, err := os.ReadFile("testdata/migrated.yaml")
	require.NoError(t, err)
	deploy := func(greeting string) (string, error) {
		require.NoError(t, os.WriteFile(file, []byte(kinds+strings.Replace(string(migrated), "GREETING", greeting, 1)), 0o600))
		return s.lab.try(s.lab.as("burano-demo"), "burano", "deploy", file, "--follow")
	}
	well := func(greeting string) string {
		t.Helper()
		log, err := deploy(greeting)
		require.NoError(t, err, log)
		return log
	}
	serves := func(greeting string) map[string]string {
		t.Helper()
		for pod := range strings.FieldsSeq(s.cluster.kubectl(t, "", "get", "pods", "-l", "id=migrated", "-o", podsThatStay)) {
			require.Equal(t, "serving "+greeting+", 440\n", s.cluster.kubectl(t, "", "logs", pod, "-c", "shop"))
		}
		return map[string]string{"before": s.cluster.kubectl(t, "", "get", "job", "migrated-shop-before", "-o", "jsonpath={.metadata.uid}"),
			"after": s.cluster.kubectl(t, "", "get", "job", "migrated-shop-after", "-o", "jsonpath={.metadata.uid}"),
			"pods":  s.cluster.kubectl(t, "", "get", "pods", "-l", "id=migrated", "-o", podsThatStay)}
	}
	require.NoError(t, os.WriteFile(file, []byte(kinds+string(migrated)), 0o600))
	plan, _ := s.lab.try(s.lab.as("burano-demo"), "burano", "deploy", file, "--dry-run")
	require.Contains(t, plan, "migrated begins when these are ready: ledger on books")
	log := well("hello")
	require.Contains(t, log, "The bootstrap migrated-shop-before runs; its limit is 2m0s")
	began := func(selector string) string {
		return s.cluster.kubectl(t, "", "get", "pods", "-l", selector, "-o", `jsonpath={.items[0].status.conditions[?(@.type=="Ready")].lastTransitionTime}`)
	}
	require.GreaterOrEqual(t, s.cluster.kubectl(t, "", "get", "job", "migrated-shop-before", "-o", "jsonpath={.metadata.creationTimestamp}"), began("id=books"),
		"the bootstrap begins when the ledger is ready")
	first := serves("hello")
	require.Equal(t, "shipping of shop\n", s.cluster.kubectl(t, "", "exec", "deployment/migrated", "-c", "shop", "--", "/usr/bin/cat", "/run/shop/shipped"), "its sidecar")
	agents := s.cluster.kubectl(t, "", "get", "pods", "-l", "id=agent", "-o", `jsonpath={range .items[*]}{.status.podIP} {.status.hostIP}{"\n"}{end}`)
	nodes := strings.Count(s.cluster.kubectl(t, "", "get", "nodes", "-o", "name"), "\n")
	require.Equal(t, nodes, strings.Count(agents, "\n"), "a pod on each node")
	for _, addresses := range strings.Fields(strings.ReplaceAll(agents, " ", "=")) {
		pod, host, _ := strings.Cut(addresses, "=")
		require.Equal(t, host, pod, "it has the network of its node")
	}
	require.Contains(t, s.cluster.kubectl(t, "", "logs", "daemonset/agent"), "the first process is systemd", "and its processes")
	require.Contains(t, s.cluster.kubectl(t, "", "logs", "job/migrated-shop-before"), "migrating to hello for pencil-and-paper\n1\n2\n3\n")
	require.Equal(t, "checked hello\n", s.cluster.kubectl(t, "", "logs", "job/migrated-shop-after"))
	require.NotContains(t, well("hello"), "The bootstrap")
	require.Equal(t, first, serves("hello"), "the same file changes nothing")

	log, err = deploy("broken")
	require.Error(t, err)
	require.Contains(t, log, "the bootstrap migrated-shop-before failed, so that nothing after it begins and former pods serve on")
	require.Contains(t, log, "migrating to broken for *** SANITIZED ***\n1\n2\n3\nbroken")
	require.Equal(t, first["pods"], serves("hello")["pods"])
	require.Contains(t, s.cluster.kubectl(t, "", "logs", "job/migrated-shop-before"), "migrating to broken", "the failed pod stays")

	require.NoError(t, os.WriteFile(file, []byte(kinds+strings.Replace(string(migrated), "demo:1\n    host: books", "Demo:1\n    host: books", 1)), 0o600))
	log, err = s.lab.try(s.lab.as("burano-demo"), "burano", "deploy", file, "--follow")
	require.Error(t, err)
	require.Contains(t, log, "migrated did not begin: shop on migrated depends on ledger on books, which did not become ready: ")
	require.Equal(t, first["pods"], serves("hello")["pods"], "former pods serve on")

	well("welcome")
	second := serves("welcome")
	require.NotEqual(t, first["before"], second["before"])
	require.NotEqual(t, first["after"], second["after"])
	require.Equal(t, "2", strings.TrimSpace(s.cluster.kubectl(t, "", "get", "configmap", "-l", "burano.io/container=shop", "-o", "go-template={{len .items}}")),
		"hello and welcome: nothing refers to broken any more")
	require.Contains(t, fmt.Sprint(s.act(t, "migrated", "rollback", map[string]any{})["warning"]), "The model of pod migrated says otherwise: the files")
	serves("hello")

	require.NoError(t, os.WriteFile(file, []byte(kinds), 0o600))
	log = s.lab.run(t, s.lab.as("burano-demo"), "burano", "deploy", file, "--follow")
	require.Regexp(t, "Pod migrated (ends before the pods that it depends on|depends on pod books, and ends before it)", log)
	require.Empty(t, s.cluster.kubectl(t, "", "get", "pods", "-l", "id in (migrated, books, agent)", "-o", podsThatStay))
}

// hasNamespace has a pod in a namespace that Burano makes and deletes.
func (s *scaling) hasNamespace(t *testing.T, file, kinds string) {
	market, err := os.ReadFile("testdata/market.yaml")
	require.NoError(t, err)
	deploy := func(changes []string, flags ...string) (string, error) {
		t.Helper()
		require.NoError(t, os.WriteFile(file, []byte(kinds+strings.NewReplacer(changes...).Replace(string(market))), 0o600))
		return s.lab.try(s.lab.as("burano-demo"), "burano", append([]string{"deploy", file}, flags...)...)
	}
	plan, err := deploy(nil, "--dry-run")
	require.NoError(t, err, plan)
	require.Regexp(t, `Namespace\W+market`, plan)
	log, err := deploy(nil, "--follow")
	require.NoError(t, err, log)
	require.Contains(t, log, "Namespace market has the level restricted of Pod Security")
	require.Equal(t, "restricted", s.cluster.kubectl(t, "", "get", "namespace", "market", "-o", `jsonpath={.metadata.labels.pod-security\.kubernetes\.io/enforce}`))
	require.Equal(t, "1", s.cluster.kubectl(t, "", "-n", "market", "get", "deployment", "stall", "-o", "jsonpath={.status.availableReplicas}"))
	address := s.published(t, &applications{lab: s.lab, user: s.user}, "fruit")
	require.Contains(t, page(t, "http://"+address+"/"), "Hello from market")
	log, err = deploy(nil, "--dry-run")
	require.NoError(t, err, "nothing has changed: %s", log)
	result, _ := s.call(t, "stall", "getLogs", map[string]any{})
	require.Len(t, result["result"], 1)
	s.act(t, "stall", "recreatePod", map[string]any{})
	s.act(t, "stall", "restartContainers", map[string]any{})

	for changed, refused := range map[[2]string]string{
		{"namespace: market", "namespace: mall"}:                                           "pod stall is in namespace market and cannot move to mall",
		{"allowPrivilegeEscalation: false", "allowPrivilegeEscalation: true"}:              "",
		{"replicas: 1\n", "replicas: 1\n    podSecurity: restricted\n    hostPid: true\n"}: "pod stall breaks the level restricted of Pod Security, which pod stall gives namespace market: host namespaces (hostPID=true)",
	} {
		plan, err := deploy(changed[:], "--dry-run")
		require.Equal(t, refused != "", err != nil, plan)
		if refused == "" {
			require.Contains(t, plan, `"restricted" → "baseline"`)
		} else {
			require.Contains(t, plan, refused)
		}
	}
	require.NoError(t, os.WriteFile(file, []byte(kinds), 0o600))
	plan, _ = s.lab.try(s.lab.as("burano-demo"), "burano", "deploy", file, "--dry-run")
	require.Regexp(t, `Namespace\W+market`, plan)
	s.lab.run(t, s.lab.as("burano-demo"), "burano", "deploy", file, "--follow")
	s.lab.eventually(t, time.Minute, "the namespace goes with its pod", func() error {
		if left := s.cluster.kubectl(t, "", "get", "namespace", "market", "--ignore-not-found"); left != "" {
			return fmt.Errorf("there is %s", left)
		}
		return nil
	})
}

// isShared gives a pod a volume of a class that pods of all nodes can use. No pod mounts it: the shares of the local cloud have no server.
func (s *scaling) isShared(t *testing.T, file, kinds string) {
	shared, err := os.ReadFile("testdata/shared.yaml")
	require.NoError(t, err)
	deploy := func(of string, flags ...string) (string, error) {
		require.NoError(t, os.WriteFile(file, []byte(kinds+strings.Replace(string(shared), "accessMode: readWriteMany", of, 1)), 0o600))
		return s.lab.try(s.lab.as("burano-demo"), "burano", append([]string{"deploy", file}, flags...)...)
	}
	plan, err := deploy("accessMode: readWriteMany", "--dry-run")
	require.Error(t, err)
	require.Contains(t, plan, "pod yearly wants the persistent volume yearly-bell--data with accessMode readWriteMany, and volumes of the cluster's default storage class are used by one node at a time: "+
		"name one of burano-manila in storageClass")
	s.lab.run(t, s.lab.as("burano-demo"), "burano", "environment", "delegation", "set", "kinds")
	log, err := deploy("accessMode: readWriteMany, storageClass: burano-manila", "--follow")
	require.NoError(t, err, log)
	s.cluster.kubectl(t, "", "create", "job", "now", "--from=cronjob/yearly") // a share is made when a pod wants it
	s.lab.eventually(t, 2*time.Minute, "the claim has its share", func() error {
		if is := s.cluster.kubectl(t, "", "get", "pvc", "yearly-bell--data", "-o", "jsonpath={.status.phase} {.status.accessModes[*]}"); is != "Bound ReadWriteMany" {
			return fmt.Errorf("it is %s", is)
		}
		return nil
	})
	s.cluster.kubectl(t, "", "delete", "job", "now", "--cascade=foreground", "--timeout=2m")
	plan, err = deploy("storageClass: burano-manila", "--dry-run")
	require.Error(t, err)
	require.Contains(t, plan, "claim yearly-bell--data has the accessMode readWriteMany and cannot get readWriteOnce: put readWriteMany back")

	require.NoError(t, os.WriteFile(file, []byte(kinds), 0o600))
	s.lab.run(t, s.lab.as("burano-demo"), "burano", "deploy", file, "--follow")
	s.lab.eventually(t, 2*time.Minute, "the share goes with the pod", func() error {
		if left := s.cluster.kubectl(t, "", "get", "pv", "-o", `jsonpath={.items[?(@.spec.storageClassName=="burano-manila")].metadata.name}`); left != "" {
			return fmt.Errorf("there are %s", left)
		}
		return nil
	})
	s.lab.run(t, s.lab.as("burano-demo"), "burano", "environment", "delegation", "revoke", "kinds")
}

// isBrief has a container without a probe end after it has counted, and then at once.
func (s *scaling) isBrief(t *testing.T, file, kinds string) {
	brief, err := os.ReadFile("testdata/brief.yaml")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, []byte(kinds+string(brief)), 0o600))
	s.lab.run(t, s.lab.as("burano-demo"), "burano", "deploy", file, "--follow")
	require.Equal(t, "5", s.cluster.kubectl(t, "", "get", "deployment", "brief", "-o", "jsonpath={.spec.minReadySeconds}"))
	s.finds(t, "container-crashes")
	found := fmt.Sprint(s.user.must(t, http.MethodGet, "/burano/v1/environments/"+s.environment+"/findings", nil)["findings"])
	require.Contains(t, found, "container candle of pod brief")
	require.Contains(t, found, "it ended with exit code 3 (Error), and was started again")
	require.Contains(t, found, "the wick is short")

	require.NoError(t, os.WriteFile(file, []byte(kinds+strings.Replace(string(brief), "sleep 8; ", "", 1)), 0o600))
	log, err := s.lab.try(s.lab.as("burano-demo"), "burano", "deploy", file, "--follow")
	require.Error(t, err)
	require.Contains(t, log, "pod brief does not run: container candle of brief-")
	require.Contains(t, log, "it ended with exit code 3 (Error)")
}

func (s *scaling) isGuarded(t *testing.T) {
	result, _ := s.call(t, "guarded", "getLogs", map[string]any{})
	all := result["result"].([]any)
	require.Len(t, all, 2)
	for _, one := range all {
		wrote := one.(map[string]any)["text"].(string)
		require.Contains(t, wrote, "first was user 1001, level high\n")
		require.Contains(t, wrote, "user 1000, groups 1000 2000, level deep, word ")
		require.NotContains(t, wrote, "pencil-and-paper", "a log does not tell a secret of the cluster")
		require.Contains(t, wrote, "/spoilt: Read-only file system")
		require.Regexp(t, `CapBnd:\s+0{16}`, wrote)
	}
	require.Contains(t, s.cluster.kubectl(t, "", "logs", "deployment/guarded"), "word pencil-and-paper")
	require.Equal(t, "0 1", s.cluster.kubectl(t, "", "get", "deployment", "guarded", "-o", "jsonpath={.spec.strategy.rollingUpdate.maxSurge} {.spec.strategy.rollingUpdate.maxUnavailable}"))
	s.act(t, "guarded", "recreatePod", map[string]any{})
	require.Equal(t, "2 of 2", s.cluster.kubectl(t, "", "get", "deployment", "guarded", "-o", "jsonpath={.status.updatedReplicas} of {.status.replicas}"))
}

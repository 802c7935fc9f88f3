package e2e

import (
	"archive/zip"
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cgi"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/images"
)

// TestApplicationsOfTheCatalogRunOnACluster has images of applications made of Debian's packages, pushed, and deployed with nothing else than
// Glance, and uses each application by its protocol.
func TestApplicationsOfTheCatalogRunOnACluster(t *testing.T) {
	soakOnly(t, "make soak runs this: it installs Debian's packages for each image; TestActionsChangeWhatRuns brings an image of Glance to nodes")
	l := start(t)
	demo := l.user(t, "burano-demo")
	found := inventory(t, demo)
	output, err := l.try(l.as("burano-demo"), "burano", "deploy", "test/e2e/testdata/catalog.yaml", "--follow")
	require.Error(t, err, output)
	require.Contains(t, output, "Glance has no container image glance.local/nginx:1.22 that the project sees: build it (burano image build-from nginx)")
	for _, kind := range []string{"servers", "stacks", "ports"} {
		require.Equal(t, found[kind], inventory(t, demo)[kind], "it was refused before anything was made")
	}
	l.pushApplications(t, catalogImages...)
	began := time.Now()
	log := l.run(t, l.as("burano-demo"), "burano", "deploy", "test/e2e/testdata/catalog.yaml", "--follow")
	l.deleteIfFailed(t, "catalog")
	t.Logf("cluster and applications took %.1f s", time.Since(began).Seconds())
	for _, name := range catalogImages {
		require.Contains(t, log, "murano-kube-2: container image glance.local/"+name)
	}
	environment := environmentNamed(t, demo, "catalog")
	s := &scaling{lab: l, user: demo, cluster: l.clusterOf(t, demo, environment), environment: environment["id"].(string)}
	a := &applications{lab: l, user: demo}

	t.Run("nginx and httpd serve their pages", func(t *testing.T) {
		for application, page := range map[string]string{"pages": "<h1>A page of nginx</h1>\n", "papers": "<h1>A page of httpd</h1>\n"} {
			text, err := get("http://" + s.published(t, a, application) + "/")
			require.NoError(t, err)
			require.Equal(t, page, text)
		}
	})

	t.Run("web servers take directives, and wrong ones leave their pods alone", func(t *testing.T) { s.isConfigured(t, a) })
	t.Run("a database gets its schema, and keeps its pod", func(t *testing.T) { s.hasSchema(t, a) })

	t.Run("PostgreSQL keeps its data, and takes another password", func(t *testing.T) {
		shown, _ := s.call(t, "ledger", "showPassword", map[string]any{})
		password := shown["result"].(string)
		require.Len(t, password, 30)
		require.NotContains(t, log, password)
		require.NotContains(t, s.cluster.kubectl(t, "", "get", "deployment,pod", "-o", "yaml"), password)
		database := s.published(t, a, "ledger")
		require.Empty(t, rows(t, database, password, "CREATE TABLE entries (line text)"))
		require.Empty(t, rows(t, database, password, "INSERT INTO entries VALUES ('kept')"))
		s.act(t, "db", "recreatePod", map[string]any{})
		require.Equal(t, "kept", rows(t, database, password, "SELECT line FROM entries"))

		task, log := s.changed(t, a, "ledger", func(ledger map[string]any) { ledger["password"] = "it's \"mine\" \\ now" })
		require.Equal(t, "success", task["state"], log)
		require.NotContains(t, log, "it's")
		require.Equal(t, "kept", rows(t, database, "it's \"mine\" \\ now", "SELECT line FROM entries"))
		_, err := query(t.Context(), database, password, "SELECT 1")
		require.ErrorContains(t, err, "password authentication failed")
	})

	t.Run("PostgreSQL goes to another version of its package and back, with its data", func(t *testing.T) {
		const password = "it's \"mine\" \\ now"
		database := s.published(t, a, "ledger")
		volume := func() string {
			t.Helper()
			return s.cluster.kubectl(t, "", "get", "pvc", "-o", `jsonpath={range .items[*]}{.metadata.name} {.metadata.uid} {.spec.volumeName}{"\n"}{end}`)
		}
		container := func() string {
			t.Helper()
			return s.cluster.kubectl(t, "", "get", "deployment", "db", "-o", `jsonpath={.spec.template.spec.containers[?(@.name=="ledger")].env[?(@.name=="PGTZ")].value}`)
		}
		others := func() string {
			t.Helper()
			return s.cluster.kubectl(t, "", "get", "pods", "-l", "id in (files,web)", "-o", "name")
		}
		found, running := volume(), others()
		to := func(version string) (state any, log string) {
			t.Helper()
			task, log := s.changed(t, a, "ledger", func(ledger map[string]any) {
				ledger["?"].(map[string]any)["type"] = "io.burano.PostgreSQL/" + version + "@io.burano.PostgreSQL"
			})
			return task["state"], log
		}
		l.importVersion(t, "io.burano.PostgreSQL", "1.1.0", map[string]string{"dict(POSTGRES_DB => $.database)": "dict(POSTGRES_DB => $.database, PGTZ => UTC)"})

		state, log := to("1.1.0")
		require.Equal(t, "success", state, log)
		require.Equal(t, "UTC", container())
		require.Equal(t, "kept", rows(t, database, password, "SELECT line FROM entries"))
		require.Equal(t, found, volume())
		require.Equal(t, running, others(), "nobody else's pods are made anew")

		l.importVersion(t, "io.burano.PostgreSQL", "1.2.0", map[string]string{"image: $.image": "image: 'glance.local/nothing:1'"})
		state, log = to("1.2.0")
		require.Equal(t, "completed_w_errors", state, log)
		require.Contains(t, log, "glance.local/nothing:1")
		require.Equal(t, "kept", rows(t, database, password, "SELECT line FROM entries"), "it was refused before anything changed")

		state, log = to("1.0.0")
		require.Equal(t, "success", state, log)
		require.Empty(t, container())
		require.Equal(t, "kept", rows(t, database, password, "SELECT line FROM entries"))
		require.Equal(t, found, volume())
	})

	t.Run("the guestbook keeps in PostgreSQL what visitors write", func(t *testing.T) {
		page := "http://" + s.published(t, a, "guestbook") + "/"
		response, err := http.PostForm(page, url.Values{"entry": {"<b>I was here"}}) // follows to the page
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, http.StatusOK, response.StatusCode)
		s.act(t, "front", "recreatePod", map[string]any{})
		// The former pods end at once when they get SIGTERM, and gateways learn of it a moment later.
		l.eventually(t, 10*time.Second, "the guestbook answers", func() error {
			_, err := get(page)
			return err
		})
		for range 4 { // of both replicas
			text, err := get(page)
			require.NoError(t, err)
			require.Contains(t, text, "<li>&lt;b&gt;I was here</li>")
		}
	})

	t.Run("MariaDB keeps its data", func(t *testing.T) {
		shown, _ := s.call(t, "goods", "showPassword", map[string]any{})
		open := func(password string) *sql.DB {
			settings := mysql.NewConfig()
			settings.User, settings.Passwd, settings.Net, settings.Addr, settings.DBName = "root", password, "tcp", s.published(t, a, "goods"), "goods"
			connector, err := mysql.NewConnector(settings)
			require.NoError(t, err)
			database := sql.OpenDB(connector)
			t.Cleanup(func() { require.NoError(t, database.Close()) })
			return database
		}
		database := open(shown["result"].(string))
		for _, statement := range []string{"CREATE TABLE entries (line text)", "INSERT INTO entries VALUES ('kept')"} {
			_, err := database.ExecContext(t.Context(), statement)
			require.NoError(t, err)
		}
		s.act(t, "shop", "recreatePod", map[string]any{})
		var line string
		l.eventually(t, 10*time.Second, "MariaDB answers", func() error {
			return open(shown["result"].(string)).QueryRowContext(t.Context(), "SELECT line FROM entries").Scan(&line)
		})
		require.Equal(t, "kept", line)
		require.ErrorContains(t, open("").PingContext(t.Context()), "Access denied")
	})

	t.Run("Redis keeps its keys", func(t *testing.T) {
		address := s.published(t, a, "carts")
		const login = `"with \"quotes\" \\ and more"`
		require.Contains(t, redis(t, address, "GET cart"), "NOAUTH")
		require.Equal(t, "+OK +OK", redis(t, address, "AUTH "+login, "SET cart kept"))
		s.act(t, "shop", "recreatePod", map[string]any{})
		require.Equal(t, "+OK $4 kept", redis(t, address, "AUTH "+login, "GET cart"))
	})

	t.Run("a node that joins has the images before it takes pods", func(t *testing.T) {
		lines := s.act(t, "catalog-cluster", "scaleNodesUp", map[string]any{})
		for _, name := range catalogImages {
			require.Contains(t, strings.Join(lines["info"], "\n"), "murano-kube-3: container image glance.local/"+name)
		}
		s.cluster.kubectl(t, "", "cordon", "murano-kube-2")
		s.act(t, "web", "recreatePod", map[string]any{})
		page, err := get("http://" + s.published(t, a, "pages") + "/")
		require.NoError(t, err)
		require.Equal(t, "<h1>A page of nginx</h1>\n", page)
		require.Equal(t, "murano-kube-3", s.cluster.kubectl(t, "", "get", "pod", "-l", "id=web", "--sort-by=.metadata.creationTimestamp", "-o", "jsonpath={.items[-1:].spec.nodeName}"),
			"the former one may still be ending")
		s.cluster.kubectl(t, "", "uncordon", "murano-kube-2")
	})

	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "catalog")
	asBefore(t, demo, found)
}

func (s *scaling) isConfigured(t *testing.T, a *applications) {
	directives := func(application, text string) (state any, log string) {
		t.Helper()
		task, log := s.changed(t, a, application, func(described map[string]any) { described["configuration"] = text })
		return task["state"], log
	}
	for application, is := range map[string]struct{ right, wrong, refused string }{
		"pages":  {"location = /copy { alias /srv/www/index.html; }", "no_such_directive on;", `unknown directive "no_such_directive"`},
		"papers": {"LoadModule alias_module /usr/lib/apache2/modules/mod_alias.so\nAlias /copy /srv/www/index.html", "NoSuchDirective on", "Invalid command 'NoSuchDirective'"},
	} {
		address := "http://" + s.published(t, a, application)
		state, log := directives(application, is.right)
		require.Equal(t, "success", state, log)
		front := page(t, address+"/")
		require.Equal(t, front, page(t, address+"/copy"))
		host := map[string]string{"pages": "web", "papers": "files"}[application]
		pods := s.cluster.kubectl(t, "", "get", "pods", "-l", "id="+host, "-o", podsThatStay)
		state, log = directives(application, is.wrong)
		require.NotEqual(t, "success", state)
		require.Contains(t, log, "the bootstrap "+host+"-"+application+"-before failed, so that nothing after it begins and former pods serve on")
		require.Contains(t, log, is.refused)
		require.Equal(t, pods, s.cluster.kubectl(t, "", "get", "pods", "-l", "id="+host, "-o", podsThatStay))
		require.Equal(t, front, page(t, address+"/copy"))
		state, log = directives(application, "")
		require.Equal(t, "success", state, log)
		_, err := get(address + "/copy")
		require.ErrorContains(t, err, "404")
	}
}

func (s *scaling) hasSchema(t *testing.T, a *applications) {
	shown, _ := s.call(t, "ledger", "showPassword", map[string]any{})
	database, password := s.published(t, a, "ledger"), shown["result"].(string)
	pods := func() string {
		return s.cluster.kubectl(t, "", "get", "pods", "-l", "id in (db, shop)", "-o", podsThatStay)
	}
	schema := func(application, text string) (state any, log string) {
		t.Helper()
		task, log := s.changed(t, a, application, func(described map[string]any) { described["schema"] = text })
		return task["state"], log
	}
	former := pods()
	const goods = "CREATE TABLE IF NOT EXISTS goods (name text);\n"
	for range 2 { // the same schema does not run again
		state, log := schema("ledger", goods+"INSERT INTO goods VALUES ('it''s \"here\" $1')")
		require.Equal(t, "success", state, log)
		require.Equal(t, "it's \"here\" $1", rows(t, database, password, "SELECT name FROM goods"))
	}
	state, log := schema("ledger", goods+"INSERT INTO goods VALUES ('half'); INSERT INTO nothing VALUES (1)")
	require.NotEqual(t, "success", state)
	require.Contains(t, log, `relation "nothing" does not exist`)
	require.Equal(t, "1", rows(t, database, password, "SELECT count(*)::text FROM goods"), "all of it, or nothing")
	state, log = schema("ledger", "DROP TABLE goods")
	require.Equal(t, "success", state, log)
	state, log = schema("goods", "CREATE TABLE IF NOT EXISTS shelves (id int); INSERT INTO shelves VALUES (7)")
	require.Equal(t, "success", state, log)
	state, log = schema("goods", "DROP TABLE shelves; DROP TABLE shelves")
	require.NotEqual(t, "success", state)
	require.Contains(t, log, "Unknown table 'goods.shelves'", "the first had dropped it")
	for _, application := range []string{"goods", "ledger"} { // the deployment of one fails while the schema of the other one does
		state, log = schema(application, "")
		require.Equal(t, "success", state, log)
	}
	require.Equal(t, former, pods(), "no pod was made anew")
}

// catalogImages and webImages are the images that the tests of applications run: together all that come with Burano.
var (
	catalogImages = []string{"guestbook", "httpd", "mariadb", "nginx", "postgresql", "redis"}
	webImages     = []string{"git", "httpd", "nginx", "prometheus", "tomcat"}
)

// pushApplications builds container images of Debian's packages, and uploads them to Glance.
func (l *lab) pushApplications(t *testing.T, names ...string) {
	folder := t.TempDir()
	for _, name := range names {
		file := filepath.Join(folder, name+".tar")
		t.Log(l.run(t, nil, "burano", "image", "build-from", name, "--output", file))
		require.Contains(t, l.run(t, l.as("burano-demo"), "burano", "image", "push", file), "is pushed")
		require.Contains(t, l.run(t, l.as("burano-demo"), "burano", "image", "push", file), "is there already")
		require.NoError(t, os.Remove(file))
	}
}

// documents is MongoDB, of an image that no registry here has.
const documents = `
  - "?": {type: com.mirantis.docker.kubernetes.KubernetesPod, id: documents}
    name: documents
    kubernetesCluster: cluster
    replicas: 1

  - "?": {type: io.burano.PublicImage}
    name: papers
    host: documents
    kind: MongoDB
    size: ""
`

// TestSitesServletsAndMetricsOfTheCatalogRunOnACluster has sites of a git repository, Tomcat and Prometheus on a cluster, and uses each by its protocol.
func TestSitesServletsAndMetricsOfTheCatalogRunOnACluster(t *testing.T) {
	soakOnly(t, "make soak runs this: it installs Debian's packages for each image, and waits minutes for a repository that is not there")
	require.ElementsMatch(t, images.Applications(), slices.Compact(slices.Sorted(slices.Values(slices.Concat(catalogImages, webImages, []string{"glance", "keystone", "memcached", "neutron", "nova", "placement", "rabbitmq"})))), "each image is run by a test")
	l := start(t)
	demo := l.user(t, "burano-demo")
	found := inventory(t, demo)
	l.pushApplications(t, webImages...)
	repository := newRepository(t)
	text, err := os.ReadFile("testdata/sites.yaml")
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "sites.yaml")
	require.NoError(t, os.WriteFile(file, bytes.ReplaceAll(text, []byte("REPOSITORY"), []byte(repository.address)), 0o600))
	began := time.Now()
	l.run(t, l.as("burano-demo"), "burano", "deploy", file, "--follow")
	l.deleteIfFailed(t, "sites")
	t.Logf("cluster and applications took %.1f s", time.Since(began).Seconds())
	environment := environmentNamed(t, demo, "sites")
	s := &scaling{lab: l, user: demo, cluster: l.clusterOf(t, demo, environment), environment: environment["id"].(string)}
	a := &applications{lab: l, user: demo}

	t.Run("Tomcat keeps the applications that are deployed to it", func(t *testing.T) {
		shown, _ := s.call(t, "servlets", "showPassword", map[string]any{})
		sum := func() {
			l.eventually(t, time.Minute, "the page is compiled and answers", func() error {
				text, err := get("http://" + s.published(t, a, "servlets") + "/sum/")
				if err == nil && text != "6 times 7 is 42\n" {
					err = fmt.Errorf("it is %q", text)
				}
				return err
			})
		}
		server := "http://" + s.published(t, a, "servlets")
		text, err := get(server + "/")
		require.NoError(t, err)
		require.Contains(t, text, "<h1>Tomcat runs</h1>")
		require.Contains(t, deployWAR(t, server, "admin", "wrong"), "401")
		require.Contains(t, deployWAR(t, server, "admin", shown["result"].(string)), "OK - Deployed application at context path [/sum]")
		sum()
		s.act(t, "java", "recreatePod", map[string]any{})
		sum()
	})

	t.Run("sites are what their repositories have", func(t *testing.T) {
		leaflet, booklet := "http://"+s.published(t, a, "leaflet"), "http://"+s.published(t, a, "booklet")
		require.Equal(t, "first leaflet\n", page(t, leaflet+"/"))
		require.Equal(t, "stable\n", page(t, booklet+"/version"))
		for _, hidden := range []string{leaflet + "/.git/config", booklet + "/.git/config"} {
			_, err := get(hidden)
			require.ErrorContains(t, err, "404")
		}
		repository.commit(t, "second leaflet")
		require.Equal(t, "first leaflet\n", page(t, leaflet+"/"), "nobody has asked for another")
		load := startLoad(t, strings.TrimPrefix(leaflet, "http://"))
		s.act(t, "leaflet", "updateSite", map[string]any{})
		load.end()
		t.Logf("%s", load)
		for _, failed := range load.failed {
			require.Contains(t, failed.String(), "keep-alive", "nginx ends connections that wait for another request when it ends, and refuses no new one")
		}
		require.Equal(t, "second leaflet\n", page(t, leaflet+"/"))

		began := time.Now()
		task, log := s.changed(t, a, "leaflet", func(leaflet map[string]any) {
			leaflet["siteRepo"] = strings.Replace(repository.address, "pages", "nowhere", 1)
		})
		require.NotEqual(t, "success", task["state"])
		require.Regexp(t, `container leaflet-files of leaves-\S+: it ended with exit code 1 \(Error\)`, log)
		require.Regexp(t, `the repository http://\S+/nowhere.git cannot be had`, log)
		t.Logf("a wrong repository was said after %.1f s", time.Since(began).Seconds())
		require.Equal(t, "second leaflet\n", page(t, leaflet+"/"), "what there was goes on")
		task, log = s.changed(t, a, "leaflet", func(leaflet map[string]any) { leaflet["siteRepo"] = repository.address })
		require.Equal(t, "success", task["state"], log)
	})

	t.Run("Prometheus has the metrics of the cluster, and may do nothing else", func(t *testing.T) { s.watches(t, s.published(t, a, "prometheus")) })

	t.Run("an image that no registry gives is refused with the reason", func(t *testing.T) {
		model, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, append(model, documents...), 0o600))
		began := time.Now()
		output, err := l.try(l.as("burano-demo"), "burano", "deploy", file, "--follow")
		require.Error(t, err, output)
		require.Regexp(t, `container papers of documents-\S+: its image \S*mongo:7.0 cannot be pulled`, output)
		t.Logf("it was said after %.1f s", time.Since(began).Seconds())
	})

	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "sites")
	asBefore(t, demo, found)
}

// importVersion gives the project another version of a package of the catalog, whose classes have other texts.
func (l *lab) importVersion(t *testing.T, name, version string, changes map[string]string) {
	t.Helper()
	folder := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.CopyFS(folder, os.DirFS(filepath.Join("../../catalog/apps", name))))
	changed := 0
	replace := func(file string, changes map[string]string) {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		text := string(content)
		for from, to := range changes {
			changed += strings.Count(text, from)
			text = strings.ReplaceAll(text, from, to)
		}
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	classes, err := filepath.Glob(filepath.Join(folder, "Classes", "*.yaml"))
	require.NoError(t, err)
	for _, file := range classes {
		replace(file, changes)
	}
	replace(filepath.Join(folder, "manifest.yaml"), map[string]string{"Version: 1.0.0": "Version: " + version})
	require.Equal(t, len(changes)+1, changed)
	l.run(t, l.as("burano-demo"), "burano", "package", "import", "--exists-action", "u", folder)
}

// published is an application's address for clients outside.
func (s *scaling) published(t *testing.T, a *applications, name string) string {
	t.Helper()
	return endpointOf(t, map[string]any{"services": []any{a.application(t, s.environment, name)}})
}

func page(t *testing.T, address string) string {
	t.Helper()
	text, err := get(address)
	require.NoError(t, err)
	return text
}

// deployWAR gives Tomcat an application whose page is compiled there, and returns its answer, or the status of one that is no success.
func deployWAR(t *testing.T, server, user, password string) string {
	t.Helper()
	var war bytes.Buffer
	archive := zip.NewWriter(&war)
	file, err := archive.Create("index.jsp")
	require.NoError(t, err)
	_, err = io.WriteString(file, "<%@ page contentType=\"text/plain\" %>6 times 7 is <%= 6 * 7 %>\n")
	require.NoError(t, err)
	require.NoError(t, archive.Close())
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, server+"/manager/text/deploy?path=/sum", &war)
	require.NoError(t, err)
	request.SetBasicAuth(user, password)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	if response.StatusCode != http.StatusOK {
		return response.Status
	}
	return string(text)
}

// watches checks which targets Prometheus collects, and that its certificates open nothing else.
func (s *scaling) watches(t *testing.T, address string) {
	var answer struct {
		Data struct {
			ActiveTargets []struct {
				Health, LastError, ScrapeURL string
				Labels                       map[string]string
			}
			Result []struct{ Value []any }
		}
	}
	ask := func(path string) error {
		text, err := get("http://" + address + path)
		if err == nil {
			err = json.Unmarshal([]byte(text), &answer)
		}
		return err
	}
	s.lab.eventually(t, time.Minute, "all targets answer", func() error {
		if err := ask("/api/v1/targets?state=active"); err != nil {
			return err
		}
		jobs := map[string]bool{}
		for _, target := range answer.Data.ActiveTargets {
			if target.Health != "up" {
				return fmt.Errorf("%s is %s: %s", target.ScrapeURL, target.Health, target.LastError)
			}
			jobs[target.Labels["job"]] = true
		}
		if len(jobs) != 6 {
			return fmt.Errorf("there are only %v", jobs)
		}
		return nil
	})
	for _, metric := range []string{"etcd_server_has_leader", `kubelet_running_pods{node="murano-kube-2"}`, `container_memory_working_set_bytes{id="/"}`, "burano_gateway_haproxy_up", "apiserver_request_total"} {
		require.NoError(t, ask("/api/v1/query?query="+url.QueryEscape("count("+metric+")")))
		require.NotEmpty(t, answer.Data.Result, metric)
	}
	for variable, file := range map[string]string{"ETCD_CERTIFICATE": "watcher.crt", "ETCD_KEY": "watcher.key"} {
		content := s.cluster.kubectl(t, "", "get", "secret", "-l", "burano.io/container=prometheus", "-o", "jsonpath={.items[0].data."+variable+"}")
		s.in(t, "murano-kube-1", "base64 -d <<<'"+content+"' > /etc/burano/pki/"+file)
	}
	output, err := s.cluster.on("murano-kube-1", etcdctl("watcher", "get", "/", "--prefix", "--keys-only", "--limit=3")...)
	require.Error(t, err)
	require.Contains(t, output, "permission denied")
	user := strings.TrimPrefix(strings.TrimSpace(s.cluster.kubectl(t, "", "get", "clusterrole", "-l", "burano.io/pod", "-o", "name")), "clusterrole.rbac.authorization.k8s.io/")
	for _, refused := range []string{"list secrets", "list pods", "get nodes/proxy", "create nodes", "watch configmaps"} {
		verb, resource, _ := strings.Cut(refused, " ")
		output, err := s.cluster.tryKubectl("", "auth", "can-i", verb, resource, "--all-namespaces", "--as="+user)
		require.Error(t, err, refused)
		require.Contains(t, output, "no", refused)
	}
}

// gitRepository is a git repository that is served where pods of the local cloud reach it.
type gitRepository struct{ folder, address string }

// newRepository has a page in the folder public of its branch main, and the tag stable with another file.
func newRepository(t *testing.T) *gitRepository {
	r := &gitRepository{folder: filepath.Join(t.TempDir(), "pages.git")}
	r.git(t, filepath.Dir(r.folder), "init", "--quiet", "--initial-branch=main", r.folder)
	require.NoError(t, os.WriteFile(filepath.Join(r.folder, "version"), []byte("stable\n"), 0o600))
	r.commit(t, "first leaflet")
	r.git(t, r.folder, "tag", "stable")
	require.NoError(t, os.WriteFile(filepath.Join(r.folder, "version"), []byte("main\n"), 0o600))
	r.commit(t, "first leaflet")
	listener, err := net.Listen("tcp", outside("1")+":0")
	require.NoError(t, err)
	programs := r.git(t, r.folder, "--exec-path")
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: &cgi.Handler{Path: filepath.Join(strings.TrimSpace(programs), "git-http-backend"),
		Env: []string{"GIT_PROJECT_ROOT=" + filepath.Dir(r.folder), "GIT_HTTP_EXPORT_ALL=1"}, Stderr: io.Discard}}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	r.address = "http://" + listener.Addr().String() + "/pages.git"
	return r
}

// commit sets the content of the page.
func (r *gitRepository) commit(t *testing.T, page string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Join(r.folder, "public"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(r.folder, "public", "index.html"), []byte(page+"\n"), 0o600))
	r.git(t, r.folder, "add", "--all")
	r.git(t, r.folder, "-c", "user.name=Somebody", "-c", "user.email=somebody@example.org", "commit", "--quiet", "--message", page)
}

func (r *gitRepository) git(t *testing.T, folder string, args ...string) string {
	t.Helper()
	command := exec.Command("git", args...)
	command.Dir = folder
	output, err := command.CombinedOutput()
	require.NoErrorf(t, err, "%s", output)
	return string(output)
}

// redis sends commands on a connection of its own, and returns the lines of the answer, joined by spaces.
func redis(t *testing.T, address string, commands ...string) string {
	t.Helper()
	connection, err := net.DialTimeout("tcp", address, 10*time.Second)
	require.NoError(t, err)
	defer connection.Close()
	require.NoError(t, connection.SetDeadline(time.Now().Add(10*time.Second)))
	_, err = io.WriteString(connection, strings.Join(append(commands, "QUIT"), "\r\n")+"\r\n")
	require.NoError(t, err)
	answer, err := io.ReadAll(connection)
	require.NoError(t, err)
	lines := strings.Fields(string(answer))
	require.NotEmpty(t, lines, "the connection ended without an answer")
	return strings.Join(lines[:len(lines)-1], " ") // the last one is QUIT's
}

// rows runs a statement in the database "ledger" and returns its rows, joined by spaces.
func rows(t *testing.T, address, password, statement string) string {
	t.Helper()
	text, err := query(t.Context(), address, password, statement)
	require.NoError(t, err)
	return text
}

func query(ctx context.Context, address, password, statement string) (string, error) {
	place := url.URL{Scheme: "postgres", User: url.UserPassword("postgres", password), Host: address, Path: "ledger", RawQuery: "sslmode=disable&connect_timeout=10"}
	connection, err := pgx.Connect(ctx, place.String())
	if err != nil {
		return "", err
	}
	defer connection.Close(ctx)
	found, err := connection.Query(ctx, statement)
	if err != nil {
		return "", err
	}
	var values []string
	for found.Next() {
		row, err := found.Values()
		if err != nil {
			return "", err
		}
		values = append(values, strings.Trim(fmt.Sprint(row), "[]"))
	}
	return strings.Join(values, " "), found.Err()
}

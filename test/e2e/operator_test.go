package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/services"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/users"
	"github.com/stretchr/testify/require"
)

// operatorVariable is set by `make test-operator`: a folder with the root of a bare Debian 12, the package of this checkout, burano.deb, and a package of a later version,
// burano-later.deb.
const operatorVariable = "BURANO_TEST_OPERATOR"

// TestAnOperatorRunsThePackage follows docs/operators.md on a bare Debian, against a real OpenStack. The package is installed; Burano is registered and started as systemd's
// service. A user deploys a cluster with an application, the package is upgraded during a deployment and other requests, and it is removed.
func TestAnOperatorRunsThePackage(t *testing.T) {
	path, image, folder := os.Getenv(cloudsVariable), os.Getenv(serverVariable), os.Getenv(operatorVariable)
	if path == "" || image == "" || folder == "" {
		t.Skipf("%s, %s or %s is not set: `make test-operator` sets them", cloudsVariable, serverVariable, operatorVariable)
	}
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	// The package listens at this address.
	l := &lab{root: root, cloud: filepath.Dir(path), patience: 8, url: "http://127.0.0.1:8082"}
	admin, demo := l.user(t, "burano-admin"), l.user(t, "burano-demo")
	admin.forget(t, operatorsUser)
	nodeImage := admin.serverImage(t, "burano-node", image)
	found := inventory(t, demo)
	began := time.Now()
	machine := boot(t, filepath.Join(folder, "root"))
	t.Logf("%6.1f s until Debian runs", time.Since(began).Seconds())
	for from, to := range map[string]string{
		path: "root/clouds.yaml", "testdata/scaling.yaml": "root/scaling.yaml", filepath.Join(folder, "burano.deb"): "root/burano.deb",
		filepath.Join(folder, "burano-later.deb"): "root/burano-later.deb",
	} {
		machine.put(t, from, to)
	}
	require.NoError(t, os.CopyFS(filepath.Join(machine.root, "root/io.burano.demo.Hello"), os.DirFS(filepath.Join(root, "test/packages/io.burano.demo.Hello"))))
	as := func(cloud string) []string {
		return []string{"OS_CLIENT_CONFIG_FILE=/root/clouds.yaml", "OS_CLOUD=" + cloud}
	}
	run := func(t *testing.T, environment []string, words ...string) string {
		t.Helper()
		began := time.Now()
		output, err := machine.try(t.Context(), environment, words...)
		t.Logf("%6.1f s: %s", time.Since(began).Seconds(), strings.Join(words, " "))
		require.NoErrorf(t, err, "%s", output)
		return output
	}
	const doctor = "runuser -u burano -- env OS_CLIENT_CONFIG_FILE=/etc/burano/clouds.yaml OS_CLOUD=burano-service burano doctor --config /etc/burano/burano.yaml"
	// The image is a file system for containers; no machine can boot it.
	healed := func(t *testing.T) {
		output, err := machine.try(t.Context(), nil, strings.Fields(doctor)...)
		t.Log(output)
		require.Error(t, err)
		require.Contains(t, output, "1 of")
		require.Regexp(t, `(?m)^failed +node image .* is neither a qcow2 nor a disk with partitions nor a tar`, output)
	}
	whole := t // resources that steps share end with it
	step := func(name string, try func(*testing.T)) {
		if !t.Failed() {
			t.Run(name, try)
		}
	}

	step("the package is installed", func(t *testing.T) {
		require.Contains(t, run(t, nil, "dpkg", "--install", "/root/burano.deb"), "burano setup --url")
		require.Equal(t, "disabled", strings.TrimSpace(machine.says(t, "systemctl is-enabled burano")), "nothing starts before a cloud is known")
	})
	step("Burano is registered in Keystone, once", func(t *testing.T) {
		words := []string{"burano", "setup", "--url", l.url, "--user", operatorsUser, "--write", "/etc/burano/clouds.yaml"}
		t.Log(run(t, as("burano-admin"), words...))
		require.Contains(t, run(t, as("burano-admin"), words...), "nothing to do")
		run(t, nil, "chown", "burano:", "/etc/burano/clouds.yaml")
	})
	step("the doctor says what the cloud lacks", func(t *testing.T) {
		output, err := machine.try(t.Context(), nil, strings.Fields(doctor)...)
		t.Log(output)
		require.Error(t, err)
		require.Contains(t, output, "2 of")
		require.Regexp(t, `(?m)^failed +flavors `, output)
		require.Regexp(t, `(?m)^failed +node image `, output)
		admin.flavor(whole, "m1.medium", 2048)
	})
	step("systemd starts it", func(t *testing.T) {
		run(t, nil, "systemctl", "enable", "--now", "burano")
		l.healthy(t)
		require.NotEmpty(t, machine.says(t, "journalctl --unit burano --output cat"))
		run(t, as("burano-admin"), "burano", "image", "mark", nodeImage, "--type", "linux.kubernetes")
	})
	step("the doctor has nothing to say but that containers are no machines", func(t *testing.T) { healed(t) })
	var where string
	step("a user deploys a cluster with an application", func(t *testing.T) {
		run(t, as("burano-demo"), "burano", "package", "import", "/root/io.burano.demo.Hello")
		run(t, as("burano-demo"), "burano", "deploy", "/root/scaling.yaml", "--follow")
		where = endpointOf(t, environmentNamed(t, demo, "scaling"))
		bothReplicasAnswer(t, l, where)
	})
	step("the package is upgraded while somebody deploys and others ask", func(t *testing.T) {
		before := machine.says(t, "systemctl show --property MainPID --value burano")
		text, err := os.ReadFile("testdata/scaling.yaml")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(machine.root, "root/scaling.yaml"), bytes.Replace(text, []byte("nodeCount: 1"), []byte("nodeCount: 2"), 1), 0o600))
		ctx, done := context.WithCancel(t.Context())
		defer done()
		asked := demo.ask(ctx)
		deployed := make(chan error, 1)
		var output string
		go func() {
			var err error
			output, err = machine.try(t.Context(), as("burano-demo"), "burano", "deploy", "/root/scaling.yaml", "--follow")
			deployed <- err
		}()
		l.eventually(t, time.Minute, "the deployment is under way", func() error {
			if status := environmentNamed(t, demo, "scaling")["status"]; status != "deploying" {
				return fmt.Errorf("the environment is %v", status)
			}
			return nil
		})
		require.NotContains(t, run(t, nil, "dpkg", "--install", "/root/burano-later.deb"), "burano setup --url")
		require.NoErrorf(t, <-deployed, "%s", output)
		done()
		got := <-asked
		t.Logf("%d requests were answered, %d were not; the longest time without an answer was %.1f s", got.answered, got.refused, got.away.Seconds())
		require.Empty(t, got.wrong, "what is answered is right")
		require.NotEqual(t, before, machine.says(t, "systemctl show --property MainPID --value burano"), "the later program runs")
		require.Equal(t, "99.0", machine.says(t, "dpkg-query --show --showformat ${Version} burano"))
		require.Len(t, (&scaling{lab: l, user: demo}).servers(t), 4)
		bothReplicasAnswer(t, l, where)
	})
	step("the doctor says the same as before", func(t *testing.T) { healed(t) })
	step("the environment is deleted and leaves nothing", func(t *testing.T) {
		run(t, as("burano-demo"), "burano", "environment", "delete", "--yes", "scaling")
		asBefore(t, demo, found)
	})
	step("the package is removed", func(t *testing.T) {
		run(t, nil, "dpkg", "--remove", "burano")
		_, err := http.Get(l.url + "/healthz")
		require.Error(t, err, "nobody answers any more")
		require.Contains(t, run(t, nil, "dpkg", "--purge", "burano"), "stays, with the database and the keys")
		require.FileExists(t, filepath.Join(machine.root, "var/lib/burano/secret.key"))
	})
}

// operatorsUser is the service user that the operator makes; the cloud has one of the other tests already.
const operatorsUser = "burano-of-the-package"

// forget deletes the user, and the service application-catalog, when the test ends.
func (u *user) forget(t *testing.T, name string) {
	client := u.keystone(t)
	t.Cleanup(func() {
		ctx := context.Background()
		pages, err := users.List(client, users.ListOpts{Name: name}).AllPages(ctx)
		require.NoError(t, err)
		all, err := users.ExtractUsers(pages)
		require.NoError(t, err)
		for _, one := range all {
			require.NoError(t, users.Delete(ctx, client, one.ID).ExtractErr())
		}
		pages, err = services.List(client, services.ListOpts{ServiceType: "application-catalog"}).AllPages(ctx)
		require.NoError(t, err)
		known, err := services.ExtractServices(pages)
		require.NoError(t, err)
		for _, one := range known {
			require.NoError(t, services.Delete(ctx, client, one.ID).ExtractErr())
		}
	})
}

// asked counts the outcomes of requests.
type asked struct {
	answered, refused int
	away              time.Duration // the longest time without an answer
	wrong             []string      // answers that are none
}

// ask lists environments a hundred times a second until the context ends, and then returns the outcomes.
func (u *user) ask(ctx context.Context) <-chan asked {
	result := make(chan asked, 1)
	go func() {
		var got asked
		last := time.Now()
		pace := time.NewTicker(10 * time.Millisecond)
		defer pace.Stop()
		for ctx.Err() == nil {
			<-pace.C
			answer, err := u.send(ctx, http.MethodGet, "/v1/environments", nil)
			switch {
			case ctx.Err() != nil:
			case err != nil || answer.Status == http.StatusServiceUnavailable: // no server listens, or it has just started
				got.refused++
			case answer.Status != http.StatusOK:
				got.wrong = append(got.wrong, fmt.Sprintf("%d %s", answer.Status, answer.Body))
			default:
				got.answered++
				got.away = max(got.away, time.Since(last))
				last = time.Now()
			}
		}
		result <- got
	}()
	return result
}

// system is a Linux with a running systemd, in the network of the test.
type system struct {
	root   string
	leader int // its first process
}

// boot starts the system in a folder, until the test ends.
func boot(t *testing.T, root string) *system {
	s := &system{root: root}
	boot := exec.Command("systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--link-journal=no", "--resolv-conf=off", "--machine=operator", "--boot", "--directory="+s.root)
	var console bytes.Buffer
	boot.Stdout, boot.Stderr = &console, &console
	require.NoError(t, boot.Start())
	t.Cleanup(func() {
		_ = boot.Process.Signal(syscall.SIGTERM) // it shuts the system down
		_ = boot.Wait()
		if t.Failed() {
			t.Logf("the console:\n%s", console.String())
		}
	})
	(&lab{}).eventually(t, time.Minute, "the system runs", func() error {
		children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", boot.Process.Pid))
		if err != nil {
			return err
		}
		if s.leader, err = strconv.Atoi(strings.TrimSpace(string(children))); err != nil {
			return err
		}
		if output, err := s.try(t.Context(), nil, "systemctl", "is-system-running", "--wait"); err != nil {
			return fmt.Errorf("it is %s: %w", output, err)
		}
		return nil
	})
	return s
}

// put copies a file of the test's machine.
func (s *system) put(t *testing.T, from, to string) {
	source, err := os.Open(from)
	require.NoError(t, err)
	defer source.Close()
	target, err := os.OpenFile(filepath.Join(s.root, to), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	defer target.Close()
	_, err = io.Copy(target, source)
	require.NoError(t, err)
}

// try runs a program as root with only these variables.
func (s *system) try(ctx context.Context, environment []string, words ...string) (string, error) {
	args := []string{"--all", "--target", strconv.Itoa(s.leader), "env", "--ignore-environment", "--chdir=/root", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"}
	output, err := exec.CommandContext(ctx, "nsenter", append(append(args, environment...), words...)...).CombinedOutput()
	return string(output), err
}

// says is the output of a command, which may fail.
func (s *system) says(t *testing.T, command string) string {
	output, _ := s.try(t.Context(), nil, strings.Fields(command)...)
	return strings.TrimSpace(output)
}

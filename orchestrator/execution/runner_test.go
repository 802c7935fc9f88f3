package execution

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	xssh "golang.org/x/crypto/ssh"

	"github.com/burano/burano/nodes/ssh"
	"github.com/burano/burano/nodes/ssh/sshtest"
)

// host is a server that plans run on, with the reports about them.
type host struct {
	*sshtest.Server
	client *ssh.Client
	runner Runner

	mutex   sync.Mutex
	lines   []string
	notices []string
}

func newHost(t testing.TB) *host {
	h := &host{Server: sshtest.New(t)}
	h.client = h.connect(t, 1)
	folder := t.TempDir()
	boot := filepath.Join(folder, "boot")
	require.NoError(t, os.WriteFile(boot, []byte("first\n"), 0o600))
	h.runner = Runner{Server: h.client, Name: "web-1", Task: "task", Folder: filepath.Join(folder, "plans"), BootFile: boot,
		Line: func(_ context.Context, script, line string) { h.note(&h.lines, script+": "+line) }, Notice: func(_ context.Context, text string) { h.note(&h.notices, text) }}
	return h
}

func (h *host) connect(t testing.TB, fence uint64) *ssh.Client {
	client, err := ssh.Dial(t.Context(), ssh.Config{Address: h.Address, Signer: h.Signer, HostKeys: []xssh.PublicKey{h.HostKey}, Fence: fence, FenceFolder: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(func() { client.Close() })
	return client
}

func (h *host) note(to *[]string, text string) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	*to = append(*to, text)
}

func (h *host) told(of *[]string) []string {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return append([]string{}, *of...)
}

func (h *host) text(of *[]string) string { return strings.Join(h.told(of), "\n") }

// made is a plan whose scripts are these, by their names.
func made(t testing.TB, body string, scripts map[string]string, options object) *Plan {
	given := object{"FormatVersion": "2.2.0", "Name": "Deploy", "Body": body, "Parameters": object{"name": "it's", "n": int64(3)}, "Scripts": object{}}
	files := map[string]string{"scripts/conf/some.conf": "setting\n", "scripts/data": "\x00\x01\r\n"}
	for name, text := range scripts {
		files["scripts/"+name+".sh"] = "#!/bin/bash\n" + text + "\n"
		given["Scripts"].(object)[name] = object{"Type": "Application", "EntryPoint": name + ".sh", "Files": []any{"conf/some.conf", "<data>"}, "Options": options}
	}
	built, err := Build(given, resources(files))
	require.NoError(t, err)
	plan, err := Parse(built)
	require.NoError(t, err)
	return plan
}

func TestAPlanPutsFilesRunsScriptsAndReturnsWhatTheyGave(t *testing.T) {
	h := newHost(t)
	plan := made(t, "first = deploy(\"'{0}' {1}\".format('a b', args.n))\nreturn [first.stdout, first.exitCode, first.stderr, second().stdout]", map[string]string{
		"deploy": "cat conf/some.conf; wc -c <data; echo \"$# $1 $2\"; echo careful >&2; umask",
		"second": "ls; pwd >&2; [[ -t 0 ]] || echo no terminal; cat; echo $HOME",
	}, nil)
	result, err := h.runner.Run(t.Context(), plan, "a", time.Minute)
	require.NoError(t, err)
	require.Equal(t, []any{"setting\n4\n2 a b 3\n0022", int64(0), "careful", "conf\ndata\nsecond.sh\nno terminal\n/root"}, result)
	require.Contains(t, h.told(&h.lines), "deploy: 2 a b 3")
	require.Contains(t, h.told(&h.lines), "deploy: careful")
	require.Empty(t, h.told(&h.notices))
	left, err := filepath.Glob(filepath.Join(h.runner.Folder, "task", "*", "work"))
	require.NoError(t, err)
	require.Empty(t, left, "files of a plan that has ended stay on the server")
}

// counting records the requests to a server.
type counting struct {
	Server
	jobs []string
}

func (c *counting) Stream(ctx context.Context, job ssh.Job) error {
	c.jobs = append(c.jobs, job.Name)
	return c.Server.Stream(ctx, job)
}

func TestAScriptWithItsFilesIsOneRequestWhichRemovesThemWhenItIsTheOnlyOne(t *testing.T) {
	h := newHost(t)
	counted := &counting{Server: h.client}
	h.runner.Server = counted
	for body, want := range map[string][]string{
		"return greet('you').stdout":                         {"greet"},
		"if args.n > 2:\n  greet(args.n)\nreturn 1":          {"greet"},
		"greet()\nreturn greet().stdout":                     {"greet", "greet", "clean plan"},
		"for n in [1, 2]:\n  greet(n)":                       {"greet", "greet", "clean plan"},
		"again = greet\nagain(1)\nagain(2)":                  {"greet", "greet", "clean plan"},
		"greet()\nwith open('x', 'w') as f:\n  f.write('y')": {"greet", "write x", "clean plan"},
	} {
		counted.jobs = nil
		_, err := h.runner.Run(t.Context(), made(t, body, map[string]string{"greet": "echo hello"}, nil), body, time.Minute)
		require.NoError(t, err, body)
		require.Equal(t, want, counted.jobs, body)
		left, err := filepath.Glob(filepath.Join(h.runner.Folder, "task", "*", "work"))
		require.NoError(t, err)
		require.Empty(t, left, body)
	}
}

// BenchmarkPlan puts three files, runs a script and reads its result, over a connection that is there.
func BenchmarkPlan(b *testing.B) {
	h := newHost(b)
	plan := made(b, "return deploy().stdout", map[string]string{"deploy": "cat conf/some.conf"}, nil)
	for n := 0; b.Loop(); n++ {
		_, err := h.runner.Run(b.Context(), plan, fmt.Sprint(n), time.Minute)
		require.NoError(b, err)
	}
}

func TestAScriptThatFailsIsAnAgentException(t *testing.T) {
	h := newHost(t)
	_, err := h.runner.Run(t.Context(), made(t, "deploy()", map[string]string{"deploy": "echo out; echo 'it broke' >&2; exit 7"}, nil), "a", time.Minute)
	var failed *Error
	require.ErrorAs(t, err, &failed)
	require.Equal(t, codeScript, failed.Code)
	require.Equal(t, "Script deploy returned error code", failed.Message)
	require.Equal(t, object{"exitCode": int64(7), "stdout": "out", "stderr": "it broke"}, failed.Result)
	require.Contains(t, failed.ExceptionNames(), "murano.engine.system.agent.AgentException")
	require.Equal(t, int64(100), failed.ExceptionExtra()["errorCode"])
	require.ErrorContains(t, err, `execution plan "Deploy" on server web-1: Script deploy returned error code (exit code 7): it broke`)
}

func TestABodyWritesAndReadsFilesOfTheServer(t *testing.T) {
	h := newHost(t)
	path := filepath.Join(t.TempDir(), "it's a file")
	plan := made(t, fmt.Sprintf("with open(%q, 'w') as f:\n  f.write('one\\n')\nwith open(%q, 'a') as f:\n  f.write('two')\nreturn [open(%q).read(), deploy().stdout]", path, path, path),
		map[string]string{"deploy": "cat \"" + path + "\""}, nil)
	result, err := h.runner.Run(t.Context(), plan, "a", time.Minute)
	require.NoError(t, err)
	require.Equal(t, []any{"one\ntwo", "one\ntwo"}, result)
	_, err = h.runner.Run(t.Context(), made(t, "open('/nowhere/x').read()", nil, nil), "a", time.Minute)
	require.ErrorContains(t, err, "read /nowhere/x")
	require.ErrorContains(t, err, "No such file or directory")
}

func TestOptionsSayWhatIsCapturedAndVerified(t *testing.T) {
	h := newHost(t)
	plan := made(t, "r = deploy()\nreturn [r.exitCode, r.stdout, r.stderr]", map[string]string{"deploy": "echo out; echo bad >&2; exit 7"},
		object{"captureStdout": "false", "captureStderr": true, "verifyExitcode": false})
	result, err := h.runner.Run(t.Context(), plan, "a", time.Minute)
	require.NoError(t, err)
	require.Equal(t, []any{int64(7), nil, "bad"}, result)
	require.Contains(t, h.told(&h.lines), "deploy: out", "the log has it all the same")
}

func TestAMistakeInABodyIsAnAgentException(t *testing.T) {
	h := newHost(t)
	_, err := h.runner.Run(t.Context(), made(t, "return args.missing", nil, nil), "a", time.Minute)
	var failed *Error
	require.ErrorAs(t, err, &failed)
	require.Equal(t, codeFailed, failed.Code)
	require.ErrorContains(t, err, "AttributeError: there is no missing")
}

func TestLinesAreToldAsTheyAreWritten(t *testing.T) {
	h := newHost(t)
	goOn := filepath.Join(t.TempDir(), "go on")
	ended := make(chan error, 1)
	go func() {
		_, err := h.runner.Run(t.Context(), made(t, "deploy()", map[string]string{"deploy": "echo begun; until [[ -e '" + goOn + "' ]]; do sleep 0.01; done; printf '5%%\\r100%%\\r\\n'; printf end"}, nil), "a", time.Minute)
		ended <- err
	}()
	require.Eventually(t, func() bool { return h.text(&h.lines) == "deploy: begun" }, 20*time.Second, 5*time.Millisecond)
	require.Empty(t, ended)
	require.NoError(t, os.WriteFile(goOn, nil, 0o600))
	require.NoError(t, <-ended)
	require.Equal(t, "deploy: begun\ndeploy: 100%\ndeploy: end", h.text(&h.lines))
}

// counted is a script that notes each of its runs in a file, and a plan that calls it.
func counted(t *testing.T, more string, options object) (*Plan, func() int) {
	file := filepath.Join(t.TempDir(), "runs")
	return made(t, "return deploy().stdout", map[string]string{"deploy": "echo run >>'" + file + "'\n" + more}, options), func() int {
		text, _ := os.ReadFile(file)
		return strings.Count(string(text), "run\n")
	}
}

func TestAPlanThatRanIsNotRunAgainInItsTask(t *testing.T) {
	h := newHost(t)
	plan, runs := counted(t, "echo done", nil)
	for range 2 {
		result, err := h.runner.Run(t.Context(), plan, "a", time.Minute)
		require.NoError(t, err)
		require.Equal(t, "done", result)
	}
	require.Equal(t, 1, runs())
	require.Equal(t, []string{"deploy: done"}, h.told(&h.lines))
	require.Contains(t, h.text(&h.notices), "ran on server web-1 before")

	_, err := h.runner.Run(t.Context(), plan, "b", time.Minute)
	require.NoError(t, err)
	require.Equal(t, 2, runs(), "another call of the same plan runs")
	h.runner.Task = "next"
	_, err = h.runner.Run(t.Context(), plan, "a", time.Minute)
	require.NoError(t, err)
	require.Equal(t, 3, runs(), "another task runs it")
	require.NoDirExists(t, filepath.Join(h.runner.Folder, "task"), "receipts of other tasks are removed")
}

func TestALostConnectionIsMadeAgainAndTheScriptGoesOn(t *testing.T) {
	h := newHost(t)
	goOn := filepath.Join(t.TempDir(), "go on")
	plan, runs := counted(t, "echo begun; until [[ -e '"+goOn+"' ]]; do sleep 0.01; done; echo end", nil)
	type outcome struct {
		result any
		err    error
	}
	ended := make(chan outcome, 1)
	go func() {
		result, err := h.runner.Run(t.Context(), plan, "a", time.Minute)
		ended <- outcome{result, err}
	}()
	require.Eventually(t, func() bool { return h.text(&h.lines) == "deploy: begun" }, 20*time.Second, 5*time.Millisecond)
	h.Cut()
	require.Eventually(t, func() bool { return strings.Contains(h.text(&h.notices), "was lost") }, 20*time.Second, 5*time.Millisecond)
	require.NoError(t, os.WriteFile(goOn, nil, 0o600))
	got := <-ended
	require.NoError(t, got.err)
	require.Equal(t, "begun\nend", got.result)
	require.Equal(t, 1, runs())
	require.Equal(t, "deploy: begun\ndeploy: end", h.text(&h.lines), "lines are told once")
}

func TestAFormerWorkersScriptIsFollowed(t *testing.T) {
	h := newHost(t)
	goOn := filepath.Join(t.TempDir(), "go on")
	plan, runs := counted(t, "until [[ -e '"+goOn+"' ]]; do sleep 0.01; done; echo end", nil)
	stopped := errors.New("the server is stopped")
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	former := h.runner
	former.Server = h.connect(t, 1)
	former.GoesOn = func(cause error) bool { return errors.Is(cause, stopped) }
	ended := make(chan error, 1)
	go func() {
		_, err := former.Run(ctx, plan, "a", time.Minute)
		ended <- err
	}()
	require.Eventually(t, func() bool { return runs() == 1 }, 20*time.Second, 5*time.Millisecond)
	stop(stopped)
	require.ErrorIs(t, <-ended, stopped)
	go func() {
		<-time.After(100 * time.Millisecond)
		_ = os.WriteFile(goOn, nil, 0o600)
	}()
	result, err := h.runner.Run(t.Context(), plan, "a", time.Minute)
	require.NoError(t, err)
	require.Equal(t, "end", result)
	require.Equal(t, 1, runs())
}

// deaf is a worker that dies: it does not end its processes.
type deaf struct{ *ssh.Client }

func (d deaf) Stream(ctx context.Context, job ssh.Job) error {
	if job.Args[0] == "stop" {
		return nil
	}
	return d.Client.Stream(ctx, job)
}

func TestAPlanThatTakesTooLongIsEnded(t *testing.T) {
	h := newHost(t)
	pid := filepath.Join(t.TempDir(), "pid")
	plan := made(t, "deploy()", map[string]string{"deploy": "(echo $BASHPID >" + pid + "; exec sleep 600)"}, nil)
	err := tooLate(t, h.runner, plan, pid)
	var late *TimeoutError
	require.ErrorAs(t, err, &late)
	require.Contains(t, late.ExceptionNames(), "murano.common.exceptions.TimeoutException")
	requireEnded(t, pid)
}

// tooLate runs a plan that writes a file and then takes too long: longer from time to time, until the file was written before.
func tooLate(t *testing.T, runner Runner, plan *Plan, file string) error {
	for limit := time.Second; ; limit *= 2 {
		_, err := runner.Run(t.Context(), plan, limit.String(), limit)
		if text, _ := os.ReadFile(file); len(text) > 0 {
			return err
		}
		require.Less(t, limit, time.Minute)
	}
}

func TestACancelledPlanIsEnded(t *testing.T) {
	h := newHost(t)
	pid := filepath.Join(t.TempDir(), "pid")
	plan := made(t, "deploy()", map[string]string{"deploy": "(echo $BASHPID >" + pid + "; exec sleep 600)"}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for tick := time.Tick(5 * time.Millisecond); ctx.Err() == nil; <-tick {
			if text, _ := os.ReadFile(pid); len(text) > 0 {
				cancel()
			}
		}
	}()
	_, err := h.runner.Run(ctx, plan, "a", time.Minute)
	require.ErrorIs(t, err, context.Canceled)
	requireEnded(t, pid)
}

func TestWhatAnotherTaskLeftRunningIsEnded(t *testing.T) {
	h := newHost(t)
	pid := filepath.Join(t.TempDir(), "pid")
	former := h.runner
	former.Server, former.Task = deaf{h.client}, "former"
	require.Error(t, tooLate(t, former, made(t, "deploy()", map[string]string{"deploy": "(echo $BASHPID >" + pid + "; exec sleep 600)"}, nil), pid))
	_, err := h.runner.Run(t.Context(), made(t, "return deploy().stdout", map[string]string{"deploy": "echo next"}, nil), "a", time.Minute)
	require.NoError(t, err)
	requireEnded(t, pid)
}

// requireEnded waits until the process of the file runs no more.
func requireEnded(t *testing.T, file string) {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(text)) + "/stat")
		return err != nil || strings.Contains(string(stat), ") Z ")
	}, 20*time.Second, 10*time.Millisecond)
}

// crash ends the connections and everything that runs for plans, and makes it a reboot.
func (h *host) crash(t *testing.T) {
	h.Stop()
	processes, err := filepath.Glob(filepath.Join(h.runner.Folder, "*", "*", "steps", "*", "process"))
	require.NoError(t, err)
	for _, file := range processes {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		pid, _, _ := strings.Cut(string(text), " ")
		_ = exec.Command("kill", "-KILL", "--", "-"+pid).Run()
	}
	require.NoError(t, os.WriteFile(h.runner.BootFile, []byte("second\n"), 0o600))
	h.Start()
}

func TestAServerThatIsStartedAgainIsWaitedFor(t *testing.T) {
	for name, again := range map[string]bool{"the script runs again where its option says so": true, "the plan fails": false} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			mark := filepath.Join(t.TempDir(), "mark")
			plan, runs := counted(t, "if [[ -e "+mark+" ]]; then echo after; else touch "+mark+"; sleep 600; fi", object{"restartAfterReboot": again})
			type outcome struct {
				result any
				err    error
			}
			ended := make(chan outcome, 1)
			go func() {
				result, err := h.runner.Run(t.Context(), plan, "a", time.Minute)
				ended <- outcome{result, err}
			}()
			require.Eventually(t, func() bool { _, err := os.Stat(mark); return err == nil }, 20*time.Second, 5*time.Millisecond)
			h.crash(t)
			got := <-ended
			if again {
				require.NoError(t, got.err, h.text(&h.notices))
				require.Equal(t, "after", got.result)
				require.Equal(t, 2, runs())
				return
			}
			require.ErrorContains(t, got.err, "the server was started again while the script ran")
			require.ErrorContains(t, got.err, "restartAfterReboot")
			require.Equal(t, 1, runs())
		})
	}
}

func TestAPlanMayStartTheServerAgainAtItsEnd(t *testing.T) {
	h := newHost(t)
	h.runner.RebootCommand = "sleep 0.3; echo second >" + h.runner.BootFile
	built, err := Build(object{"FormatVersion": "2.0.0", "Body": "return 5", "RebootOnCompletion": int64(1)}, resources(nil))
	require.NoError(t, err)
	plan, err := Parse(built)
	require.NoError(t, err)
	result, err := h.runner.Run(t.Context(), plan, "a", time.Minute)
	require.NoError(t, err)
	require.Equal(t, int64(5), result)
	text, err := os.ReadFile(h.runner.BootFile)
	require.NoError(t, err)
	require.Equal(t, "second\n", string(text))
}

func TestAScriptThatSomebodyKillsFailsThePlan(t *testing.T) {
	h := newHost(t)
	plan, runs := counted(t, "kill -KILL -- -$(ps -o pgid= $$ | tr -d ' ')", nil)
	_, err := h.runner.Run(t.Context(), plan, "a", time.Minute)
	require.ErrorContains(t, err, "was ended on the server before it was done")
	require.Equal(t, 1, runs())
}

func TestAFullDiskIsSaidAsWhatItIs(t *testing.T) {
	h := newHost(t)
	small := t.TempDir()
	require.NoError(t, exec.Command("mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", small).Run(), "needs root, as sshd does")
	t.Cleanup(func() { _ = exec.Command("umount", small).Run() })
	h.runner.Folder = filepath.Join(small, "plans")
	built, err := Build(template("2.0.0", application("large")), resources(map[string]string{"scripts/deploy.sh": "true", "scripts/large": strings.Repeat("x", 1<<20)}))
	require.NoError(t, err)
	plan, err := Parse(built)
	require.NoError(t, err)
	_, err = h.runner.Run(t.Context(), plan, "a", time.Minute)
	var full *FullError
	require.ErrorAs(t, err, &full)
	require.ErrorContains(t, err, "the disk of server web-1 is full")
}

func TestAServerThatIsGoneIsSaidToBe(t *testing.T) {
	server := sshtest.New(t)
	client, err := ssh.Dial(t.Context(), ssh.Config{Address: server.Address, Signer: server.Signer, HostKeys: []xssh.PublicKey{server.HostKey}, Patience: 3 * time.Second})
	require.NoError(t, err)
	defer client.Close()
	server.Stop()
	runner := Runner{Server: client, Name: "web-1", Task: "task", Folder: t.TempDir()}
	_, err = runner.Run(t.Context(), made(t, "deploy()", map[string]string{"deploy": "true"}, nil), "a", time.Minute)
	var unreachable *ssh.UnreachableError
	require.ErrorAs(t, err, &unreachable)
	require.ErrorContains(t, err, "run deploy on server web-1")
}

func TestLargeOutputIsCutAndTheExitCodeKept(t *testing.T) {
	h := newHost(t)
	h.runner.Line = nil
	plan := made(t, "r = deploy()\nreturn [len(r.stdout), r.exitCode]", map[string]string{"deploy": "head -c 6000000 /dev/zero | tr '\\0' x; exit 4"}, object{"verifyExitcode": false})
	result, err := h.runner.Run(t.Context(), plan, "a", time.Minute)
	require.NoError(t, err)
	got := result.([]any)
	require.Equal(t, int64(4), got[1])
	require.InDelta(t, keptOutput, got[0], 100)
}

func TestFilesAreDownloadedByTheServer(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/data/list.txt" {
			fmt.Fprint(w, "from the web")
			return
		}
		http.NotFound(w, r)
	}))
	defer web.Close()
	h := newHost(t)
	scripts := func(url string) object {
		return object{"deploy": object{"Type": "Application", "EntryPoint": "deploy.sh", "Files": []any{object{"lists": url}}}}
	}
	run := func(url string) (any, error) {
		built, err := Build(template("2.1.0", scripts(url)), resources(map[string]string{"scripts/deploy.sh": "cat lists/*"}))
		require.NoError(t, err)
		plan, err := Parse(built)
		require.NoError(t, err)
		return h.runner.Run(t.Context(), plan, "a", time.Minute)
	}
	result, err := run(web.URL + "/data/list.txt")
	require.NoError(t, err)
	require.Equal(t, "from the web", result)
	_, err = run(web.URL + "/data/missing.txt")
	require.ErrorContains(t, err, "Error to download the files of script deploy")
	require.ErrorContains(t, err, "404")
}

func TestRepositoriesAreClonedAndArchivesOfCookbooksUnpacked(t *testing.T) {
	repository := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(repository, "README"), []byte("of the repository"), 0o600))
	for _, command := range [][]string{{"init", "-q"}, {"add", "README"}, {"-c", "user.email=a@b", "-c", "user.name=a", "commit", "-q", "-m", "first"}} {
		out, err := exec.Command("git", append([]string{"-C", repository}, command...)...).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	folder := t.TempDir()
	require.NoError(t, exec.Command("tar", "-czf", filepath.Join(folder, "book.tar.gz"), "-C", filepath.Dir(repository), filepath.Base(repository)).Run())
	web := httptest.NewServer(http.FileServer(http.Dir(folder)))
	defer web.Close()
	h := newHost(t)
	h.runner.Line = func(_ context.Context, _, line string) { t.Log(line) }
	get := func(one file, kind string) error {
		x := &execution{Runner: h.runner, plan: &Plan{}, id: "plan" + kind + one.name}
		result, err := x.run(t.Context(), command{name: "get", folder: "work", text: downloadScript + download(one, kind)}, script{})
		if err == nil && result.code != 0 {
			err = fmt.Errorf("exit code %d", result.code)
		}
		return err
	}
	require.NoError(t, get(file{name: "clone", url: "file://localhost" + repository + "/.git"}, typeApplication))
	require.NoError(t, get(file{name: "book", url: web.URL + "/book.tar.gz"}, typeChef))
	require.NoError(t, get(file{name: "as-it-is", url: web.URL + "/book.tar.gz"}, typeApplication))
	require.Error(t, get(file{name: "missing", url: "file://localhost/nowhere.git"}, typePuppet))
	for plan, want := range map[string]string{"planApplicationclone": "clone/README", "planChefbook": "book/README", "planApplicationas-it-is": "as-it-is/book.tar.gz"} {
		require.FileExists(t, filepath.Join(h.runner.Folder, "task", plan, "work", want))
	}
}

func TestChefAndPuppetGetWhatTheirProgramsLookFor(t *testing.T) {
	x := &execution{plan: &Plan{}}
	attributes := map[string]any{"port": int64(80)}
	texts := func(c command) map[string]string {
		all := map[string]string{"": c.text}
		for _, one := range c.files {
			all[one.path] = string(one.content)
		}
		return all
	}
	chef, err := x.command("recipe", script{kind: typeChef, entry: "git::default"}, []any{attributes}, nil)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"": "chef-solo -j node.json -c solo.rb", "work/recipe/node.json": `{"git":{"port":80},"run_list":["recipe[git::default]"]}`,
		"work/recipe/solo.rb": "cookbook_path File.expand_path(\".\", __dir__)\n"}, texts(chef))
	berks, err := x.command("recipe", script{kind: typeChef, entry: "git::default", berkshelf: true}, nil, nil)
	require.NoError(t, err)
	require.Equal(t, "berks vendor --berksfile='git/Berksfile' berks-cookbooks || exit\nchef-solo -j node.json -c solo.rb", berks.text)
	require.Equal(t, "cookbook_path File.expand_path(\"berks-cookbooks\", __dir__)\n", texts(berks)["work/recipe/solo.rb"])
	puppet, err := x.command("recipe", script{kind: typePuppet, entry: "mysql::server"}, nil, attributes)
	require.NoError(t, err)
	require.Equal(t, "puppet apply --hiera_config=hiera.yaml --modulepath . manifest.pp", puppet.text)
	require.Equal(t, "node default { class { 'mysql::server': } }\n", texts(puppet)["work/recipe/manifest.pp"])
	require.Equal(t, "mysql::port: 80\n", texts(puppet)["work/recipe/default.yaml"])
}

package agent

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	xssh "golang.org/x/crypto/ssh"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/catalog/apps"
	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/nodes/ssh"
	"github.com/burano/burano/nodes/ssh/sshtest"
	"github.com/burano/burano/orchestrator/engine"
	"github.com/burano/burano/orchestrator/task"
)

// planned is an environment with the package io.burano.test.Web on servers that are all the same sshd.
type planned struct {
	interpreter *muranopl.Interpreter
	web         *muranopl.Object
	agent       *Class

	mutex   sync.Mutex
	reports []string
	steps   []string
	ends    []func(context.Context) error
	client  *ssh.Client
}

func (p *planned) TaskID() string { return "task" }

func (p *planned) AtEnd(do func(context.Context) error) { p.ends = append(p.ends, do) }

func (p *planned) Step(ctx context.Context, object *muranopl.Object, name string, run func(context.Context) error) error {
	p.mutex.Lock()
	p.steps = append(p.steps, object.ID()+": "+name)
	p.mutex.Unlock()
	return run(ctx)
}

func (p *planned) Report(_ context.Context, object *muranopl.Object, level engine.Level, text, details string) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.reports = append(p.reports, strings.TrimSpace(object.ID()+" "+string(level)+" "+text+" "+details))
	return nil
}

func (p *planned) Connection(_ context.Context, instance *muranopl.Object) (*ssh.Client, error) {
	if instance.ID() == "away" {
		return nil, &ssh.UnreachableError{}
	}
	return p.client, nil
}

// planning begins with a task whose model has these servers; "away" is one that does not answer.
func planning(t *testing.T, servers ...string) *planned {
	sshd := sshtest.New(t)
	p := &planned{}
	var err error
	p.client, err = ssh.Dial(t.Context(), ssh.Config{Address: sshd.Address, Signer: sshd.Signer, HostKeys: []xssh.PublicKey{sshd.HostKey}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.client.Close()) })
	p.again(t, t.TempDir(), false, servers...)
	return p
}

// again begins the task anew, as a worker does that takes it over.
func (p *planned) again(t *testing.T, folder string, rehearsed bool, servers ...string) {
	packages, err := apps.Packages()
	require.NoError(t, err)
	web, err := catalog.ReadFolder(os.DirFS(filepath.Join("..", "..", "test", "packages", "io.burano.test.Web")))
	require.NoError(t, err)
	p.agent = New(p, task.Reports{Runtime: p, Logger: slog.New(slog.DiscardHandler)}, p, rehearsed)
	p.agent.folder = folder
	runtime := &cloudless{task.NewRehearsal(nil)}
	natives := coreMethods(runtime)
	natives["io.murano"][task.ClassAgent] = p.agent.Methods()
	p.interpreter = muranopl.NewInterpreter(muranopl.NewClasses(catalog.Shelf(append(packages, web))), natives)
	var instances []any
	for _, id := range servers {
		instances = append(instances, map[string]any{"?": map[string]any{"type": "io.murano.resources.LinuxMuranoInstance", "id": id}, "name": "server-" + id, "flavor": "small", "image": "some"})
	}
	root, start, problems := p.interpreter.Prepare(t.Context(), map[string]any{"?": map[string]any{"type": "io.murano.Environment", "id": "environment"}, "name": "e",
		"applications": []any{map[string]any{"?": map[string]any{"type": "io.burano.test.Web", "id": "web"}, "name": "web", "instances": instances}}})
	require.Empty(t, problems)
	require.NoError(t, start(t.Context()))
	p.web = root.Objects("applications")[0]
}

// cloudless is a runtime without a cloud.
type cloudless struct{ *task.Rehearsal }

func (*cloudless) EnvironmentID() string { return "environment" }

func (p *planned) call(t *testing.T, method string) any {
	t.Helper()
	result, err := p.interpreter.Invoke(t.Context(), p.web, method, nil)
	require.NoError(t, err)
	return result
}

func TestAPackagesPlanFailsAsMuranosAgentSaysIt(t *testing.T) {
	p := planning(t, "a")
	extra := p.call(t, "fail").(map[string]any)
	require.Equal(t, "Script fail returned error code", extra["message"])
	require.Equal(t, int64(100), extra["errorCode"])
	require.Equal(t, map[string]any{"exitCode": int64(5), "stdout": "said before", "stderr": "it is broken"}, extra["details"])
	require.Equal(t, []string{"a: plan Fail"}, p.steps)
	require.Contains(t, p.reports, "a info server-a, fail: said before")
	require.Contains(t, p.reports, "a info server-a, fail: it is broken")
}

func TestCommandsAndFilesOfTheCoreLibrary(t *testing.T) {
	p := planning(t, "a")
	require.Equal(t, map[string]any{"exitCode": int64(3), "stdout": "it's\n$a text", "stderr": "said"}, p.call(t, "commands"))
}

func TestPlansOfOneServerRunOneAfterAnotherAndTheTaskWaitsForAll(t *testing.T) {
	p := planning(t, "a")
	require.Equal(t, "first", p.call(t, "later"), "the plan that is called came after those that were sent")
	for _, end := range p.ends {
		require.NoError(t, end(t.Context()))
	}
	require.Eventually(t, func() bool {
		p.mutex.Lock()
		defer p.mutex.Unlock()
		return strings.Contains(strings.Join(p.reports, "\n"), "which nobody waits for, failed")
	}, 20*time.Second, 5*time.Millisecond)
}

func TestAnAgentIsReadyWhenItsServerAnswers(t *testing.T) {
	require.Equal(t, []any{true, false}, planning(t, "a", "away").call(t, "ready"))
}

func TestAPlanThatTakesTooLongRaisesATimeout(t *testing.T) {
	require.Equal(t, "too late", planning(t, "a").call(t, "slow"))
}

func TestATaskThatIsTakenOverDoesNotRunItsPlansAgain(t *testing.T) {
	p := planning(t, "a")
	folder := p.agent.folder
	p.call(t, "fail")
	p.call(t, "fail")
	ran := len(receipts(t, folder))
	require.Equal(t, 2, ran, "each call of a plan is one run")
	p.again(t, folder, false, "a")
	p.call(t, "fail")
	p.call(t, "fail")
	require.Len(t, receipts(t, folder), ran)
	require.Contains(t, strings.Join(p.reports, "\n"), "ran on server server-a before; its result is taken")
	p.call(t, "fail")
	require.Len(t, receipts(t, folder), ran+1)
}

func receipts(t *testing.T, folder string) []string {
	all, err := filepath.Glob(filepath.Join(folder, "task", "*"))
	require.NoError(t, err)
	return all
}

func TestARehearsalRunsNoPlans(t *testing.T) {
	p := planning(t, "a")
	p.again(t, p.agent.folder, true, "a")
	_, err := p.interpreter.Invoke(t.Context(), p.web, "later", nil)
	require.Error(t, err, "there is no result that the code could go on with")
	require.Empty(t, p.steps)
	require.Empty(t, receipts(t, p.agent.folder))
}

func TestAServerThatCannotBeReachedFailsThePlan(t *testing.T) {
	p := planning(t, "away")
	_, err := p.interpreter.Invoke(t.Context(), p.web, "install", nil)
	var unreachable *ssh.UnreachableError
	require.True(t, errors.As(err, &unreachable), "%v", err)
	require.ErrorContains(t, err, `run the plan "Deploy the web server"`)
}

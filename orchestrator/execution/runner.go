package execution

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/burano/burano/internal/wait"
	"github.com/burano/burano/nodes/ssh"
	"github.com/burano/burano/orchestrator/execution/body"
)

// Server is where a plan runs: an *ssh.Client that is root there.
type Server interface {
	Stream(ctx context.Context, job ssh.Job) error
}

// Runner runs plans on one server.
type Runner struct {
	Server Server
	Name   string // of the server, for errors
	Task   string // the task of the plans: the rest of other tasks on the server is ended and removed
	// Line is called for each line that a script writes, as it comes. May be nil.
	Line func(ctx context.Context, script, line string)
	// GoesOn returns, by the cause of a context's end, whether another worker continues the plan. Then running commands are left to it, and else ended.
	// nil: none does.
	GoesOn func(cause error) bool
	// Notice gets events beside the plan: lost connections, results of a former worker. May be nil.
	Notice func(ctx context.Context, text string)

	// For tests.
	Folder, BootFile, RebootCommand string
}

const (
	plansFolder   = "/var/lib/burano/plans"
	bootFile      = "/proc/sys/kernel/random/boot_id"
	rebootCommand = "sleep 0.2; systemctl reboot || reboot"
	stopPatience  = 10 * time.Second
	cleanAction   = "clean"
	lostTries     = 20 // connections that may be lost while one script runs
)

//go:embed scripts/plan.sh
var planScript string

// Run runs a plan and returns its body's result. The id distinguishes the task's plans. Commands that ran under it already are not run again: their
// results are used. A mistake of the body or a script is an *Error, and a plan that takes longer than limit a *TimeoutError.
func (r Runner) Run(ctx context.Context, plan *Plan, id string, limit time.Duration) (any, error) {
	limited, cancel := context.WithTimeoutCause(ctx, limit, &TimeoutError{Plan: plan.Name, Server: r.Name, After: limit})
	defer cancel()
	x := &execution{Runner: r, plan: plan, id: plan.Digest(id), loaded: map[string]bool{}, once: plan.body.CallsOnce(slices.Collect(maps.Keys(plan.scripts)))}
	scripts := map[string]body.Script{}
	for name, one := range plan.scripts {
		scripts[name] = func(ctx context.Context, _ string, args []any, named map[string]any) (any, error) {
			return x.call(ctx, name, one, args, named)
		}
	}
	result, err := plan.body.Run(limited, plan.parameters, body.World{Scripts: scripts, Write: x.write, Read: x.read, Seed: x.id})
	if cause := context.Cause(limited); cause != nil {
		if r.GoesOn == nil || !r.GoesOn(cause) {
			x.stop(ctx)
		}
		return nil, cause
	}
	if !x.cleaned {
		x.control(ctx, cleanAction)
	}
	if plan.reboot == rebootAlways || plan.reboot == rebootAfterSuccess && err == nil {
		if rebootErr := x.reboot(limited); rebootErr != nil {
			return nil, errors.Join(err, rebootErr)
		}
	}
	var mistake *body.Error
	if errors.As(err, &mistake) {
		return nil, &Error{Code: codeFailed, Message: mistake.Error(), Plan: plan.Name, Server: r.Name, Time: time.Now(), cause: err}
	}
	return result, err
}

// Digest identifies a run of the plan: it names the receipt on the server.
func (p *Plan) Digest(id string) string {
	sum := sha256.Sum256(append([]byte(id+"\n"), p.content...))
	return hex.EncodeToString(sum[:12])
}

// execution is one run of a plan.
type execution struct {
	Runner
	plan   *Plan
	id     string
	step   int
	loaded map[string]bool // scripts whose files are on the server
	// once is true if the body calls one script once: its last command cleans up after itself.
	once, cleaned bool
}

func (x *execution) notice(ctx context.Context, format string, args ...any) {
	if x.Notice != nil {
		x.Notice(ctx, fmt.Sprintf(format, args...))
	}
}

// call runs a script, with its files before its first call, and returns its result for the body.
func (x *execution) call(ctx context.Context, name string, s script, args []any, named map[string]any) (any, error) {
	work := path.Join("work", name)
	var files []entry
	if !x.loaded[name] {
		downloads := ""
		for _, one := range x.plan.scriptFiles(s) {
			if one.url == "" {
				files = append(files, entry{path.Join(work, one.name), modeOf(one.content), one.content})
			} else {
				downloads += download(one, s.kind)
			}
		}
		if downloads != "" {
			fetch := command{name: "download the files of " + name, folder: work, text: downloadScript + downloads}
			result, err := x.run(ctx, fetch, s)
			if err != nil {
				return nil, err
			}
			if result.code != 0 {
				return nil, x.failed(codeFailed, "Error to download the files of script "+name, result, s)
			}
		}
	}
	one, err := x.command(name, s, args, named)
	if err != nil {
		return nil, &Error{Code: codeFailed, Message: err.Error(), Plan: x.plan.Name, Server: x.Name, Time: time.Now(), cause: err}
	}
	one.files, one.last = append(files, one.files...), x.once
	result, err := x.run(ctx, one, s)
	if err != nil {
		return nil, err
	}
	x.loaded[name] = true
	if s.verify && result.code != 0 {
		return nil, x.failed(codeScript, "Script "+name+" returned error code", result, s)
	}
	return result.value(s), nil
}

// write writes a body's text into a file of the server.
func (x *execution) write(ctx context.Context, name, content string, add bool) error {
	to := ">"
	if add {
		to = ">>"
	}
	_, err := x.file(ctx, command{name: "write " + name, folder: "work", text: "cat .content " + to + quote(name) + "; rm .content",
		files: []entry{{"work/.content", 0o600, []byte(content)}}})
	return err
}

// read reads a file of the server for a body.
func (x *execution) read(ctx context.Context, name string) (string, error) {
	return x.file(ctx, command{name: "read " + name, folder: "work", text: "cat " + quote(name)})
}

func (x *execution) file(ctx context.Context, c command) (string, error) {
	c.text = "set -e\n" + c.text
	result, err := x.run(ctx, c, script{})
	if err == nil && result.code != 0 {
		err = x.failed(codeFailed, c.name, result, script{captureErr: true})
	}
	return result.out, err
}

// modeOf lets programs be run.
func modeOf(content []byte) int64 {
	if bytes.HasPrefix(content, []byte("#!")) || bytes.HasPrefix(content, []byte("\x7fELF")) {
		return 0o755
	}
	return 0o644
}

func (x *execution) failed(code int, message string, result result, s script) error {
	return &Error{Code: code, Message: message, Plan: x.plan.Name, Server: x.Name, Result: result.value(s), said: result.said(), Time: time.Now()}
}

// result is the result of a command.
type result struct {
	code        int
	out, errors string
}

func (r result) value(s script) map[string]any {
	captured := func(capture bool, text string) any {
		if text = strings.TrimSpace(text); capture && text != "" {
			return text
		}
		return nil
	}
	return map[string]any{"exitCode": int64(r.code), "stdout": captured(s.captureOut, r.out), "stderr": captured(s.captureErr, r.errors)}
}

// said is the end of its output, errors first.
func (r result) said() string {
	if strings.TrimSpace(r.errors) != "" {
		return lastLines(r.errors)
	}
	return lastLines(r.out)
}

// command is a shell's text, the folder below the plan's where it is run, and files below the plan's that it needs.
type command struct {
	name, folder, text string
	files              []entry
	last               bool // nothing of the plan comes after it
}

// entry is a file, or with a mode of 0 a folder, below the plan's folder.
type entry struct {
	path    string
	mode    int64
	content []byte
}

// run runs a command once and waits for it, over as many connections as that takes.
func (x *execution) run(ctx context.Context, c command, s script) (result, error) {
	x.step++
	sum := sha256.Sum256([]byte(c.name + "\n" + c.folder + "\n" + c.text))
	step := fmt.Sprintf("%d-%s", x.step, hex.EncodeToString(sum[:8]))
	steps := path.Join("steps", step)
	stream, err := archive(append(c.files, entry{path: c.folder},
		entry{path.Join(steps, "command"), 0o600, []byte(c.text + "\n")}, entry{path.Join(steps, "folder"), 0o600, []byte(c.folder + "\n")}))
	if err != nil {
		return result{}, err
	}
	confirm, after := "-", ""
	if c.last {
		after = cleanAction
	}
	quiet := &atomic.Bool{} // a former worker's reports are not repeated
	out, problems := x.lines(ctx, c.name, quiet), x.lines(ctx, c.name, quiet)
	for lost := 0; ; {
		out.again()
		problems.again()
		out.head, out.first = true, lost == 0
		err := x.Server.Stream(ctx, ssh.Job{Name: c.name, Script: planScript, Args: []string{"run", x.folder(), x.Task, x.id, step, confirm, x.boot(), after},
			Input: bytes.NewReader(stream), Stdout: out, Stderr: problems})
		var gone *ssh.LostError
		if errors.As(err, &gone) && ctx.Err() == nil {
			if lost++; lost > lostTries {
				return result{}, fmt.Errorf("run %s on server %s: %w", c.name, x.Name, err)
			}
			x.notice(ctx, "the connection to server %s was lost while %s ran; it is made again", x.Name, c.name)
			if err := wait.Pause(ctx, time.Second); err != nil {
				return result{}, err
			}
			continue
		}
		if err != nil {
			return result{}, x.explain(c.name, err)
		}
		state, code, err := out.end()
		switch {
		case err != nil:
			return result{}, fmt.Errorf("run %s on server %s: %w", c.name, x.Name, err)
		case state == stateReboot && s.afterReboot && confirm != "reboot":
			x.notice(ctx, "server %s was started again while %s ran, which begins once more", x.Name, c.name)
			confirm = "reboot"
			continue
		case state == stateReboot:
			return result{}, x.interrupted(c.name, "the server was started again while the script ran. Where that is part of the script, let its option restartAfterReboot be true")
		case state == stateKilled, code < 0:
			return result{}, x.interrupted(c.name, "the script was ended on the server before it was done, by somebody else or for want of memory")
		case state == stateAgain:
			x.notice(ctx, "%s ran on server %s before; its result is taken", c.name, x.Name)
		}
		x.cleaned = c.last
		return result{code: code, out: out.kept.String(), errors: problems.kept.String()}, nil
	}
}

func (x *execution) interrupted(script, why string) error {
	return &Error{Code: codeFailed, Message: script + ": " + why, Plan: x.plan.Name, Server: x.Name, Time: time.Now()}
}

// explain gives an error its meaning for a user.
func (x *execution) explain(name string, err error) error {
	var exit *ssh.ExitError
	if errors.As(err, &exit) {
		for _, line := range strings.Split(exit.Tail, "\n") {
			if strings.Contains(line, "No space left on device") || strings.Contains(line, "Disk quota exceeded") {
				return &FullError{Server: x.Name, Said: line}
			}
		}
	}
	return fmt.Errorf("run %s on server %s: %w", name, x.Name, err)
}

func (x *execution) folder() string {
	if x.Folder != "" {
		return x.Folder
	}
	return plansFolder
}

func (x *execution) boot() string {
	if x.BootFile != "" {
		return x.BootFile
	}
	return bootFile
}

// control does something with the plan as a whole that its end does not depend on.
func (x *execution) control(ctx context.Context, action string) {
	if x.step == 0 {
		return
	}
	if err := x.Server.Stream(ctx, ssh.Job{Name: action + " plan", Script: planScript, Args: []string{action, x.folder(), x.Task, x.id}}); err != nil && ctx.Err() == nil {
		x.notice(ctx, "%s the files of plan %s on server %s: %v", action, x.plan.Name, x.Name, err)
	}
}

// stop ends the plan's processes, also when the task is at its end.
func (x *execution) stop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopPatience)
	defer cancel()
	x.control(ctx, "stop")
}

// reboot starts the server again and waits until it is there.
func (x *execution) reboot(ctx context.Context) error {
	command := rebootCommand
	if x.RebootCommand != "" {
		command = x.RebootCommand
	}
	x.notice(ctx, "server %s is started again", x.Name)
	const notYet = 3
	err := wait.Policy{First: 500 * time.Millisecond, Most: 2 * time.Second, Growth: 1.2}.Until(ctx, func(ctx context.Context) error {
		err := x.Server.Stream(ctx, ssh.Job{Name: "reboot", Script: planScript, Args: []string{"reboot", x.folder(), x.Task, x.id, x.boot(), command}})
		var exit *ssh.ExitError
		var gone *ssh.LostError
		if errors.As(err, &exit) && exit.Code == notYet || errors.As(err, &gone) {
			return wait.Again(err)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("start server %s again: %w", x.Name, err)
	}
	return nil
}

const keptOutput = 4 << 20 // bytes of each stream of a command that the body sees

// lines takes a stream of output: it keeps its text and reports its lines.
type lines struct {
	told  func(line string)
	quiet *atomic.Bool // whether the present lines were reported already
	head  bool         // the first line is still to come, with the state
	first bool         // nothing of the command was seen here before
	kept  bytes.Buffer
	tail  []byte // the end of the dropped text
	part  []byte // of a line whose end is to come
	line  int    // of this connection
	known int    // number of reported lines
}

func (x *execution) lines(ctx context.Context, script string, quiet *atomic.Bool) *lines {
	return &lines{quiet: quiet, told: func(line string) {
		if x.Line != nil {
			x.Line(ctx, script, line)
		}
	}}
}

// again begins with the stream from its start, over another connection. Reported lines are not reported again.
func (l *lines) again() {
	l.part, l.line, l.tail = nil, 0, nil
	l.kept.Reset()
}

func (l *lines) Write(p []byte) (int, error) {
	n := len(p)
	room := max(keptOutput-l.kept.Len(), 0)
	l.kept.Write(p[:min(room, n)])
	l.tail = append(l.tail, p[min(room, n):]...)
	l.tail = l.tail[max(0, len(l.tail)-endBytes):]
	for {
		line, rest, found := bytes.Cut(p, []byte("\n"))
		l.part = append(l.part, line[:min(len(line), max(0, lineBytes-len(l.part)))]...)
		if !found {
			return n, nil
		}
		l.tell()
		p = rest
	}
}

const (
	lineBytes = 4 << 10 // of a line that is reported
	endBytes  = 64      // of the last line
)

func (l *lines) tell() {
	text := string(l.part)
	l.part = nil
	if l.head {
		l.head = false
		l.quiet.Store(text == stateAgain && l.first)
		return
	}
	if before, _, isEnd := strings.Cut(text, endMark); isEnd {
		text = before
		if text == "" {
			return
		}
	}
	if l.line++; l.line > l.known && !l.quiet.Load() {
		l.known = l.line
		text = strings.TrimRight(text, "\r")
		text = text[strings.LastIndexByte(text, '\r')+1:] // the final text on a terminal: progress overwrites itself
		l.told(strings.ToValidUTF8(text, "\uFFFD"))
	}
}

// The first and the last line of plan.sh.
const (
	stateAgain  = "again"
	stateReboot = "interrupted reboot"
	stateKilled = "interrupted killed"
	endMark     = "\x00exit "
)

// end removes the first and the last line, and returns their values; code is -1 for a command that was killed.
func (l *lines) end() (state string, code int, err error) {
	text := l.kept.String()
	state, rest, _ := strings.Cut(text, "\n")
	if state == stateReboot || state == stateKilled {
		return state, 0, nil
	}
	last := rest + string(l.tail)
	at := strings.LastIndex(last, endMark)
	if at < 0 {
		return "", 0, fmt.Errorf("it gave no result: %q", lastLines(text))
	}
	said := strings.TrimSpace(last[at+len(endMark):])
	l.kept.Reset()
	l.kept.WriteString(rest[:min(at, len(rest))])
	if said == "killed" {
		return state, -1, nil
	}
	code, err = strconv.Atoi(said)
	return state, code, err
}

// archive packs files for the plan's folder.
func archive(entries []entry) ([]byte, error) {
	var buffer bytes.Buffer
	writer := tar.NewWriter(&buffer)
	for _, one := range entries {
		header := &tar.Header{Name: one.path, Mode: one.mode, Size: int64(len(one.content)), Typeflag: tar.TypeReg}
		if one.mode == 0 {
			header.Name, header.Mode, header.Typeflag = one.path+"/", 0o700, tar.TypeDir
		}
		if err := writer.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("pack %s: %w", one.path, err)
		}
		if _, err := writer.Write(one.content); err != nil {
			return nil, fmt.Errorf("pack %s: %w", one.path, err)
		}
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("pack the files of a plan: %w", err)
	}
	return buffer.Bytes(), nil
}

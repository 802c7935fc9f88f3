package images

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// fetch downloads the sources of a module's programs, so that the processors need not wait for the network when their turn comes. Compiling them reports what fails.
func (m module) fetch(ctx context.Context, folder string) {
	arguments := []string{"list", "-mod=readonly", "-deps"}
	for _, program := range m.programs {
		arguments = append(arguments, program.path)
	}
	if len(m.programs) > 0 {
		_ = runCommand(m.command(ctx, folder, arguments...), io.Discard)
	}
}

// command is one of Go's in a module's folder.
func (m module) command(ctx context.Context, folder string, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Dir = folder
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	return command
}

// compile builds the programs of a module into a folder. What it writes says how many packages are compiled of how many.
func (m module) compile(ctx context.Context, folder, out, flags string, output io.Writer) error {
	run := func(output io.Writer, arguments ...string) error {
		return runCommand(m.command(ctx, folder, arguments...), output)
	}
	for name, files := range m.files {
		if err := m.collect(ctx, folder, files, filepath.Join(out, name), output); err != nil {
			return err
		}
	}
	if len(m.programs) == 0 {
		return nil
	}
	options := []string{"-mod=readonly", "-buildvcs=false", "-trimpath", "-ldflags", flags}
	list := append([]string{"list"}, append(options, "-deps", "-f", "{{if .Stale}}{{.ImportPath}}{{end}}")...)
	for _, program := range m.programs {
		list = append(list, program.path)
	}
	// This fetches missing sources, for each of which Go prints a line with spaces.
	counted := &compiling{output: output}
	if err := run(counted, list...); err != nil {
		return err
	}
	counted.start()
	for _, program := range m.programs {
		if err := run(counted, append(append([]string{"build", "-v"}, options...), "-o", filepath.Join(out, program.name), program.path)...); err != nil {
			return err
		}
	}
	return nil
}

// collect writes files of the main module into one.
func (m module) collect(ctx context.Context, folder string, files []string, to string, output io.Writer) error {
	var said bytes.Buffer
	command := exec.CommandContext(ctx, "go", "mod", "download", "-json", m.main)
	command.Dir, command.Stdout, command.Stderr = folder, &said, output
	command.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	var module struct{ Dir, Error string }
	err := command.Run()
	if decoded := json.Unmarshal(said.Bytes(), &module); err != nil || decoded != nil {
		return fmt.Errorf("fetch the sources of %s: %w: %s", m.main, cmp.Or(err, decoded), module.Error)
	}
	all := make([][]byte, len(files))
	for i, file := range files {
		if all[i], err = os.ReadFile(filepath.Join(module.Dir, filepath.FromSlash(file))); err != nil {
			return fmt.Errorf("take a file of %s: %w", m.main, err)
		}
	}
	return os.WriteFile(to, bytes.Join(all, []byte("\n---\n")), 0o644)
}

// compiling is a writer for the Go command's output. It counts lines that are names of packages, first the ones to compile and, after start, the compiled
// ones; all others pass.
type compiling struct {
	output io.Writer

	mutex       sync.Mutex
	open        []byte
	started     bool
	total, done int
}

// start ends the listing.
func (c *compiling) start() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.started = true
	fmt.Fprintf(c.output, "compiling %d packages\n", c.total)
}

// Write is io.Writer's.
func (c *compiling) Write(data []byte) (int, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.open = append(c.open, data...)
	for {
		line, rest, whole := bytes.Cut(c.open, []byte("\n"))
		if !whole {
			return len(data), nil
		}
		c.open = rest
		if err := c.line(string(line)); err != nil {
			return 0, err
		}
	}
}

func (c *compiling) line(text string) error {
	if text == "" || strings.ContainsAny(text, " \t") {
		_, err := fmt.Fprintln(c.output, text)
		return err
	}
	if !c.started {
		c.total++
		return nil
	}
	c.done++
	_, err := fmt.Fprintf(c.output, "compiled %d of %d packages, now %s\r", c.done, max(c.done, c.total), text)
	return err
}

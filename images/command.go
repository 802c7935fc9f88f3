package images

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// patience is how long a stopped program may clean up.
const patience = 20 * time.Second

// runCommand sends a program's output to one writer, and names the failed program. When the command's context ends, the program and its children are
// interrupted, and killed only when that does not help. A program of root has mounts of its own, which end with it: the mounts of mmdebstrap are gone even when
// it is killed, so that its folder can be removed.
func runCommand(command *exec.Cmd, output io.Writer) error {
	command.Stdout, command.Stderr = output, output
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if os.Geteuid() == 0 {
		command.SysProcAttr.Unshareflags = syscall.CLONE_NEWNS
	}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGINT) }
	command.WaitDelay = patience
	if command.Env == nil {
		command.Env = os.Environ()
	}
	if err := command.Run(); err != nil {
		words := strings.Join(command.Args, " ")
		if len(words) > 120 {
			words = words[:120] + " …"
		}
		return fmt.Errorf("run %s: %w", words, err)
	}
	return nil
}

// Package localcloudtest makes the fixtures of tests of the local cloud and on it: an image of the smallest possible server.
package localcloudtest

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// TinyServer returns the tar of a system whose only program is its first process (see the folder init). It configures its interfaces from the config
// drive. It returns its name and its user data to clients at port 8080 or 8081, and the metadata service's answer at port 8082.
func TinyServer(ctx context.Context) ([]byte, error) {
	folder, err := os.MkdirTemp("", "tiny-server-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the tiny server: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	program := filepath.Join(folder, "init")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "github.com/burano/burano/test/localcloud/localcloudtest/init")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the tiny server's first process: %w: %s", err, out)
	}
	content, err := os.ReadFile(program)
	if err != nil {
		return nil, fmt.Errorf("read the tiny server's first process: %w", err)
	}
	var system bytes.Buffer
	w := tar.NewWriter(&system)
	for _, name := range []string{"sbin", "proc", "sys", "dev", "run", "tmp", "var", "var/lib", "etc"} {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755}); err != nil {
			return nil, fmt.Errorf("write the tiny server's image: %w", err)
		}
	}
	if err := w.WriteHeader(&tar.Header{Name: "sbin/init", Mode: 0o755, Size: int64(len(content))}); err != nil {
		return nil, fmt.Errorf("write the tiny server's image: %w", err)
	}
	if _, err := w.Write(content); err != nil {
		return nil, fmt.Errorf("write the tiny server's image: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("write the tiny server's image: %w", err)
	}
	return system.Bytes(), nil
}

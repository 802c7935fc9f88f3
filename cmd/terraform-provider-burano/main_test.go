package main

import (
	"bufio"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
)

// Terraform starts a provider with these variables, and reads from its first line where it answers.
func TestTheProgramAnswersAsTerraformExpects(t *testing.T) {
	program := filepath.Join(t.TempDir(), "terraform-provider-burano")
	output, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput()
	require.NoErrorf(t, err, "%s", output)

	command := exec.CommandContext(t.Context(), program)
	command.Env = []string{"PLUGIN_PROTOCOL_VERSIONS=6", "TF_PLUGIN_MAGIC_COOKIE=d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2"}
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	said, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	line, err := bufio.NewReader(said).ReadString('\n')
	require.NoError(t, err)
	parts := strings.Split(line, "|") // of go-plugin, of Terraform, network, address, how it is spoken
	require.GreaterOrEqual(t, len(parts), 5, line)
	require.Equal(t, []string{"6", "unix", "grpc"}, []string{parts[1], parts[2], strings.TrimSpace(parts[4])})

	connection, err := grpc.NewClient("unix:"+parts[3], grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer func() { _ = connection.Close() }()
	health, err := grpc_health_v1.NewHealthClient(connection).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: "plugin"})
	require.NoError(t, err)
	require.Equal(t, grpc_health_v1.HealthCheckResponse_SERVING, health.Status)
}

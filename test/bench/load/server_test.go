package load

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/test/bench/server"
	"github.com/burano/burano/test/localcloud"
)

// class is the application that is deployed: random words, which a stack of Heat holds.
const class = "io.burano.bench.Words"

// startServer starts the program on the cloud, over SQLite where database is "", until the benchmark ends.
func startServer(b *testing.B, cloud localcloud.Config, database string) *server.Server {
	b.Helper()
	args := []string{"--embedded-packages", "io.murano", "--max-streams", "2000"} // all projects follow their deployments at the same time
	if database != "" {
		args = append(args, "--database", database)
	}
	return server.Start(b, server.Config{Endpoint: cloud.Endpoint(), Args: args})
}

// usersOf makes projects with one member each.
func usersOf(b *testing.B, s *server.Server, count int) []*user {
	b.Helper()
	made := make([]*user, count)
	for i, one := range s.Users(b, count) {
		made[i] = &user{server: s, name: one.Name, token: one.Token, kept: map[string][]string{}}
	}
	return made
}

// importWords uploads the application as a public package.
func importWords(b *testing.B, s *server.Server) {
	b.Helper()
	command := exec.Command(s.Program, "package", "import", "package", "--public")
	command.Env = append(s.As("admin", "admin"), "BURANO_URL="+s.URL)
	output, err := command.CombinedOutput()
	require.NoErrorf(b, err, "%s", output)
}

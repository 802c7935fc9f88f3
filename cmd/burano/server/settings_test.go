package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// resolved reads settings from a command line, an environment and a file; "FILE" on the command line stands for the file.
func resolved(t *testing.T, args []string, environment map[string]string, file string) (*Options, *settings, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "burano.yaml")
	require.NoError(t, os.WriteFile(path, []byte(file), 0o600))
	options := &Options{}
	flags := options.Flags()
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "FILE", path)
	}
	if err := flags.Parse(args); err != nil {
		return nil, nil, err
	}
	s, err := readSettings(flags, func(name string) (string, bool) {
		value, there := environment[name]
		return strings.ReplaceAll(value, "FILE", path), there
	})
	if err == nil {
		err = options.check(s)
	}
	return options, s, err
}

func TestAFlagWinsOverTheEnvironmentAndThatOverTheFile(t *testing.T) {
	options, s, err := resolved(t, []string{"--lease", "4s"}, map[string]string{"BURANO_CONFIG": "FILE", "BURANO_LEASE": "5s", "BURANO_NETWORKS": "10.1.0.0/16",
		"BURANO_LOG_LEVEL": "", "OS_CLOUD": "mine", "BURANO_UNKNOWN": "x"},
		"lease: 6s\nnetworks: 10.2.0.0/16\nlog-level: debug\nmax-requests: 7\nembedded-packages: [io.murano, io.murano.applications]\nos-cloud: other\ntrusted-proxies: [10.0.0.7, 10.1.0.0/16]\n")
	require.NoError(t, err)
	require.Equal(t, 4*time.Second, options.Lease)
	require.Equal(t, "10.1.0.0/16", options.Networks)
	require.Equal(t, "DEBUG", options.logLevel.String(), "an empty variable is none")
	require.Equal(t, 7, options.limits.Requests)
	require.Equal(t, []string{"io.murano", "io.murano.applications"}, options.embedded)
	require.Equal(t, []string{"10.0.0.7", "10.1.0.0/16"}, options.proxies)
	require.Equal(t, "mine", options.Cloud)
	require.Equal(t, "127.0.0.1:8082", options.Listen)
	printed := s.print()
	for _, line := range []string{"lease: 4s  # --lease\n", "networks: 10.1.0.0/16  # variable BURANO_NETWORKS\n", "log-level: DEBUG  # ", "burano.yaml, line 3, log-level\n",
		"listen: 127.0.0.1:8082  # default\n", "policy: \"\"  # default\n"} {
		require.Contains(t, printed, line)
	}
	require.NotContains(t, printed, "kill-at-step")

	// The printed settings can be read again, and mean the same.
	again, _, err := resolved(t, []string{"--config", "FILE"}, nil, printed)
	require.NoError(t, err)
	require.Equal(t, options, again)
}

func TestASettingOfTheFormerReleaseIsAWarning(t *testing.T) {
	_, s, err := resolved(t, []string{"--config", "FILE", "--stop-patience", "20s"}, map[string]string{"BURANO_MAX_VALUES": "5"}, "audit-rows: 7\n")
	require.NoError(t, err)
	require.Len(t, s.Former(), 3)
	for _, place := range []string{"--stop-patience", "variable BURANO_MAX_VALUES", "line 1, audit-rows"} {
		require.Contains(t, strings.Join(s.Former(), "\n"), place)
	}
	require.NotContains(t, s.print(), "audit-rows")
	_, s, err = resolved(t, nil, nil, "")
	require.NoError(t, err)
	require.Empty(t, s.Former())
}

func TestABadValueIsRefusedWithItsPlaceAndName(t *testing.T) {
	for _, c := range []struct {
		args        []string
		environment map[string]string
		file        string
		want        []string
	}{
		{args: []string{"--lease", "soon"}, want: []string{`"--lease"`, `"soon"`}},
		{args: []string{"--trusted-proxies", "10.0.0.1,proxy"}, want: []string{"--trusted-proxies: proxy is neither an address such as 10.0.0.7 nor a range"}},
		{args: []string{"--ssh-from", "192.0.2.7"}, want: []string{`--ssh-from: "192.0.2.7" is no range of IPv4`}},
		{args: []string{"--machine-networks", "198.51.100.7"}, want: []string{`--machine-networks: "198.51.100.7" is no range of IPv4`}},
		{args: []string{"--dns-servers", "dns.example.org"}, want: []string{`--dns-servers: "dns.example.org" is no address`}},
		{args: []string{"--sign-in-idle", "0s"}, want: []string{"--sign-in-idle: 0s is no time to wait"}},
		{args: []string{"--lease", "1s"}, want: []string{"--lease: 1s must be at least 3s"}},
		{environment: map[string]string{"BURANO_LEASE": "soon"}, want: []string{"variable BURANO_LEASE", `"soon" cannot be used`, "invalid duration"}},
		{environment: map[string]string{"BURANO_LEASE": "1s"}, want: []string{"variable BURANO_LEASE: 1s must be"}},
		{file: "# settings\nlease: soon\n", want: []string{"burano.yaml, line 2, lease", `"soon" cannot be used`}},
		{file: "\n\nlog-format: xml\n", want: []string{"burano.yaml, line 3, log-format", `neither text nor json`}},
		{file: "log-level: loud\n", want: []string{"line 1, log-level", `"loud"`}},
		{file: "lisen: 1\n", want: []string{"line 1, lisen: there is no setting of this name"}},
		{file: "kill-at-step: x\n", want: []string{"there is no setting of this name"}},
		{file: "lease: 5s\nlease: 6s\n", want: []string{"lease"}},
		{file: "listen: {a: b}\n", want: []string{"line 1, listen: a setting has a single value"}},
		{file: "embedded-packages: [[a]]\n", want: []string{"a list holds single values"}},
		{file: "- a\n", want: []string{"line 1: there should be lines such as"}},
		{file: "a: [\n", want: []string{"is no YAML"}},
		{args: []string{"--listen", "8082"}, want: []string{`--listen: "8082" is no address with a port`}},
		{args: []string{"--metrics-listen", "x"}, want: []string{"--metrics-listen"}},
		{args: []string{"--tls-cert", "a.pem"}, want: []string{"--tls-cert: tls-cert and tls-key are given together"}},
		{args: []string{"--tls-key", "a.pem"}, want: []string{"tls-cert and tls-key are given together"}},
		{args: []string{"--request-time", "0s"}, want: []string{"--request-time: 0s"}},
		{args: []string{"--max-requests", "-1"}, want: []string{"--max-requests: -1 must be more than 0"}},
		{args: []string{"--networks", "10.0.0.1"}, want: []string{"--networks: it is no range"}},
		{args: []string{"--state", ""}, want: []string{"--state"}},
		{args: []string{"--embedded-packages", "org.x"}, want: []string{"--embedded-packages: io.murano must be among them"}},
		{args: []string{"--config", "/nowhere/burano.yaml"}, want: []string{"/nowhere/burano.yaml"}},
	} {
		if c.file != "" {
			c.args = append(c.args, "--config", "FILE")
		}
		_, _, err := resolved(t, c.args, c.environment, c.file)
		require.Error(t, err, c.want)
		for _, want := range c.want {
			require.ErrorContains(t, err, want)
		}
	}
}

func TestPasswordsAreNotPrinted(t *testing.T) {
	for address, want := range map[string]string{
		"":                                      `""`,
		"postgres://burano:swordfish@db/burano": "postgres://burano:***@db/burano",
		"postgres://burano@db/burano?password=swordfish&sslmode=disable": "password=***",
		"host=db password=swordfish user=burano":                         "host=db password=*** user=burano",
		"host=db password = 'sword fish' user=burano":                    "password = *** user=burano",
		"swordfish": "***",
	} {
		_, s, err := resolved(t, []string{"--database", address}, nil, "")
		require.NoError(t, err)
		require.NotRegexp(t, "sword ?fish", s.print(), address)
		require.Contains(t, s.print(), want, address)
	}
}

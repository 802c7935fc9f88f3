package access

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files anew")

// The keys of the golden files are made for them.
func goldenKeys(t *testing.T) *Keys {
	t.Helper()
	vault := &Memory{}
	for name, file := range map[string]string{vaultOwnKey: "own-key", vaultFirstHost + "web": "first-host-key"} {
		text, err := os.ReadFile(filepath.Join("testdata", file))
		require.NoError(t, err)
		require.NoError(t, vault.Store(t.Context(), name, text))
	}
	return &Keys{vault: vault}
}

// others is user data of packages, by the names of the golden files.
var others = map[string]string{
	"none":         "",
	"script":       "#!/bin/bash\napt-get install -y nginx\n",
	"cloud-config": "#cloud-config\nusers: [default, {name: app}]\nssh_keys: {rsa_private: x}\nruncmd: [nginx]\n",
	"umlaut":       "#!/bin/sh\necho Grüße >/etc/motd",
	"parts": "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"x\"\n\n--x\nContent-Type: text/cloud-config\nContent-Transfer-Encoding: base64\n\n" +
		"I2Nsb3VkLWNvbmZpZwp1c2VyczogW3tuYW1lOiBhcHB9XQo=\n--x\nContent-Type: text/x-shellscript\n\n#!/bin/sh\ntrue\n--x--\n",
}

// A former server was made with these bytes: Heat would replace it for other ones.
func TestUserDataOfServersIsTheSameByteByByte(t *testing.T) {
	for name, other := range others {
		made, err := goldenKeys(t).UserData(t.Context(), "web", other)
		require.NoError(t, err)
		require.True(t, Marked(made))
		require.True(t, MadeOf(made, other))
		require.False(t, MadeOf(made, other+" "))
		file := filepath.Join("testdata", name+".golden")
		if *update {
			require.NoError(t, os.WriteFile(file, []byte(made), 0o644))
		}
		golden, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, string(golden), made, name)
	}
}

func TestUserDataThatIsNotCloudInitsIsLeftAlone(t *testing.T) {
	for _, other := range []string{"<powershell>dir</powershell>", "#ps1_sysnative\ndir", "rem cmd\ndir", `{"ignition": {"version": "3.0.0"}}`, "hello"} {
		_, err := goldenKeys(t).UserData(t.Context(), "web", other)
		require.ErrorIs(t, err, ErrForeign, other)
		require.False(t, Marked(other))
	}
}

// cloud-init uses Python's reader of messages, too.
func TestPartsAreReadAsTheyWereWritten(t *testing.T) {
	reader := `import email, sys
for part in email.message_from_string(sys.stdin.buffer.read().decode()).walk():
    if part.get_content_maintype() != "multipart":
        sys.stdout.buffer.write(b"[" + part.get_content_type().encode() + b"]" + part.get_payload(decode=True) + b"\0")`
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not there")
	}
	read := func(other string) []string {
		made, err := goldenKeys(t).UserData(t.Context(), "web", other)
		require.NoError(t, err)
		command := exec.Command(python, "-c", reader)
		command.Stdin = strings.NewReader(made)
		out, err := command.Output()
		require.NoError(t, err)
		return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	}
	all := read(others["umlaut"])
	require.Len(t, all, 2)
	require.Equal(t, "[text/x-shellscript]"+others["umlaut"], all[0])
	require.True(t, strings.HasPrefix(all[1], "[text/cloud-config]#cloud-config\n"))
	require.Contains(t, all[1], "- default\n")
	all = read(others["parts"])
	require.Len(t, all, 3)
	require.Equal(t, "[text/cloud-config]#cloud-config\nusers: [{name: app}]\n", all[0])
	require.Equal(t, "[text/x-shellscript]#!/bin/sh\ntrue", all[1])
	require.NotContains(t, all[2], "- default\n", "the package's list of users says itself who is made")
}

func TestAConfigurationIsPutBesideAScript(t *testing.T) {
	config := map[string]any{"runcmd": []any{"true"}, "packages": []any{"nginx"}}
	const text = "#cloud-config\npackages:\n    - nginx\nruncmd:\n    - \"true\"\n"
	for name, try := range map[string]struct {
		script string
		config map[string]any
		parts  []string
	}{
		"no configuration": {"#!/bin/sh\ntrue\n", nil, nil},
		"no script":        {" ", config, nil},
		"both":             {"#!/bin/sh\ntrue\n", config, []string{"Content-Type: multipart/mixed", "Content-Type: text/x-shellscript", "#!/bin/sh\ntrue\n", "Content-Type: text/cloud-config", text}},
	} {
		t.Run(name, func(t *testing.T) {
			made, err := Configured(try.script, try.config)
			require.NoError(t, err)
			again, err := Configured(try.script, try.config)
			require.NoError(t, err)
			require.Equal(t, made, again)
			switch {
			case try.config == nil:
				require.Equal(t, try.script, made)
			case try.parts == nil:
				require.Equal(t, text, made)
			}
			for _, part := range try.parts {
				require.Contains(t, made, part)
			}
		})
	}
	_, err := Configured("<powershell>", config)
	require.ErrorIs(t, err, ErrForeign)
}

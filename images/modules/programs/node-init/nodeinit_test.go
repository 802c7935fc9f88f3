package main

import (
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCloudConfigIsReadAndWhatIsNotKnownIsSaid(t *testing.T) {
	data, problems := parseUserData([]byte(`#cloud-config
hostname: node-1
ssh_authorized_keys: [ssh-ed25519 A one]
disable_root: false
ssh_deletekeys: false
ssh_keys: {ed25519_private: secret, ed25519_public: public, dsa_private: old}
users:
- default
- {name: root, ssh_authorized_keys: [ssh-ed25519 B two], shell: /bin/zsh}
- {name: debian, gecos: A user, sudo: 'ALL=(ALL) NOPASSWD:ALL', lock_passwd: true, ssh_authorized_keys: [ssh-ed25519 C three]}
- {name: app, shell: /bin/bash, groups: [video]}
- {name: Not:One}
- alice
write_files:
- {path: /etc/a, content: aGVs bG8K, encoding: b64, permissions: 0600, owner: 'root:root'}
- {path: /etc/b, content: "text", permissions: '0755', append: true}
- {path: relative, content: ""}
- {path: /etc/c, permissions: '999'}
- {path: /etc/d, encoding: gz, content: x}
runcmd:
- echo one; echo two
- [touch, /tmp/three]
- {not: a command}
packages: [vim]
`))
	require.Equal(t, userData{
		Hostname:       "node-1",
		AuthorizedKeys: []string{"ssh-ed25519 A one", "ssh-ed25519 B two"},
		HostKeys:       map[string]string{"ed25519_private": "secret", "ed25519_public": "public"},
		Accounts: []account{
			{Name: "debian", Comment: "A user", Shell: "/bin/sh", Sudo: "ALL=(ALL) NOPASSWD:ALL", AuthorizedKeys: []string{"ssh-ed25519 C three"}},
			{Name: "app", Shell: "/bin/bash", Partial: true},
		},
		Files: []file{
			{Path: "/etc/a", Content: []byte("hello\n"), Mode: 0o600, Owner: "root:root"},
			{Path: "/etc/b", Content: []byte("text"), Mode: 0o755, Append: true},
		},
		Commands: []command{{Line: "echo one; echo two"}, {Words: []string{"touch", "/tmp/three"}}},
	}, data)
	require.Equal(t, []string{
		`line 6, ssh_keys: "dsa_private" is none of ed25519_private, ed25519_public, ecdsa_private, ecdsa_public, rsa_private, rsa_public`,
		`line 7, users: shell of user root is not known and is ignored`,
		`line 7, users: groups of user app is not known and is ignored`,
		`line 7, users: user "Not:One" is ignored: that is no name for one`,
		`line 7, users: user "alice" is ignored: a user is a mapping with a name`,
		`line 14, write_files: file "relative" is not written: the path is not absolute`,
		`line 14, write_files: file "/etc/c" is not written: permissions "999" are no octal number`,
		`line 14, write_files: file "/etc/d" is not written: encoding "gz" is not known (b64 is)`,
		`line 20, runcmd: line 23: a command is a text or a list of words`,
		`line 24, packages: this key is not known and is ignored`,
	}, problems)
}

func TestUserDataMayBeAScriptOrNothing(t *testing.T) {
	data, problems := parseUserData([]byte("#!/bin/sh\necho hello\n"))
	require.Empty(t, problems)
	require.Equal(t, [][]byte{[]byte("#!/bin/sh\necho hello\n")}, data.Scripts)
	require.True(t, data.DeleteHostKeys, "keys that lie in an image are no secret")

	for _, nothing := range []string{"", "\n", "#cloud-config\n", "#cloud-config\n# only a comment\n"} {
		_, problems := parseUserData([]byte(nothing))
		require.Empty(t, problems, "%q", nothing)
	}
	for content, wanted := range map[string]string{
		"Content-Type: multipart/mixed\n":    "cannot be read",
		"Content-Type: multipart/mixed\n\nx": "names no boundary",
		"MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nnothing known\n--b--\n": "all of it is ignored",
		"#cloud-config\n- a\n- b\n": "no mapping",
		"#cloud-config\n{":          "no YAML",
	} {
		_, problems := parseUserData([]byte(content))
		require.Len(t, problems, 1, "%q", content)
		require.Contains(t, problems[0], wanted)
	}
}

func FuzzUserData(f *testing.F) {
	f.Add([]byte("#cloud-config\nwrite_files: [{path: /a, permissions: 0o644}]\nruncmd: [[a], b]\nusers: [root, {name: root}]\n"))
	f.Add([]byte("#!/bin/sh\n"))
	f.Add([]byte("Content-Type: multipart/mixed; boundary=b\nMIME-Version: 1.0\n\n--b\nContent-Type: text/x-shellscript\nContent-Transfer-Encoding: base64\n\nIyEvYmluL3NoCg==\n--b--\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		data, _ := parseUserData(content)
		for _, file := range data.Files {
			require.True(t, filepath.IsAbs(file.Path))
		}
	})
}

func TestNetworkDataBecomesNetworkdFiles(t *testing.T) {
	files, nameServers, problems := networkFiles(network{
		Links: []link{
			{ID: "a", MAC: "fa:16:3e:00:00:01", MTU: 1450}, {ID: "b", MAC: "fa:16:3e:00:00:02"},
			{ID: "c", MAC: "nonsense"}, {ID: "d", MAC: "fa:16:3e:00:00:04"}, {ID: "e", MAC: "fa:16:3e:00:00:05"},
			{ID: "f", MAC: "fa:16:3e:00:00:06"},
		},
		Networks: []subnet{
			{ID: "n0", Link: "a", Type: "ipv4", Address: "192.0.2.5", Netmask: "255.255.255.0",
				Routes:   []route{{"0.0.0.0", "0.0.0.0", "192.0.2.1"}, {"198.51.100.0", "255.255.255.0", "192.0.2.2"}},
				Services: []service{{"dns", "192.0.2.53"}}},
			{ID: "n1", Link: "a", Type: "ipv6", Address: "2001:db8::5/64", Gateway: "2001:db8::1"},
			{ID: "n2", Link: "b", Type: "ipv4_dhcp"},
			{ID: "n5", Link: "d", Type: "ipv6_dhcpv6-stateful", Address: "2001:db8:1::5", Netmask: "ffff:ffff:ffff:ffff::", Routes: []route{{"::", "::", "2001:db8:1::1"}}},
			{ID: "n6", Link: "e", Type: "ipv6_slaac"},
			{ID: "n3", Link: "b", Type: "token-ring"},
			{ID: "n4", Link: "b", Type: "ipv4", Address: "192.0.2.6", Netmask: "ffff:ffff::"},
		},
		Services: []service{{"dns", "192.0.2.53"}, {"dns", "192.0.2.54"}, {"ntp", "192.0.2.55"}},
	})
	require.Equal(t, map[string]string{
		"10-config-drive-0.network": `# From the network data of the config drive.
[Match]
MACAddress=fa:16:3e:00:00:01

[Link]
MTUBytes=1450

[Network]
LinkLocalAddressing=ipv6
IPv6AcceptRA=no

[Address]
Address=192.0.2.5/24

[Route]
Gateway=192.0.2.1

[Route]
Gateway=192.0.2.2
Destination=198.51.100.0/24

[Address]
Address=2001:db8::5/64

[Route]
Gateway=2001:db8::1
`,
		"10-config-drive-1.network": `# From the network data of the config drive.
[Match]
MACAddress=fa:16:3e:00:00:02

[Network]
LinkLocalAddressing=no
IPv6AcceptRA=no
DHCP=ipv4
`,
		"10-config-drive-3.network": `# From the network data of the config drive.
[Match]
MACAddress=fa:16:3e:00:00:04

[Network]
LinkLocalAddressing=ipv6
IPv6AcceptRA=no

[Address]
Address=2001:db8:1::5/64

[Route]
Gateway=2001:db8:1::1
`,
		"10-config-drive-4.network": `# From the network data of the config drive.
[Match]
MACAddress=fa:16:3e:00:00:05

[Network]
LinkLocalAddressing=ipv6
IPv6AcceptRA=yes
DHCP=ipv6
`,
	}, files)
	require.Equal(t, []string{"192.0.2.53", "192.0.2.54"}, nameServers)
	require.Equal(t, []string{
		`network n3: type "token-ring" is not known`,
		`network n4: netmask "ffff:ffff::" does not fit address 192.0.2.6`,
		`link c: address nonsense: invalid MAC address`,
	}, problems)
}

// testServer is a folder in the place of a machine.
func testServer(t *testing.T) server {
	return server{root: t.TempDir(), log: slog.New(slog.NewTextHandler(t.Output(), nil))}
}

func writeDrive(t *testing.T, files map[string]string) string {
	folder := t.TempDir()
	for name, content := range files {
		path := filepath.Join(folder, "openstack/latest", name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
	}
	return folder
}

func (s server) read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(s.path(name))
	require.NoError(t, err)
	return string(content)
}

func mode(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	return info.Mode().Perm()
}

func TestAServerIsSetUpOncePerInstance(t *testing.T) {
	server := testServer(t)
	require.NoError(t, server.write(server.path("etc/ssh/ssh_host_rsa_key"), []byte("of the image"), 0o600))
	require.NoError(t, os.MkdirAll(server.path("root/.ssh"), 0o700))
	require.NoError(t, server.write(server.path("root/.ssh/authorized_keys"), []byte("ssh-ed25519 IMAGE\n"), 0o600))
	files := map[string]string{
		"meta_data.json":    `{"uuid": "one", "hostname": "node-1.novalocal", "public_keys": {"mykey": "ssh-ed25519 KEY\n"}}`,
		"network_data.json": `{"links": [{"id": "l", "ethernet_mac_address": "fa:16:3e:00:00:01"}], "networks": [{"link": "l", "type": "ipv4", "ip_address": "192.0.2.5", "netmask": "24"}], "services": [{"type": "dns", "address": "192.0.2.53"}]}`,
		"user_data": "#cloud-config\nssh_keys: {ed25519_private: PRIVATE, ed25519_public: PUBLIC}\nssh_authorized_keys: [ssh-ed25519 KEY, ssh-ed25519 OTHER]\n" +
			"write_files: [{path: /opt/a, content: new, append: true, permissions: '0600'}]\nruncmd: ['echo ran >> ran', [sh, -c, 'exit 3'], 'echo again >> ran']\n",
	}
	drive := writeDrive(t, files)
	require.NoError(t, run(server, drive, early))

	require.Equal(t, "node-1\n", server.read(t, "etc/hostname"))
	require.Contains(t, server.read(t, "etc/hosts"), "127.0.1.1 node-1.novalocal node-1\n")
	require.Equal(t, "nameserver 192.0.2.53\n", server.read(t, "etc/resolv.conf"))
	require.Contains(t, server.read(t, "etc/systemd/network/10-config-drive-0.network"), "Address=192.0.2.5/24")
	require.Equal(t, "ssh-ed25519 IMAGE\nssh-ed25519 KEY\nssh-ed25519 OTHER\n", server.read(t, "root/.ssh/authorized_keys"))
	require.Equal(t, fs.FileMode(0o700), mode(t, server.path("root/.ssh")))
	require.NoFileExists(t, server.path("etc/ssh/ssh_host_rsa_key"))
	require.Equal(t, "PRIVATE\n", server.read(t, "etc/ssh/ssh_host_ed25519_key"))
	require.Equal(t, fs.FileMode(0o600), mode(t, server.path("etc/ssh/ssh_host_ed25519_key")))
	require.Equal(t, fs.FileMode(0o644), mode(t, server.path("etc/ssh/ssh_host_ed25519_key.pub")))
	require.Equal(t, "new", server.read(t, "opt/a"))
	require.NoFileExists(t, server.path("ran"), "commands wait for the network")

	err := run(server, drive, late)
	require.ErrorContains(t, err, "late phase of instance one: sh -c exit 3")
	require.Equal(t, "ran\nagain\n", server.read(t, "ran"), "one that fails does not keep the others from running")

	require.NoError(t, run(server, drive, early))
	require.NoError(t, run(server, drive, late))
	require.Equal(t, "new", server.read(t, "opt/a"))
	require.Equal(t, "ran\nagain\n", server.read(t, "ran"))

	files["meta_data.json"] = `{"uuid": "two", "name": "node-2"}`
	require.NoError(t, run(server, writeDrive(t, files), early))
	require.Equal(t, "node-2\n", server.read(t, "etc/hostname"))
	require.Equal(t, "newnew", server.read(t, "opt/a"))
}

func TestAScriptRunsOnce(t *testing.T) {
	server := testServer(t)
	drive := writeDrive(t, map[string]string{"meta_data.json": `{"uuid": "one"}`, "user_data": "#!/bin/sh\necho ran >> ran\n"})
	require.NoError(t, run(server, drive, early))
	require.NoError(t, run(server, drive, late))
	require.NoError(t, run(server, drive, late))
	require.Equal(t, "ran\n", server.read(t, "ran"))
}

// Burano's user data for servers of applications (nodes/access/testdata).
func TestUserDataOfSeveralPartsMakesAUserAndRunsTheScript(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root makes users")
	}
	server := testServer(t)
	for name, content := range map[string]string{"etc/passwd": "root:x:0:0:root:/root:/bin/bash\n", "etc/shadow": "root:*:1::::::\n", "etc/group": "root:x:0:\n", "etc/gshadow": "root:*::\n"} {
		require.NoError(t, server.write(server.path(name), []byte(content), 0o644))
	}
	content := `Content-Type: multipart/mixed; boundary="outer"
MIME-Version: 1.0

--outer
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="inner"

--inner
Content-Type: text/cloud-config
Content-Transfer-Encoding: base64

I2Nsb3VkLWNvbmZpZwpydW5jbWQ6IFsnZWNobyB0d28gPj4gcmFuJ10K
--inner
Content-Type: text/x-shellscript

#!/bin/sh
echo one >> ran

--inner--

--outer
Content-Type: text/cloud-config; charset="utf-8"
MIME-Version: 1.0
Content-Transfer-Encoding: 7bit

#cloud-config
# a comment
merge_how: [{name: list, settings: [append]}]
ssh_deletekeys: true
ssh_keys: {ed25519_private: PRIVATE, ed25519_public: PUBLIC}
users:
  - default
  - {name: burano, gecos: Burano, shell: /bin/bash, lock_passwd: true, sudo: ALL=(ALL) NOPASSWD:ALL, ssh_authorized_keys: [ssh-ed25519 KEY burano]}

--outer--
`
	drive := writeDrive(t, map[string]string{"meta_data.json": `{"uuid": "one", "name": "web"}`, "user_data": content})
	data, problems := parseUserData([]byte(content))
	require.Empty(t, problems)
	require.Len(t, data.Scripts, 1)
	for range 2 { // the second time a user is there
		require.NoError(t, run(server, drive, early))
		require.NoError(t, os.Remove(server.path("var/lib/burano-init/one/early")))
	}
	require.NoError(t, run(server, drive, late))
	require.Equal(t, "one\ntwo\n", server.read(t, "ran"))
	require.Equal(t, "PRIVATE\n", server.read(t, "etc/ssh/ssh_host_ed25519_key"))
	require.Contains(t, server.read(t, "etc/passwd"), ":Burano:/home/burano:/bin/bash\n")
	require.Equal(t, "burano ALL=(ALL) NOPASSWD:ALL\n", server.read(t, "etc/sudoers.d/90-burano"))
	require.Equal(t, fs.FileMode(0o440), mode(t, server.path("etc/sudoers.d/90-burano")))
	require.Equal(t, "ssh-ed25519 KEY burano\n", server.read(t, "home/burano/.ssh/authorized_keys"))
	info, err := os.Stat(server.path("home/burano/.ssh/authorized_keys"))
	require.NoError(t, err)
	uid, _, _, err := server.accountOf("burano")
	require.NoError(t, err)
	require.Equal(t, uint32(uid), info.Sys().(*syscall.Stat_t).Uid, "sshd wants the file to be the user's")
}

func TestWithoutADriveNothingHappensAndABrokenOneIsSaid(t *testing.T) {
	server := testServer(t)
	require.NoError(t, run(server, t.TempDir(), early))
	left, err := os.ReadDir(server.root)
	require.NoError(t, err)
	require.Empty(t, left)

	require.ErrorContains(t, run(server, writeDrive(t, map[string]string{"meta_data.json": "{"}), early), "meta_data.json")
	for _, id := range []string{"", "../../etc", "a/b"} {
		drive := writeDrive(t, map[string]string{"meta_data.json": `{"uuid": "` + id + `"}`})
		require.ErrorContains(t, run(server, drive, early), "is no instance id")
	}
	require.ErrorContains(t, run(server, writeDrive(t, map[string]string{"meta_data.json": `{"uuid": "a"}`, "network_data.json": "["}), early), "network_data.json")
}

func TestAFailureInOnePartDoesNotKeepTheOthersFromBeingSetUp(t *testing.T) {
	server := testServer(t)
	// A file is in the place of a folder.
	require.NoError(t, os.WriteFile(server.path("etc"), nil, 0o644))
	drive := writeDrive(t, map[string]string{"meta_data.json": `{"uuid": "one", "name": "n", "public_keys": {"k": "ssh-ed25519 K"}}`})
	require.Error(t, run(server, drive, early))
	require.Equal(t, "ssh-ed25519 K\n", server.read(t, "root/.ssh/authorized_keys"))

	require.NoError(t, os.Remove(server.path("etc")))
	require.NoError(t, run(server, drive, early), "it is tried again at the next boot")
	require.True(t, strings.HasPrefix(server.read(t, "etc/hostname"), "n"))
}

func TestUserDataThatIsNotUnderstoodWholeIsCloudInitsWhereTheImageHasIt(t *testing.T) {
	content := "#cloud-config\nhostname: mine\nssh_keys: {ed25519_private: PRIVATE}\npackages: [vim]\n" +
		"write_files: [{path: /opt/a, content: new}]\nruncmd: ['echo ran >> ran']\n"
	files := map[string]string{"meta_data.json": `{"uuid": "one", "hostname": "h", "public_keys": {"k": "ssh-ed25519 KEY"}}`, "user_data": content}

	without := testServer(t)
	drive := writeDrive(t, files)
	require.NoError(t, run(without, drive, early))
	require.NoError(t, run(without, drive, late))
	require.Equal(t, "new", without.read(t, "opt/a"))
	require.Equal(t, "ran\n", without.read(t, "ran"))
	require.NoDirExists(t, without.path(seedFolder))

	with := testServer(t)
	require.NoError(t, with.write(with.path("usr/bin/cloud-init"), nil, 0o755))
	require.NoError(t, run(with, drive, early))
	require.NoError(t, run(with, drive, late))
	require.Equal(t, "mine\n", with.read(t, "etc/hostname"))
	require.Equal(t, "PRIVATE\n", with.read(t, "etc/ssh/ssh_host_ed25519_key"))
	require.Equal(t, "ssh-ed25519 KEY\n", with.read(t, "root/.ssh/authorized_keys"))
	require.NoFileExists(t, with.path("opt/a"), "nothing is done twice")
	require.NoFileExists(t, with.path("ran"))
	require.Equal(t, content, with.read(t, seedFolder+"/user-data"))
	require.Equal(t, fs.FileMode(0o600), mode(t, with.path(seedFolder, "user-data")))
	require.JSONEq(t, `{"instance-id": "one", "local-hostname": "h", "public-keys": ["ssh-ed25519 KEY"]}`, with.read(t, seedFolder+"/meta-data"))

	// A disk that has become another server's, with user data of ours.
	require.NoError(t, run(with, writeDrive(t, map[string]string{"meta_data.json": `{"uuid": "two"}`, "user_data": "#cloud-config\nhostname: n\n"}), early))
	require.NoDirExists(t, with.path(seedFolder))
}

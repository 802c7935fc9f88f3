package nodes

import (
	"archive/tar"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func certificateOf(t *testing.T, data string) *x509.Certificate {
	t.Helper()
	text, err := base64.StdEncoding.DecodeString(data)
	require.NoError(t, err)
	block, _ := pem.Decode(text)
	require.NotNil(t, block)
	certificate, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	return certificate
}

// bash runs a script of ours with programs of the test first in its PATH.
func bash(t *testing.T, body string, programs map[string]string, env ...string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range programs {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/bash\n"+text+"\n"), 0o755))
	}
	command := exec.Command("bash", "-s")
	command.Stdin = strings.NewReader(body)
	command.Env = append([]string{"PATH=" + dir + ":" + os.Getenv("PATH"), "HOME=/root"}, env...)
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	require.NoError(t, err, "%s", &stderr)
	return string(out)
}

func TestFactsAreOfTheFilesAndLinksThatAreThere(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(dir+"/a b", []byte("x"), 0o600))
	require.NoError(t, os.Symlink("/some/where", dir+"/link"))
	out := bash(t, factsScript, nil, "ADDRESS=127.0.0.1", "PATHS="+dir+"/a b\n"+dir+"/link\n"+dir+"/none")
	f := parseFacts(out)
	require.Equal(t, map[string]string{dir + "/a b": "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"}, f.files)
	require.Equal(t, map[string]string{dir + "/link": "/some/where"}, f.links)
	require.Equal(t, 65536, f.mtu)
	require.False(t, f.six)
	for address, has := range map[string]bool{"::1": true, "2001:db8::1": false} {
		require.Equal(t, has, parseFacts(bash(t, factsScript, nil, "ADDRESS=127.0.0.1", "ADDRESS6="+address)).six, address)
	}
}

func TestResolversOnTheNodeItselfAreNoneForPods(t *testing.T) {
	f := parseFacts("resolver 127.0.0.53\nresolver 192.0.2.1\nresolver nonsense\nmtu x\n")
	require.Len(t, f.resolvers, 1)
	require.Equal(t, "192.0.2.1", f.resolvers[0].String())
}

func TestTheHostsFileGetsOurLinesOnceAndKeepsItsOwn(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hosts")
	require.NoError(t, os.WriteFile(file, []byte("127.0.0.1 localhost\n"), 0o644))
	for _, lines := range []string{"10.0.0.1 m1", "10.0.0.1 m1", "10.0.0.1 m1\n10.0.0.2 n1"} {
		bash(t, placeFilesScript, nil, "HOSTS_FILE="+file, "HOSTS="+lines)
		got, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, "127.0.0.1 localhost\n# burano: nodes of the cluster\n"+lines+"\n# burano: end\n", string(got))
	}
}

// Root of a master has kubectl without settings, and keeps its own programs and settings.
func TestRootOfAMasterHasKubectl(t *testing.T) {
	dir := t.TempDir()
	bin, links, home := filepath.Join(dir, "bin"), filepath.Join(dir, "links"), filepath.Join(dir, "home")
	require.NoError(t, os.MkdirAll(bin, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(bin, "kubectl"), nil, 0o755))
	place := func() {
		bash(t, placeFilesScript, nil, "KUBECONFIG_OF_ROOT=/etc/root.conf", "BIN="+bin, "LOCAL_BIN="+links, "ROOT_HOME="+home)
	}
	target := func(path string) string {
		found, err := os.Readlink(path)
		require.NoError(t, err)
		return found
	}
	place()
	place()
	require.Equal(t, filepath.Join(bin, "kubectl"), target(filepath.Join(links, "kubectl")))
	require.Equal(t, "/etc/root.conf", target(filepath.Join(home, ".kube/config")))
	require.NoFileExists(t, filepath.Join(links, "helm"), "the image has none")
	require.NoError(t, os.Remove(filepath.Join(home, ".kube/config")))
	require.NoError(t, os.WriteFile(filepath.Join(home, ".kube/config"), []byte("own"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(links, "helm"), []byte("own"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(bin, "helm"), nil, 0o755))
	place()
	for _, path := range []string{filepath.Join(home, ".kube/config"), filepath.Join(links, "helm")} {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, "own", string(text))
	}
}

func TestUnitsAreRestartedOnlyWhenTheyRunWithOtherFiles(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	programs := map[string]string{"systemctl": `case $1 in is-active) echo active;; *) echo "$@" >>"$LOG";; esac`}
	start := func(fingerprint string) string {
		return bash(t, startScript, programs, "NOTES="+dir+"/notes", "LOG="+log, "UNITS=etcd "+fingerprint+"\nkubelet same")
	}
	require.Equal(t, "started etcd\nstarted kubelet\n", start("one"))
	require.Equal(t, "kept etcd\nkept kubelet\n", start("one"))
	require.Equal(t, "started etcd\nkept kubelet\n", start("two"))
	require.Equal(t, "started etcd\nkept kubelet\n", start("three-one"))
	require.Equal(t, "reloaded etcd\nkept kubelet\n", start("three-two"))
	require.Equal(t, "kept etcd\nkept kubelet\n", start("three-two"))
	require.Equal(t, "started etcd\nkept kubelet\n", start("four-two"))
	calls, err := os.ReadFile(log)
	require.NoError(t, err)
	require.Equal(t, "restart etcd\nrestart kubelet\nrestart etcd\nrestart etcd\nreload etcd\nrestart etcd\n", string(calls))

	hosts := filepath.Join(dir, "hosts")
	require.NoError(t, os.WriteFile(hosts, nil, 0o644))
	require.Equal(t, "kept kubelet\n", bash(t, startScript+placeFilesScript, programs, "NOTES="+dir+"/notes", "LOG="+log, "UNITS=kubelet same", "HOSTS_FILE="+hosts, "HOSTS=10.0.0.1 m1"), "with what follows on it")
	written, err := os.ReadFile(hosts)
	require.NoError(t, err)
	require.Contains(t, string(written), "10.0.0.1 m1\n")
}

func TestAUnitThatDoesNotComeUpFailsWithItsJournal(t *testing.T) {
	dir := t.TempDir()
	programs := filepath.Join(dir, "bin")
	require.NoError(t, os.Mkdir(programs, 0o755))
	require.NoError(t, os.WriteFile(programs+"/systemctl", []byte("#!/bin/bash\n[ \"$1\" != is-active ] || echo failed\nexit 1\n"), 0o755))
	require.NoError(t, os.WriteFile(programs+"/journalctl", []byte("#!/bin/bash\necho why it failed\n"), 0o755))
	command := exec.Command("bash", "-s")
	command.Stdin = strings.NewReader(startScript)
	command.Env = []string{"PATH=" + programs + ":" + os.Getenv("PATH"), "NOTES=" + dir, "UNITS=etcd one", "PATIENCE=0"}
	out, err := command.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "why it failed")
	_, err = os.Stat(dir + "/etcd")
	require.ErrorIs(t, err, os.ErrNotExist, "what did not start is not noted as started")
}

func TestAGatewayLivesAsLongAsHAProxyAndTheDaemonAnswer(t *testing.T) {
	lives := func(args ...string) bool {
		command := exec.Command("bash", append([]string{"-s", "--"}, args...)...)
		command.Stdin = strings.NewReader(gatewayLivesScript)
		return command.Run() == nil
	}
	folder := t.TempDir()
	socket := filepath.Join(folder, "admin.sock")
	require.False(t, lives("haproxy", socket), "there is none")
	program := filepath.Join(folder, "socat") // in place of socat: it asks, and prints the answer
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/bash\nread -r asked; [[ $asked = 'show version' ]] && cat \"$SAID\"\n"), 0o755))
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	t.Setenv("SAID", filepath.Join(folder, "said"))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "said"), nil, 0o600))
	require.False(t, lives("haproxy", socket), "it stands still")
	require.NoError(t, os.WriteFile(filepath.Join(folder, "said"), []byte("2.6.12\n"), 0o600))
	require.True(t, lives("haproxy", socket))

	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	host, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	require.True(t, lives("daemon", host, port))
	require.NoError(t, listener.Close())
	require.False(t, lives("daemon", host, port))
}

func TestTheDiskOfANodeIsRead(t *testing.T) {
	disk, err := parsedDisk(bash(t, diskScript, nil, "FOLDER="+t.TempDir()))
	require.NoError(t, err)
	require.Positive(t, disk.Size)
	require.LessOrEqual(t, disk.Free, disk.Size)
	disk, err = parsedDisk("10 100 4096\ncontainer\n")
	require.NoError(t, err)
	require.Equal(t, Disk{Free: 40960, Size: 409600, Least: 1}, *disk)
	_, err = parsedDisk("stat: no such thing")
	require.Error(t, err)
}

func TestImagesAreImportedWhenContainerdHasThemNot(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(dir+"/images", 0o755))
	archive, err := os.Create(dir + "/images/pause.tar")
	require.NoError(t, err)
	files := tar.NewWriter(archive)
	manifest := `[{"Config":"sha256:1","RepoTags":["registry.local/pause:1","registry.local/other:1"],"Layers":["1.tar"]}]`
	require.NoError(t, files.WriteHeader(&tar.Header{Name: "manifest.json", Mode: 0o644, Size: int64(len(manifest))}))
	_, err = files.Write([]byte(manifest))
	require.NoError(t, err)
	require.NoError(t, files.Close())
	require.NoError(t, archive.Close())
	// ctr keeps its list of images in a file, and records pinned images.
	ctr := `case "$4" in
ls) cat "$LIST" ;;
import) printf 'registry.local/pause:1\nregistry.local/other:1\n' >"$LIST" ;;
label) echo "$5 $6" >>"$LIST.pinned" ;;
esac`
	list := dir + "/list"
	require.NoError(t, os.WriteFile(list, []byte("registry.example/else:1\n"), 0o644))
	run := func() string {
		return bash(t, runtimeScript+imagesScript, map[string]string{"ctr": ctr}, "IMAGES="+dir+"/images", "NOTES="+dir+"/notes", "LIST="+list)
	}
	require.Equal(t, "imported pause\n", run())
	require.Empty(t, run())
	pinned, err := os.ReadFile(list + ".pinned")
	require.NoError(t, err)
	require.Equal(t, "registry.local/pause:1 io.cri-containerd.pinned=pinned\nregistry.local/other:1 io.cri-containerd.pinned=pinned\n", string(pinned))
	require.NoError(t, os.WriteFile(list, []byte("registry.local/pause:1\n"), 0o644))
	require.Equal(t, "imported pause\n", run(), "somebody has removed one")
}

// docker keeps its images and containers in files, one a line, and records its calls.
const aDocker = `echo "$*" >>"$CALLS"
case "$1" in
image) cat "$LIST" ;;
load) cat "$4" >>"$LIST" ;;
create) echo "$5 $6" >>"$PINS" ;;
rm) grep -v "^$2 " "$PINS" >"$PINS.new"; mv "$PINS.new" "$PINS" ;;
esac`

func TestDockerKeepsImagesByAContainerOfEach(t *testing.T) {
	dir := t.TempDir()
	env := []string{"DOCKER=" + dir, "LIST=" + dir + "/list", "PINS=" + dir + "/pins", "CALLS=" + dir + "/calls", "NOTES=" + dir + "/notes"}
	require.NoError(t, os.WriteFile(dir+"/list", nil, 0o600))
	require.NoError(t, os.WriteFile(dir+"/pins", nil, 0o600))
	docker := map[string]string{"docker": aDocker}
	pinned := func() string {
		text, err := os.ReadFile(dir + "/pins")
		require.NoError(t, err)
		return regexp.MustCompile(`pin-[0-9a-f]{16}`).ReplaceAllString(string(text), "pin")
	}
	bring := func(name, digest string) {
		require.NoError(t, os.WriteFile(dir+"/"+digest, []byte(name+"\n"), 0o600))
		bash(t, runtimeScript+containerImageScript, docker, append(env, "FILE="+dir+"/"+digest, "NAME="+name, "DIGEST="+digest)...)
	}
	bring("glance.local/web:1", "aa")
	bring("glance.local/web:2", "bb")
	require.Equal(t, "pin glance.local/web:1\npin glance.local/web:2\n", pinned())
	bring("glance.local/web:1", "cc")
	require.Equal(t, "pin glance.local/web:2\npin glance.local/web:1\n", pinned(), "the container of the former one has gone")
	require.Empty(t, bash(t, runtimeScript+containerImagesScript, docker, append(env, "WANTED=cc glance.local/web:1")...))
	require.Equal(t, "pin glance.local/web:1\n", pinned())
}

func TestContainersOfDockerAreEnded(t *testing.T) {
	dir := t.TempDir()
	docker := map[string]string{"docker": `case "$1" in
inspect) cat "$STATE/$4" ;;
kill) echo "$3 $4" >>"$STATE/killed"; case "$3 $4" in "SIGTERM deaf") ;; *) echo false >"$STATE/$4" ;; esac ;;
esac`}
	for _, name := range []string{"deaf", "good"} {
		require.NoError(t, os.WriteFile(dir+"/"+name, []byte("true\n"), 0o600))
	}
	bash(t, runtimeScript+endContainersScript, docker, "DOCKER="+dir, "STATE="+dir, "IDS=good\ndeaf\ngone", "PATIENCE=1")
	killed, err := os.ReadFile(dir + "/killed")
	require.NoError(t, err)
	require.Equal(t, "SIGTERM good\nSIGTERM deaf\nSIGTERM gone\nSIGKILL deaf\n", string(killed))
}

// A token of a pod is renewed where a former key signed it, wherever its volume has it. Other texts are left alone.
func TestTokensOfFormerKeysAreRenewedByAKubeletThatStartsAgain(t *testing.T) {
	pods := t.TempDir()
	token := func(key string) string {
		header := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"ES256","kid":"` + key + `"}`))
		return header + "." + base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"?>"}`)) + ".signature"
	}
	place := func(path, text string) {
		path = filepath.Join(pods, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	const volumes = "/volumes/kubernetes.io~projected/"
	place("a"+volumes+"kube-api-access/..data/token", token("former"))
	require.NoError(t, os.Symlink("..data/token", filepath.Join(pods, "a"+volumes+"kube-api-access/token")))
	place("b"+volumes+"own/..data/deep/vault", token("former~1"))
	require.NoError(t, os.Symlink("..data/deep", filepath.Join(pods, "b"+volumes+"own/deep")))
	place("c"+volumes+"kube-api-access/token", token("new"))
	place("c"+volumes+"kube-api-access/ca.crt", "-----BEGIN CERTIFICATE-----")
	place("c"+volumes+"kube-api-access/other", "eyJ no token")
	place("c/volumes/kubernetes.io~secret/x/token", token("former"))

	log := filepath.Join(t.TempDir(), "log")
	programs := map[string]string{"systemctl": `echo "$@" >>"$LOG"; echo "$NEW" >"$PODS_FOLDER/a` + volumes + `kube-api-access/..data/token"; echo "$NEW" >"$PODS_FOLDER/b` + volumes + `own/..data/deep/vault"`}
	renew := func() string {
		return bash(t, renewTokensScript, programs, "PODS_FOLDER="+pods, "KEYS=former\nformer~1", "LOG="+log, "NEW="+token("new"), "PATIENCE=5")
	}
	require.Equal(t, "2\n", renew())
	require.Equal(t, "0\n", renew(), "done already")
	calls, err := os.ReadFile(log)
	require.NoError(t, err)
	require.Equal(t, "restart kubelet\n", string(calls))
	require.Equal(t, "0\n", bash(t, renewTokensScript, programs, "PODS_FOLDER="+t.TempDir(), "KEYS=former", "LOG="+log), "a node without pods")
}

package nodes

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/nodes/pki"
	"github.com/burano/burano/nodes/signin"
	"github.com/burano/burano/nodes/ssh"
	"github.com/burano/burano/nodes/systemd"
)

func anIssuer() []signin.Issuer {
	return []signin.Issuer{signin.Issuer{URL: "https://id.example.org", Audiences: []string{"kubernetes"}}.WithDefaults()}
}

func TestIssuersRestartNothing(t *testing.T) {
	d, pairs := aDesign(t, nodesOf(1, 1, 1), Calico)
	master := d.cluster.Nodes[0]
	before, err := d.layout(master, pairs, 1450)
	require.NoError(t, err)
	d.cluster.Issuers = anIssuer()
	after, err := d.layout(master, pairs, 1450)
	require.NoError(t, err)
	require.Equal(t, before.units["kube-apiserver"].Fingerprint(), after.units["kube-apiserver"].Fingerprint())
	require.Len(t, after.files(), len(before.files()))
	for i, file := range after.files() {
		if file.Path == kube.AuthenticationFile {
			require.Contains(t, string(file.Content), string(before.files()[i].Content), "anonymous requests stay as they are, which the API server demands")
			require.Contains(t, string(file.Content), "url: https://id.example.org")
			continue
		}
		require.Equal(t, before.files()[i], file)
	}
}

func TestMastersGetIssuersOneAfterAnother(t *testing.T) {
	vault := newVault()
	begin := func(issuers []signin.Issuer) signInSteps {
		cluster, err := NewCluster(Config{Name: "c", Nodes: nodesOf(3, 1, 1), Vault: vault, NodeNetwork: netip.MustParsePrefix("10.0.0.0/24"), Issuers: issuers})
		require.NoError(t, err)
		d := signInSteps{&deployment{cluster: cluster, lead: cluster.config.Nodes[0]}}
		require.NoError(t, d.chooseSignIn(t.Context()))
		return d
	}
	file := ssh.File{Path: kube.AuthenticationFile}
	installs := func(d signInSteps, files map[string]string) bool {
		return len(d.unstaged(facts{files: files}, []ssh.File{file})) == 1
	}
	former := map[string]string{file.Path: "digest"}

	d := begin(nil)
	require.True(t, d.steps()[0].skipIf, "a cluster without issuers has no such step")
	require.True(t, installs(d, former), "a master that was away gets its list with its other files")

	d = begin(anIssuer())
	require.False(t, d.steps()[0].skipIf)
	require.False(t, installs(d, former), "by the step")
	require.True(t, installs(d, nil), "an API server that begins has its list at once")
	for i, node := range d.with(Master) {
		known, _, err := SignIn(t.Context(), vault)
		require.NoError(t, err)
		require.Empty(t, known, "%d masters have it", i)
		require.NoError(t, d.issued(t.Context(), node))
	}
	known, _, err := SignIn(t.Context(), vault)
	require.NoError(t, err)
	require.Equal(t, anIssuer()[0].URL, known[0].URL)

	d = begin(nil)
	require.False(t, d.steps()[0].skipIf, "they are taken away")
	require.NoError(t, d.issued(t.Context(), d.with(Master)[0]))
	d = begin(nil)
	require.False(t, d.steps()[0].skipIf, "until all masters are without")
	for _, node := range d.with(Master) {
		require.NoError(t, d.issued(t.Context(), node))
	}
	require.True(t, begin(nil).steps()[0].skipIf)
}

func TestMastersAskWhoseATokenOfKeystoneIs(t *testing.T) {
	d, pairs := aDesign(t, nodesOf(1, 1, 1), Calico)
	master := d.cluster.Nodes[0]
	before, err := d.layout(master, pairs, 1450)
	require.NoError(t, err)
	d.cluster.KeystoneSignIn = true
	for name, order := range d.orders(master) {
		if _, known := pairs[name]; !known {
			pairs[name] = pki.Pair{Certificate: []byte("<" + name + ": CN=" + order.Request.CommonName + ">\n"), Key: []byte("<" + name + " key>\n")}
		}
	}
	after, err := d.layout(master, pairs, 1450)
	require.NoError(t, err)
	require.NotEqual(t, before.units["kube-apiserver"].Fingerprint(), after.units["kube-apiserver"].Fingerprint())
	former := map[string]string{}
	for _, file := range before.files() {
		former[file.Path] = file.Digest()
	}
	var others []ssh.File
	for _, file := range after.files() {
		if file.Path == systemd.Folder+"/kube-apiserver.service" {
			for line := range strings.Lines(string(file.Content)) {
				if strings.Contains(line, "webhook") {
					others = append(others, ssh.File{Path: "flag", Content: []byte(line)})
				}
			}
		} else if former[file.Path] != file.Digest() || file.Link != "" && former[file.Path] == "" {
			others = append(others, file)
		}
	}
	reviewed(t, "sign-in.txt", written(others))
	require.Contains(t, d.servingUnits(master, after), kube.SignInUnit, "a locked master has none")
	d.binary = ""
	without, err := d.layout(master, pairs, 1450)
	require.NoError(t, err)
	require.Equal(t, before.units["kube-apiserver"].Fingerprint(), without.units["kube-apiserver"].Fingerprint(), "without the program nobody asks it")
}

func TestTheProgramForTokensOfKeystoneEndsOnce(t *testing.T) {
	vault := newVault()
	begin := func(wanted bool) signInSteps {
		cluster, err := NewCluster(Config{Name: "c", Nodes: nodesOf(3, 1, 1), Vault: vault, NodeNetwork: netip.MustParsePrefix("10.0.0.0/24"), KeystoneSignIn: wanted})
		require.NoError(t, err)
		d := signInSteps{&deployment{cluster: cluster, lead: cluster.config.Nodes[0], design: design{cluster: cluster.config, binary: "digest"}}}
		require.NoError(t, d.chooseSignIn(t.Context()))
		return d
	}
	planned := func(d signInSteps) (begins, ends bool) { return !d.steps()[1].skipIf, !d.steps()[2].skipIf }
	for _, one := range []struct{ wanted, begins, ends bool }{{false, false, false}, {true, true, false}, {true, true, false}, {false, false, true}, {false, false, true}} {
		begins, ends := planned(begin(one.wanted))
		require.Equal(t, []bool{one.begins, one.ends}, []bool{begins, ends})
		_, known, err := SignIn(t.Context(), vault)
		require.NoError(t, err)
		require.Equal(t, one.begins || one.ends, known)
	}
	d := begin(false)
	for _, node := range d.with(Master) {
		_, ends := planned(begin(false))
		require.True(t, ends, "until it has ended on all masters")
		require.NoError(t, d.keystoneEnded(t.Context(), node))
	}
	_, ends := planned(begin(false))
	require.False(t, ends)
}

func TestAnAPIServerThatUsesAListSaysSo(t *testing.T) {
	list := ssh.File{Content: []byte("text\n")}
	said := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte(said)) }))
	defer server.Close()
	ask := func(metrics string) error {
		said = metrics
		return uses(t.Context(), &rest.Config{Host: server.URL}, list)
	}
	const metric = `apiserver_authentication_config_controller_last_config_info{apiserver_id_hash="sha256:1",hash="sha256:`
	require.ErrorContains(t, ask("other 1\n"), "do not name its list")
	require.ErrorContains(t, ask(metric+"0\"} 1\n"), "uses another list")
	require.NoError(t, ask("other 1\n"+metric+"b9e68e1bea3e5b19ca6b2f98b73a54b73daafaa250484902e09982e07a12e733\"} 1\n"))
}

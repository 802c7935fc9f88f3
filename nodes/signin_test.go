package nodes

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/nodes/signin"
	"github.com/burano/burano/nodes/ssh"
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
		known, err := Issuers(t.Context(), vault)
		require.NoError(t, err)
		require.Empty(t, known, "%d masters have it", i)
		require.NoError(t, d.issued(t.Context(), node))
	}
	known, err := Issuers(t.Context(), vault)
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

func TestAnAPIServerThatUsesAListSaysSo(t *testing.T) {
	list := ssh.File{Content: []byte("text\n")}
	said := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte(said)) }))
	defer server.Close()
	ask := func(metrics string) error {
		said = metrics
		return uses(t.Context(), server.Client(), server.URL, list)
	}
	const metric = `apiserver_authentication_config_controller_last_config_info{apiserver_id_hash="sha256:1",hash="sha256:`
	require.ErrorContains(t, ask("other 1\n"), "do not name its list")
	require.ErrorContains(t, ask(metric+"0\"} 1\n"), "uses another list")
	require.NoError(t, ask("other 1\n"+metric+"b9e68e1bea3e5b19ca6b2f98b73a54b73daafaa250484902e09982e07a12e733\"} 1\n"))
}

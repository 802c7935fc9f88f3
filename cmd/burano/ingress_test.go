package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const manifests = `apiVersion: v1
kind: Service
metadata: {name: web}
---
apiVersion: v1
kind: List
items:
- apiVersion: networking.k8s.io/v1
  kind: Ingress
  metadata:
    name: shop
    namespace: default
    annotations:
      nginx.ingress.kubernetes.io/ssl-redirect: "true"
      nginx.ingress.kubernetes.io/proxy-body-size: 8m
      nginx.ingress.kubernetes.io/configuration-snippet: deny all;
  spec:
    ingressClassName: nginx
    rules: [{host: a.org, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}]
---
apiVersion: extensions/v1beta1
kind: Ingress
metadata: {name: former}
`

// checked runs burano ingress check.
func checked(t *testing.T, input string, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	root := plainCommand(t)
	root.SetArgs(append([]string{"ingress", "check"}, args...))
	root.SetIn(strings.NewReader(input))
	root.SetOut(&out)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

func TestTheCheckOfIngressesReadsFilesFoldersAndTheStandardInput(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "all.yaml"), []byte(manifests), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "notes.txt"), []byte("no: [yaml"), 0o600))
	for _, args := range [][]string{{folder}, {filepath.Join(folder, "all.yaml")}, {"-"}} {
		out, err := checked(t, manifests, args...)
		require.ErrorContains(t, err, "2 parts of 2 Ingresses are refused")
		for _, text := range []string{
			"default/shop (", `refused  nginx.ingress.kubernetes.io/configuration-snippet: "deny all;"`, `changes  ingressClassName: "nginx"`, "instead: ingressClassName: burano",
			`changes  nginx.ingress.kubernetes.io/ssl-redirect: "true"`, `changes  nginx.ingress.kubernetes.io/proxy-body-size: "8m"`, `refused  apiVersion: "extensions/v1beta1"`, "2 Ingresses: 1 parts stay, 3 change, 2 are refused.",
		} {
			require.Contains(t, out, text)
		}
	}
	ours := strings.ReplaceAll(manifests[:strings.LastIndex(manifests, "---")], "      nginx.ingress.kubernetes.io/configuration-snippet: deny all;\n", "") +
		"---\napiVersion: networking.k8s.io/v1\nkind: IngressClass\nmetadata: {name: nginx}\nspec: {controller: burano.io/gateway}\n"
	out, err := checked(t, ours, "-", "--json")
	require.NoError(t, err)
	var reports []struct {
		Name  string
		Lines []struct{ Part, Verdict string }
	}
	require.NoError(t, json.Unmarshal([]byte(out), &reports))
	require.Len(t, reports, 1)
	for _, line := range reports[0].Lines {
		if line.Part == "ingressClassName" {
			require.Equal(t, "stays", line.Verdict, "a class nginx of the gateways needs no change")
		}
	}
	for _, args := range [][]string{{}, {filepath.Join(folder, "notes.txt")}, {filepath.Join(folder, "missing")}, {"--namespace", "a", "-"}, {"--kubeconfig", "x", "-"}} {
		_, err := checked(t, "", args...)
		require.Error(t, err, args)
	}
}

func TestTheCheckOfIngressesReadsACluster(t *testing.T) {
	var pages []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "/ingressclasses") {
			_, _ = w.Write([]byte(`{"kind":"IngressClassList","apiVersion":"networking.k8s.io/v1","items":[{"metadata":{"name":"edge"},"spec":{"controller":"burano.io/gateway"}}]}`))
			return
		}
		pages = append(pages, r.URL.Query().Get("continue"))
		next, name := "more", "first"
		if len(pages) > 1 {
			next, name = "", "second"
		}
		require.Equal(t, "/apis/networking.k8s.io/v1/namespaces/shop/ingresses", r.URL.Path)
		_, _ = w.Write([]byte(`{"kind":"IngressList","apiVersion":"networking.k8s.io/v1","metadata":{"continue":"` + next + `"},"items":[{"metadata":{"name":"` + name + `","namespace":"shop"},"spec":{"ingressClassName":"edge"}}]}`))
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(file, []byte("apiVersion: v1\nkind: Config\ncurrent-context: a\nclusters: [{name: a, cluster: {server: \""+server.URL+"\"}}]\ncontexts: [{name: a, context: {cluster: a, user: a}}]\nusers: [{name: a, user: {}}]\n"), 0o600))
	out, err := checked(t, "", "--kubeconfig", file, "-n", "shop")
	require.NoError(t, err)
	require.Equal(t, []string{"", "more"}, pages)
	require.Contains(t, out, "shop/first")
	require.Contains(t, out, "shop/second")
	require.Contains(t, out, `stays  ingressClassName: "edge"`)
}

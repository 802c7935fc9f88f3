package images

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// releases is a file server in place of the projects': a mirror with each file below host and path.
type releases struct {
	files   map[string][]byte
	fetched map[string]int
	address string
}

func serveReleases(t *testing.T) *releases {
	r := &releases{files: map[string][]byte{}, fetched: map[string]int{}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		content, there := r.files[strings.TrimPrefix(request.URL.Path, "/")]
		if !there {
			http.NotFound(w, request)
			return
		}
		r.fetched[strings.TrimPrefix(request.URL.Path, "/")]++
		_, _ = w.Write(content)
	}))
	t.Cleanup(server.Close)
	r.address = server.URL
	return r
}

func sumOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

func archiveOf(t *testing.T, compressed bool, files map[string]string) []byte {
	t.Helper()
	var plain bytes.Buffer
	writer := tar.NewWriter(&plain)
	for name, content := range files {
		require.NoError(t, writer.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o755, Size: int64(len(content))}))
		_, err := writer.Write([]byte(content))
		require.NoError(t, err)
	}
	require.NoError(t, writer.Close())
	if !compressed {
		return plain.Bytes()
	}
	var packed bytes.Buffer
	zipper := gzip.NewWriter(&packed)
	_, err := zipper.Write(plain.Bytes())
	require.NoError(t, err)
	require.NoError(t, zipper.Close())
	return packed.Bytes()
}

// fetcher is a builder that has a cache and the settings of the repository.
func fetcher(t *testing.T, options Prebuilt) *builder {
	t.Helper()
	cache, progress, _ := newCache(t)
	published, err := openPrebuilt(".", options)
	require.NoError(t, err)
	return &builder{source: ".", cache: cache, progress: progress, prebuilt: published, toolchain: toolchain{architecture: "amd64"}}
}

func moduleNamed(t *testing.T, name string) module {
	t.Helper()
	for _, module := range modules() {
		if module.name == name {
			return module
		}
	}
	require.Fail(t, "there is no module "+name)
	return module{}
}

const etcdPlace = "github.com/etcd-io/etcd/releases/download/"

func etcdVersion(t *testing.T) string {
	t.Helper()
	version, err := moduleVersion(t.Context(), "modules/etcd", moduleNamed(t, "etcd").main)
	require.NoError(t, err)
	return version
}

func (r *releases) publishEtcd(t *testing.T, content string) (archive string) {
	version := etcdVersion(t)
	folder := "etcd-" + version + "-linux-amd64"
	archive = etcdPlace + version + "/" + folder + ".tar.gz"
	r.files[archive] = archiveOf(t, true, map[string]string{folder + "/etcd": content, folder + "/etcdctl": "control", folder + "/README.md": "read"})
	r.files[etcdPlace+version+"/SHA256SUMS"] = []byte(strings.Repeat("0", 64) + "  other.tar.gz\n" + sumOf(r.files[archive]) + "  " + folder + ".tar.gz\n")
	return archive
}

func TestPublishedProgramsAreFetchedCheckedAndTheirSumsDemandedLater(t *testing.T) {
	places, sums := serveReleases(t), filepath.Join(t.TempDir(), "prebuilt.sums")
	archive := places.publishEtcd(t, "program")
	b := fetcher(t, Prebuilt{Base: places.address, Sums: sums})
	made, err := b.module(t.Context(), moduleNamed(t, "etcd"))
	require.NoError(t, err)
	content, err := os.ReadFile(filepath.Join(made.folder, "etcd"))
	require.NoError(t, err)
	require.Equal(t, "program", string(content))
	entries, err := os.ReadDir(made.folder)
	require.NoError(t, err)
	require.Len(t, entries, 2, "the programs and nothing else")
	info, err := os.Stat(filepath.Join(made.folder, "etcdctl"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o755), info.Mode())
	recorded, err := os.ReadFile(sums)
	require.NoError(t, err)
	require.Contains(t, string(recorded), sumOf(places.files[archive])+"  https://"+archive+"\n")

	// A recorded file is neither requested nor fetched again.
	_, err = b.module(t.Context(), moduleNamed(t, "etcd"))
	require.NoError(t, err)
	require.Equal(t, 1, places.fetched[archive])

	// The project, or an attacker between, has another file with another sum: a later build rejects it.
	places.publishEtcd(t, "another program")
	_, err = fetcher(t, Prebuilt{Base: places.address, Sums: sums}).module(t.Context(), moduleNamed(t, "etcd"))
	require.ErrorContains(t, err, "it is not used")
	require.ErrorContains(t, err, "delete its line there")
}

func TestAFileThatIsNotWhatIsPublishedIsNotUsed(t *testing.T) {
	places, sums := serveReleases(t), filepath.Join(t.TempDir(), "prebuilt.sums")
	_, err := fetcher(t, Prebuilt{Base: places.address, Sums: sums}).module(t.Context(), moduleNamed(t, "etcd"))
	require.ErrorContains(t, err, places.address+"/"+etcdPlace+etcdVersion(t)+"/SHA256SUMS answers 404 Not Found")

	archive := places.publishEtcd(t, "program")
	places.files[archive] = append(places.files[archive], "more"...)
	b := fetcher(t, Prebuilt{Base: places.address, Sums: sums})
	_, err = b.module(t.Context(), moduleNamed(t, "etcd"))
	require.ErrorContains(t, err, "it is not used")
	require.NoFileExists(t, sums, "a sum is recorded when its file was seen")

	places.files[archive] = archiveOf(t, true, map[string]string{"other": "x"})
	places.files[etcdPlace+etcdVersion(t)+"/SHA256SUMS"] = []byte(sumOf(places.files[archive]) + "\n")
	_, err = b.module(t.Context(), moduleNamed(t, "etcd"))
	require.ErrorContains(t, err, "it has no file etcd-"+etcdVersion(t)+"-linux-amd64/etcd")

	write(t, sums, "nonsense\n")
	_, err = openPrebuilt(".", Prebuilt{Sums: sums})
	require.ErrorContains(t, err, "prebuilt.sums:1 is no line of a SHA-256 and an address")
}

func TestAProgramIsTakenOutOfAContainerImageInAnArchive(t *testing.T) {
	folder := t.TempDir()
	write(t, filepath.Join(folder, "binary"), "node")
	image := filepath.Join(folder, "calico-node.tar")
	require.NoError(t, Container{Program: "calico-node", Reference: "calico/node:v1", User: nobody}.Write(image, filepath.Join(folder, "binary"), "amd64"))
	content, err := os.ReadFile(image)
	require.NoError(t, err)
	for _, compressed := range []bool{true, false} {
		archive := filepath.Join(folder, "release.tgz")
		require.NoError(t, os.WriteFile(archive, archiveOf(t, compressed, map[string]string{"release/images/calico-node.tar": string(content)}), 0o600))
		to := filepath.Join(folder, "taken")
		require.NoError(t, takeProgram(archive, "release/images/calico-node.tar!calico-node", to))
		taken, err := os.ReadFile(to)
		require.NoError(t, err)
		require.Equal(t, "node", string(taken))
		require.NoFileExists(t, to+".image")
		require.ErrorContains(t, takeProgram(archive, "release/images/calico-node.tar!bin/none", to), "it has no file bin/none")
	}
}

func TestAllProgramsOfThePublishedModulesAreNamed(t *testing.T) {
	b := fetcher(t, Prebuilt{})
	for _, name := range []string{"kubernetes", "etcd", "coredns", "cni", "calico"} {
		module := moduleNamed(t, name)
		version, err := moduleVersion(t.Context(), filepath.Join("modules", name), module.main)
		require.NoError(t, err)
		release, there := b.prebuilt.of(name, version, "amd64")
		require.True(t, there, name)
		programs := map[string]bool{}
		for _, file := range release.Files {
			require.NotContains(t, file.URL+file.Sum+fmt.Sprint(slices.Sorted(maps.Values(file.Programs))), "{", "every placeholder is known")
			for program := range file.Programs {
				programs[program] = true
			}
		}
		if name == "kubernetes" {
			require.Len(t, programs, 6)
			continue
		}
		for _, program := range module.programs {
			require.True(t, programs[program.name], "%s of %s is published nowhere", program.name, name)
		}
	}
	_, there := b.prebuilt.of("programs", "", "amd64")
	require.False(t, there, "our own are compiled")
}

// certify makes a certificate for a public key, under a parent or its own key.
func certify(t *testing.T, template, parent *x509.Certificate, key, parentKey *ecdsa.PrivateKey) []byte {
	t.Helper()
	template.SerialNumber = big.NewInt(1)
	template.NotBefore, template.NotAfter = time.Now().Add(-48*time.Hour), time.Now().Add(-47*time.Hour)
	if parent == template {
		template.NotAfter = time.Now().Add(time.Hour)
	}
	made, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made})
}

func TestASignatureIsOfTheRightSignerAndFile(t *testing.T) {
	newKey := func() *ecdsa.PrivateKey {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		require.NoError(t, err)
		return key
	}
	rootKey, leafKey := newKey(), newKey()
	root := &x509.Certificate{Subject: pkix.Name{CommonName: "root"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	roots := certify(t, root, root, rootKey, rootKey)
	leaf := &x509.Certificate{
		EmailAddresses: []string{"release@project.test"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtraExtensions: []pkix.Extension{{Id: issuerExtension, Value: []byte("https://accounts.test")}},
	}
	certificate := []byte(base64.StdEncoding.EncodeToString(certify(t, leaf, root, leafKey, rootKey)))
	sum := sha256.Sum256([]byte("the file"))
	raw, err := ecdsa.SignASN1(rand.Reader, leafKey, sum[:])
	require.NoError(t, err)
	signature := []byte(base64.StdEncoding.EncodeToString(raw) + "\n")
	by := signedBy{Identity: "release@project.test", Issuer: "https://accounts.test"}

	require.NoError(t, verifySignature(hex.EncodeToString(sum[:]), signature, certificate, roots, by), "the certificate has ended since, as such ones do")
	for says, wrong := range map[string]func() error{
		"it does not fit the file": func() error { return verifySignature(sumOf([]byte("another")), signature, certificate, roots, by) },
		"wanted is other@project.test": func() error {
			return verifySignature(hex.EncodeToString(sum[:]), signature, certificate, roots, signedBy{Identity: "other@project.test", Issuer: by.Issuer})
		},
		"is not by https://other.test": func() error {
			return verifySignature(hex.EncodeToString(sum[:]), signature, certificate, roots, signedBy{Identity: by.Identity, Issuer: "https://other.test"})
		},
		"unknown authority": func() error {
			otherKey := newKey()
			other := &x509.Certificate{Subject: pkix.Name{CommonName: "root"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
			return verifySignature(hex.EncodeToString(sum[:]), signature, certificate, certify(t, other, other, otherKey, otherKey), by)
		},
		"no PEM": func() error { return verifySignature(hex.EncodeToString(sum[:]), signature, []byte("x"), roots, by) },
	} {
		require.ErrorContains(t, wrong(), says)
	}

	// As a project publishes it.
	places, folder := serveReleases(t), t.TempDir()
	write(t, filepath.Join(folder, "roots.pem"), string(roots))
	const place = "files.test/program"
	places.files[place], places.files[place+".sig"], places.files[place+".cert"] = []byte("the file"), signature, certificate
	places.files[place+".sha256"] = []byte(hex.EncodeToString(sum[:]))
	b := fetcher(t, Prebuilt{Base: places.address, Sums: filepath.Join(folder, "sums"), Roots: filepath.Join(folder, "roots.pem")})
	release := releaseFiles{Signature: &by, Files: []releasedFile{{URL: "https://" + place, Sum: "https://" + place + ".sha256", Programs: map[string]string{"program": ""}}}}
	_, err = b.prebuiltModule(t.Context(), module{name: "signed"}, "v1", release)
	require.NoError(t, err)
	release.Signature = &signedBy{Identity: "other@project.test", Issuer: by.Issuer}
	_, err = b.prebuiltModule(t.Context(), module{name: "signed2"}, "v1", release)
	require.ErrorContains(t, err, "the signature of https://files.test/program: it is of")
}

func TestTheImageHasOneProgramForAllOfKubernetesOrTheProjectsOwn(t *testing.T) {
	others := []string{"etcd", "etcdctl", "calico-node", "calico-kube-controllers", "calicoctl", "flanneld", "metrics-server", "helm-release", "storage-controllers", "storage-node", "bridge", "host-local", "loopback", "portmap", "ptp", "calico-cni", "flannel-cni", "calico.yaml", "gateway-api.yaml", "volume-snapshots.yaml",
		"bird.toml", "bird_aggr.toml", "bird_ipam.toml", "bird.cfg.template", "bird_aggr.cfg.template", "bird_ipam.cfg.template"}
	own := []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl"}
	for _, programs := range [][]string{{"kubernetes"}, own} {
		root, built, containers := t.TempDir(), t.TempDir(), t.TempDir()
		for _, name := range append(programs, others...) {
			write(t, filepath.Join(built, name), name)
		}
		for _, name := range []string{"pause", "coredns", "demo", "registry"} {
			write(t, filepath.Join(containers, name+".tar"), name)
		}
		command := exec.Command("elements/50-kubernetes/install")
		command.Env = append(os.Environ(), "ROOT="+root, "PROGRAMS="+built, "IMAGES="+containers)
		said, err := command.CombinedOutput()
		require.NoError(t, err, string(said))
		for _, name := range own {
			content, err := os.ReadFile(filepath.Join(root, "opt", "burano", "bin", name))
			require.NoError(t, err)
			if len(programs) == 1 {
				require.Equal(t, "kubernetes", string(content))
			} else {
				require.Equal(t, name, string(content))
			}
		}
	}
}

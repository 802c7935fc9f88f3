package main

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"

	"github.com/burano/burano/test/localcloud/keystone"
)

// patience is how long the server may take to start and to end.
const patience = time.Minute

// lab is a Keystone of this process and a server beside it, in a folder that goes with it.
type lab struct {
	folder   string
	url      string
	token    string // of demo, in the project demo
	identity *http.Server
	server   *exec.Cmd
}

func start(ctx context.Context, program string) (l *lab, err error) {
	l = &lab{}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.stop())
		}
	}()
	if l.folder, err = os.MkdirTemp("", "bench-api-"); err != nil {
		return l, err
	}
	endpoint, err := l.startKeystone()
	if err != nil {
		return l, err
	}
	options := gophercloud.AuthOptions{IdentityEndpoint: endpoint, Username: "demo", Password: "demo", DomainName: "Default",
		Scope: &gophercloud.AuthScope{ProjectName: "demo", DomainName: "Default"}}
	provider, err := openstack.AuthenticatedClient(ctx, options)
	if err != nil {
		return l, fmt.Errorf("sign in as demo: %w", err)
	}
	l.token = provider.Token()
	return l, l.startServer(ctx, program, endpoint)
}

func (l *lab) startKeystone() (endpoint string, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	base := "http://" + listener.Addr().String()
	service, err := keystone.New(keystone.Config{StateDir: filepath.Join(l.folder, "keystone"), Endpoint: base})
	if err != nil {
		return "", errors.Join(err, listener.Close())
	}
	l.identity = &http.Server{Handler: http.StripPrefix("/identity", service.Handler()), ReadHeaderTimeout: patience}
	go func() { _ = l.identity.Serve(listener) }() // it ends by stop
	return base + "/identity/v3", nil
}

func (l *lab) startServer(ctx context.Context, program, endpoint string) error {
	address, err := freeAddress()
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(l.folder, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	l.url = "http://" + address
	l.server = exec.Command(program, "serve", "--listen", address, "--state", filepath.Join(l.folder, "server"))
	l.server.Env = append(os.Environ(), "OS_CLOUD=", "OS_AUTH_URL="+endpoint, "OS_USERNAME=burano", "OS_PASSWORD=burano", "OS_PROJECT_NAME=service",
		"OS_USER_DOMAIN_NAME=Default", "OS_PROJECT_DOMAIN_NAME=Default", "OS_DOMAIN_NAME=Default", "OS_REGION_NAME="+keystone.Region)
	l.server.Stdout, l.server.Stderr = log, log
	l.server.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := l.server.Start(); err != nil {
		return fmt.Errorf("start %s (`make build` makes it): %w", program, err)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		if response, err := http.Get(l.url + "/readyz"); err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			said, _ := os.ReadFile(log.Name())
			return fmt.Errorf("the server is not ready: %w; its log:\n%s", ctx.Err(), said)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

func (l *lab) stop() error {
	var errs []error
	if l.server != nil && l.server.Process != nil {
		errs = append(errs, l.server.Process.Signal(syscall.SIGTERM), l.server.Wait())
	}
	if l.identity != nil {
		errs = append(errs, l.identity.Close())
	}
	return errors.Join(append(errs, os.RemoveAll(l.folder))...)
}

// fill uploads packages until a page of 50 is full.
func (t target) fill(ctx context.Context) error {
	for i := range packages {
		have, err := t.count(ctx)
		if err != nil || have >= packages {
			return err
		}
		if err := t.upload(ctx, i); err != nil {
			return fmt.Errorf("upload a package to %s: %w", t.name, err)
		}
	}
	have, err := t.count(ctx)
	if err == nil && have < packages {
		err = fmt.Errorf("%s lists %d packages after all uploads, not %d", t.name, have, packages)
	}
	return err
}

// upload sends a package as users make them: a class, a form, a logo, some tags.
func (t target) upload(ctx context.Context, number int) error {
	name := fmt.Sprintf("org.bench.App%02d", number)
	var archive bytes.Buffer
	files := zip.NewWriter(&archive)
	for path, content := range map[string]string{
		"manifest.yaml": "Format: 1.4\nType: Application\nFullName: " + name + "\nName: Benchmark application " + name + "\nAuthor: Burano\n" +
			"Description: An application that is there to be listed, with a sentence that is as long as such sentences are.\n" +
			"Tags: [bench, web, linux]\nClasses:\n  " + name + ": App.yaml\nUI: ui.yaml\nLogo: logo.png\n",
		"Classes/App.yaml": "Name: " + name + "\nProperties:\n  name:\n    Contract: $.string().notNull()\n",
		"UI/ui.yaml":       "Version: 2.2\nApplication:\n  ?:\n    type: " + name + "\nForms: []\n",
		"logo.png":         "\x89PNG\r\n\x1a\n",
	} {
		file, err := files.Create(path)
		if err != nil {
			return err
		}
		if _, err := io.WriteString(file, content); err != nil {
			return err
		}
	}
	if err := files.Close(); err != nil {
		return err
	}
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	if err := form.WriteField("__metadata__", `{"categories": ["Web"], "tags": ["listed"]}`); err != nil {
		return err
	}
	file, err := form.CreateFormFile(name, name+".zip")
	if err != nil {
		return err
	}
	if _, err := file.Write(archive.Bytes()); err != nil {
		return err
	}
	if err := form.Close(); err != nil {
		return err
	}
	call, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url+"/v1/catalog/packages", &body)
	if err != nil {
		return err
	}
	call.Header.Set("X-Auth-Token", t.token)
	call.Header.Set("Content-Type", form.FormDataContentType())
	response, err := http.DefaultClient.Do(call)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, bytes.TrimSpace(answer))
	}
	return err
}

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/config/clouds"

	"github.com/burano/burano/test/localcloud/keystone"
)

// patience is how long the server may take to start and to end.
const patience = time.Minute

// lab is a Keystone of this process and a server beside it, in a folder that goes with it.
type lab struct {
	folder   string
	url      string
	token    string // of user demo, in the project demo
	identity *http.Server
	server   *exec.Cmd
}

func start(ctx context.Context, program string, streams int) (l *lab, err error) {
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
	return l, l.startServer(ctx, program, endpoint, streams)
}

// signIn gets a token of the entry burano-demo of a clouds.yaml.
func signIn(ctx context.Context, file string) (string, error) {
	options, _, _, err := clouds.Parse(clouds.WithCloudName("burano-demo"), clouds.WithLocations(file))
	if err != nil {
		return "", fmt.Errorf("read %s: %w", file, err)
	}
	provider, err := openstack.AuthenticatedClient(ctx, options)
	if err != nil {
		return "", fmt.Errorf("sign in as burano-demo: %w", err)
	}
	return provider.Token(), nil
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

func (l *lab) startServer(ctx context.Context, program, endpoint string, streams int) error {
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
	if streams > 0 {
		limit := strconv.Itoa(streams)
		l.server.Env = append(l.server.Env, "BURANO_MAX_STREAMS="+limit, "BURANO_MAX_PROJECT_STREAMS="+limit)
	}
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
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		errs = append(errs, l.identity.Shutdown(ctx)) // the last opened is closed first: the server may still ask the others
	}
	return errors.Join(append(errs, os.RemoveAll(l.folder))...)
}

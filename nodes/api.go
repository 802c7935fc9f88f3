package nodes

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/burano/burano/nodes/kube"
)

// Where there are several masters, Burano's own calls of the Kubernetes API go to the first master that answers that it is ready.

const (
	apiStagger = time.Second      // the head start of each master before the next one is asked
	apiProbe   = 3 * time.Second  // how long an API server may take to answer that it is ready
	apiReach   = 15 * time.Second // how long a master may take until it answers at all, where there are others
)

// dialAPI connects to the API server of a master.
func (c *kubernetesAPI) dialAPI(ctx context.Context, master Node) (net.Conn, error) {
	client, err := c.connect(ctx, master)
	if err != nil {
		return nil, err
	}
	return client.DialContext(ctx, "tcp", net.JoinHostPort(master.Address.String(), strconv.Itoa(kube.APIServerPort)))
}

// dialReadyAPI connects to the API server of a master that is ready; when none is, to the first that listens.
func (c *kubernetesAPI) dialReadyAPI(ctx context.Context, trusted []byte) (net.Conn, error) {
	masters := c.masters()
	if len(masters) == 1 {
		return c.dialAPI(ctx, masters[0])
	}
	asking, cancel := context.WithTimeout(ctx, apiReach)
	defer cancel()
	type answer struct {
		master Node
		err    error
	}
	answers := make(chan answer, len(masters))
	go func() {
		for i, master := range masters {
			failed := make(chan struct{})
			go func() {
				err := c.saysReady(asking, master, trusted)
				if err != nil {
					close(failed)
				}
				answers <- answer{master, err}
			}()
			if i == len(masters)-1 {
				return
			}
			select {
			case <-failed:
			case <-time.After(apiStagger):
			case <-asking.Done():
			}
		}
	}()
	var failures []error
	for range masters {
		one := <-answers
		if one.err == nil {
			var connection net.Conn
			if connection, one.err = c.dialAPI(ctx, one.master); one.err == nil {
				return connection, nil
			}
		}
		failures = append(failures, fmt.Errorf("%s: %w", one.master.Name, one.err))
	}
	for _, master := range masters {
		limited, stop := context.WithTimeout(ctx, apiProbe)
		connection, err := c.dialAPI(limited, master)
		stop()
		if err == nil {
			return connection, nil
		}
	}
	return nil, fmt.Errorf("no master's API server is ready: %w", errors.Join(failures...))
}

// Available returns the reason why the API server of a master is not ready; nil where it is.
func (c *kubernetesAPI) Available(ctx context.Context, name string) error {
	master, err := c.node(name)
	if err != nil {
		return err
	}
	if master.Role != Master {
		return fmt.Errorf("%s is a %s, and has no API server", name, master.Role)
	}
	authorities, err := c.authorities(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, apiReach, fmt.Errorf("%s did not answer within %s", name, apiReach))
	defer cancel()
	return c.saysReady(ctx, master, authorities.Kubernetes.Trusted())
}

// saysReady asks the API server of a master whether it is ready; this needs no rights.
func (c *kubernetesAPI) saysReady(ctx context.Context, master Node, trusted []byte) error {
	if _, err := c.connect(ctx, master); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, apiProbe, fmt.Errorf("it does not say within %s whether it is ready", apiProbe))
	defer cancel()
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(trusted)
	transport := &http.Transport{
		DialContext:     func(ctx context.Context, _, _ string) (net.Conn, error) { return c.dialAPI(ctx, master) },
		TLSClientConfig: &tls.Config{RootCAs: authorities, ServerName: kube.APIServerAlias, MinVersion: tls.VersionTLS12},
	}
	defer transport.CloseIdleConnections()
	return answers(ctx, &http.Client{Transport: transport}, kube.APIServerURL(c.config.Name)+"/readyz")
}

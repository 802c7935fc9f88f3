package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestCertificatesAreRenewedBeforeTheyEndAndRotated deploys a cluster with certificates that were issued 22 months ago, and does nothing more: they are
// renewed. Then authorities and keys are rotated. Requests through the gateway do not fail meanwhile.
func TestCertificatesAreRenewedBeforeTheyEndAndRotated(t *testing.T) {
	l := start(t, "faults")
	demo := l.user(t, "burano-demo")
	found := inventory(t, demo)
	l.run(t, l.as("burano-demo"), "burano", "package", "import", "test/packages/io.burano.demo.Hello")
	l.stop(t)
	l.launch(t, "--certificate-age", "16000h", "--keeper-interval", "0s")
	l.healthy(t)
	l.run(t, l.as("burano-demo"), "burano", "deploy", "test/e2e/testdata/scaling.yaml", "--follow")
	l.deleteIfFailed(t, "scaling")
	environment := environmentNamed(t, demo, "scaling")
	where := "http://" + endpointOf(t, environment)
	// first is the end of the first certificate; an error while the cluster has a fault, as in the moment when its API server starts
	// again.
	first := func() (time.Time, error) {
		output, err := l.try(l.as("burano-demo"), "burano", "cluster", "show", "scaling", "-o", "json")
		if err != nil {
			return time.Time{}, fmt.Errorf("%w: %s", err, output)
		}
		var cluster struct {
			Certificates []struct{ Expires time.Time }
		}
		if err := json.Unmarshal([]byte(output), &cluster); err != nil {
			return time.Time{}, err
		}
		return cluster.Certificates[0].Expires, nil
	}
	before, err := first()
	require.NoError(t, err)
	require.Less(t, time.Until(before), 90*24*time.Hour)

	done := make(chan struct{})
	failures := make(chan []failure, 1)
	go func() {
		var list []failure
		defer func() { failures <- list }()
		for {
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond):
			}
			client := http.Client{Timeout: patience}
			began := time.Now()
			answer, err := client.Get(where)
			if err != nil {
				list = append(list, failure{began, err})
				continue
			}
			if answer.Body.Close(); answer.StatusCode != http.StatusOK {
				list = append(list, failure{began, errors.New(answer.Status)})
			}
		}
	}()
	l.stop(t)
	l.launch(t, "--token-grace", "2s", "--keeper-interval", "8s")
	l.healthy(t)
	began := time.Now()
	l.eventually(t, 2*time.Minute, "the certificates are renewed", func() error {
		end, err := first()
		if err != nil {
			return err
		}
		if time.Until(end) < 600*24*time.Hour {
			return fmt.Errorf("the first one ends on %s", end)
		}
		// A repair leaves the environment ready: its API server may still be starting with the new certificate.
		for _, one := range demo.must(t, http.MethodGet, "/v1/environments/"+environment["id"].(string)+"/deployments", nil)["deployments"].([]any) {
			if state := one.(map[string]any)["state"]; state != "success" {
				return fmt.Errorf("the renewal is %s", state)
			}
		}
		return nil
	})
	t.Logf("renewed %.1f s after the start of the server", time.Since(began).Seconds())
	t.Run("authorities and keys are rotated", func(t *testing.T) { rotated(t, l, demo, environment) })
	close(done)
	s := &scaling{lab: l, user: demo, cluster: l.clusterOf(t, demo, environment), environment: environment["id"].(string)}
	s.cluster.noneFailed(t, <-failures)
	s.holds(t, []string{"murano-kube-2"}, []string{"murano-gateway-1"})
	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "scaling")
	asBefore(t, demo, found)
}

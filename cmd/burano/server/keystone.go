package server

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/wait"
	"github.com/burano/burano/orchestrator/openstack"
)

const (
	// keystoneEvery is how often Keystone is asked whether it answers, and keystonePatience how long that may take.
	keystoneEvery    = 15 * time.Second
	keystonePatience = 5 * time.Second
)

// keystone is whether Keystone answers: without it, no user can sign in and no deployment begins. It is a metric, and each change is a line of the log.
type keystone struct {
	up    prometheus.Gauge
	log   *slog.Logger
	known bool // that it was up, or down
	was   bool
}

func watchedKeystone(registry prometheus.Registerer, log *slog.Logger) *keystone {
	return &keystone{log: log, up: promauto.With(registry).NewGauge(prometheus.GaugeOpts{Name: "burano_keystone_up",
		Help: "Whether Keystone answers and takes the service user's token: 1 or 0."})}
}

// saw notes how Keystone answered last.
func (k *keystone) saw(err error) {
	up := err == nil
	if up {
		k.up.Set(1)
	} else {
		k.up.Set(0)
	}
	switch changed := !k.known || up != k.was; {
	case changed && !up:
		k.log.Warn("Keystone does not answer: nobody can sign in, and tokens that are not known are answered with 503", "error", err)
	case changed && k.known:
		k.log.Info("Keystone answers again")
	}
	k.known, k.was = true, up
}

// await signs in as the service user, and waits for Keystone while it is away. Credentials that it refuses are an error.
func (k *keystone) await(ctx context.Context, signIn func(context.Context) (*openstack.Service, error)) (service *openstack.Service, err error) {
	err = wait.Policy{First: time.Second, Most: keystoneEvery}.Until(ctx, func(ctx context.Context) error {
		service, err = signIn(ctx)
		if err != nil && (refused(err) || ctx.Err() != nil) {
			return err
		}
		k.saw(err)
		if err != nil {
			return wait.Again(err)
		}
		return nil
	})
	return service, err
}

// refused is true if Keystone answered and refused the request, and false if Keystone is away.
func refused(err error) bool {
	for status := http.StatusBadRequest; status < http.StatusInternalServerError; status++ {
		if status != http.StatusRequestTimeout && status != http.StatusTooManyRequests && gophercloud.ResponseCodeIs(err, status) {
			return true
		}
	}
	return fault.KindOf(err) != 0
}

// watch asks Keystone again and again, until ctx ends.
func (k *keystone) watch(ctx context.Context, answers func(context.Context) error) error {
	ticker := time.NewTicker(keystoneEvery)
	defer ticker.Stop()
	for {
		asking, cancel := context.WithTimeout(ctx, keystonePatience)
		err := answers(asking)
		cancel()
		if ctx.Err() != nil {
			return nil
		}
		k.saw(err)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

package gateway

import (
	"context"

	"github.com/burano/burano/gateway/follow"
	"github.com/burano/burano/gateway/loop"
	"github.com/burano/burano/gateway/route"
)

// watch follows the routes in etcd until the context ends. changed receives after a change; wait returns when it is over.
func (g *gateway) watch(ctx context.Context, changed chan<- struct{}) (wait func()) {
	g.routes = follow.New(g.config.Etcd, route.RoutesPrefix, route.Decode, loop.Waker(changed), g.config.Logger)
	done := make(chan struct{})
	go func() { defer close(done); g.routes.Run(ctx) }()
	return func() { <-done }
}

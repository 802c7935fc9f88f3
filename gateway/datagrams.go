package gateway

import (
	"context"
	"sync"
	"time"

	"github.com/burano/burano/gateway/follow"
	"github.com/burano/burano/gateway/loop"
	"github.com/burano/burano/gateway/route"
	"github.com/burano/burano/gateway/udp"
)

// passUDP serves the UDP ports in etcd until the context ends; wait returns when it is over. It works beside HAProxy: neither waits for the other. The
// table stays behind and continues to serve.
func (g *gateway) passUDP(ctx context.Context) (wait func()) {
	config := g.config.UDP
	if config.Logger == nil {
		config.Logger = g.config.Logger
	}
	table := udp.New(config)
	changed := make(chan struct{}, 1)
	folder := follow.New(g.config.Etcd, route.UDPPrefix, route.DecodeUDP, loop.Waker(changed), g.config.Logger)
	g.known.udp = table.Published
	trouble := ""
	var all sync.WaitGroup
	all.Go(func() { folder.Run(ctx) })
	all.Go(func() {
		loop.Run(ctx, loop.Config{Changed: changed, Coalesce: g.config.Coalesce, Resync: g.config.Resync}, func(ctx context.Context, resync bool) bool {
			list, known := folder.Values()
			if !known {
				return true // nothing was read from etcd yet: the present state stays
			}
			var ports []udp.Port
			for _, one := range list {
				if flow, some := one.For(g.config.Name); some {
					ports = append(ports, udp.Port{Number: one.Port, Flow: flow})
				}
			}
			start := time.Now()
			before := table.Changes()
			err := table.Apply(context.WithoutCancel(ctx), ports, resync)
			text := ""
			if err != nil {
				text = err.Error()
			}
			g.known.noteUDP(text)
			if text != trouble && ctx.Err() == nil {
				if trouble = text; err != nil {
					g.config.Logger.Error("cannot serve UDP fully, trying again", "error", err)
				} else {
					g.config.Logger.Info("UDP is served again")
				}
			}
			if table.Changes() != before {
				g.config.Logger.Info("UDP applied", "ports", len(ports), "duration", time.Since(start).Round(100*time.Microsecond))
			}
			return err == nil
		})
	})
	return all.Wait
}

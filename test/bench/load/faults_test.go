package load

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/test/localcloud/fault"
)

const (
	// faultEvery is how often, on average, a call of Keystone and one of Heat go wrong each.
	faultEvery = 500 * time.Millisecond
	// within is among how many of the next calls the one that goes wrong is.
	within = 20
)

// orderFaults lets calls of Keystone and of Heat go wrong until the context ends, each in a way of its own.
func orderFaults(ctx context.Context, b *testing.B, faults *fault.Faults) {
	b.Helper()
	go func() {
		for pause(ctx, faultEvery) {
			faults.Clear() // what was recorded of calls is not looked at
			for _, service := range []string{"/identity/.*", "/orchestration/.*"} {
				kind := fault.Kinds[rand.N(len(fault.Kinds))]
				if err := faults.Order(fault.Fault{Path: service, Nth: 1 + rand.N(within), Kind: kind}); err != nil {
					b.Errorf("order a fault: %v", err)
					return
				}
			}
		}
		faults.Clear()
	}()
	b.Cleanup(faults.Clear)
	require.NoError(b, ctx.Err())
}

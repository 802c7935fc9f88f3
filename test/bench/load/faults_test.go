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
	// faultEvery is the mean interval between faults, of Keystone and of Heat each.
	faultEvery = 500 * time.Millisecond
	// within is the number of next calls of which one fails.
	within = 20
)

// orderFaults lets calls of Keystone and of Heat fail until the context ends, each with another fault.
func orderFaults(ctx context.Context, b *testing.B, faults *fault.Faults) {
	b.Helper()
	go func() {
		for pause(ctx, faultEvery) {
			faults.Clear() // the record of calls is not used
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

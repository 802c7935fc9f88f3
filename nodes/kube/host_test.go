package kube

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAMachineKeepsMemoryFromPodsByWhatItHas(t *testing.T) {
	for gibibytes, wanted := range map[int]int{1: 256, 2: 320, 4: 448, 8: 704, 64: 4096, 1024: 4096} {
		kube, system := Host{Machine: true, MemoryGiB: gibibytes}.reserved()
		require.Equal(t, wanted, kube+system, "%d GiB", gibibytes)
	}
}

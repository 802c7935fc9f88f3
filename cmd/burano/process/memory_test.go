package process

import (
	"runtime/debug"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func TestTheMemoryThatAServerCanHaveIsThatOfItsMachineOrControlGroups(t *testing.T) {
	const machine = "MemFree:  1 kB\nMemTotal:        2097152 kB\n"
	for name, test := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"a machine": {map[string]string{"proc/meminfo": machine, "proc/self/cgroup": "0::/\n"}, 2 << 30},
		"a service with a limit": {map[string]string{"proc/meminfo": machine, "proc/self/cgroup": "0::/system.slice/burano.service\n",
			"sys/fs/cgroup/system.slice/burano.service/memory.max": "536870912\n", "sys/fs/cgroup/system.slice/memory.max": "max\n"}, 512 << 20},
		"a limit above it": {map[string]string{"proc/meminfo": machine, "proc/self/cgroup": "0::/system.slice/burano.service\n",
			"sys/fs/cgroup/system.slice/burano.service/memory.max": "max\n", "sys/fs/cgroup/system.slice/memory.max": "1073741824\n"}, 1 << 30},
		"a container":                {map[string]string{"proc/meminfo": machine, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1073741824\n"}, 1 << 30},
		"a limit beyond the machine": {map[string]string{"proc/meminfo": machine, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "107374182400\n"}, 2 << 30},
		"the older groups":           {map[string]string{"proc/meminfo": machine, "proc/self/cgroup": "9:memory:/burano\n"}, 2 << 30},
		"a limit alone":              {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1073741824\n"}, 0},
		"neither":                    {nil, 0},
	} {
		root := fstest.MapFS{}
		for file, text := range test.files {
			root[file] = &fstest.MapFile{Data: []byte(text)}
		}
		require.Equal(t, test.want, UsableMemory(root), name)
	}
	require.EqualValues(t, 64<<20, ballastBytes(0))
	require.EqualValues(t, 128<<20, ballastBytes(1<<30))
	require.EqualValues(t, 256<<20, ballastBytes(2<<30))
	require.EqualValues(t, 256<<20, ballastBytes(64<<30))
}

func TestAnOperatorSaysWhenTheCollectorRuns(t *testing.T) {
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	require.GreaterOrEqual(t, len(Ballast(MostBallast)), LeastBallast)
	require.Len(t, Ballast(LeastBallast), LeastBallast)
	t.Setenv("GOGC", "50")
	require.Empty(t, Ballast(MostBallast))
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "400MiB")
	require.Empty(t, Ballast(MostBallast))
}

func TestTheCollectorKeepsWithinFourFifthsOfTheMemory(t *testing.T) {
	former := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(former)
	t.Setenv("GOMEMLIMIT", "")
	require.EqualValues(t, 800<<20+100, LimitMemory(1000<<20, 100))
	require.EqualValues(t, 800<<20+100, debug.SetMemoryLimit(-1))
	t.Setenv("GOMEMLIMIT", "1GiB") // which the runtime has read at its start
	require.EqualValues(t, 800<<20+100, LimitMemory(4000<<20, 0))
}

func TestAGatewayCarriesWhatItsMemoryAllows(t *testing.T) {
	for memory, want := range map[int64]int{0: 8000, 64 << 20: 1000, 512 << 20: 4000, 1<<30 + 1: 8000, 2 << 30: 16000, 64 << 30: 32000} {
		require.Equal(t, want, ConnectionsWithin(memory), memory)
	}
}

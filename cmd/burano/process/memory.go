// Package process gives a process of Burano its limits: memory, connections, and child processes that read others' data.
package process

import (
	"bufio"
	"io/fs"
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/burano/burano/internal/memory"
)

// The garbage collector runs when as much was allocated as was in use after its last run, which on a server with little in use is many times a second.
// A block that is never written to, so that it takes no memory, counts as in use besides: it costs at most as much garbage. It is an eighth of
// the memory that there is, within these limits. A higher percentage (debug.SetGCPercent) is no substitute, because it grows with the memory in use: over 400 MiB
// in use, with 6 GiB of garbage, 400 % took 2.4 GiB, the block 1.2 GiB and the default 1.0 GiB; over 20 MiB they took 2.1, 1.8 and 3.0 seconds of processors.
const (
	LeastBallast = 64 << 20
	MostBallast  = 256 << 20
)

// LimitMemory has the garbage collector keep within four fifths of the memory that there is, where the operator does not say how much
// (https://pkg.go.dev/runtime/debug#SetMemoryLimit); the rest is for child processes and the system's cache. It returns the limit of the bytes that count
// for it, the ballast among them; 0 when nothing is known.
func LimitMemory(memory int64, ballast int) int64 {
	if os.Getenv("GOMEMLIMIT") == "" && memory > 0 {
		debug.SetMemoryLimit(memory/5*4 + int64(ballast))
	}
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 {
		return limit
	}
	return 0
}

// BudgetsOfMemory are those of requests, and of answers of clusters' machines to tasks and keepers: a quarter of the limit at most each.
func BudgetsOfMemory(limit int64, ballast int) (requests, machines *memory.Budget) {
	const least, most = 128 << 20, 2 << 30
	share, tight := int64(most/4), (func() bool)(nil)
	if limit != 0 {
		share, tight = min(max((limit-int64(ballast))/4, least), most), memory.Tight(limit, int64(ballast))
	}
	guard := memory.NewGuard(tight)
	return guard.Budget(share), guard.Budget(share)
}

// Ballast makes the block, of at most so many bytes; nil where the operator says when the collector runs (https://pkg.go.dev/runtime#hdr-Environment_Variables).
func Ballast(most int64) []byte {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return nil
	}
	return make([]byte, min(ballastBytes(UsableMemory(os.DirFS("/"))), most))
}

// ballastBytes is how large the block is with so many bytes of memory; 0 for an unknown number.
func ballastBytes(memory int64) int64 { return min(max(memory/8, LeastBallast), MostBallast) }

// ConnectionsWithin is how many connections HAProxy may carry on a gateway with so many bytes of memory. A connection has two buffers of 16 KiB
// (https://docs.haproxy.org/2.6/configuration.html#tune.bufsize) and passes up to two frontends: that is half of the counted memory, and leaves as much for TLS and
// the system. An unknown number is taken for 1 GiB.
func ConnectionsWithin(memory int64) int {
	const each, least, most = 128 << 10, 1000, 32000
	if memory == 0 {
		memory = 1 << 30
	}
	return int(min(max(memory/each/1000*1000, least), most))
}

// UsableMemory is how many bytes of memory the process can have: those of the machine, or fewer where a control group that it is in has a limit
// (https://docs.kernel.org/admin-guide/cgroup-v2.html). 0 when that cannot be read.
func UsableMemory(root fs.FS) int64 {
	var memory int64
	for _, line := range linesOf(root, "proc/meminfo") {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "MemTotal:" {
			kilobytes, _ := strconv.ParseInt(fields[1], 10, 64)
			memory = kilobytes << 10
		}
	}
	for _, line := range linesOf(root, "proc/self/cgroup") {
		group, unified := strings.CutPrefix(line, "0::")
		for ; unified; group = path.Dir(group) {
			for _, limit := range linesOf(root, path.Join("sys/fs/cgroup", group, "memory.max")) {
				if bytes, err := strconv.ParseInt(limit, 10, 64); err == nil { // else "max"
					memory = min(memory, bytes)
				}
			}
			unified = group != "/" && group != "."
		}
	}
	return memory
}

// linesOf are the lines of a file; none when it cannot be read.
func linesOf(root fs.FS, name string) (lines []string) {
	file, err := root.Open(name)
	if err != nil {
		return nil
	}
	defer file.Close()
	for scanner := bufio.NewScanner(file); scanner.Scan(); {
		lines = append(lines, scanner.Text())
	}
	return lines
}

package hostile

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// measureOthers begins to measure a time. The returned function has its length, and an estimate of its length on a machine
// without other programs than the test, its servers and their children. For the estimate it subtracts the others' share of all
// processors.
func measureOthers() (end func() (whole, alone time.Duration)) {
	began, before := time.Now(), others()
	return func() (whole, alone time.Duration) {
		whole = time.Since(began)
		if whole < promptly/2 {
			return whole, whole // it need not be known
		}
		used := (others() - before) / time.Duration(runtime.NumCPU())
		return whole, whole - min(max(used, 0), whole)
	}
}

// tick is the unit of times in /proc (USER_HZ, time(7)).
const tick = 10 * time.Millisecond

// others is the processor time of programs that are not the test's own, and of the hypervisor (steal), since the machine was started.
func others() (sum time.Duration) {
	for line := range lines("/proc/stat") {
		if fields := strings.Fields(line); len(fields) > 8 && fields[0] == "cpu" { // user, nice, system, idle, iowait, irq, softirq, steal (proc_stat(5))
			sum += ticks(fields[1:4]...) + ticks(fields[6:9]...)
		}
	}
	parents, used := map[int]int{}, map[int]time.Duration{}
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		process, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		for line := range lines(fmt.Sprintf("/proc/%d/stat", process)) {
			_, rest, _ := strings.Cut(line, ") ")
			if fields := strings.Fields(rest); len(fields) > 14 { // ppid is the second, utime, stime, cutime and cstime are the twelfth and on (proc_pid_stat(5))
				parents[process], _ = strconv.Atoi(fields[1])
				used[process] = ticks(fields[11:15]...)
			}
		}
	}
	for process := range used {
		for at := process; at != 0; at = parents[at] {
			if at == os.Getpid() {
				sum -= used[process]
				break
			}
		}
	}
	return sum
}

func ticks(texts ...string) (sum time.Duration) {
	for _, text := range texts {
		count, _ := strconv.ParseInt(text, 10, 64)
		sum += time.Duration(count) * tick
	}
	return sum
}

// lines returns the lines of a file; none when it has gone.
func lines(path string) func(func(string) bool) {
	text, _ := os.ReadFile(path)
	return strings.Lines(string(text))
}

package door

import (
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"
)

// maxStack is how many bytes of stack the work of a child has. Go's own limit is 1 GB (runtime/debug.SetMaxStack), and a stack that grows is copied.
const maxStack = 64 << 20

// Work is the work of a child on its input. An error is a fault of the input.
type Work func(input []byte) (result []byte, err error)

// IsChild reports whether arguments of a program, without its name, make it a child.
func IsChild(args []string) bool { return len(args) > 0 && args[0] == childCommand }

// ServeChild does the work of a child, whose program was run with these arguments, and returns its exit code.
func ServeChild(args []string, kinds map[string]Work) int {
	complain := func(err error, code int) int {
		fmt.Fprint(os.Stderr, err)
		return code
	}
	if !IsChild(args) || len(args) != 4 || kinds[args[1]] == nil {
		return complain(fmt.Errorf("%s KIND MEMORY SECONDS is run by Burano itself", childCommand), 1)
	}
	memory, err := strconv.ParseInt(args[2], 10, 64)
	if err != nil {
		return complain(err, 1)
	}
	seconds, err := strconv.Atoi(args[3])
	if err != nil {
		return complain(err, 1)
	}
	if err := Confine(memory, time.Duration(seconds)*time.Second); err != nil {
		return complain(err, 1)
	}
	input, err := ReadAll(os.Stdin, memory, "the input")
	if err != nil {
		return complain(err, 1)
	}
	result, err := kinds[args[1]](input)
	if err != nil {
		return complain(err, refused)
	}
	if _, err := os.Stdout.Write(result); err != nil {
		return complain(err, 1)
	}
	return 0
}

// Confine limits the process that calls it, for good: the bytes of its data, the stack of each goroutine, and the time of a processor, in whole
// seconds. The process ends at each of these limits, at that of the processor with the exit code 4. When the machine runs out of memory, the process is
// the first to end.
func Confine(memory int64, processor time.Duration) error {
	debug.SetMemoryLimit(memory * 3 / 4) // collects more often before the limit is reached
	debug.SetMaxStack(maxStack)
	tired := make(chan os.Signal, 1)
	signal.Notify(tired, syscall.SIGXCPU)
	go func() {
		<-tired
		os.Exit(exhausted)
	}()
	data, seconds := uint64(memory), uint64(processor.Seconds())
	for resource, limit := range map[int]syscall.Rlimit{
		syscall.RLIMIT_DATA: {Cur: data, Max: data},
		syscall.RLIMIT_CPU:  {Cur: seconds, Max: seconds + 1}, // at the second one the system kills it
	} {
		if err := syscall.Setrlimit(resource, &limit); err != nil {
			return fmt.Errorf("limit the process (getrlimit(2), %d): %w", resource, err)
		}
	}
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0) // a container may forbid it
	return nil
}

package execution

import (
	"fmt"
	"strings"
	"time"
)

// Error is a plan that cannot be run or failed: the error that Murano's agent sends back, an AgentException to code in MuranoPL.
type Error struct {
	Code    int
	Message string
	Plan    string // its name
	Server  string // where it ran; "" before
	// Result is a failed script's result: exitCode, stdout and stderr. nil for other errors.
	Result map[string]any
	Time   time.Time
	said   string // the end of the script's output, captured or not
	cause  error
}

func (e *Error) Error() string {
	var b strings.Builder
	if e.Plan != "" {
		fmt.Fprintf(&b, "execution plan %q", e.Plan)
		if e.Server != "" {
			fmt.Fprintf(&b, " on server %s", e.Server)
		}
		b.WriteString(": ")
	}
	b.WriteString(e.Message)
	if e.Result == nil {
		return b.String()
	}
	fmt.Fprintf(&b, " (exit code %v)", e.Result["exitCode"])
	if e.said != "" {
		fmt.Fprintf(&b, ": %s", e.said)
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.cause }

// ExceptionNames are the names for Catch.
func (e *Error) ExceptionNames() []string {
	return []string{"murano.engine.system.agent.AgentException", "io.murano.system.AgentException"}
}

// ExceptionExtra is the exception's extra: the fields of Murano's.
func (e *Error) ExceptionExtra() map[string]any {
	var details any
	if e.Result != nil {
		details = e.Result
	}
	return map[string]any{"message": e.Message, "details": details, "errorCode": int64(e.Code), "time": e.Time.UTC().Format("2006-01-02 15:04:05.000000"), "extra": nil}
}

const (
	errorLines = 15
	errorBytes = 2 << 10
)

func lastLines(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	text = strings.Join(lines[max(0, len(lines)-errorLines):], "\n")
	return strings.ToValidUTF8(text[max(0, len(text)-errorBytes):], "")
}

// TimeoutError is a plan that did not end in time; its processes were ended.
type TimeoutError struct {
	Plan, Server string
	After        time.Duration
}

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("execution plan %q did not end on server %s within %d seconds: its script was ended. Give the call a longer time-out, "+
		"or see in the log what it waits for", e.Plan, e.Server, int(e.After.Seconds()))
}

// ExceptionNames are the names for Catch.
func (e *TimeoutError) ExceptionNames() []string {
	return []string{"murano.common.exceptions.TimeoutException", "io.murano.system.AgentTimeoutException"}
}

// FullError is a server whose disk is full.
type FullError struct{ Server, Said string }

func (e *FullError) Error() string {
	return fmt.Sprintf("the disk of server %s is full (%s): free some space below /var, or take a flavor with a larger disk", e.Server, e.Said)
}

// Command lang compares the speed of catalog/yaql with that of Debian's python3-yaql. It runs both, one after the other, over each of
// expressions.txt, and writes a table of ratios. Both must give equal results. Then it measures catalog/muranopl, which has no
// counterpart: operations of methods, and the loading of models of several sizes.
package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"reflect"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/burano/burano/catalog/yaql"
)

//go:embed expressions.txt
var list string

//go:embed yaql_bench.py
var program string

type expression struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	Text string `json:"text"`
}

type measured struct {
	Name   string  `json:"name"`
	NS     float64 `json:"ns"`
	Result any     `json:"result"`
	Error  string  `json:"error"`

	allocations uint64
	bytes       uint64
}

func main() {
	python := flag.String("python", "/usr/bin/python3", "the interpreter that has yaql")
	seconds := flag.Float64("seconds", 0.6, "for how long each expression is measured in Python")
	only := flag.String("only", "", "measure only what has this in its name")
	alone := flag.Bool("alone", false, "measure only ours")
	flag.Parse()
	runtime.GOMAXPROCS(1) // as Python has one
	err := run(*python, *seconds, *only, *alone)
	if err == nil {
		err = muranoPL(*only)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "lang:", err)
		os.Exit(1)
	}
}

// run measures each expression in both one after the other, so that other load of the machine affects both.
func run(python string, seconds float64, only string, alone bool) (err error) {
	expressions, document := chosen(only), records()
	ours, theirs := make([]measured, len(expressions)), make([]measured, len(expressions))
	var other *interpreter
	if !alone {
		if other, err = start(python, seconds, document); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, other.stop()) }()
	}
	for i, e := range expressions {
		if ours[i], err = measure(e, document); err != nil {
			return fmt.Errorf("%s: %w", e.Name, err)
		}
		if alone {
			continue
		}
		if theirs[i], err = other.measure(e); err != nil {
			return err
		}
		again, err := measure(e, document)
		if err != nil {
			return fmt.Errorf("%s: %w", e.Name, err)
		}
		ours[i].NS = min(ours[i].NS, again.NS)
	}
	return report(expressions, ours, theirs, alone)
}

func chosen(only string) []expression {
	var found []expression
	for line := range strings.Lines(list) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 3)
		if len(parts) == 3 && !strings.HasPrefix(line, "#") && strings.Contains(parts[1], only) {
			found = append(found, expression{parts[0], parts[1], parts[2]})
		}
	}
	return found
}

// records is the document: 1,000 records of the size that servers' descriptions have.
func records() map[string]any {
	zones := []any{}
	for z := range 8 {
		zones = append(zones, map[string]any{"name": fmt.Sprintf("zone-%d", z), "region": "local"})
	}
	list := make([]any, 1000)
	for n := range list {
		list[n] = map[string]any{
			"name": fmt.Sprintf("node-%04d", n), "zone": fmt.Sprintf("zone-%d", n*7%8), "cpu": n*13%16 + 1, "memory": n * 7919 % 65536,
			"enabled": n%3 != 0, "tags": []any{fmt.Sprintf("t%d", n%17), "all"},
			"labels": map[string]any{"tier": []string{"web", "db", "cache"}[n%3], "rack": n % 40},
		}
	}
	return map[string]any{"records": list, "zones": zones}
}

func measure(e expression, document any) (measured, error) {
	parsed, err := yaql.Parse(e.Text)
	if err != nil {
		return measured{}, err
	}
	var data, value any
	if e.Kind == "records" {
		data = document
	}
	scope := yaql.NewScope(yaql.Standard(), data, yaql.Limits{})
	ctx := context.Background()
	once := func() error {
		if e.Kind == "parse" {
			_, err = yaql.Parse(e.Text)
		} else {
			value, err = parsed.Evaluate(ctx, scope)
		}
		return err
	}
	m, err := best(once)
	m.Name, m.Result = e.Name, yaql.Plain(value)
	return m, err
}

// round runs the function for at least 50 ms of processor time (which another load of the machine does not lengthen; the collector's
// time is in it) and keeps the best mean.
func (m *measured) round(once func() error) error {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began, count := processorTime(), 0
	for batch := 1; ; batch *= 2 {
		for range batch {
			if err := once(); err != nil {
				return err
			}
		}
		count += batch
		if passed := processorTime() - began; passed > 50*time.Millisecond {
			m.NS = min(m.NS, float64(passed.Nanoseconds())/float64(count))
			break
		}
	}
	runtime.ReadMemStats(&after)
	m.allocations = (after.Mallocs - before.Mallocs) / uint64(count)
	m.bytes = (after.TotalAlloc - before.TotalAlloc) / uint64(count)
	return nil
}

func processorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err) // the call fails only for wrong arguments
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// interpreter is Python's YAQL, a process that measures one expression at a time.
type interpreter struct {
	process *exec.Cmd
	jobs    io.WriteCloser
	results *json.Decoder
}

func start(python string, seconds float64, document any) (*interpreter, error) {
	p := &interpreter{process: exec.Command(python, "-c", program)}
	p.process.Stderr = os.Stderr
	out, err := p.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.results = json.NewDecoder(out)
	if p.jobs, err = p.process.StdinPipe(); err != nil {
		return nil, err
	}
	if err := p.process.Start(); err != nil {
		return nil, fmt.Errorf("run %s with yaql (Debian: python3-yaql): %w", python, err)
	}
	return p, json.NewEncoder(p.jobs).Encode(map[string]any{"document": document, "seconds": seconds})
}

func (p *interpreter) measure(e expression) (m measured, err error) {
	if err = json.NewEncoder(p.jobs).Encode(e); err == nil {
		err = p.results.Decode(&m)
	}
	if err == nil && m.Error != "" {
		err = errors.New(m.Error)
	}
	if err != nil {
		return m, fmt.Errorf("%s: Python's yaql: %w", e.Name, err)
	}
	return m, nil
}

// stop ends the process, which ends by itself when its input ends.
func (p *interpreter) stop() error { return errors.Join(p.jobs.Close(), p.process.Wait()) }

func report(expressions []expression, ours, theirs []measured, alone bool) error {
	fmt.Printf("%s, %s/%s, %d processors, %s\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), time.Now().UTC().Format(time.DateOnly))
	fmt.Println("| over | expression | Burano µs | allocations | bytes | python3-yaql µs | ratio |")
	fmt.Println("|---|---|--:|--:|--:|--:|--:|")
	logs, worst := 0.0, math.Inf(1)
	for i, e := range expressions {
		ratio := theirs[i].NS / ours[i].NS
		fmt.Printf("| %s | %s | %.2f | %d | %d | %.1f | %.0f |\n", e.Kind, e.Name, ours[i].NS/1e3, ours[i].allocations, ours[i].bytes, theirs[i].NS/1e3, ratio)
		logs += math.Log(ratio)
		worst = min(worst, ratio)
		if !alone && e.Kind != "parse" && !agree(ours[i].Result, theirs[i].Result) {
			return fmt.Errorf("%s: Burano gives %v, Python's yaql %v", e.Name, ours[i].Result, theirs[i].Result)
		}
	}
	if !alone {
		fmt.Printf("\nGeometric mean: %.0f times python3-yaql's speed; worst case: %.0f times.\n", math.Exp(logs/float64(len(expressions))), worst)
	}
	return nil
}

// agree compares both as JSON, since Python's results came as JSON.
func agree(ours, theirs any) bool {
	text, err := json.Marshal(ours)
	if err != nil {
		return false
	}
	var plain any
	return json.Unmarshal(text, &plain) == nil && reflect.DeepEqual(plain, theirs)
}

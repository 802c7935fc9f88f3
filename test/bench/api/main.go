// Command api measures how many requests per second Burano's API answers. The built server runs as a process of its own over SQLite,
// with authentication by a local Keystone; clients on loopback hold 1 and 8 connections. With -murano, a running Murano gets the
// same requests in the same run. With -followers, it measures the load of clients that follow one deployment.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// The server's content during the measurement.
const (
	packages     = 50
	environments = 100
	applications = 6 // of one environment's draft
)

// request is one measured kind of call.
type request struct {
	name string
	call func(ctx context.Context, t *target, client *http.Client) error
	aims map[int]float64 // requests per second, by the number of connections
	few  bool            // it is slow and changes things: measured for a third of the time
}

var requests = []request{
	{name: "packages, a page of 50", call: same("/v1/catalog/packages?limit=50"), aims: map[int]float64{1: 1300, 8: 3600}},
	{name: "environments, 100", call: same("/v1/environments"), aims: map[int]float64{1: 1500, 8: 2700}},
	{name: "an environment's draft of 6 applications", call: same("/v1/environments/ENVIRONMENT")},
	{name: "its applications", call: same("/v1/environments/ENVIRONMENT/services")},
	{name: "deploy an empty environment, from its making to ready", call: deploy, few: true},
}

var connections = []int{1, 8}

// target is a measured server.
type target struct {
	name, url, token string
	process          int // its id, 0 for a foreign server

	environment, session string            // the environment of the measured reads, and its draft
	answers              map[string][]byte // the first answer of each path
}

// ticks is the unit of the times in /proc/PID/stat (USER_HZ, proc_pid_stat(5)).
const ticks = 10 * time.Millisecond

// processor is the processor time that the server has used. Unlike the request rates it does not depend on other load of the
// machine.
func (t *target) processor() time.Duration {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", t.process))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(content), ") ")
	var sum time.Duration
	if fields := strings.Fields(rest); len(fields) > 12 {
		for _, field := range fields[11:13] {
			value, _ := strconv.Atoi(field)
			sum += time.Duration(value) * ticks
		}
	}
	return sum
}

// memory is the server's peak of memory, as /proc/PID/status writes it.
func (t *target) memory() string {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", t.process))
	if err != nil {
		return "unknown"
	}
	_, rest, _ := strings.Cut(string(content), "VmHWM:")
	line, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(line)
}

func main() {
	program := flag.String("burano", "build/burano", "the built server")
	murano := flag.String("murano", "", "URL of a running Murano that is measured too, such as http://127.0.0.1:8082")
	file := flag.String("clouds", "", "clouds.yaml whose entry burano-demo says who asks it")
	only := flag.String("only", "", "measure only what has this in its name")
	span := flag.Duration("time", 10*time.Second, "how long each number is measured")
	followers := flag.Int("followers", 0, "measure nothing but what so many cost who follow one deployment")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *program, *murano, *file, *only, *followers, *span); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, program, murano, file, only string, followers int, span time.Duration) (err error) {
	l, err := start(ctx, program, followers)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.stop()) }()
	burano := &target{name: "Burano", url: l.url, token: l.token, process: l.server.Process.Pid}
	if followers > 0 {
		return burano.follow(ctx, followers, span)
	}
	targets := []*target{burano}
	if murano != "" {
		token, err := signIn(ctx, file)
		if err != nil {
			return err
		}
		targets = append(targets, &target{name: "Murano", url: murano, token: token})
	}
	for _, t := range targets {
		if err := t.fill(ctx); err != nil {
			return err
		}
	}
	fmt.Printf("%s, %d processors; %s for each number\n\n", runtime.Version(), runtime.NumCPU(), span)
	fmt.Println("| request | server | load | connections | requests/s | median ms | 99 % ms | server's processor ms | aim | times Murano's |")
	fmt.Println("|---|---|--:|--:|--:|--:|--:|--:|--:|--:|")
	for _, r := range requests {
		if !strings.Contains(r.name, only) {
			continue
		}
		for _, n := range connections {
			reference := 0.0
			for _, t := range slices.Backward(targets) { // Murano first
				rate, err := t.report(ctx, r, n, span, reference)
				if err != nil {
					return fmt.Errorf("%s of %s: %w", r.name, t.name, err)
				}
				reference = rate
			}
		}
	}
	fmt.Printf("\nBurano's server has had at most %s in memory.\n", burano.memory())
	return nil
}

// report measures and prints one line of the table. reference is Murano's rate, or 0 without a Murano.
func (t *target) report(ctx context.Context, r request, n int, span time.Duration, reference float64) (rate float64, err error) {
	if r.few {
		span /= 3
	}
	before, machine := t.processor(), load()
	times, took, err := t.measure(ctx, r, n, span)
	if err != nil {
		return 0, err
	}
	rate = float64(len(times)) / took.Seconds()
	used, aim, ratio := "", "", ""
	if t.process != 0 {
		used = fmt.Sprintf("%.2f", milliseconds(t.processor()-before)/float64(len(times)))
		if r.aims[n] > 0 {
			aim = fmt.Sprintf("%.0f", r.aims[n])
		}
		if reference > 0 {
			ratio = fmt.Sprintf("%.0f", rate/reference)
		}
	}
	slices.Sort(times)
	fmt.Printf("| %s | %s | %s | %d | %.1f | %.2f | %.2f | %s | %s | %s |\n", r.name, t.name, machine, n, rate,
		milliseconds(times[len(times)/2]), milliseconds(times[len(times)*99/100]), used, aim, ratio)
	return rate, nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func load() string {
	content, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Fields(string(content))[0]
}

// measure calls over n connections at once for the span, after one call to warm up.
func (t *target) measure(ctx context.Context, r request, n int, span time.Duration) ([]time.Duration, time.Duration, error) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: n, MaxConnsPerHost: n, DisableCompression: true}}
	defer client.CloseIdleConnections()
	if err := r.call(ctx, t, client); err != nil {
		return nil, 0, err
	}
	taken := make([][]time.Duration, n)
	group, ctx := errgroup.WithContext(ctx)
	began := time.Now()
	for i := range n {
		group.Go(func() error {
			for time.Since(began) < span {
				start := time.Now()
				if err := r.call(ctx, t, client); err != nil {
					return err
				}
				taken[i] = append(taken[i], time.Since(start))
			}
			return nil
		})
	}
	err := group.Wait()
	return slices.Concat(taken...), time.Since(began), err
}

// Command api measures how many requests per second Burano's API answers: the built server as a process of its own over SQLite, with
// authentication on, a local Keystone, and clients on loopback that hold 1 and 8 connections. With -murano the same requests go to a
// Murano that is running already, in the same run.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
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

// packages is how many the catalog has while it is listed.
const packages = 50

// request is one kind of call that is measured.
type request struct {
	name string
	path string
	aims map[int]float64 // requests per second, by the number of connections
}

var requests = []request{
	{name: "packages, a page of 50", path: "/v1/catalog/packages?limit=50", aims: map[int]float64{1: 1300, 8: 3600}},
}

var connections = []int{1, 8}

// target is a server that is measured.
type target struct {
	name, url, token string
	process          int // its id, 0 when it is not ours
}

// ticks is the unit of the times in /proc/PID/stat (USER_HZ, proc_pid_stat(5)).
const ticks = 10 * time.Millisecond

// processor is the time of processors that the server has used; unlike the numbers of requests it does not depend on what else runs.
func (t target) processor() time.Duration {
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

func main() {
	program := flag.String("burano", "build/burano", "the built server")
	murano := flag.String("murano", "", "URL of a running Murano that is measured too, such as http://127.0.0.1:8082")
	muranoToken := flag.String("murano-token", os.Getenv("OS_TOKEN"), "token for it (OS_TOKEN)")
	span := flag.Duration("time", 10*time.Second, "how long each number is measured")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *program, target{name: "Murano", url: *murano, token: *muranoToken}, *span); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, program string, murano target, span time.Duration) (err error) {
	l, err := start(ctx, program)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.stop()) }()
	targets := []target{{name: "Burano", url: l.url, token: l.token, process: l.server.Process.Pid}}
	if murano.url != "" {
		targets = append(targets, murano)
	}
	for _, t := range targets {
		if err := t.fill(ctx); err != nil {
			return err
		}
	}
	fmt.Printf("%s, %d processors, load %s; %s for each number\n\n", runtime.Version(), runtime.NumCPU(), load(), span)
	fmt.Println("| request | server | connections | requests/s | median ms | 99 % ms | server's processor ms | aim |")
	fmt.Println("|---|---|--:|--:|--:|--:|--:|--:|")
	for _, r := range requests {
		for _, t := range targets {
			for _, n := range connections {
				before := t.processor()
				times, took, err := t.measure(ctx, r, n, span)
				if err != nil {
					return err
				}
				used := ""
				if t.process != 0 {
					used = fmt.Sprintf("%.2f", milliseconds(t.processor()-before)/float64(len(times)))
				}
				slices.Sort(times)
				aim := ""
				if t.name == "Burano" && r.aims[n] > 0 {
					aim = fmt.Sprintf("%.0f", r.aims[n])
				}
				fmt.Printf("| %s | %s | %d | %.0f | %.2f | %.2f | %s | %s |\n", r.name, t.name, n, float64(len(times))/took.Seconds(),
					milliseconds(times[len(times)/2]), milliseconds(times[len(times)*99/100]), used, aim)
			}
		}
	}
	return nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func load() string {
	content, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Fields(string(content))[0]
}

// measure calls over n connections at once for the span, after as many calls to warm up as connections; every answer must be the same.
func (t target) measure(ctx context.Context, r request, n int, span time.Duration) ([]time.Duration, time.Duration, error) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: n, MaxConnsPerHost: n, DisableCompression: true}}
	defer client.CloseIdleConnections()
	expected, err := t.get(ctx, client, r.path)
	if err != nil {
		return nil, 0, err
	}
	taken := make([][]time.Duration, n)
	group, ctx := errgroup.WithContext(ctx)
	began := time.Now()
	for i := range n {
		group.Go(func() error {
			for time.Since(began) < span {
				start := time.Now()
				answer, err := t.get(ctx, client, r.path)
				if err != nil {
					return err
				}
				taken[i] = append(taken[i], time.Since(start))
				if len(answer) != len(expected) {
					return fmt.Errorf("%s answers GET %s with %d bytes, and then with %d", t.name, r.path, len(expected), len(answer))
				}
			}
			return nil
		})
	}
	err = group.Wait()
	return slices.Concat(taken...), time.Since(began), err
}

func (t target) get(ctx context.Context, client *http.Client, path string) ([]byte, error) {
	call, err := http.NewRequestWithContext(ctx, http.MethodGet, t.url+path, nil)
	if err != nil {
		return nil, err
	}
	call.Header.Set("X-Auth-Token", t.token)
	response, err := client.Do(call)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers GET %s with %s: %s", t.name, path, response.Status, bytes.TrimSpace(content))
	}
	return content, err
}

// count is how many packages a page of 50 has.
func (t target) count(ctx context.Context) (int, error) {
	content, err := t.get(ctx, http.DefaultClient, requests[0].path)
	if err != nil {
		return 0, err
	}
	var page struct{ Packages []json.RawMessage }
	err = json.Unmarshal(content, &page)
	return len(page.Packages), err
}

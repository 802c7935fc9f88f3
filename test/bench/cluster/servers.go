package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/burano/burano/test/timeline"
)

// serverCounts are the numbers of servers whose times are compared.
var serverCounts = []int{1, 10}

// boots are the seconds that servers wait while they boot. Without a wait processors are the limit, and a cloud has more of them.
var boots = []int{0, 20}

// variant is a number of servers, and the seconds that they wait while they boot.
type variant struct{ count, boot int }

// measureServers measures how long one deployment of an application takes on so many servers, which a plan sets up over SSH. Each round
// measures all variants, one after another.
func (l *lab) measureServers(ctx context.Context, rounds int) error {
	if err := l.run(ctx, "burano-demo", "burano", "package", "import", "test/packages/io.burano.test.Pages"); err != nil {
		return err
	}
	found := map[variant][]measurement{}
	for range rounds {
		for _, boot := range boots {
			for _, count := range serverCounts {
				one, err := l.deployServers(ctx, variant{count, boot})
				if err != nil {
					return fmt.Errorf("deploy %d servers: %w", count, err)
				}
				fmt.Fprintf(os.Stderr, "%2d servers that wait %2d s %6.1f s  %6.1f s of processors  load %s\n", count, boot, one.seconds, one.used, load())
				found[variant{count, boot}] = append(found[variant{count, boot}], one)
				if err := l.run(ctx, "burano-demo", "burano", "environment", "delete", "--yes", environmentName); err != nil {
					return err
				}
			}
		}
	}
	fmt.Print(describeServers(found))
	return nil
}

func (l *lab) deployServers(ctx context.Context, wanted variant) (measurement, error) {
	file := filepath.Join(l.folder, "servers.yaml")
	text := fmt.Sprintf(`name: %s
applications:
  - "?": {type: io.burano.test.Pages}
    name: Pages
    text: A page
    scaleFactor: 1
    servers:
      "?": {type: io.murano.applications.ServerReplicationGroup}
      numItems: %d
      provider:
        "?": {type: io.murano.applications.TemplateServerProvider}
        serverNamePattern: page-{0}
        template:
          "?": {type: io.burano.test.WaitingServer}
          waits: %d
          flavor: m1.small
          image: burano-node
          assignFloatingIp: true
`, environmentName, wanted.count, wanted.boot)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return measurement{}, err
	}
	return l.measure(ctx, fmt.Sprintf("%d servers", wanted.count), "deploy", file, "--follow")
}

// describeServers writes the table. Each variant is represented by its round with the median time.
func describeServers(found map[variant][]measurement) string {
	var text, ratios, paths strings.Builder
	fmt.Fprintf(&text, "%d processors, load %s, %d rounds.\n\n", runtime.NumCPU(), load(), len(found[variant{serverCounts[0], boots[0]}]))
	text.WriteString("| the boot waits (s) | servers | s (median) | fastest | s of processors | that takes on all of them |\n|--:|--:|--:|--:|--:|--:|\n")
	for _, boot := range boots {
		median := map[int]measurement{}
		for _, count := range serverCounts {
			all := slices.Clone(found[variant{count, boot}])
			slices.SortFunc(all, func(a, b measurement) int { return cmp.Compare(a.seconds, b.seconds) })
			one := all[len(all)/2]
			median[count] = one
			fmt.Fprintf(&text, "| %d | %d | %.1f | %.1f | %.1f | %.1f |\n", boot, count, one.seconds, all[0].seconds, one.used, one.used/float64(runtime.NumCPU()))
			var parts []string
			for _, step := range timeline.CriticalPath(one.steps) {
				parts = append(parts, fmt.Sprintf("%s %.1f", step.Name, step.Took().Seconds()))
			}
			fmt.Fprintf(&paths, "- %d that wait %d s: %s\n", count, boot, strings.Join(parts, ", "))
		}
		fmt.Fprintf(&ratios, "%d servers that wait %d s take %.1f times as long as %d.\n", serverCounts[1], boot, median[serverCounts[1]].seconds/median[serverCounts[0]].seconds, serverCounts[0])
	}
	return text.String() + "\n" + ratios.String() + "\nCritical paths:\n\n" + paths.String()
}

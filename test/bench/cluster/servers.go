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

// measureServers measures how long one deployment of an application on so many servers takes, which a plan sets up over SSH; each round
// all of them, one after another.
func (l *lab) measureServers(ctx context.Context, rounds int) error {
	if err := l.run(ctx, "burano-demo", "burano", "package", "import", "test/packages/io.burano.test.Pages"); err != nil {
		return err
	}
	found := map[int][]measurement{}
	for range rounds {
		for _, count := range serverCounts {
			one, err := l.deployServers(ctx, count)
			if err != nil {
				return fmt.Errorf("deploy %d servers: %w", count, err)
			}
			fmt.Fprintf(os.Stderr, "%2d servers %6.1f s  %6.1f s of processors  load %s\n", count, one.seconds, one.used, load())
			found[count] = append(found[count], one)
			if err := l.run(ctx, "burano-demo", "burano", "environment", "delete", environmentName); err != nil {
				return err
			}
		}
	}
	fmt.Print(describeServers(found))
	return nil
}

func (l *lab) deployServers(ctx context.Context, count int) (measurement, error) {
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
          "?": {type: io.murano.resources.LinuxMuranoInstance}
          flavor: m1.small
          image: burano-node
          assignFloatingIp: true
`, environmentName, count)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return measurement{}, err
	}
	return l.measure(ctx, fmt.Sprintf("%d servers", count), "deploy", file, "--follow")
}

// describeServers writes the table. Of each number the round with the median time stands for all.
func describeServers(found map[int][]measurement) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%d processors, load %s, %d rounds.\n\n", runtime.NumCPU(), load(), len(found[serverCounts[0]]))
	text.WriteString("| servers | s (median) | fastest | s of processors | that takes on all of them |\n|--:|--:|--:|--:|--:|\n")
	median := map[int]measurement{}
	for _, count := range serverCounts {
		all := slices.Clone(found[count])
		slices.SortFunc(all, func(a, b measurement) int { return cmp.Compare(a.seconds, b.seconds) })
		median[count] = all[len(all)/2]
		fmt.Fprintf(&text, "| %d | %.1f | %.1f | %.1f | %.1f |\n", count, median[count].seconds, all[0].seconds, median[count].used, median[count].used/float64(runtime.NumCPU()))
	}
	one, ten := median[serverCounts[0]], median[serverCounts[1]]
	fmt.Fprintf(&text, "\n%d servers take %.1f times as long as %d.\n\nCritical paths:\n\n", serverCounts[1], ten.seconds/one.seconds, serverCounts[0])
	for _, count := range serverCounts {
		var parts []string
		for _, step := range timeline.CriticalPath(median[count].steps) {
			parts = append(parts, fmt.Sprintf("%s %.1f", step.Name, step.Took().Seconds()))
		}
		fmt.Fprintf(&text, "- %d: %s\n", count, strings.Join(parts, ", "))
	}
	return text.String()
}

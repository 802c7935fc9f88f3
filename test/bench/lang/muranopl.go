package main

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"strings"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/catalog/apps"
	"github.com/burano/burano/catalog/core"
	"github.com/burano/burano/catalog/muranopl"
)

//go:embed package
var benchPackage embed.FS

// methods are the measured methods of class bench.Methods, and how often each repeats the operation that its row names.
var methods = []struct {
	what, method string
	times        int
}{
	{"an instruction that does nothing", "emptyLoop", 1000},
	{"call a method", "callMethod", 1000},
	{"call one that takes no lock", "callUnlocked", 1000},
	{"call a static one", "callStatic", 1000},
	{"call one with two arguments", "callWithArguments", 1000},
	{"call one with nested contracts", "callWithContracts", 1000},
	{"calls that call (Fibonacci of 14)", "recursion", 1219},
	{"read a property", "readProperty", 1000},
	{"add to a property", "writeProperty", 1000},
	{"write into maps of a property", "writeBelowProperty", 1000},
	{"add to a variable", "writeVariable", 1000},
	{"make an object", "makeObject", 1000},
	{"throw and catch", "catchException", 1000},
}

// muranoPL measures the language and writes two tables.
func muranoPL(only string) error {
	source, err := benchSource()
	if err != nil {
		return err
	}
	ctx := context.Background()
	fmt.Println("\n| MuranoPL | µs | allocations | bytes |")
	fmt.Println("|---|--:|--:|--:|")
	for _, row := range methods {
		if !strings.Contains(row.what, only) {
			continue
		}
		interpreter := newInterpreter(source)
		object, problems, err := interpreter.Load(ctx, map[string]any{"?": header("bench.Methods", "root"), "name": "web"})
		if len(problems) > 0 {
			return problems[0]
		}
		if err != nil {
			return err
		}
		m, err := best(func() error {
			_, err := interpreter.Invoke(ctx, object, row.method, nil)
			return err
		})
		if err != nil {
			return fmt.Errorf("%s: %w", row.method, err)
		}
		times := uint64(row.times)
		fmt.Printf("| %s | %.2f | %d | %d |\n", row.what, m.NS/1e3/float64(times), m.allocations/times, m.bytes/times)
	}

	fmt.Println("\n| objects | load ms | µs per object | allocations | bytes | save ms | µs per object |")
	fmt.Println("|--:|--:|--:|--:|--:|--:|--:|")
	for _, count := range []int{1000, 2000, 5000, 10_000} {
		if !strings.Contains("load a model", only) {
			continue
		}
		model := modelOf(count)
		var root *muranopl.Object
		loaded, err := best(func() error {
			var problems []muranopl.Problem
			var err error
			if root, problems, err = newInterpreter(source).Load(ctx, model); len(problems) > 0 {
				err = problems[0]
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("load %d objects: %w", count, err)
		}
		saved, err := best(func() error { muranopl.Save(root); return nil })
		if err != nil {
			return err
		}
		each := float64(count)
		fmt.Printf("| %d | %.1f | %.1f | %d | %d | %.1f | %.1f |\n", count, loaded.NS/1e6, loaded.NS/1e3/each,
			loaded.allocations/uint64(count), loaded.bytes/uint64(count), saved.NS/1e6, saved.NS/1e3/each)
	}
	return nil
}

func best(once func() error) (measured, error) {
	m := measured{NS: math.Inf(1)}
	for range 5 {
		if err := m.round(once); err != nil {
			return m, err
		}
	}
	return m, nil
}

func benchSource() (catalog.Shelf, error) {
	embedded, err := apps.Packages()
	if err != nil {
		return nil, err
	}
	folder, err := fs.Sub(benchPackage, "package")
	if err != nil {
		return nil, err
	}
	own, err := catalog.ReadFolder(folder)
	if err != nil {
		return nil, err
	}
	return append(catalog.Shelf{own}, embedded...), nil
}

func newInterpreter(source catalog.Shelf) *muranopl.Interpreter {
	host := &core.Local{Logger: slog.New(slog.DiscardHandler)}
	// Metered, as in a server, with limits that no measurement reaches.
	return muranopl.NewInterpreter(muranopl.NewClasses(source), host.Natives(), muranopl.WithLimits(muranopl.Limits{Steps: 1 << 40, Memory: 128 << 20}))
}

func header(class, id string) map[string]any { return map[string]any{"type": class, "id": id} }

// modelOf is a model of so many objects: items of a shelf, each of which owns a part and refers to the item before it.
func modelOf(count int) map[string]any {
	items := []any{}
	item := func(n int) map[string]any {
		return map[string]any{"?": header("bench.Item", fmt.Sprintf("item-%d", n)), "name": fmt.Sprintf("item %d", n), "number": n,
			"labels": map[string]any{"tier": "web", "zone": fmt.Sprintf("zone-%d", n%8)}}
	}
	for n := 1; n < count; n += 2 {
		one := item(n)
		if n > 1 {
			one["before"] = fmt.Sprintf("item-%d", n-2)
		}
		if n+1 < count {
			one["part"] = item(n + 1)
		}
		items = append(items, one)
	}
	return map[string]any{"?": header("bench.Shelf", "root"), "items": items}
}

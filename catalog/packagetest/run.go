// Package packagetest runs the tests of packages: the methods test… of their classes that extend io.murano.test.TestFixture.
package packagetest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/catalog/core"
	"github.com/burano/burano/catalog/muranopl"
)

const fixture = "io.murano.test.TestFixture"

// Result is the result of one test.
type Result struct {
	Name string // class and method
	Err  error  // nil when it has passed
}

// Run runs the tests of a package whose names contain filter, each on an object of its own between setUp and tearDown, and reports
// each as it ends. Methods in Go, but for the language's own, are not there: a test replaces them by inject(). The error is that tests could not be looked for.
func Run(ctx context.Context, pkg *catalog.Package, others catalog.Shelf, filter string, report func(Result)) error {
	source := append(catalog.Shelf{pkg}, others...)
	for _, name := range pkg.ClassNames() {
		class, err := muranopl.NewClasses(source).Class(ctx, name, "="+pkg.Version().String())
		if err != nil {
			return err
		}
		if !class.Is(fixture) {
			continue
		}
		for _, method := range class.Methods {
			if full := method.FullName(); strings.HasPrefix(method.Name, "test") && strings.Contains(full, filter) {
				report(Result{full, one(ctx, source, name, method.Name)})
			}
		}
	}
	return nil
}

func one(ctx context.Context, source catalog.Shelf, class, method string) error {
	host := &core.Local{Logger: slog.New(slog.DiscardHandler)}
	interpreter := muranopl.NewInterpreter(muranopl.NewClasses(source), host.Natives(), muranopl.WithMocks())
	object, err := interpreter.New(ctx, class, nil, nil)
	if err != nil {
		return fmt.Errorf("make the fixture: %w", err)
	}
	if _, err := interpreter.Invoke(ctx, object, "setUp", nil); err != nil {
		return fmt.Errorf("setUp: %w", err)
	}
	_, err = interpreter.Invoke(ctx, object, method, nil)
	_, after := interpreter.Invoke(ctx, object, "tearDown", nil)
	return errors.Join(err, after)
}

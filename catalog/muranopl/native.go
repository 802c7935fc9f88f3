package muranopl

import (
	"context"
	"errors"
	"fmt"
)

// Call is one call of a native method.
type Call struct {
	Object *Object // the object that the method is called on; nil for a static method
	Method *Method
	// Args holds a value for each argument that the method declares, after its contract was applied.
	Args        map[string]any
	Interpreter *Interpreter
}

// NativeMethod is a method's body in Go. What it returns is a value as the package's comment lists them. When it panics, the call
// fails with an error that names class and method.
type NativeMethod func(ctx context.Context, call Call) (any, error)

// Natives are the native methods: package's full name → class → method.
type Natives map[string]map[string]map[string]NativeMethod

func (n Natives) find(m *Method) NativeMethod {
	return n[m.Class.Package.FullName()][m.Class.Name][m.Name]
}

// CheckNatives compares the natives with what embedded packages declare, both ways, and lists every difference: a method that says
// Native and has no body in Go, and a body in Go that no class asks for. It reads every class of the embedded packages.
func CheckNatives(ctx context.Context, classes *Classes, packages []Package, natives Natives) error {
	var wrong []error
	wanted := map[string]bool{}
	for _, pkg := range packages {
		for _, name := range pkg.ClassNames() {
			class, err := classes.named(ctx, typeName{class: name, pkg: pkg.FullName(), version: pkg.Version().String()})
			if err != nil {
				wrong = append(wrong, fmt.Errorf("package %s: %w", pkg.FullName(), err))
				continue
			}
			for _, m := range class.Methods {
				if !m.Native || !pkg.Embedded() {
					continue
				}
				wanted[pkg.FullName()+" "+m.FullName()] = true
				if natives.find(m) == nil {
					wrong = append(wrong, fmt.Errorf("method %s of package %s (%s) is native, but has no body in Go", m.FullName(), pkg.FullName(), m.Position))
				}
			}
		}
	}
	for _, pkg := range sortedKeys(natives) {
		for _, class := range sortedKeys(natives[pkg]) {
			for _, method := range sortedKeys(natives[pkg][class]) {
				if !wanted[pkg+" "+class+"."+method] {
					wrong = append(wrong, fmt.Errorf("there is a body in Go for %s.%s of package %s, but no embedded class declares it native", class, method, pkg))
				}
			}
		}
	}
	return errors.Join(wrong...)
}

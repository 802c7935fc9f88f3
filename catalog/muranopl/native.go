package muranopl

import (
	"context"
	"errors"
	"fmt"
)

// Call is one call of a native method. It is valid during the call; copy the parts that are needed longer.
type Call struct {
	// Object is the receiver: an object of the class that declares the method, or of one that descends from it. nil for static and extension
	// methods; an extension's receiver is its first argument.
	Object *Object
	// Method is the declaration; its Class is that of a static method.
	Method *Method
	// Args holds a value for each argument that the method declares, by name, after its contract was applied: nil, bool, int64, float64, string, []any,
	// map[string]any, *Object or TypeReference. An omitted argument is its default or null; VarArgs are a []any and KwArgs a map[string]any.
	Args map[string]any
	// Interpreter runs the method: Invoke and InvokeStatic call others, New makes objects.
	Interpreter *Interpreter
}

// NativeMethod is a method's body in Go. The context ends when the run is cancelled, and the body returns soon after. Passed on to the interpreter it also
// carries the call: methods called with it count as called by this one, in stack traces and for locks.
//
// The result is a value of the types in the package's comment, or an int or []string, which are converted. An error becomes an exception that Catch can
// name by the table at AsException; an error with a method ExceptionNames() []string supplies its own names. An exception of code in MuranoPL that was
// called by Invoke is an *Exception there, and continues as the same exception when it is returned. When the body panics, the call fails with an error
// that names class and method.
//
// Other code of the interpreter runs during the body, except for a method that is declared prompt.
type NativeMethod func(ctx context.Context, call Call) (any, error)

// Natives are the native methods: package's full name → class → method; ".init" and ".destroy" are methods as well. Only classes of embedded packages can
// have them, in methods with "Native: true" or "Native: prompt"; a method of any other package without a Body returns null.
type Natives map[string]map[string]map[string]NativeMethod

func (n Natives) find(m *Method) NativeMethod {
	return n[m.Class.Package.FullName()][m.Class.Name][m.Name]
}

// has reports whether a class of that name has the method in Go, whichever its package.
func (n Natives) has(m *Method) bool {
	for _, classes := range n {
		if classes[m.Class.Name][m.Name] != nil {
			return true
		}
	}
	return false
}

// CheckNatives compares the natives with the declarations of embedded packages, in both directions, and lists every difference: a method with Native and
// without a body in Go, and a body in Go that no class declares. It reads every class of the embedded packages.
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

package yaql

import (
	"slices"
	"sync"
)

// Standard is YAQL's own library.
func Standard() *Functions { return standard() }

// Legacy is the library as packages of format 1.0 and 1.1 and forms see it: functions are methods too, and more.
func Legacy() *Functions { return legacy() }

// Built once: a table does not change.
var (
	standard = sync.OnceValue(func() *Functions {
		all := slices.Concat(logicFunctions(), mathFunctions(), stringFunctions(), regexFunctions(), collectionFunctions(), queryFunctions(), timeFunctions())
		for _, f := range all {
			f.library = true
			if slices.Contains(lazyFunctions, f.Name) {
				f.Call = lazily(f.Call)
			}
		}
		functions := NewFunctions(all...)
		functions.plain = true
		return functions
	})
	legacy = sync.OnceValue(func() *Functions {
		more := legacyFunctions()
		for _, f := range more {
			f.library = true
		}
		return standard().Extend(more...).Lenient()
	})
)

// lazyFunctions make lists here and sequences in Python's YAQL, where it can be seen: these have no index, cannot be multiplied, and
// list() takes their items.
var lazyFunctions = []string{
	"delete", "replace", "replaceMany", "insertMany", "flatten", "append", "distinct", "enumerate", "join", "slice", "splitWhere", "sliceWhere",
	"accumulate", "reverse", "groupBy", "examine", "selectAllCases", "searchAll",
}

func lazily(call body) body {
	return func(i *Invocation) (any, error) {
		value, err := call(i)
		if items, ok := value.([]any); ok {
			return sequence(items), err
		}
		return value, err
	}
}

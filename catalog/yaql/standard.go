package yaql

import (
	"slices"
	"sync"
)

// Standard is YAQL's own library.
func Standard() *Functions { return standard() }

// Legacy is the library as packages of format 1.0 and 1.1 and forms see it: functions are methods too, functions of
// collections take maps as their keys, and more.
func Legacy() *Functions { return legacy() }

// Built once: a table does not change.
var (
	standard = sync.OnceValue(func() *Functions {
		all := slices.Concat(logicFunctions(), mathFunctions(), stringFunctions(), regexFunctions(), collectionFunctions(), queryFunctions(), timeFunctions())
		for _, f := range all {
			f.library = true
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
		return standard().Extend(more...).Lenient().Keyed()
	})
)
